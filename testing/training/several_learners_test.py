"""Tests of several learners, on devices and in processes, that share each batch."""

import contextlib
import itertools
import os
import pathlib
import pickle
import re
import signal
import socket
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np
import pytest
from absl.testing import absltest, parameterized

from laser_tf.training import learner_checkpoints
from testing import commands
from testing.training import joint_updates

_SECONDS = 400.0  # for processes that share a slow machine
_FOLDER = tempfile.TemporaryDirectory()
_ONE, _SEVERAL = {}, {}  # case -> result of one learner; "devices", 0 and 1 -> those of all cases


def setUpModule():
    addresses = _free_addresses()
    folder = pathlib.Path(_FOLDER.name)
    one = joint_updates.make(joint_updates.CASES["r2d2"], None)
    one.update(joint_updates.batch(joint_updates.CASES["r2d2"], one, 0))
    _ONE["checkpoint"] = joint_updates.arrays(one)
    learner_checkpoints.LearnerCheckpoints(folder / "one", one).save(1)
    with contextlib.ExitStack() as stack:
        processes = {
            name: stack.enter_context(_started(f"--output={folder / str(name)}", *arguments))
            for name, arguments in {
                "devices": (),
                0: (f"--addresses={addresses}", "--index=0"),
                1: (f"--addresses={addresses}", "--index=1"),
            }.items()
        }
        for name, case in joint_updates.CASES.items():
            _ONE[name] = joint_updates.play(case, None)
        for name, process in processes.items():
            _, stderr = process.communicate(timeout=_SECONDS)
            assert process.returncode == 0, stderr
            _SEVERAL[name] = pickle.loads((folder / str(name)).read_bytes())


def tearDownModule():
    _FOLDER.cleanup()


def _free_addresses() -> str:
    with socket.socket() as first, socket.socket() as second:
        for each in (first, second):
            each.bind(("127.0.0.1", 0))
        return ",".join(f"127.0.0.1:{each.getsockname()[1]}" for each in (first, second))


@contextlib.contextmanager
def _started(*arguments: str):
    process = subprocess.Popen(
        [sys.executable, "-m", "testing.training.joint_updates", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={k: v for k, v in os.environ.items() if not k.startswith("TF_")}
        | {"TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _entries(name: Any) -> slice:
    half = joint_updates.BATCH // 2
    return slice(None) if name == "devices" else slice(half * name, half * (name + 1))


def check_equal(one: dict[str, Any], several: dict[str, Any], entries: slice) -> None:
    """Holds what `joint_updates.play` returned to what one learner did, for some entries."""
    for expected, metrics in zip(one["metrics"], several["metrics"], strict=True):
        _check_close(metrics, expected, 1e-6)
    _check_close(
        {"priorities": several["priorities"]}, {"priorities": one["priorities"][:, entries]}, 1e-6
    )
    _check_close(several["variables"], one["variables"], 1e-5)


def _check_close(actual: dict[str, Any], expected: dict[str, Any], atol: float) -> None:
    assert actual.keys() == expected.keys(), actual.keys() ^ expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(actual[key], value, rtol=1e-4, atol=atol, err_msg=key)


class JointBatchTest(parameterized.TestCase):
    @parameterized.parameters(
        *itertools.product(joint_updates.CASES, ["devices"]),
        *itertools.product(joint_updates.CASES_OF_PROCESSES, (0, 1)),
    )
    def test_updates_equal_those_of_one_learner(self, case, name):
        check_equal(_ONE[case], _SEVERAL[name][case], _entries(name))

    @parameterized.parameters(*joint_updates.CASES_OF_PROCESSES)
    def test_copies_of_variables_are_bit_identical(self, case):
        first, second = (_SEVERAL[index][case]["variables"] for index in (0, 1))
        for key, value in first.items():
            np.testing.assert_array_equal(second[key], value, err_msg=key)

    def test_copies_on_devices_are_bit_identical(self):
        for case in joint_updates.CASES:
            self.assertEqual(_SEVERAL["devices"][case]["copies_differ"], [], case)

    def test_compared_values_depend_on_the_batch(self):
        first, second = np.split(_ONE["laser"]["priorities"], 2, axis=1)
        self.assertGreater(np.nanmin(np.abs(first - second)), 1e-3)
        norms = [metrics["learner/gradient_norm"] for metrics in _ONE["clipped"]["metrics"]]
        self.assertGreater(min(norms), 2 * joint_updates.CASES["clipped"].learner["gradient_clip"])
        for case in joint_updates.CASES:
            at_start = joint_updates.arrays(joint_updates.make(joint_updates.CASES[case], None))
            for key, value in _ONE[case]["variables"].items():
                if re.search("(trunk|_online).*(kernel|bias|_mean|_variance)|_state_values", key):
                    self.assertFalse(np.array_equal(at_start[key], value), f"{case}: {key}")

    @parameterized.parameters("devices", 0, 1)
    def test_nan_in_one_share_is_skipped_by_all_learners(self, name):
        variables = _SEVERAL[name]["laser"]["variables"]
        self.assertEqual(variables["learner/counters/non_finite_updates"], 2)
        self.assertEqual(variables["learner/counters/learner_updates"], joint_updates.UPDATES)
        # The core reads rewards, too: NaN is in the gradient, and the loss leaves it out.
        norms = [m["learner/gradient_norm"] for m in _SEVERAL[name]["laser"]["metrics"]]
        np.testing.assert_array_equal(np.isfinite(norms), [True, False, False, True, True])
        for key, value in variables.items():
            self.assertTrue(np.isfinite(value).all(), key)

    @parameterized.parameters("devices", 0, 1)
    def test_joint_batch_is_counted_once(self, name):
        steps = _SEVERAL[name]["r2d2"]["variables"]["learner/counters/agent_steps"]
        self.assertEqual(steps, joint_updates.UPDATES * joint_updates.NEW_STEPS)


class ProcessesTest(absltest.TestCase):
    def test_learners_continue_from_the_checkpoint_of_one_learner(self):
        for index in (0, 1):
            exchange = _SEVERAL[index]["exchange"]
            for key, value in _ONE["checkpoint"].items():
                if not key.endswith("_adam/_learning_rate"):  # set before each use
                    np.testing.assert_array_equal(exchange["taken"][key], value, err_msg=key)
        self.assertFalse(
            all(
                np.array_equal(value, _SEVERAL[1]["exchange"]["before"][key])
                for key, value in _ONE["checkpoint"].items()
            )
        )

    def test_one_learner_continues_from_several_learners(self):
        one = joint_updates.make(joint_updates.CASES["r2d2"], None)
        folder = pathlib.Path(_FOLDER.name) / "several"
        self.assertEqual(learner_checkpoints.LearnerCheckpoints(folder, one).restore(), 7)
        for key, value in _SEVERAL[0]["exchange"]["after"].items():
            np.testing.assert_array_equal(joint_updates.arrays(one)[key], value, err_msg=key)
        self.assertEqual(one.counters.wall_seconds.numpy(), 1.5)

    def test_learners_agree_only_if_all_do(self):
        for index in (0, 1):
            self.assertEqual(_SEVERAL[index]["exchange"]["agree"], [True, False, False])

    def test_lost_learner_ends_the_other_learner_with_one_line(self):
        addresses = f"--addresses={_free_addresses()}"
        with (
            _started(addresses, "--index=0", "--endless") as survivor,
            _started(addresses, "--index=1", "--endless") as victim,
        ):
            for line in survivor.stdout:
                if line.startswith("update 3"):
                    break
            victim.send_signal(signal.SIGTERM)  # which TensorFlow would take for itself
            self.assertEqual(victim.wait(_SECONDS), -signal.SIGTERM)
            _, stderr = survivor.communicate(timeout=_SECONDS)
        self.assertEqual(survivor.returncode, 1)
        self.assertLen([line for line in stderr.splitlines() if "learner" in line], 1, stderr)
        self.assertNotIn("Traceback", stderr)


class RunTest(absltest.TestCase):
    @pytest.mark.long
    def test_run_on_two_devices_continues_with_one_learner(self):
        with tempfile.TemporaryDirectory() as folder:
            for replicas, frames in ((2, 1_000), (1, 2_000)):
                status, _, stderr = commands.run(
                    "train",
                    "--config=configs/laser.py:catch",
                    f"--workdir={folder}/run",
                    f"--config.learner.num_devices={replicas}",
                    "--config.learner.learning_rate_schedule=constant",
                    f"--config.run.env_frames={frames}",
                    "--config.run.evaluation_episodes=1",
                )
                self.assertEqual(status, 0, stderr)
                self.assertEqual("among 2 replicas" in stderr, replicas == 2, stderr)
                self.assertEqual("Starting a run" in stderr, replicas == 2, stderr)


if __name__ == "__main__":
    absltest.main()
