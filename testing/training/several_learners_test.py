"""Tests of several learners, on devices and in processes, that share each batch."""

import contextlib
import functools
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

_TIMEOUT_SECONDS = 400.0
_FOLDER = tempfile.TemporaryDirectory()
_DEVICE_CASES = ("laser", "r2d2")  # The long tests have the other cases.
_PROCESS_CASES = ("laser", "r2d2")


def tearDownModule():
    _FOLDER.cleanup()


@functools.cache
def _one(case: str) -> dict[str, Any]:
    """Returns the result of one learner."""
    return joint_updates.learn(joint_updates.CASES[case], None)


@functools.cache
def _devices(*cases: str) -> dict[str, Any]:
    """Returns the results of learners on two devices by case."""
    path = pathlib.Path(_FOLDER.name) / "-".join(cases)
    with _started(f"--output={path}", f"--cases={','.join(cases)}") as process:
        return _result(process, path)


@functools.cache
def _checkpoint_of_one() -> dict[str, np.ndarray]:
    """Saves a checkpoint of one learner for `_processes`; returns its values."""
    one = joint_updates.make(joint_updates.CASES["r2d2"], None)
    one.update(joint_updates.batch(joint_updates.CASES["r2d2"], one, 0))
    learner_checkpoints.LearnerCheckpoints(pathlib.Path(_FOLDER.name) / "one", one).save(1)
    return joint_updates.arrays(one)


@functools.cache
def _processes() -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the results of two learners in processes by case."""
    _checkpoint_of_one()
    paths = [pathlib.Path(_FOLDER.name) / str(index) for index in (0, 1)]
    common = f"--addresses={_free_addresses()}", f"--cases={','.join(_PROCESS_CASES)}"
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(_started(*common, f"--index={index}", f"--output={path}"))
            for index, path in enumerate(paths)
        ]
        first, second = map(_result, processes, paths)
    return first, second


def _result(process: subprocess.Popen, path: pathlib.Path) -> dict[str, Any]:
    _, stderr = process.communicate(timeout=_TIMEOUT_SECONDS)
    assert process.returncode == 0, stderr
    return pickle.loads(path.read_bytes())


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


def check_equal(one: dict[str, Any], several: dict[str, Any], entries: slice) -> None:
    """Compares results of several learners with the results of one learner, for some entries."""
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


class DevicesTest(parameterized.TestCase):
    @parameterized.parameters(*_DEVICE_CASES)
    def test_updates_equal_those_of_one_learner(self, case):
        several = _devices(*_DEVICE_CASES)[case]
        check_equal(_one(case), several, slice(None))
        self.assertEqual(several["copies_differ"], [])

    @parameterized.parameters("clipped", "reactor")
    @pytest.mark.long
    def test_other_updates_equal_those_of_one_learner(self, case):
        several = _devices("clipped", "reactor")[case]
        check_equal(_one(case), several, slice(None))
        self.assertEqual(several["copies_differ"], [])
        norms = [metrics["learner/gradient_norm"] for metrics in _one("clipped")["metrics"]]
        self.assertGreater(min(norms), 2 * joint_updates.CASES["clipped"].learner["gradient_clip"])

    def test_compared_values_depend_on_the_batch(self):
        first, second = np.split(_one("laser")["priorities"], 2, axis=1)
        self.assertGreater(np.nanmin(np.abs(first - second)), 1e-3)
        for case in _DEVICE_CASES:
            at_start = joint_updates.arrays(joint_updates.make(joint_updates.CASES[case], None))
            for key, value in _one(case)["variables"].items():
                if re.search("(trunk|_online).*(kernel|bias|_mean|_variance)|_state_values", key):
                    self.assertFalse(np.array_equal(at_start[key], value), f"{case}: {key}")

    def test_nan_in_one_share_is_skipped_by_all_learners(self):
        _check_nan_is_skipped(_devices(*_DEVICE_CASES)["laser"])

    def test_joint_batch_is_counted_once(self):
        _check_counted_once(_devices(*_DEVICE_CASES)["r2d2"])


def _check_nan_is_skipped(result: dict[str, Any]) -> None:
    variables = result["variables"]
    assert variables["learner/counters/non_finite_updates"] == 2
    assert variables["learner/counters/learner_updates"] == joint_updates.UPDATES
    # The core reads rewards, too: NaN is in the gradient, and the loss leaves it out.
    norms = [metrics["learner/gradient_norm"] for metrics in result["metrics"]]
    np.testing.assert_array_equal(np.isfinite(norms), [True, False, False, True, True])
    for key, value in variables.items():
        assert np.isfinite(value).all(), key


def _check_counted_once(result: dict[str, Any]) -> None:
    steps = result["variables"]["learner/counters/agent_steps"]
    assert steps == joint_updates.UPDATES * joint_updates.NEW_STEPS, steps


@pytest.mark.long
class ProcessesTest(parameterized.TestCase):
    @parameterized.parameters(*_PROCESS_CASES)
    def test_updates_equal_those_of_one_learner(self, case):
        half = joint_updates.BATCH // 2
        first, second = (result[case] for result in _processes())
        check_equal(_one(case), first, slice(None, half))
        check_equal(_one(case), second, slice(half, None))
        for key, value in first["variables"].items():
            np.testing.assert_array_equal(second["variables"][key], value, err_msg=key)

    def test_nan_is_skipped_and_steps_are_counted_once(self):
        for result in _processes():
            _check_nan_is_skipped(result["laser"])
            _check_counted_once(result["r2d2"])

    def test_learners_continue_from_the_checkpoint_of_one_learner(self):
        first, second = (result["exchange"] for result in _processes())
        one = _checkpoint_of_one()
        for exchange in (first, second):
            for key, value in one.items():
                if not key.endswith("_adam/_learning_rate"):  # Set before each use.
                    np.testing.assert_array_equal(exchange["taken"][key], value, err_msg=key)
        before = second["before"]
        self.assertFalse(all(np.array_equal(value, before[key]) for key, value in one.items()))

    def test_one_learner_continues_from_several_learners(self):
        first, _ = _processes()
        one = joint_updates.make(joint_updates.CASES["r2d2"], None)
        folder = pathlib.Path(_FOLDER.name) / "several"
        self.assertEqual(learner_checkpoints.LearnerCheckpoints(folder, one).restore(), 7)
        for key, value in first["exchange"]["after"].items():
            np.testing.assert_array_equal(joint_updates.arrays(one)[key], value, err_msg=key)
        self.assertEqual(one.counters.wall_seconds.numpy(), 1.5)

    def test_learners_agree_only_if_all_do(self):
        for result in _processes():
            self.assertEqual(result["exchange"]["agree"], [True, False, False])

    def test_lost_learner_ends_the_other_learner_with_one_line(self):
        addresses = f"--addresses={_free_addresses()}"
        with (
            _started(addresses, "--index=0", "--endless") as survivor,
            _started(addresses, "--index=1", "--endless") as victim,
        ):
            for line in survivor.stdout:
                if line.startswith("update 3"):
                    break
            victim.send_signal(signal.SIGTERM)  # TensorFlow has its own handler.
            self.assertEqual(victim.wait(_TIMEOUT_SECONDS), -signal.SIGTERM)
            _, stderr = survivor.communicate(timeout=_TIMEOUT_SECONDS)
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
