"""What launch.check_environment finds in environments that are sound, odd or broken."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import types
from laser_tf.environments import environment_check, faults, suites
from testing import commands

SMALL = "testing.environments.small_environments"


def check(suite, task, steps=60, seconds=600.0, on_progress=lambda _: None, **options):
    config = suites.config_class(suite)(
        suite=suite, task=task, **{"num_envs": 2, "num_workers": 1, **options}
    )
    with absltest.mock.patch.object(environment_check, "_SPEED_SECONDS", 0.05):
        return environment_check.check(
            config, steps=steps, seed=1, seconds=seconds, on_progress=on_progress
        )


class EnvironmentCheckTest(parameterized.TestCase):
    def test_a_sound_environment_is_described(self):
        report = check("dm_env", f"{SMALL}:Beacons")
        self.assertEqual(report.fault, "")
        expected = (
            r"observation    body/0: vector float32 \[2\]",
            "observation    body/1: one of 2",
            r"observation    picture: image uint8 \[6, 6, 3\]",
            "action         one of 2",
            r"episodes       10 in 60 steps of random play: 5 steps, returns \d to \d; "
            r"\d+ terminated, \d+ cut",
            "deterministic  yes: .*",
            r"speed          [\d,]+ steps/s alone, [\d,]+ steps/s as 2",
        )
        self.assertLen(report.lines, len(expected))
        for line, pattern in zip(report.lines, expected, strict=True):
            self.assertRegex(line, f"^{pattern}$")

    def test_what_is_seldom_meant_is_remarked(self):
        report = check("dm_env", f"{SMALL}:Still")
        self.assertEqual(report.fault, "")
        text = "\n".join(report.lines)
        for pattern in (
            r"action         2 floats, -1 to \[1.0, 2.0\] .continuous",
            "episodes       none ended in 60 steps",
            "note           no episode ended: .*max_frames_per_episode",
            "note           no reward came",
            "note           all observations are the same",
        ):
            self.assertRegex(text, pattern)

    def test_small_codes_in_images_of_bytes_are_remarked(self):
        for dtype, greatest, is_remarked in (
            (np.uint8, 1.0, True), (np.uint8, 9.0, True), (np.uint8, 255.0, False),
            (np.uint8, 0.0, False), (np.float32, 1.0, False),
        ):  # fmt: skip
            image = specs.Array([10, 5, 1], dtype)
            spec = types.EnvironmentSpec(image, specs.DiscreteArray(2))
            play = environment_check._Play(np.zeros([3, 4]), *np.zeros([3, 3]), 1.0, [greatest])
            text = "\n".join(environment_check._warnings(play, spec))
            found = f"no value above {greatest:g}: agents divide bytes by 255" in text
            self.assertEqual(found, is_remarked, (dtype, greatest))

    def test_channels_first_are_remarked(self):
        warning = (
            "note           an image .4, 84, 84. looks like channels first: .*replay.frame_stack"
        )
        for shape, is_remarked in (((4, 84, 84), True), ((6, 6, 3), False), ((4, 4, 4), False)):
            image = specs.BoundedArray(shape, np.uint8, 0, 255)
            spec = types.EnvironmentSpec(image, specs.DiscreteArray(2))
            play = environment_check._Play(np.zeros([3, 4]), *np.zeros([3, 3]), 1.0, [255.0])
            text = "\n".join(environment_check._warnings(play, spec))
            self.assertEqual(re.search(warning, text) is not None, is_remarked, shape)

    def test_actions_are_independent_of_the_environments_seed(self):
        lines = check("dm_env", f"{SMALL}:SeededTarget", steps=200).lines
        (episodes,) = [line for line in lines if line.startswith("episodes")]
        highest = int(re.search(r"returns (?:\d+ to )?(\d+)", episodes)[1])
        self.assertLess(highest, 15)  # of 20; at random 5

    def test_time_limit_reduces_steps(self):
        works = []
        report = check(
            "dm_env", f"{SMALL}:Beacons", steps=100_000, seconds=1e-6, on_progress=works.append
        )
        self.assertEqual(report.fault, "")
        text = "\n".join(report.lines)
        self.assertRegex(text, "1 of 100,000 steps .*--seconds")
        self.assertNotEmpty(works)

    @parameterized.parameters("a b", "")
    def test_key_that_export_rejects_is_rejected(self, key):
        with self.assertRaisesRegex(faults.EnvironmentCreationError, re.escape(repr(key))):
            check("dm_env", f"{SMALL}:Named", arguments={"key": key})

    def test_channels_first_images_are_rejected(self):
        with self.assertRaisesRegex(faults.EnvironmentCreationError, r"\[4, 84, 84\]"):
            check("dm_env", f"{SMALL}:ChannelsFirst")

    def test_what_cannot_be_repeated_is_named(self):
        lines = check("dm_env", f"{SMALL}:Still", arguments="unseeded=true").lines
        self.assertRegex("\n".join(lines), "deterministic  no: .* another observation at step 0")

    @parameterized.parameters(
        ("raise", "^KeyError: 'the ball.nis lost' .small_env.*, line .*step 1 of its episode"),
        ("nan", "^its observation is nan .step 2 of its episode"),
        ("nan reward", "^its reward is nan"),
        ("shape", r"its observation has the shape \[1\]"),
        ("bounds", "^its observation has values .*, and its spec's bounds are -1 and 1 .step 2 of"),
        ("die", "^its worker process: died with exit code 3: its own last messages say why"),
    )
    def test_a_fault_is_told_in_one_line(self, fault, message):
        arguments = {"fault": fault, "bad_seed": 1}
        report = check("gymnasium", f"{SMALL}:Breaking-v0", arguments=arguments)
        self.assertRegex(report.fault, message)
        self.assertNotIn("\n", report.fault)
        self.assertEqual("Traceback (most recent call last):" in report.lines, fault in _RAISED)

    def test_what_its_making_raises_is_told_with_its_traceback(self):
        report = check("gymnasium", f"{SMALL}:Corridor-v0", arguments="speed=3")
        self.assertIn("Traceback (most recent call last):", report.lines)
        self.assertRegex(report.fault, r"^it cannot be made: TypeError: .*'speed'.*py, line \d+")
        self.assertNotIn("\n", report.fault)

    def test_several_tasks_are_refused(self):
        with self.assertRaisesRegex(ValueError, "check one task at a time"):
            check("gymnasium", "CartPole-v1,Acrobot-v1")


_RAISED = ("raise", "shape")  # which have a traceback of the user's code


class CommandTest(parameterized.TestCase):
    def test_a_sound_environment_ends_with_0(self):
        code, output, errors = commands.run(
            "check_environment", "--suite=catch", "--task=catch", "--steps=50"
        )
        self.assertEqual(code, 0, errors)
        self.assertEndsWith(output, "\nfit to train on\n")

    def test_the_environment_that_the_documentation_shows_is_fit(self):
        root = pathlib.Path(__file__).parents[2]
        folder = self.enter_context(tempfile.TemporaryDirectory())
        page = (root / "docs/environments.md").read_text()
        (program,) = re.findall("```python\n(.*?)```", page, re.DOTALL)
        pathlib.Path(folder, "corridor.py").write_text(program)
        result = subprocess.run(
            [sys.executable, "-m", "launch.check_environment", "--task=corridor:Corridor-v0"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("note", result.stdout)

    def test_image_too_small_for_default_torso_is_noted(self):
        code, output, errors = commands.run(
            "check_environment", "--suite=dm_env", f"--task={SMALL}:Beacons", "--steps=20"
        )
        self.assertEqual(code, 0, errors)
        self.assertRegex(output, "note .*6x6x3.*--config.agent.torso=minatar")

    @parameterized.parameters(
        (
            (f"--task={SMALL}:Breaking-v0", "--arguments=fault='nan',every_time=true"),
            r"^error: testing.*:Breaking-v0: its observation is nan \(step 2 of its episode\)\n$",
        ),
        (("--task=CartPole-v7",), "^error: CartPole-v7 cannot be played: .*CartPole-v1.*\n$"),
        (
            ("--suite=gymnasum", "--task=CartPole-v1"),
            "^error: .*'gymnasum': did you mean gymnasium",
        ),
        (("--suite=catch", "--task=catch", "--arguments=a=1"), "catch has no such key\n$"),
        (("--task=CartPole-v1", "--seconds=0"), "^error: --seconds must be above 0, got 0.0"),
        (("--task=CartPole-v1", "--seconds=nan"), "^error: --seconds must be above 0, got nan"),
        (("--task=CartPole-v1", "--steps=0"), "^error: --steps is 0: use 1 or more\n$"),
    )
    def test_what_fails_is_one_line_and_ends_with_1(self, arguments, message):
        code, _, errors = commands.run("check_environment", *arguments)
        self.assertEqual(code, 1)
        self.assertRegex(errors, re.compile(message, re.MULTILINE))
        # A slow machine also prints the current work.
        self.assertLen([line for line in errors.splitlines() if "error: " in line], 1, errors)
        self.assertNotIn("Traceback", errors)


if __name__ == "__main__":
    absltest.main()
