"""Tests of launch.check_environment with valid, odd and faulty environments."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.environments import base, environment_check, faults, suites
from testing import commands, folders, messages

SMALL = "testing.environments.small_environments"


def _names(line, *values):
    with contextlib.suppress(AssertionError):
        messages.assert_names(line, *values)
        return True
    return False


def check(suite, task, steps=60, seconds=600.0, on_progress=lambda _: None, **options):
    config = suites.config_class(suite)(
        suite=suite, task=task, **{"num_envs": 2, "num_workers": 1, **options}
    )
    return environment_check.check(
        config, steps=steps, seed=1, seconds=seconds, on_progress=on_progress
    )


@mock.patch.object(environment_check, "_SPEED_SECONDS", 0.05)
class EnvironmentCheckTest(parameterized.TestCase):
    def test_valid_environment_is_described(self):
        report = check("dm_env", f"{SMALL}:Beacons")
        self.assertEqual(report.fault, "")
        self.assertEqual(
            [line.split()[0] for line in report.lines],
            [*["observation"] * 3, "action", "episodes", "deterministic", "speed"],
        )
        for line, *named in (
            (report.lines[0], "body/0", "[2]"),
            (report.lines[1], "body/1", 2),
            (report.lines[2], "picture", "[6, 6, 3]"),
            (report.lines[4], 10, 60),
        ):
            messages.assert_names(line, *named)

    def test_rarely_intended_results_are_warnings(self):
        report = check("dm_env", f"{SMALL}:Still")
        self.assertEqual(report.fault, "")
        for label, *named in (
            ("action", 2, "[-1, 1]", "[-1, 2]"),
            ("episodes", 60),
            ("warning", "episode", "max_frames_per_episode"),
            ("warning", "reward"),
            ("warning", "observations"),
        ):
            lines = [line for line in report.lines if line.startswith(label)]
            self.assertTrue(any(_names(line, *named) for line in lines), (label, named))

    @parameterized.parameters(
        ("uint8", 1, True),
        ("float32", 1, False),
        ("float32", 200, True),
        ("int32", 200, True),
    )
    def test_image_of_another_scale_is_a_warning(self, dtype, value, is_warning):
        arguments = {"shape": [10, 5, 1], "dtype": dtype, "value": value}
        report = check("dm_env", f"{SMALL}:Images", steps=5, arguments=arguments)
        self.assertEqual(report.fault, "")
        warnings = [line for line in report.lines if "[10, 5, 1]" in line.partition("an image")[2]]
        self.assertLen(warnings, is_warning)
        for line in warnings:
            messages.assert_names(line, value)

    def test_image_that_may_have_channels_first_is_a_warning(self):
        report = check("dm_env", f"{SMALL}:Images", steps=5, arguments={"shape": [12, 20, 30]})
        self.assertTrue(any(_names(line, "warning", 12, 30) for line in report.lines))

    def test_actions_are_independent_of_the_environments_seed(self):
        own, environments = base.action_generator(3), np.random.default_rng(3)
        self.assertNotEqual(own.random(), environments.random())

    def test_time_limit_reduces_steps(self):
        works = []
        report = check(
            "dm_env", f"{SMALL}:Beacons", steps=100_000, seconds=1e-6, on_progress=works.append
        )
        self.assertEqual(report.fault, "")
        self.assertTrue(any(_names(line, "100,000", "--seconds") for line in report.lines))
        self.assertNotEmpty(works)

    @parameterized.parameters("a b", "")
    def test_key_that_export_rejects_is_rejected(self, key):
        with messages.raises(faults.EnvironmentCreationError, repr(key)):
            check("dm_env", f"{SMALL}:Named", arguments={"key": key})

    @parameterized.parameters(
        ("Still", "unseeded=true", 2, 0),
        ("Unseeded", "every_step=true", 2, 1),  # Workers seed the global generators.
        ("Unseeded", "every_step=true", 1, None),
    )
    def test_other_random_numbers_are_reported(self, name, arguments, num_envs, step):
        lines = check("dm_env", f"{SMALL}:{name}", arguments=arguments, num_envs=num_envs).lines
        (line,) = [line for line in lines if line.startswith("deterministic")]
        messages.assert_names(line, *(["yes"] if step is None else ["no", "observation", step]))

    @parameterized.parameters(
        ("raise", ("KeyError", 2)),
        ("nan", ("observation", "nan", 2)),
        ("shape", ("observation", "[1]")),
        ("die", (3,)),
    )
    def test_fault_is_reported_in_one_line(self, fault, named):
        arguments = {"fault": fault, "bad_seed": 1}
        report = check("gymnasium", f"{SMALL}:Breaking-v0", arguments=arguments)
        messages.assert_names(report.fault, *named)
        self.assertNotIn("\n", report.fault)
        self.assertEqual("Traceback (most recent call last):" in report.lines, fault in _RAISED)

    def test_text_of_too_many_words_is_a_fault(self):
        report = check("gymnasium", f"{SMALL}:Started-v0", text_length=1)
        messages.assert_names(report.fault, "observation['word']", "environment.text_length=2")

    def test_error_of_the_constructor_has_a_traceback(self):
        report = check("gymnasium", f"{SMALL}:Corridor-v0", arguments="speed=3")
        self.assertIn("Traceback (most recent call last):", report.lines)
        messages.assert_names(report.fault, "TypeError", "speed")
        self.assertNotIn("\n", report.fault)

    @parameterized.parameters(("", ["reset_mask"]), (", vectorization_mode=sync", []))
    def test_ignored_reset_mask_is_a_fault(self, mode, named):
        report = check("gymnasium_vector", "gymnasium:make_vec", arguments="id=CartPole-v1" + mode)
        messages.assert_names(report.fault, *named)
        self.assertEqual(bool(report.fault), bool(named))

    def test_several_tasks_are_rejected(self):
        with messages.raises(ValueError, "task"):
            check("gymnasium", "CartPole-v1,Acrobot-v1")


_RAISED = ("raise", "shape")  # Faults with a traceback of the user's code.


class CommandTest(folders.FolderTest):
    def test_environment_of_the_documentation_is_valid(self):
        root = pathlib.Path(__file__).parents[2]
        page = (root / "docs/environments.md").read_text()
        (program,) = re.findall("```python\n(.*?)```", page, re.DOTALL)
        (self._folder / "corridor.py").write_text(program)
        result = subprocess.run(
            [sys.executable, "-m", "launch.check_environment", "--task=corridor:Corridor-v0"],
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("warning", result.stdout)
        self.assertEndsWith(result.stdout, "\nOK\n")

    def test_image_too_small_for_default_torso_is_noted(self):
        code, output, errors = commands.run_forked(
            "check_environment", "--suite=dm_env", f"--task={SMALL}:Beacons", "--steps=20"
        )
        self.assertEqual(code, 0, errors)
        (line,) = [line for line in output.splitlines() if line.startswith("warning")]
        messages.assert_names(line, "6x6x3", "--config.agent.torso=minatar")

    @parameterized.parameters(
        (
            (f"--task={SMALL}:Breaking-v0", "--arguments=fault='nan',every_time=true"),
            ("Breaking-v0", "observation", "nan", 2),
        ),
        (("--task=CartPole-v7",), ("CartPole-v7", "CartPole-v1")),
        (("--suite=gymnasum", "--task=CartPole-v1"), ("gymnasum", "gymnasium")),
        (("--suite=catch", "--task=catch", "--arguments=a=1"), ("--arguments", "catch")),
        (("--suite=laser_tf.environments.catch:CatchConfig",), ("--task=catch",)),
        (
            ("--suite=catch", "--task=catch", "--environment=reward_offset=2000"),
            ("reward_offset", 1000),
        ),
        (
            ("--suite=catch", "--task=catch", "--environment=offset=1"),
            ("--environment", "offset", "reward_offset"),
        ),
        (("--task=CartPole-v1", "--seconds=nan"), ("--seconds", "nan")),
    )
    def test_fault_is_one_line_and_exits_with_1(self, arguments, named):
        code, _, errors = commands.run_forked("check_environment", *arguments)
        self.assertEqual(code, 1)
        # A slow machine also prints the current work.
        (line,) = [line for line in errors.splitlines() if "error: " in line]
        messages.assert_names(line, *named)
        self.assertNotIn("Traceback", errors)


if __name__ == "__main__":
    absltest.main()
