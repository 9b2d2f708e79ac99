"""deploy/: the Dockerfile, .dockerignore, the units of systemd and the Slurm script."""

import configparser
import fnmatch
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from absl.testing import absltest

from testing import commands, package_test
from testing.deploy import kubernetes_objects

ROOT = pathlib.Path(__file__).resolve().parents[2]
SLURM = ROOT / "deploy" / "slurm" / "train.sbatch"


def _values(name):
    """Returns the words of each instruction of a kind in the Dockerfile."""
    lines = (ROOT / "deploy" / "Dockerfile").read_text().splitlines()
    text = "\n".join(line for line in lines if line and not line.startswith("#"))
    instructions = (line.split() for line in text.replace("\\\n", " ").splitlines())
    return [words for found, *words in instructions if found == name]


class DockerfileTest(absltest.TestCase):
    def test_python_is_that_of_the_package(self):
        self.assertEqual(_values("FROM"), [["python:3.11-slim"]])
        self.assertIn('requires-python = "==3.11.*"', (ROOT / "pyproject.toml").read_text())

    def test_all_files_of_the_package_are_copied(self):
        copied = [word for words in _values("COPY") for word in words[:-1]]
        for name in copied:
            self.assertTrue((ROOT / name).exists(), name)
        self.assertContainsSubset({*package_test.FILES, *package_test.FOLDERS}, copied)
        first, *lines = [
            line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] != "#"
        ]
        self.assertEqual(first, "*")
        self.assertEqual({line[1:] for line in lines if line[0] == "!"}, set(copied))
        for line in lines:
            if line[0] != "!":
                self.assertEmpty(fnmatch.filter(copied, line))

    def test_both_locks_are_complete_when_they_are_installed(self):
        self.assertEqual(_values("ARG"), [["LOCK=requirements.lock"]])
        first = _values("COPY")[0]
        for lock in ("requirements.lock", "requirements-gpu.lock"):
            included = re.findall(r"^-r (\S+)", (ROOT / lock).read_text(), re.M)
            self.assertContainsSubset([lock, *included], first)
        installs = [words for words in _values("RUN") if words[:2] == ["pip", "install"]]
        self.assertLen(installs, 2)
        for words in installs:
            self.assertIn("--no-deps", words)
        self.assertEqual(installs[0][-2:], ["-r", '"${LOCK}"'])

    def test_user_is_that_of_the_pods(self):
        ((user,),) = _values("USER")
        number, group = map(int, user.split(":"))
        (made,) = (words for words in _values("RUN") if words[0] == "useradd")
        self.assertIn(str(number), made)
        for pod in kubernetes_objects.pods():
            security = pod["spec"]["securityContext"]
            self.assertEqual((security["runAsUser"], security["runAsGroup"]), (number, group))


class SystemdTest(absltest.TestCase):
    def _service(self, name):
        """Returns the section Service of a unit, and the flags of its command, which are valid."""
        unit = configparser.ConfigParser(interpolation=None, comment_prefixes="#")
        unit.optionxform = str
        text = (ROOT / "deploy" / "systemd" / f"{name}.service").read_text()
        unit.read_string(text.replace("\\\n", " "))
        self.assertEqual(unit.sections(), ["Unit", "Service", "Install"])
        program, *arguments = shlex.split(unit["Service"]["ExecStart"])
        self.assertEqual(pathlib.Path(program).name, name)
        module = name.removeprefix("laser-").replace("-", "_")
        code, _, errors = commands.run_forked(module, *arguments, "--help")
        self.assertEqual(code, 0, errors)
        flags = dict(argument.removeprefix("--").split("=", 1) for argument in arguments)
        return unit["Service"], flags

    def test_replay_server_is_limited_and_has_time_to_save(self):
        service, flags = self._service("laser-replay-server")
        limit = 1e9 * float(flags["memory_limit_gb"])
        minutes = int(re.fullmatch(r"(\d+)min", service["TimeoutStopSec"])[1])
        self.assertGreater(60 * minutes, limit / 10e6)
        maximum = int(re.fullmatch(r"(\d+)G", service["MemoryMax"])[1]) * 2**30
        self.assertGreater(maximum, 1.2 * limit)
        folder = pathlib.Path("/var/lib") / service["StateDirectory"]
        self.assertEqual(pathlib.Path(flags["checkpoint_folder"]).parent, folder)
        self.assertEqual(service["ProtectSystem"], "strict")
        self.assertEqual(service["IPAddressDeny"], "any")
        self.assertNotIn("any", service["IPAddressAllow"])
        self.assertNotEqual(service["User"], "root")

    def test_failed_training_restarts_and_stop_saves(self):
        service, _ = self._service("laser-train")
        self.assertEqual(service["Restart"], "on-failure")
        self.assertEqual(service["KillMode"], "mixed")


class SlurmTest(absltest.TestCase):
    def test_ray_accepts_the_options(self):
        from ray.scripts import scripts, symmetric_run

        command = re.search(r"ray symmetric-run (.*?) -- ", SLURM.read_text(), re.S)[1]
        text = command.replace("\\\n", "").replace("$address", "10.1.2.3:6379")
        words = shlex.split(re.sub(r"\$SLURM_\w+", "3", text))
        context = symmetric_run.symmetric_run.make_context("x", [*words], resilient_parsing=True)
        self.assertEqual(context.params["address"], "10.1.2.3:6379")
        self.assertEqual(context.params["min_nodes"], 3)
        start_words = symmetric_run.curate_and_validate_ray_start_args(words)
        self.assertEqual(scripts.start.make_context("x", start_words).params["num_cpus"], 3)

    def test_missing_workdir_is_rejected(self):
        done = subprocess.run(["bash", str(SLURM)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertLen(done.stderr.splitlines(), 1)
        self.assertIn("--workdir", done.stderr)

    def test_signal_comes_early_enough_to_save(self):
        options = dict(re.findall(r"^#SBATCH --([a-z-]+)=?(\S*)$", SLURM.read_text(), re.M))
        seconds = re.fullmatch(r"B:USR1@(\d+)", options["signal"])[1]  # B: to the script alone.
        self.assertGreaterEqual(int(seconds), 3 * 180)  # To end actors, learner and replay.
        self.assertEqual(options["ntasks-per-node"], "1")
        self.assertContainsSubset({"exclusive", "requeue"}, options)

    def test_shellcheck_finds_nothing(self):
        path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
        program = shutil.which("shellcheck", path=path)
        done = subprocess.run([program, str(SLURM)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    absltest.main()
