"""Evaluations of a run directory: protocol, repetition, changed environments."""

import dataclasses
import json
import pathlib
import tempfile
from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import errors
from laser_tf.environments import factory, gymnasium_suite, minatar
from laser_tf.evaluation import run_evaluation
from laser_tf.workdir import run_directory
from testing import fakes, folders, messages, runs


class RunEvaluationTest(absltest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.workdir = folders.of_class(cls) / "run"
        cls.config = fakes.catch_config(run={"env_frames": 400, "evaluation_episodes": 3})
        runs.train(cls.config, cls.workdir)

    def test_result_states_its_protocol(self):
        summary = run_evaluation.evaluate(
            self.workdir, episodes=2, seed=5, video=False, greedy=True,
            environment_changes={"reward_offset": 100},
        )  # fmt: skip
        self.assertEqual(
            summary["protocol"],
            {
                "suite": "catch",
                "episodes_per_task": 2,
                "environments_at_once_per_task": 2,
                "seed": 5,
                "action_selection": "greedy",
                "rewards": "raw",
                "changed_environment": {"reward_offset": 100.0},
                **self.config.environment.protocol(),
                "reward_offset": 100.0,
            },
        )
        result = self.workdir / "evaluation.json"
        self.assertEqual(json.loads(result.read_text()), summary)

    def test_finished_run_is_evaluated_once(self):
        (self.workdir / "evaluation.json").unlink(missing_ok=True)
        run_evaluation.evaluate_finished(self.workdir, self.config)
        result = json.loads((self.workdir / "evaluation.json").read_text())
        self.assertEqual(result["episodes"], 3)
        with mock.patch.object(run_evaluation, "evaluate") as evaluate:
            run_evaluation.evaluate_finished(self.workdir, self.config)
            evaluate.assert_not_called()
            more = {"run": dataclasses.replace(self.config.run, evaluation_episodes=4)}
            run_evaluation.evaluate_finished(self.workdir, dataclasses.replace(self.config, **more))
        self.assertEqual(evaluate.call_args.kwargs["episodes"], 4)

    def test_result_that_cannot_be_written_raises_before_episodes(self):
        with (
            mock.patch.object(
                tempfile, "TemporaryFile", side_effect=OSError(30, "Read-only file system")
            ),
            mock.patch.object(run_evaluation.evaluator, "Evaluator") as evaluator,
            messages.raises(run_directory.WorkdirError, self.workdir, "Read-only file system"),
        ):
            run_evaluation.evaluate(self.workdir, episodes=2, seed=5, video=False)
        evaluator.assert_not_called()

    def test_seed_of_random_actions_is_checked(self):
        with messages.raises(errors.ConfigError, "seed", -1):
            run_evaluation.evaluate_random_actions(self.config.environment, 2, seed=-1)


class ChangedEnvironmentTest(parameterized.TestCase):
    def _change(self, **changes: object) -> tuple[minatar.MinAtarConfig, dict]:
        values = {"environment": {"suite": "minatar", "task": "breakout", "num_envs": 3}}
        source = pathlib.Path("config.json")
        _, changed, differing = run_evaluation.change_environment(source, values, changes, False)
        return changed, differing

    def test_only_other_values_differ(self):
        # The second name is another name of the same task.
        changed, differing = self._change(
            sticky_actions=0.5, task="MinAtar/Breakout-v1", max_broken_episodes=7
        )
        self.assertEqual(changed.task, "breakout")
        self.assertEqual((changed.sticky_actions, changed.num_envs), (0.5, 3))
        self.assertEqual(differing, {"sticky_actions": 0.5})

    @parameterized.parameters(
        ("suite", "catch"), ("num_envs", 4), ("stiky_actions", 0.5), ("sticky_actions", "often")
    )
    def test_wrong_change_raises(self, key, value):
        with self.assertRaises(errors.ConfigError) as caught:
            self._change(**{key: value})
        messages.assert_names(caught.exception, key)

    @parameterized.parameters("breakout,asterix", "freeway")
    def test_other_specs_raise(self, task):
        spec = factory.environment_spec(minatar.MinAtarConfig(task=task))
        with messages.raises(errors.ConfigError, "--environment", "uint8[10, 10, 4]"):
            run_evaluation.check_spec(spec, minatar.MinAtarConfig(task="breakout"))

    @parameterized.parameters(([-3.0], [3.0]), (-3.0, 3.0))
    def test_other_action_bounds_raise(self, minimum, maximum):
        config = gymnasium_suite.GymnasiumConfig(task="Pendulum-v1")
        spec = factory.environment_spec(config)
        other = specs.BoundedArray([1], np.float32, minimum, maximum)
        with messages.raises(errors.ConfigError, "[-2, 2]", "[-3, 3]"):
            run_evaluation.check_spec(spec._replace(action=other), config)


if __name__ == "__main__":
    absltest.main()
