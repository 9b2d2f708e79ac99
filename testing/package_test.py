"""The wheel: its files, and its commands in any directory."""

import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys
import tomllib
import zipfile

from absl.testing import absltest
from packaging import requirements

from testing import folders

ROOT = pathlib.Path(__file__).resolve().parents[1]
FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "requirements.txt")
FOLDERS = {"laser_tf": "laser_tf", "launch": "laser_tf/commands/launch",
           "configs": "laser_tf/commands/configs"}  # fmt: skip
ENVIRONMENT = """
import gymnasium
import numpy as np


class Coin(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.ones(2, np.float32), float(action), bool(self.np_random.random() < 0.2), False, {}


gymnasium.register("Coin-v0", Coin)
"""
# Runs the shell command of a Ray job.
ON_A_MACHINE = """
import pathlib, subprocess, sys
from laser_tf.cluster import remote_command

log = pathlib.Path("run.log")
command = remote_command.entrypoint(("launch.train", "--help"), log)
code = subprocess.run(command, shell=True).returncode
print(log.read_text())
sys.exit(code)
"""


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)


class PackageTest(absltest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls._folder = folders.of_class(cls)
        sources = cls._folder / "sources"  # pip builds in its source directory.
        hidden = shutil.ignore_patterns("__pycache__")
        for name in FOLDERS:
            shutil.copytree(ROOT / name, sources / name, ignore=hidden)
        for name in FILES:
            shutil.copy(ROOT / name, sources)
        _pip("wheel", "--no-deps", "--no-build-isolation", "--no-index",
             f"--wheel-dir={cls._folder}", str(sources))  # fmt: skip
        (cls._wheel,) = cls._folder.glob("laser_tf-*-py3-none-any.whl")
        cls._site = cls._folder / "site"
        _pip("install", "--no-deps", "--no-index", f"--target={cls._site}", str(cls._wheel))

    def _run(self, command: str, *arguments: str) -> subprocess.CompletedProcess:
        """Runs a program in a directory that contains only a user's environment."""
        elsewhere = self._folder / "elsewhere"
        self._temporary = self._folder / "temporary"
        for folder in (elsewhere, self._temporary):
            folder.mkdir(exist_ok=True)
        (elsewhere / "own_coin.py").write_text(ENVIRONMENT)
        variables = {name: value for name, value in os.environ.items() if name[:3] != "TF_"}
        variables |= {"PYTHONPATH": str(self._site), "TMPDIR": str(self._temporary)}
        return subprocess.run(
            [self._site / "bin" / command, *arguments], cwd=elsewhere, env=variables,
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    def test_wheel_holds_every_source_below_laser_tf(self):
        expected = {
            str(inside / path.relative_to(ROOT / folder))
            for folder, name in FOLDERS.items()
            for inside in [pathlib.Path(name)]
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        }
        self.assertIn("laser_tf/py.typed", expected)
        with zipfile.ZipFile(self._wheel) as wheel:
            names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        self.assertEqual(names, expected)

    def test_every_command_has_an_entry_point(self):
        commands = {
            "laser-" + path.stem.replace("_", "-")
            for path in (ROOT / "launch").glob("*.py")
            if "\n    command_line.run(" in path.read_text()
        }
        scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
        self.assertEqual(set(scripts), commands)
        self.assertEqual({path.name for path in (self._site / "bin").iterdir()}, commands)

    def test_environment_of_the_user_is_trained(self):
        done = self._run(
            "laser-train", "--config=laser:gymnasium", "--workdir=run",
            "--config.environment.task=own_coin:Coin-v0", "--config.run.env_frames=400",
            "--config.run.evaluation_episodes=2",
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("in 2 evaluation episodes", done.stderr)
        self.assertEmpty(list(self._temporary.iterdir()), "files that are not removed")

    def test_python_api_finds_configurations(self):
        program = "import laser_tf; print(laser_tf.load_config('r2d2:tmaze').agent.name)"
        done = self._run(sys.executable, "-c", program)
        self.assertEqual((done.stdout, done.returncode), ("r2d2\n", 0), done.stderr)

    def test_users_modules_with_our_names_are_imported(self):
        elsewhere = self._folder / "elsewhere"
        for name, value in (("configs/settings", "START = 0.5"), ("launch/helper", "")):
            (elsewhere / name).parent.mkdir(parents=True, exist_ok=True)
            self.addCleanup(shutil.rmtree, (elsewhere / name).parent)
            (elsewhere / f"{name}.py").write_text(value)
        (elsewhere / "own_names.py").write_text(
            f"import launch.helper\nfrom configs import settings\n{ENVIRONMENT}"
        )
        done = self._run("laser-check-environment", "--task=own_names:Coin-v0", "--steps=20")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_command_of_a_ray_job_is_found(self):
        done = self._run(sys.executable, "-c", ON_A_MACHINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("python -m launch.train", done.stdout)


class RequirementsTest(absltest.TestCase):
    def test_requirements_are_compatible(self):
        lines = (ROOT / "requirements.txt").read_text().splitlines()
        names = [line.split("#")[0].strip() for line in lines]
        pending = [(requirements.Requirement(name), "requirements.txt") for name in names if name]
        seen = set()
        while pending:
            required, source = pending.pop()
            installed = importlib.metadata.version(required.name)
            self.assertIn(installed, required.specifier, f"{source} requires {required}")
            for line in importlib.metadata.requires(required.name) or ():
                child = requirements.Requirement(line)
                extras = required.extras or {""}
                applies = not child.marker or any(
                    child.marker.evaluate({"extra": e}) for e in extras
                )
                if applies and (line, required.name) not in seen:
                    seen.add((line, required.name))
                    pending.append((child, required.name))

    def test_extras_have_the_versions_of_make(self):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        for extra, pins in project["optional-dependencies"].items():
            if extra != "gpu":  # The next test checks its lock.
                made = (ROOT / f"requirements-{extra}.txt").read_text().splitlines()
                self.assertContainsSubset(pins, made, extra)

    def test_gpu_lock_has_the_packages_of_tensorflow(self):
        needed = {
            str(requirements.Requirement(line.split(";")[0].strip()))
            for line in importlib.metadata.requires("tensorflow")
            if 'extra == "and-cuda"' in line.replace("'", '"')
        }
        lines = (ROOT / "requirements-gpu.lock").read_text().splitlines()
        locked = {line.strip() for line in lines if line and not line.startswith("#")}
        self.assertEqual(locked, {"-r requirements.lock", *needed})


if __name__ == "__main__":
    absltest.main()
