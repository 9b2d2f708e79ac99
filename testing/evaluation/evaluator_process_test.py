"""Periodic evaluations: results of given weights, in this process and in another process."""

import os
import signal
import subprocess
import sys
import time
from unittest import mock

import numpy as np
from absl.testing import absltest

from laser_tf.environments import catch, factory, faults, worker_pool
from laser_tf.evaluation import evaluator, evaluator_process
from laser_tf.training import assembly, run_config
from testing import fakes, folders, messages, processes

EPISODES = 7
LEFT, STAY, RIGHT = range(3)
DROP = catch.Catch._drop


def _config(**sections) -> run_config.RunConfig:
    run = {"evaluate_every_env_frames": 1_000, "periodic_evaluation_episodes": EPISODES}
    return fakes.catch_config(run=run, **sections)


def _fresh_weights(config: run_config.RunConfig) -> list[np.ndarray]:
    spec = factory.environment_spec(config.environment)
    agent = assembly.build_agent(config, spec, "float32", seed=0)
    return [variable.numpy() for variable in agent.acting_variables]


def _weights_of(action: int) -> list[np.ndarray]:
    """Returns weights of an agent that always takes one action."""
    weights = [np.zeros_like(array) for array in _fresh_weights(_config())]
    (logits_bias,) = (array for array in weights if array.shape == (3,))
    logits_bias[action] = 100.0
    return weights


class EvaluatorTest(absltest.TestCase):
    def test_given_weights_are_evaluated(self):
        def drop_left(self, environments: np.ndarray) -> None:
            time.sleep(0.02)
            DROP(self, environments)
            self._ball_column[environments] = 0

        with mock.patch.object(catch.Catch, "_drop", drop_left):
            evaluating = evaluator.Evaluator.during_training(_config())
            for frames, action, expected in (
                (100, LEFT, 1.0),
                (200, RIGHT, -1.0),
                (300, LEFT, 1.0),
            ):
                summary = evaluating.evaluate(_weights_of(action), frames, frames // 10)
                self.assertEqual(summary["tasks"]["catch"]["returns"], [expected] * EPISODES)
                self.assertEqual(summary["env_frames"], frames)
                self.assertEqual(summary["learner_updates"], frames // 10)
                self.assertGreaterEqual(summary["seconds"], 0.02)
            evaluating.close()

    def test_each_evaluation_has_other_episodes(self):
        columns = []

        def drop(self, environments: np.ndarray) -> None:
            DROP(self, environments)
            columns.append(self._ball_column.copy())

        with mock.patch.object(catch.Catch, "_drop", drop):
            evaluators = [
                evaluator.Evaluator.during_training(
                    _config(), evaluator_id=attempt, env_frames=frames
                )
                for attempt, frames in ((0, 0), (0, 0), (1, 0), (0, 500))  # The last one resumes.
            ]
            first_columns = []
            for evaluating in (*evaluators, evaluators[0]):
                start = len(columns)
                evaluating.evaluate(_weights_of(STAY), 100, 10)
                first_columns.append(list(columns[start]))
        self.assertEqual(first_columns[0], first_columns[1])  # The seed of the run decides.
        self.assertNotEqual(first_columns[0], first_columns[2])
        self.assertNotEqual(first_columns[0], first_columns[3])
        self.assertNotEqual(first_columns[0], first_columns[4])

    def test_weights_of_another_agent_raise(self):
        evaluating = evaluator.Evaluator.during_training(_config())
        weights = _weights_of(LEFT)
        for wrong in ([*weights[:-1], np.zeros([7], np.float32)], weights[:-1]):
            with messages.raises(ValueError, *(array.shape for array in wrong)):
                evaluating.evaluate(wrong, 100, 10)


class EvaluatorProcessTest(folders.FolderTest):
    def _start(self, config: run_config.RunConfig) -> evaluator_process.EvaluatorProcess:
        process = evaluator_process.EvaluatorProcess(config, self._folder)
        self.addCleanup(process.close)
        return process

    def _result(self, process: evaluator_process.EvaluatorProcess):
        outcome = processes.wait_until(process.result, 120.0)
        self.assertIsNone(process.result())  # Each result is returned once.
        return outcome

    def test_killed_process_is_replaced(self):
        process = self._start(_config())
        pid = process._process.pid
        process.begin(_weights_of(LEFT), 100, 10)
        self.assertIsNone(process.result())
        summary = self._result(process)
        self.assertEqual((summary["env_frames"], summary["episodes"]), (100, EPISODES))
        self.assertEqual(os.getpriority(os.PRIO_PROCESS, pid), min(19, os.nice(0) + 10))
        os.kill(pid, signal.SIGKILL)
        process.begin(_weights_of(LEFT), 200, 20)
        messages.assert_names(self._result(process).reason, -9)
        process.begin(_weights_of(LEFT), 300, 30)
        self.assertEqual(self._result(process)["env_frames"], 300)
        self.assertNotEqual(process._process.pid, pid)
        process.close()
        with self.assertRaises(ProcessLookupError):
            os.kill(process._process.pid, 0)

    def test_close_waits_for_neither_weights_nor_episodes(self):
        process = self._start(_config())
        os.kill(process._process.pid, signal.SIGSTOP)
        # The thread blocks while it sends more than a pipe holds.
        process.begin([np.zeros(10_000_000, np.float32)], 100, 10)
        start = time.monotonic()
        process.close()
        self.assertLess(time.monotonic() - start, 5.0)

    def test_failing_environments_give_a_reason_in_one_line(self):
        config = _config(environment={
            "suite": "gymnasium", "task": "testing.environments.small_environments:Breaking-v0",
            "arguments": {"fault": "raise", "every_time": True}, "max_broken_episodes": 0,
        })  # fmt: skip
        process = self._start(config)
        process.begin(_fresh_weights(config), 100, 10)
        failure = self._result(process)
        self.assertIsInstance(failure, worker_pool.Failure)
        messages.assert_names(
            failure.reason, "EnvironmentFailedError", "KeyError", "environment.max_broken_episodes"
        )
        self.assertNotIn("\n", failure.reason)
        self.assertIn("KeyError", (self._folder / faults.FILE).read_text())

    def test_module_imports_no_tensorflow(self):
        program = (
            "import sys; import laser_tf.evaluation.evaluator_process; "
            "sys.exit(bool({'tensorflow', 'reverb'} & set(sys.modules)))"
        )
        subprocess.run([sys.executable, "-c", program], check=True)

    def test_run_without_periodic_evaluations_starts_none(self):
        with evaluator_process.maybe_start(fakes.catch_config(), self._folder, 0) as evaluating:
            self.assertIsNone(evaluating)


if __name__ == "__main__":
    absltest.main()
