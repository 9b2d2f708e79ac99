"""Evaluations beside training: what given weights come to, in this process and in another one."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.environments import catch, factory, faults, worker_pool
from laser_tf.evaluation import continuous_evaluator, evaluator_process
from laser_tf.training import assembly, run_config
from testing import fakes

EPISODES = 7
LEFT, STAY, RIGHT = range(3)


def _config(**sections) -> run_config.RunConfig:
    run = {"evaluate_every_env_frames": 1_000, "evaluation_episodes_beside": EPISODES}
    return fakes.catch_config(run=run, **sections)


def _fresh_weights(config: run_config.RunConfig) -> list[np.ndarray]:
    spec = factory.environment_spec(config.environment)
    agent = assembly.build_agent(config, spec, "float32", seed=0)
    return [variable.numpy() for variable in agent.acting_variables]


def _weights_that(action: int) -> list[np.ndarray]:
    """An agent's that always takes one action."""
    weights = [np.zeros_like(array) for array in _fresh_weights(_config())]
    (of_logits,) = (array for array in weights if array.shape == (3,))
    of_logits[action] = 100.0
    return weights


def _drop_left(self, games: np.ndarray) -> None:
    """Every ball falls in the leftmost column, and takes a moment that can be measured."""
    time.sleep(_DROP_SECONDS)
    _DROP(self, games)
    self._ball_column[games] = 0


_DROP = catch.Catch._drop
_DROP_SECONDS = 0.02


class ContinuousEvaluatorTest(absltest.TestCase):
    def test_it_plays_the_weights_that_it_is_given(self):
        with mock.patch.object(catch.Catch, "_drop", _drop_left):
            evaluator = continuous_evaluator.ContinuousEvaluator(_config())
            for frames, action, expected in (
                (100, LEFT, 1.0),
                (200, RIGHT, -1.0),
                (300, LEFT, 1.0),
            ):
                summary = evaluator.evaluate(_weights_that(action), frames, frames // 10)
                self.assertEqual(summary["tasks"]["catch"]["returns"], [expected] * EPISODES)
                self.assertEqual(summary["mean_return"], expected)
                self.assertEqual(summary["episodes"], EPISODES)
                self.assertEqual(summary["env_frames"], frames)
                self.assertEqual(summary["learner_updates"], frames // 10)
                self.assertGreaterEqual(summary["seconds"], _DROP_SECONDS)
            evaluator.close()

    def test_each_evaluation_plays_other_episodes_than_the_one_before_and_than_actors(self):
        columns = []

        def drop(self, games: np.ndarray) -> None:
            _DROP(self, games)
            columns.append(self._ball_column.copy())

        def played(first: int) -> list[list[int]]:
            return [list(row) for row in columns[first:]]

        weights = _weights_that(STAY)
        with mock.patch.object(catch.Catch, "_drop", drop):
            evaluators = [
                continuous_evaluator.ContinuousEvaluator(_config(), attempt=attempt)
                for attempt in (0, 0, 1)
            ]
            episodes = []
            for evaluator in (*evaluators, evaluators[0]):
                first = len(columns)
                evaluator.evaluate(weights, 100, 10)
                episodes.append(played(first)[0])
        self.assertEqual(episodes[0], episodes[1])  # a run's seed decides
        self.assertNotEqual(episodes[0], episodes[2])  # and who was lost before
        self.assertNotEqual(episodes[0], episodes[3])

    def test_weights_of_another_agent_are_refused_and_none_is_taken(self):
        evaluator = continuous_evaluator.ContinuousEvaluator(_config())
        variables = evaluator._agent.acting_variables
        before = [variable.numpy() for variable in variables]
        weights = _weights_that(LEFT)
        weights[-1] = np.zeros([7], np.float32)
        for wrong in (weights, weights[:-1]):
            with self.assertRaisesRegex(
                ValueError, "^weights have the shapes .*: this agent's are"
            ):
                evaluator.evaluate(wrong, 100, 10)
        for variable, array in zip(variables, before, strict=True):
            np.testing.assert_array_equal(variable.numpy(), array)


def _lives(process: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


class EvaluatorProcessTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self._workdir = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))

    def _start(self, config: run_config.RunConfig) -> tuple:
        """Returns an evaluator and its process id."""
        evaluator = evaluator_process.EvaluatorProcess(config, self._workdir)
        self.addCleanup(evaluator.close)
        return evaluator, self._pid(evaluator)

    def _pid(self, evaluator: evaluator_process.EvaluatorProcess) -> int:
        deadline = time.monotonic() + 60
        while (process := evaluator._process) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        return process.pid

    def _result(self, evaluator: evaluator_process.EvaluatorProcess):
        deadline = time.monotonic() + 120
        while (outcome := evaluator.result()) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        return outcome

    def test_a_process_plays_until_it_is_killed_and_then_another_one(self):
        evaluator, process = self._start(_config())
        evaluator.begin(_weights_that(LEFT), 100, 10)  # it is starting: nobody waits
        self.assertIsNone(evaluator.result())
        summary = self._result(evaluator)
        self.assertEqual((summary["env_frames"], summary["episodes"]), (100, EPISODES))
        self.assertIsNone(evaluator.result())  # told once
        self.assertEqual(os.getpriority(os.PRIO_PROCESS, process), min(19, os.nice(0) + 10))
        os.kill(process, signal.SIGKILL)
        evaluator.begin(_weights_that(LEFT), 200, 20)
        failure = self._result(evaluator)
        self.assertIsInstance(failure, worker_pool.Failure)
        self.assertStartsWith(failure.reason, "died with exit code -9")
        evaluator.begin(_weights_that(LEFT), 300, 30)
        self.assertEqual(self._result(evaluator)["env_frames"], 300)
        other = self._pid(evaluator)
        self.assertNotEqual(other, process)
        evaluator.close()
        self.assertFalse(_lives(other))

    def test_closing_waits_neither_for_weights_to_be_taken_nor_for_episodes(self):
        evaluator, process = self._start(_config())
        os.kill(process, signal.SIGSTOP)
        # More than a pipe holds: the thread is stuck while it sends them.
        evaluator.begin([np.zeros(10_000_000, np.float32)], 100, 10)
        start = time.monotonic()
        evaluator.close()
        self.assertLess(time.monotonic() - start, 5.0)
        self.assertFalse(_lives(process))
        self.assertFalse(evaluator._thread.is_alive())

    def test_environments_that_fail_are_a_reason_in_one_line(self):
        config = _config(environment={
            "suite": "gymnasium", "task": "testing.environments.small_environments:Breaking-v0",
            "arguments": {"fault": "raise", "every_time": True}, "max_broken_episodes": 0,
        })  # fmt: skip
        weights = _fresh_weights(config)
        evaluator, _ = self._start(config)
        evaluator.begin(weights, 100, 10)
        failure = self._result(evaluator)
        self.assertIsInstance(failure, worker_pool.Failure)
        self.assertRegex(failure.reason, "EnvironmentFailedError.*KeyError.*max_broken_episodes")
        self.assertNotIn("\n", failure.reason)
        self.assertIn("KeyError", (self._workdir / faults.FILE).read_text())

    def test_the_child_lowers_its_priority_before_it_loads_anything_large(self):
        program = (
            "import sys; import laser_tf.evaluation.evaluator_process; "
            "print(*sorted({'tensorflow', 'reverb'} & set(sys.modules)))"
        )
        output = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout
        self.assertEqual(output.strip(), "")

    def test_none_is_started_for_a_run_that_asks_for_none(self):
        with evaluator_process.beside(fakes.catch_config(), self._workdir) as evaluator:
            self.assertIsNone(evaluator)


if __name__ == "__main__":
    absltest.main()
