"""Tests of actors: faults of environments, long episodes and stalls."""

import threading
from unittest import mock

import numpy as np
from absl.testing import absltest

from laser_tf import errors, types
from laser_tf.environments import catch, episode_statistics, faults
from laser_tf.monitoring import tensorboard
from laser_tf.training import acting, actor, learner_checkpoints
from testing import fakes, folders, messages, runs
from testing.environments import counting_environments

_STEP = catch.Catch._step


class FailingEnvironmentsTest(folders.FolderTest):
    def _replace_step(self, step):
        self.enter_context(mock.patch.object(catch.Catch, "_step", step))

    def test_nan_rewards_of_one_environment_cost_no_update(self):
        random = np.random.default_rng(1)

        def step(environment, actions, is_first):
            output = _STEP(environment, actions, is_first)
            if environment.num_envs > 3 and random.random() < 0.05:  # no probe
                output.reward[3] = np.nan
            return output

        self._replace_step(step)
        with self.assertLogs(level="WARNING") as logs:
            run = runs.train(fakes.catch_config(), self._workdir)
        reported = [line for line in logs.output if "reward is nan" in line]
        self.assertLen(reported, 1)
        messages.assert_names(reported[0], 3, "catch", "reward", "nan")
        messages.assert_names(logs.output[-1], "environment/non_finite_rewards")
        self.assertEqual(int(run.counters.non_finite_updates), 0)
        name = f"environment/{faults.REWARDS}"
        counted = tensorboard.read_scalars(self._workdir / "tensorboard", name)[1]
        self.assertGreater(counted[-1], 0)
        dropped = tensorboard.read_scalars(
            self._workdir / "tensorboard", "learner/non_finite_updates"
        )
        self.assertEmpty(dropped[1])
        returns = (self._workdir / "episodes.csv").read_text()
        self.assertNotIn("nan", returns)

    def test_overflow_of_the_network_ends_a_saved_run(self):
        run = runs.make(fakes.catch_config(learner={"learning_rate": 1e30}), self._workdir)
        with messages.raises(errors.UserError, "learner.learning_rate"):
            runs.go_on(run)
        self.assertTrue(runs.build(run._config, self._workdir).resumed)

    def test_environment_that_raises_ends_a_saved_run(self):
        def step(environment, actions, is_first):
            if environment.num_envs > 3 and run.counters.learner_updates > 3:
                raise RuntimeError("the ball\nis lost")
            return _STEP(environment, actions, is_first)

        self._replace_step(step)
        run = runs.make(fakes.catch_config(), self._workdir)
        with messages.raises(
            faults.EnvironmentFailedError,
            "catch",
            "RuntimeError",
            "the ball is lost",
            "actor_test.py",
            self._workdir / "environment_errors.txt",
        ):
            runs.go_on(run)
        self.assertIn("in step", (self._workdir / faults.FILE).read_text())
        saved = learner_checkpoints.LearnerCheckpoints(
            self._workdir / "checkpoints/learner", run._learner
        )
        self.assertIsNotNone(saved.restore())


class LongEpisodeTest(absltest.TestCase):
    def _act(self, *lengths):
        """Acts for 40 steps with a limit of 5."""
        stop = threading.Event()
        refreshed = []

        def refresh():
            refreshed.append(True)
            if len(refreshed) == 3:
                stop.set()
            return 0

        action = np.zeros(len(lengths), int)
        self.enter_context(mock.patch.object(episode_statistics, "MIN_LENGTH_LIMIT", 5))
        actor_ = actor.Actor(
            counting_environments.CountingEnvironments(*lengths),
            mock.Mock(return_value=types.AgentOutput(action, None)),
            [],
            max_steps_per_episode=0,
            unroll_length=20,
            refresh=refresh,
            on_episode=lambda _: None,
        )
        actor_.run(stop)

    def test_episodes_past_the_limit_log_one_warning(self):
        with self.assertLogs(level="WARNING") as logs:
            self._act([2], [7], [0])
        self.assertLen(logs.output, 1)
        self.assertIn("environment.max_frames_per_episode", logs.output[0])

    def test_episodes_up_to_the_limit_log_nothing(self):
        with self.assertNoLogs(level="WARNING"):
            self._act([2], [5])


class StallDetectorTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._now = 100.0
        clock = mock.patch.object(acting.time, "monotonic", lambda: self._now)
        self.enter_context(clock)
        self._actors = mock.Mock(env_calls=0, activity="sleeps")
        self._detector = acting.StallDetector(self._actors)

    def _wait(self, seconds: float) -> None:
        self._now += seconds
        self._detector.check()

    def test_each_stall_is_logged_once(self):
        self._wait(0)
        with self.assertNoLogs(level="WARNING"):
            self._wait(59)
        for env_calls in (0, 1):
            self._actors.env_calls = env_calls
            with self.assertLogs(level="WARNING") as logs:
                self._wait(61)
                self._wait(61)
                self._wait(61)
            self.assertLen(logs.output, 1)
            self.assertIn("sleeps", logs.output[0])

    def test_actor_that_fills_replay_is_no_stall(self):
        with self.assertNoLogs(level="WARNING"):
            for env_calls in range(20):
                self._actors.env_calls = env_calls
                self._wait(30)

    def test_time_of_updates_is_no_stall(self):
        with self.assertNoLogs(level="WARNING"):
            for _ in range(5):
                self._wait(0)
                self._detector.reset()
                self._now += 1000  # an update that is compiled


if __name__ == "__main__":
    absltest.main()
