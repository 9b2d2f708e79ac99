"""deploy/slurm/train.sbatch with stand-ins for Slurm, Ray and laser-train that note their calls."""

import os
import pathlib
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

from absl.testing import absltest, parameterized

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "slurm" / "train.sbatch"
_NOTE = 'printf "%s " "$(basename "$0")" "${@@Q}" >>"$CALLS"; echo >>"$CALLS"\n'
_WAIT = 'for _ in $(seq "${%s:-0}"); do sleep 0.1; done\n'  # tenths of a second
_PROGRAMS = {
    "hostname": 'echo "10.1.2.3 172.17.0.1 "\n',
    "scontrol": _NOTE,
    # As Slurm's: ends its tasks when it is told to end; and the other nodes' tasks after the first,
    # which makes its exit status.
    "srun": _NOTE
    + 'while [[ $1 == -* ]]; do shift; done\n"$@" &\n'
    + "trap 'kill $!' TERM\nwait $!\nexit 143\n",
    "ray": _NOTE
    + "if [[ $1 == get-auth-token ]]; then\n"
    + "  mkdir -p ~/.ray; echo secret | tee ~/.ray/auth_token; exit\nfi\n"
    + _WAIT % "TENTHS_TO_START"
    + 'while [[ $1 != -- ]]; do shift; done; shift\n"$@"\n',
    "laser-train": _NOTE
    + """trap 'echo saved >>"$CALLS"; trap - TERM; kill -TERM $$' TERM\n"""
    + '[[ -z "${IS_DONE:-}" ]] || trap "exit 0" TERM\n'
    + 'echo training >>"$CALLS"\n'
    + _WAIT % "TENTHS_TO_TRAIN"
    + 'exit "${CODE:-0}"\n',
}
_ARGUMENTS = ("--config=laser:catch", "--workdir=/shared/my run", "--config.cluster.actors=4")


class SlurmTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)
        self._calls = self._folder / "calls"
        self._calls.touch()
        self._programs = self._folder / "bin"
        self._programs.mkdir()
        for name, text in _PROGRAMS.items():
            (self._programs / name).write_text("#!/bin/bash\n" + text)
            (self._programs / name).chmod(0o755)

    def _start(self, *arguments, **variables):
        environment = {
            "PATH": f"{self._programs}:/usr/bin:/bin",
            "HOME": str(self._folder),
            "CALLS": str(self._calls),
            "TMPDIR": str(self._folder),
            "SLURM_JOB_ID": "77",
            "SLURM_JOB_NUM_NODES": "3",
            "SLURM_CPUS_PER_TASK": "16",
        }
        process = subprocess.Popen(
            ["bash", str(SCRIPT), *arguments],
            env=environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.addCleanup(process.communicate)
        self.addCleanup(_kill, process)
        return process

    def _run(self, *arguments, **variables):
        process = self._start(*arguments, **variables)
        output, errors = process.communicate(timeout=60)
        return process.returncode, output, errors

    def _signalled(self, number, after, **variables):
        process = self._start(*_ARGUMENTS, TENTHS_TO_TRAIN="600", **variables)
        deadline = time.monotonic() + 60
        while after not in self._calls.read_text():
            self.assertLess(time.monotonic(), deadline, self._calls.read_text())
            time.sleep(0.02)
        process.send_signal(number)
        process.communicate(timeout=60)
        return process.returncode

    def _call(self, program):
        """The words of the last call of a program."""
        lines = (shlex.split(line) for line in self._calls.read_text().splitlines())
        *_, words = (words for words in lines if words[0] == program)
        return words[1:]

    def test_the_driver_gets_the_arguments_and_its_status_is_the_jobs(self):
        for code in (0, 3):
            status, _, errors = self._run(*_ARGUMENTS, CODE=str(code))
            self.assertEqual(status, code, errors)
            expected = [*_ARGUMENTS, "--config.cluster.address=auto"]
            self.assertEqual(self._call("laser-train"), expected)
        self.assertNotIn("scontrol", self._calls.read_text())

    def test_ray_starts_on_every_node_with_options_that_it_has(self):
        from ray.scripts import scripts, symmetric_run

        self._run(*_ARGUMENTS)
        (*options, program) = self._call("srun")[: self._call("srun").index("ray") + 1]
        self.assertEqual(program, "ray")
        self.assertContainsSubset(
            ["--nodes=3", "--ntasks-per-node=1", "--cpus-per-task=16"], options
        )
        command, *words = self._call("ray")
        self.assertIs(scripts.cli.commands[command], symmetric_run.symmetric_run)
        words = words[: words.index("--")]
        own = symmetric_run.symmetric_run.make_context("x", list(words), resilient_parsing=True)
        self.assertEqual(own.params["address"], "10.1.2.3:6379")
        self.assertEqual(own.params["min_nodes"], 3)
        of_start = symmetric_run.curate_and_validate_ray_start_args(words)
        self.assertNotEmpty(of_start)
        start = scripts.start.make_context("x", of_start)  # raises for an option that it has not
        self.assertEqual(start.params["num_cpus"], 16)

    @parameterized.parameters((signal.SIGUSR1, True), (signal.SIGTERM, False))
    def test_a_signal_saves_and_the_time_limits_queues_it_again(self, number, again):
        status = self._signalled(number, after="training")
        self.assertEqual(status, 128 + signal.SIGTERM)
        self.assertIn("saved\n", self._calls.read_text())
        self.assertEqual("scontrol" in self._calls.read_text(), again)
        if again:
            self.assertEqual(self._call("scontrol"), ["requeue", "77"])

    def test_a_run_that_is_done_when_the_time_is_up_is_not_queued_again(self):
        self.assertEqual(self._signalled(signal.SIGUSR1, after="training", IS_DONE="1"), 0)
        self.assertNotIn("scontrol", self._calls.read_text())

    def test_a_signal_that_comes_before_there_is_a_driver_ends_the_job(self):
        status = self._signalled(signal.SIGTERM, after="ray 'symmetric-run'", TENTHS_TO_START="600")
        self.assertNotEqual(status, 0)
        self.assertNotIn("training", self._calls.read_text())

    def test_what_is_missing_is_told_in_one_line(self):
        status, _, errors = self._run("--config=laser:catch")
        self.assertEqual(status, 2)
        self.assertRegex(errors, r"^error: --workdir is missing: .*\n$")
        (self._programs / "laser-train").unlink()
        status, _, errors = self._run(*_ARGUMENTS)
        self.assertEqual(status, 2)
        self.assertRegex(errors, r"^error: there is no laser-train in PATH: .*\n$")
        self.assertEqual(self._calls.read_text(), "")

    def test_others_cannot_read_the_token(self):
        token = self._folder / ".ray" / "auth_token"
        self._run(*_ARGUMENTS)
        self.assertEqual(stat.S_IMODE(token.stat().st_mode), 0o600)
        token.chmod(0o644)  # as Ray makes it
        self._run(*_ARGUMENTS)
        self.assertEqual(stat.S_IMODE(token.stat().st_mode), 0o600)

    def test_nothing_is_left_behind(self):
        self._run(*_ARGUMENTS)
        names = {path.name for path in self._folder.iterdir()}
        self.assertEqual(names, {"bin", "calls", ".ray"})

    def test_the_time_limits_signal_comes_early_enough_to_save(self):
        options = dict(re.findall(r"^#SBATCH --([a-z-]+)=?(\S*)$", SCRIPT.read_text(), re.M))
        seconds = re.fullmatch(r"B:USR1@(\d+)", options["signal"])[1]  # B: to the script alone
        self.assertGreaterEqual(int(seconds), 3 * 180)  # fleet's, for actors, learner and replay
        self.assertEqual(options["ntasks-per-node"], "1")
        self.assertIn("exclusive", options)  # Ray takes another's on the node for its own
        self.assertIn("requeue", options)

    def test_shellcheck_finds_nothing(self):
        program = shutil.which(
            "shellcheck", path=f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
        )
        done = subprocess.run([program, str(SCRIPT)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)


def _kill(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    absltest.main()
