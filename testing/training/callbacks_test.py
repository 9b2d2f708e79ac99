"""Callbacks of whole runs on catch: calls, stops and errors."""

import threading
from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.monitoring import episode_log, tensorboard
from laser_tf.training import callbacks, learner_checkpoints
from testing import fakes, folders, runs

HOOKS = (
    "on_start", "on_update", "on_metrics", "on_episode", "on_evaluation", "on_checkpoint", "on_end"
)  # fmt: skip


class Recorder(callbacks.Callback):
    """Records each call: hook, env frames, thread and arguments."""

    def __init__(self):
        self.calls = []
        for hook in HOOKS:
            setattr(self, hook, lambda run, *given, hook=hook: self._record(hook, run, given))

    def _record(self, hook, run, given):
        self.calls.append((hook, run.env_frames, threading.current_thread(), *given))

    def given(self, hook):
        """Returns the arguments of all calls of a hook."""
        return [call[3] for call in self.calls if call[0] == hook]


class Raiser(callbacks.Callback):
    """Raises an error from some hooks."""

    def __init__(self, *hooks):
        for hook in hooks:
            setattr(self, hook, mock.Mock(side_effect=RuntimeError(f"bug of {hook}")))


class Stopper(callbacks.Callback):
    """Stops a run at a number of updates."""

    def __init__(self, updates):
        self._updates = updates

    def on_update(self, run, metrics):
        if run.learner_updates >= self._updates:
            run.stop()


class InstantEvaluator:
    """Returns the results of evaluations in the order of `mean_returns`."""

    def __init__(self, *mean_returns):
        self._mean_returns = list(mean_returns)
        self.weights = []
        self._outcome = None

    def begin(self, weights, env_frames, learner_updates):
        self.weights.append([np.copy(array) for array in weights])
        mean_return = self._mean_returns[min(len(self.weights), len(self._mean_returns)) - 1]
        self._outcome = fakes.evaluation_summary(env_frames, learner_updates, mean_return)

    def result(self):
        outcome, self._outcome = self._outcome, None
        return outcome


class CallbacksTest(folders.FolderTest):
    def _config(self, **run):
        return fakes.catch_config(run={"env_frames": 800} | run)

    def _checkpoints(self):
        """Returns the updates of all checkpoints, ascending."""
        paths = (self._workdir / "checkpoints/learner").glob("checkpoint-*.index")
        return sorted(int(path.stem.rpartition("-")[2]) for path in paths)

    def test_calls_have_the_contents_of_the_logs(self):
        config = self._config(
            evaluate_every_env_frames=200,
            checkpoint_minutes=1e-6,
            replay_checkpoint_minutes=1e3,
            metrics_seconds=1e-3,
        )
        recorder, evaluator = Recorder(), InstantEvaluator(0.5)
        run = runs.make(config, self._workdir, (recorder,))
        runs.go_on(run, evaluator=evaluator)

        hooks = [call[0] for call in recorder.calls]
        self.assertEqual((hooks[0], hooks[-1]), ("on_start", "on_end"))
        self.assertEqual([hooks.count(hook) for hook in ("on_start", "on_end")], [1, 1])
        self.assertEqual({call[2] for call in recorder.calls}, {threading.current_thread()})
        frames = [call[1] for call in recorder.calls]
        self.assertEqual((frames[0], frames[-1]), (0, run.env_frames))
        self.assertEqual(frames, sorted(frames))

        updates = recorder.given("on_update")
        self.assertLen(updates, int(run.counters.learner_updates))
        self.assertIn("loss/policy", updates[0])
        rows = tensorboard.read_rows(self._workdir / "tensorboard")
        metrics = recorder.given("on_metrics")
        losses = [row["loss/policy"] for row in rows.values() if "loss/policy" in row]
        reported = [row["loss/policy"] for row in metrics if "loss/policy" in row]
        np.testing.assert_allclose(reported, losses, rtol=1e-6)

        logged = episode_log.read(self._workdir)["catch"]
        episodes = recorder.given("on_episode")
        self.assertEqual([row.episode_return for row in episodes], logged.returns.tolist())
        self.assertEqual([row.env_frames for row in episodes], logged.env_frames.tolist())

        evaluated = recorder.given("on_evaluation")
        self.assertLen(evaluated, len(evaluator.weights))
        self.assertGreaterEqual(len(evaluated), 3)
        self.assertBetween(evaluated[0].env_frames, 200, 239)
        for evaluation, weights in zip(evaluated, evaluator.weights, strict=True):
            self.assertEqual(evaluation.mean_return, 0.5)
            for array, expected in zip(evaluation.weights, weights, strict=True):
                np.testing.assert_array_equal(array, expected)

        paths = recorder.given("on_checkpoint")
        self.assertGreater(len(paths), learner_checkpoints.MAX_CHECKPOINTS)
        self.assertTrue(paths[-1].with_name(f"{paths[-1].name}.index").exists())
        self.assertEqual(paths[-1].name, f"checkpoint-{self._checkpoints()[-1]}")

    def test_stopped_run_is_saved_and_resumes(self):
        recorder = Recorder()
        run = runs.make(self._config(), self._workdir, (Stopper(updates=5), recorder))
        with self.assertLogs(level="INFO") as logs:
            runs.go_on(run)
        self.assertFalse(run.finished)
        self.assertEqual(self._checkpoints(), [5])
        self.assertLen([line for line in logs.output if "Stopper" in line], 1)
        self.assertEqual(recorder.calls[-1][0], "on_end")
        again = runs.make(self._config(), self._workdir, ())
        self.assertTrue(again.resumed)
        runs.go_on(again)
        self.assertTrue(again.finished)

    @parameterized.parameters("on_update", "on_episode")
    def test_error_saves_the_run_and_keeps_its_traceback(self, hook):
        recorder = Recorder()
        # The error of `on_end` must not hide the first one.
        run = runs.make(self._config(), self._workdir, (recorder, Raiser(hook, "on_end")))
        with self.assertRaisesRegex(RuntimeError, f"bug of {hook}"), self.assertLogs() as logs:
            runs.go_on(run)
        self.assertIn("bug of on_end", "".join(logs.output))
        self.assertNotEmpty(self._checkpoints())
        self.assertEqual(recorder.calls[-1][0], "on_end")
        again = runs.make(self._config(), self._workdir, ())
        self.assertEqual(again.env_frames, recorder.calls[-1][1])

    def test_error_of_on_start_leaves_the_run_unchanged(self):
        recorder, other = Recorder(), Recorder()
        run = runs.make(self._config(), self._workdir, (recorder, Raiser("on_start"), other))
        with self.assertRaisesRegex(RuntimeError, "bug of on_start"):
            runs.go_on(run)
        self.assertEqual([call[0] for call in recorder.calls], ["on_start", "on_end"])
        self.assertEmpty(other.calls)
        self.assertEmpty(self._checkpoints())


if __name__ == "__main__":
    absltest.main()
