"""The weights of the best evaluation are kept, resumed, evaluated and exported."""

import json
from unittest import mock

import numpy as np
from absl.testing import absltest

from laser_tf import callbacks, errors
from laser_tf.environments import factory
from laser_tf.evaluation import run_evaluation
from laser_tf.export import exporter
from laser_tf.training import best_weights, learner_checkpoints
from laser_tf.workdir import atomic, run_directory
from testing import fakes, folders, messages, runs
from testing.callbacks import views
from testing.training import callbacks_test


class KeepBestTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._callback = self._start()

    def _start(self):
        callback = callbacks.KeepBest()
        callback.on_start(views.run(self._folder))
        return callback

    def _evaluate(self, callback, *mean_returns):
        for mean_return in mean_returns:
            callback.on_evaluation(views.run(self._folder), views.evaluation(mean_return))

    def test_highest_return_is_kept_also_after_a_resumption(self):
        self.assertIsNone(best_weights.read(self._folder))
        self._evaluate(self._callback, -3.0, 2.0, 1.0)
        best = best_weights.read(self._folder)
        self.assertEqual((best.mean_return, best.env_frames, best.learner_updates), (2.0, 100, 10))
        self.assertBetween(best.wall_seconds, 60.0, 70.0)
        self.assertEqual([array.shape for array in best.arrays], [(2, 3), (1,)])
        self._evaluate(self._start(), 1.5)
        self.assertEqual(best_weights.read(self._folder).mean_return, 2.0)
        with mock.patch.object(best_weights, "write") as write:
            self._evaluate(self._start(), 2.0)
        write.assert_not_called()
        self._evaluate(self._start(), 2.5)
        np.testing.assert_array_equal(best_weights.read(self._folder).arrays[1], [2.5])

    def test_full_disk_keeps_the_previous_weights(self):
        self._evaluate(self._callback, 1.0)
        full = OSError(28, "No space left on device")
        with mock.patch.object(atomic, "write", side_effect=full), self.assertLogs() as logs:
            self._evaluate(self._callback, 2.0)
        messages.assert_names(logs.output[0], "No space left on device")
        self.assertEqual(best_weights.read(self._folder).mean_return, 1.0)
        self._evaluate(self._callback, 1.5)  # Better than what is on the disk.
        self.assertEqual(best_weights.read(self._folder).mean_return, 1.5)

    def test_damaged_file_and_missing_evaluations_raise(self):
        self._evaluate(self._callback, 1.0)
        (path,) = (self._folder / "checkpoints/best").iterdir()
        content = path.read_bytes()
        altered = bytearray(content)
        altered[altered.index(b"PK\1\2") + 8] |= 1  # Marks an array as encrypted.
        for damaged in (content[:-100], altered):
            path.write_bytes(damaged)
            with messages.raises(run_directory.WorkdirError, path):
                self._start()
        for period in (0, 2_001):
            config = fakes.catch_config(
                run={"env_frames": 2_000, "evaluate_every_env_frames": period}
            )
            named = "config.run.evaluate_every_env_frames", period, 2_000
            with messages.raises(errors.ConfigError, *named):
                callbacks.KeepBest().on_start(views.run(self._folder, config=config))


class UseTest(absltest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls._workdir = folders.of_class(cls) / "run"
        cls._config = fakes.catch_config(
            run={"env_frames": 1_000, "evaluate_every_env_frames": 200}
        )
        run = runs.make(cls._config, cls._workdir, (callbacks.KeepBest(),))
        cls._evaluator = callbacks_test.InstantEvaluator(0.1, 0.7, 0.4)
        runs.go_on(run, evaluator=cls._evaluator)
        cls._best = best_weights.read(cls._workdir)

    def test_best_agent_has_the_evaluated_weights(self):
        spec = factory.environment_spec(self._config.environment)
        agents = {}
        for best in (False, True):
            restored = learner_checkpoints.restore_learner(
                self._workdir, self._config, spec, best=best
            )
            agents[best] = [variable.numpy() for variable in restored.agent.acting_variables]
        for array, expected in zip(agents[True], self._evaluator.weights[1], strict=True):
            np.testing.assert_array_equal(array, expected)
        self.assertFalse(all(map(np.array_equal, *agents.values())))
        steps = int(restored.counters.agent_steps)
        self.assertEqual(int(restored.counters.learner_updates) * 40, steps)
        self.assertBetween(steps, 400, 439)

    def test_evaluation_and_export_use_the_best_weights(self):
        summary = run_evaluation.evaluate(self._workdir, episodes=2, seed=1, video=False, best=True)
        self.assertEqual(summary["env_frames"], self._best.env_frames)
        self.assertEqual(summary["protocol"]["weights"], "best")
        output = self._workdir / "policy"
        with mock.patch.object(exporter, "save") as save:  # Without the slow SavedModel.
            exporter.export(self._workdir, output, best=True)
        self.assertEqual(save.call_args.args[2], self._best.learner_updates)
        about = json.loads((output / "policy.json").read_text())
        self.assertEqual(about["trained_env_frames"], self._best.env_frames)
        self.assertEqual(about["evaluation"]["mean_return"], summary["mean_return"])

    def test_evaluation_of_other_weights_is_not_in_the_card(self):
        path = self._workdir / "evaluation.json"
        run_evaluation.evaluate(self._workdir, episodes=1, seed=1, video=False)
        content = json.loads(path.read_text())
        for env_frames, has_evaluation in ((0, True), (1, False)):
            path.write_text(
                json.dumps(content | {"env_frames": content["env_frames"] - env_frames})
            )
            output = self._workdir / f"policy_{env_frames}"
            with mock.patch.object(exporter, "save"):
                exporter.export(self._workdir, output)
            about = json.loads((output / "policy.json").read_text())
            self.assertEqual(about["evaluation"] is not None, has_evaluation)

    def test_run_without_best_weights_raises(self):
        other = self._workdir.with_name("other")
        spec = factory.environment_spec(self._config.environment)
        with messages.raises(run_directory.WorkdirError, other, "--best"):
            learner_checkpoints.restore_learner(other, self._config, spec, best=True)


if __name__ == "__main__":
    absltest.main()
