"""Tests of environments that return NaN or raise: results, messages, limits."""

import pathlib
import pickle

import numpy as np
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import types
from laser_tf.environments import base, faults, multi_task
from testing import folders, messages

NAN, INF = float("nan"), float("inf")
LENGTH = 5  # steps of an episode


class Counting(base.BatchedEnvironment):
    """Shows the step of each episode as floats; reward and discount are 1 until the end."""

    def __init__(self, num_envs=3, wrong=()):
        """Maps (step, environment) in `wrong` to {field: value}; step 0 is the reset."""
        super().__init__(
            num_envs,
            observation=specs.Array([2], np.float32, "observation"),
            action=specs.DiscreteArray(3, name="action"),
        )
        self._wrong = dict(wrong)
        self._step_number = 0

    def _reset(self):
        self._steps = np.zeros(self.num_envs, int)
        observation = self._observation()
        self._spoil(observation=observation)
        return observation

    def _observation(self):
        return np.stack([self._steps, np.arange(self.num_envs)], 1).astype(np.float32)

    def _spoil(self, **columns):
        for index in range(self.num_envs):
            for name, value in self._wrong.get((self._step_number, index), {}).items():
                if name == "error":
                    raise value
                columns[name][index] = value

    def _step(self, actions, is_first):
        self._step_number += 1
        self._steps = np.where(is_first, 0, self._steps + 1)
        is_last = self._steps == LENGTH
        transition = base.Transition(
            self._observation(), np.ones(self.num_envs), 1.0 - is_last, is_last
        )
        self._spoil(**transition._asdict())
        return transition

    def render(self, index):
        raise NotImplementedError


def _run(environment, steps=2 * LENGTH):
    action = np.zeros(environment.num_envs, int)
    steps = [environment.reset(), *(environment.step(action) for _ in range(steps))]
    return types.EnvOutput(*(np.stack(column) for column in zip(*steps, strict=True)))


class FaultsTest(folders.FolderTest):
    @parameterized.parameters(
        ("reward", NAN, ("reward", "nan"), faults.REWARDS),
        ("reward", -INF, ("reward", "-inf"), faults.REWARDS),
        ("discount", NAN, ("discount", "nan"), faults.DISCOUNTS),
        ("observation", (1.0, INF), ("observation", "inf"), faults.OBSERVATIONS),
    )
    def test_non_finite_value_truncates_its_episode(self, column, value, named, kind):
        environment = Counting(wrong={(3, 1): {column: value}})
        environment.faults = faults.Faults(3, name="counting")
        with messages.warns(1, "counting", *named, 3):
            outputs = _run(environment)
        self.assertEqual(environment.fault_counts(), {kind: 1})
        self.assertEqual((outputs.reward[3, 1], outputs.discount[3, 1]), (0, 1))
        # The observation is kept unless it is lost. Then the next episode starts.
        last = 2 if column == "observation" else 3
        np.testing.assert_array_equal(outputs.observation[:6, 1, 0], [0, 1, 2, last, 0, 1])
        np.testing.assert_array_equal(np.flatnonzero(outputs.is_first[:, 1]), [0, 4, 10])
        clean = _run(Counting())
        for name in ("observation", "reward", "discount", "is_first"):
            np.testing.assert_array_equal(
                getattr(outputs, name)[:, [0, 2]], getattr(clean, name)[:, [0, 2]]
            )

    def test_lost_first_observation_is_zero(self):
        outputs = _run(Counting(wrong={(0, 0): {"observation": NAN}}))
        np.testing.assert_array_equal(outputs.observation[:3, 0, 0], [0, 0, 1])
        np.testing.assert_array_equal(outputs.is_first[:3, 0], [True, True, False])

    def test_each_environment_is_logged_once(self):
        wrong = {(step, index): {"reward": NAN} for step in (2, 5, 8) for index in (0, 2)}
        environment = Counting(wrong=wrong)
        with self.assertLogs(level="WARNING") as logs:
            _run(environment)
        self.assertLen(logs.output, 2)
        self.assertEqual(environment.fault_counts(), {faults.REWARDS: 6})

    @parameterized.parameters((2, False), (3, True))
    def test_repeated_faults_raise_above_the_limit(self, breaks, gives_up):
        wrong = {(2 * (n + 1), 1): {"reward": NAN} for n in range(breaks)}
        # A complete episode resets the count.
        wrong |= {(step, 1): {"reward": NAN} for step in (16, 18)}
        environment = Counting(wrong=wrong)
        environment.faults = faults.Faults(3, name="counting", limit=2)
        if not gives_up:
            _run(environment, 4 * LENGTH)
            return
        named = "counting", "reward", "nan", "environment.max_broken_episodes"
        with messages.raises(faults.EnvironmentFailedError, *named):
            _run(environment, 4 * LENGTH)

    def test_failed_starts_count_only_within_one_start(self):
        found = faults.Faults(1, limit=1)
        for _ in range(3):  # Each second attempt starts a complete episode.
            found.note(0, faults.RESTARTS, "it cannot be reset", step=0)
            for is_first in (True, False):
                found.advance(np.array([is_first]))
        found.note(0, faults.RESTARTS, "it cannot be reset", step=0)
        with messages.raises(faults.EnvironmentFailedError, "environment.max_broken_episodes", 2):
            found.note(0, faults.RESTARTS, "it cannot be reset", step=0)

    def test_tasks_name_their_faults_and_count_together(self):
        parts = [Counting(2), Counting(2, {(1, 0): {"reward": NAN}})]
        parts[1].faults = faults.Faults(2, name="second")
        environment = multi_task.MultiTask(("first", "second"), parts)
        environment.reward_scales = np.repeat(np.float32([1e-30, 3e38]), 2)
        with self.assertLogs(level="WARNING") as logs:
            outputs = _run(environment, 2)
        messages.assert_names(logs.output[0], 0, "second", "reward", "nan")
        self.assertTrue(np.isfinite(outputs.reward).all())
        np.testing.assert_array_equal(outputs.is_first[2], [False, False, True, False])
        self.assertEqual(environment.fault_counts(), {faults.REWARDS: 1})

    @parameterized.parameters(0, LENGTH + 1)
    def test_lost_first_observation_of_a_task_ends_its_episode(self, step):
        wrong = {(step, 1): {"observation": NAN}}
        alone = _run(Counting(2, wrong))
        parts = [Counting(1), Counting(2, wrong)]
        outputs = _run(multi_task.MultiTask(("first", "second"), parts))
        self.assertTrue(alone.is_first[step + 1, 1])
        for name, values in alone._asdict().items():
            np.testing.assert_array_equal(getattr(outputs, name)[:, 1:], values, name)

    def test_error_is_named_and_its_traceback_kept(self):
        for step in (0, 2):
            environment = Counting(wrong={(step, 0): {"error": KeyError("the ball\nis lost")}})
            environment.faults = faults.Faults(3, name="counting", folder=self._folder)
            with self.assertRaises(faults.EnvironmentFailedError) as context:
                _run(environment)
            message = str(context.exception)
            self.assertNotIn("\n", message)
            messages.assert_names(message, "counting", "KeyError", "faults_test.py")
            self.assertIn(str(self._folder / faults.FILE), message)
        self.assertEqual((self._folder / faults.FILE).read_text().count("Traceback"), 2)

    def test_creation_error_can_be_pickled(self):
        error = faults.EnvironmentCreationError("Maze-v0", "KeyError: 'wall'", "Traceback")
        other = pickle.loads(pickle.dumps(error))
        self.assertEqual(str(other), str(error))
        self.assertEqual((other.reason, other.details), ("KeyError: 'wall'", "Traceback"))
        self.assertEqual(other.__notes__, ["Traceback"])  # Python prints it.

    def test_unwritable_traceback_is_no_second_error(self):
        environment = Counting(wrong={(2, 0): {"error": ValueError()}})
        environment.faults = faults.Faults(3, folder=pathlib.Path("/nonexistent"))
        with messages.raises(faults.EnvironmentFailedError, "ValueError"):
            _run(environment)


if __name__ == "__main__":
    absltest.main()
