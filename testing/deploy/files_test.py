"""deploy/: the image's file, .dockerignore and systemd's unit."""

import configparser
import fnmatch
import pathlib
import re
import shlex

from absl.testing import absltest

from testing import commands, package_test
from testing.deploy import kubernetes_objects

ROOT = pathlib.Path(__file__).resolve().parents[2]
_UNIT = ROOT / "deploy" / "systemd" / "laser-replay-server.service"
_INSTRUCTIONS = ("FROM", "ARG", "ENV", "WORKDIR", "COPY", "RUN", "USER", "CMD")


def _instructions():
    """(name, words) of each instruction of the Dockerfile."""
    lines = (ROOT / "deploy" / "Dockerfile").read_text().splitlines()
    text = "\n".join(line for line in lines if line and not line.startswith("#"))
    for line in text.replace("\\\n", " ").splitlines():
        name, _, words = line.partition(" ")
        yield name, words.split()


def _values(name):
    return [words for found, words in _instructions() if found == name]


class DockerfileTest(absltest.TestCase):
    def test_it_is_made_of_instructions_and_begins_with_the_python_of_the_package(self):
        (name, (image,)), *others = _instructions()
        self.assertEqual((name, image), ("FROM", "python:3.11-slim"))
        self.assertContainsSubset({name for name, _ in others}, _INSTRUCTIONS)
        self.assertIn('requires-python = "==3.11.*"', (ROOT / "pyproject.toml").read_text())

    def test_it_copies_what_there_is_and_all_that_the_package_is_made_of(self):
        copied = [word for words in _values("COPY") for word in words[:-1]]
        for name in copied:
            self.assertTrue((ROOT / name).exists(), name)
        self.assertContainsSubset({*package_test.FILES, *package_test.FOLDERS}, copied)

    def test_dockerignore_leaves_what_is_copied_and_nothing_else(self):
        first, *lines = [
            line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] != "#"
        ]
        self.assertEqual(first, "*")
        kept = {line[1:] for line in lines if line[0] == "!"}
        self.assertEqual(kept, {word for words in _values("COPY") for word in words[:-1]})
        for line in lines:
            if line[0] != "!":
                self.assertFalse([name for name in kept if fnmatch.fnmatch(name, line)], line)

    def test_either_lock_is_whole_where_it_is_installed(self):
        ((argument,),) = _values("ARG")
        self.assertEqual(argument, "LOCK=requirements.lock")
        first = [word for words in _values("COPY")[:1] for word in words]
        for lock in ("requirements.lock", "requirements-gpu.lock"):
            self.assertIn(lock, first)
            for needed in re.findall(r"^-r (\S+)", (ROOT / lock).read_text(), re.M):
                self.assertIn(needed, first)
        installs = [words for words in _values("RUN") if words[:2] == ["pip", "install"]]
        self.assertLen(installs, 2)
        for words in installs:
            self.assertIn("--no-deps", words)
        self.assertEqual(installs[0][-2:], ["-r", '"${LOCK}"'])

    def test_its_user_is_nobody_that_kubernetes_would_not_take(self):
        *_, ((user,)) = _values("USER")
        number, group = map(int, user.split(":"))
        made = [words for words in _values("RUN") if words[0] == "useradd"]
        self.assertIn(str(number), made[0])
        pods = [p["spec"] for found in kubernetes_objects.read()
                for p in kubernetes_objects.templates(found)]  # fmt: skip
        for spec in pods:
            security = spec["securityContext"]
            self.assertEqual((security["runAsUser"], security["runAsGroup"]), (number, group))


class UnitTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        unit = configparser.ConfigParser(interpolation=None, comment_prefixes="#")
        unit.optionxform = str
        unit.read_string(_UNIT.read_text().replace("\\\n", " "))
        self.assertEqual(unit.sections(), ["Unit", "Service", "Install"])
        self._service = dict(unit["Service"])
        self._program, *self._arguments = shlex.split(self._service["ExecStart"])

    def _flag(self, name):
        (value,) = (a.partition("=")[2] for a in self._arguments if a.startswith(f"--{name}="))
        return value

    def test_the_command_knows_its_flags(self):
        self.assertEqual(pathlib.Path(self._program).name, "laser-replay-server")
        code, _, errors = commands.run("replay_server", *self._arguments, "--help")
        self.assertEqual(code, 0, errors)

    def test_it_has_the_time_to_save_and_its_own_limit_comes_first(self):
        limit = 1e9 * float(self._flag("memory_limit_gb"))
        minutes = int(re.fullmatch(r"(\d+)min", self._service["TimeoutStopSec"])[1])
        self.assertGreater(60 * minutes, limit / 40e6)
        most = int(re.fullmatch(r"(\d+)G", self._service["MemoryMax"])[1]) * 2**30
        self.assertGreater(most, 1.2 * limit)

    def test_it_writes_in_its_own_folder_and_is_not_open_to_all(self):
        folder = pathlib.Path("/var/lib") / self._service["StateDirectory"]
        self.assertEqual(pathlib.Path(self._flag("checkpoint_folder")).parent, folder)
        self.assertEqual(self._service["ProtectSystem"], "strict")
        self.assertEqual(self._service["IPAddressDeny"], "any")
        self.assertNotIn("any", self._service["IPAddressAllow"])
        self.assertNotEqual(self._service["User"], "root")


class TrainUnitTest(absltest.TestCase):
    def test_failed_command_is_issued_again_and_stop_saves(self):
        unit = configparser.ConfigParser(interpolation=None, comment_prefixes="#")
        unit.optionxform = str
        path = _UNIT.with_name("laser-train.service")
        unit.read_string(path.read_text().replace("\\\n", " "))
        service = unit["Service"]
        self.assertEqual(service["Restart"], "on-failure")
        self.assertEqual(service["KillMode"], "mixed")
        program, *arguments = shlex.split(service["ExecStart"])
        self.assertEqual(pathlib.Path(program).name, "laser-train")
        code, _, errors = commands.run("train", *arguments, "--help")
        self.assertEqual(code, 0, errors)


if __name__ == "__main__":
    absltest.main()
