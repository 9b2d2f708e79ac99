"""Whole runs on catch: learning, metrics, priorities and evaluations, with the production loops."""

import errno
import json
import os
import pathlib
import tempfile
import threading
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.agents import registry
from laser_tf.environments import factory
from laser_tf.evaluation import evaluator_process, run_evaluation
from laser_tf.monitoring import evaluation_log, metrics, tensorboard
from laser_tf.replay import connection, server
from laser_tf.training import assembly, learner, saver
from laser_tf.workdir import run_directory
from testing import fakes, messages, runs

LASER_METRICS = (
    "episode/mean_return_last_100",
    "loss/policy",
    "loss/value",
    "policy/entropy",
    "policy/kl_replay",
    "vtrace/rho_clipped_fraction",
    "trust_region/accepted_fraction",
    "replay/age_updates",
    "replay/policy_lag_updates",
    "replay/fill",
    "throughput/learner_busy_fraction",
    "throughput/environment_steps_per_second",
    "throughput/inference_steps_per_second",
    "throughput/writing_steps_per_second",
    "learner/learning_rate",
)
R2D2_METRICS = (
    "loss/total",
    "q_learning/q_value",
    "q_learning/absolute_error",
    "replay/importance_weight",
    "replay/age_updates",
    "staleness/delta_q_first",
    "staleness/delta_q_last",
)


class TrainingTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = self.enter_context(tempfile.TemporaryDirectory())
        self._workdir = pathlib.Path(folder) / "run"

    @parameterized.named_parameters(
        (
            "laser",
            0.8,
            fakes.catch_config(replay={"replay_fraction": 0.75}, run={"env_frames": 60_000}),
            LASER_METRICS,
        ),
        (
            "impala",
            0.8,
            fakes.catch_config(
                agent={"trust_region": "none"},
                replay={"scheme": "online", "batch_size": 4},
                run={"env_frames": 100_000},
            ),
        ),
        ("r2d2", 0.8, fakes.r2d2_catch_config(run={"env_frames": 30_000})),
        (
            "reactor",
            0.7,
            fakes.reactor_catch_config(
                agent={"core": "none"}, replay={"scheme": "contextual"}, run={"env_frames": 20_000}
            ),
        ),
        ("acer", 0.7, fakes.acer_catch_config(run={"env_frames": 30_000})),
    )
    def test_learns_catch(self, least_return, config, names=()):
        run = runs.train(config, self._workdir)
        # The last update of R2D2 and Reactor waits for new steps, in unrolls of 5.
        self.assertBetween(run.env_frames, config.run.env_frames, config.run.env_frames + 44)
        summary = run_evaluation.evaluate(self._workdir, episodes=50, seed=2, video=True)
        self.assertGreater(summary["mean_return"], least_return)
        self.assertEqual((summary["episodes"], summary["env_frames"]), (50, run.env_frames))
        kept = self._workdir / "evaluations/evaluation_001.json"
        for path in (self._workdir / "evaluation.json", kept):
            self.assertEqual(json.loads(path.read_text()), summary)
        video = self._workdir / "videos/evaluation_001.mp4"
        self.assertEqual(summary["videos"], [str(video)])
        self.assertGreater(video.stat().st_size, 1000)
        folder = self._workdir / "tensorboard"
        steps, values = tensorboard.read_scalars(folder, tensorboard.FINAL_RETURN)
        self.assertEqual(list(steps), [run.env_frames])
        self.assertAlmostEqual(values[0], summary["mean_return"], places=5)
        self.assertFalse(any(path.is_dir() for path in folder.iterdir()))  # One run to TensorBoard.
        self._check_metrics(names)

    def test_metrics_of_r2d2_are_finite(self):
        sequences = {"unroll_length": 3, "sequence_length": 3, "sequence_overlap": 0, "burn_in": 3}
        runs.train(fakes.r2d2_catch_config(replay=sequences), self._workdir)
        self._check_metrics(R2D2_METRICS)

    def _check_metrics(self, names: tuple[str, ...]) -> None:
        scalars = tensorboard.read_several(self._workdir / "tensorboard", names)
        for name, (steps, values) in scalars.items():
            self.assertNotEmpty(steps, name)
            self.assertTrue(np.isfinite(values).all(), name)
        if names:  # Counters of faults, which are 0.
            rows = tensorboard.read_rows(self._workdir / "tensorboard").values()
            self.assertNoCommonElements(set().union(*rows), metrics.FAULT_COUNTERS)

    def test_alternating_scheme_has_its_replay_ratio(self):
        config = fakes.catch_config(
            replay={"scheme": "alternating", "replay_ratio": 2.0, "batch_size": 2},
            run={"env_frames": 16_000, "seed": 3, "metrics_seconds": 1e6},
        )
        run = runs.train(config, self._workdir)
        self.assertEqual(run.env_frames, 16_000)
        online = 16_000 // (2 * 10)  # frames over those of two unrolls
        # The run ends with its last frames, without what would have followed them.
        counts = np.random.default_rng((3, 0)).poisson(2.0, online - 1)
        self.assertEqual(int(run.counters.learner_updates), online + counts.sum())
        self.assertAlmostEqual(counts.mean(), 2.0, delta=5 * (2 / online) ** 0.5)
        # A row is of four online updates and what preceded them. It averages over the updates that
        # have a metric, so that those of either kind alone are in it, too.
        rows = tensorboard.read_rows(self._workdir / "tensorboard")
        self.assertLen(rows, 200)
        replayed = "policy/kl_own", "trust_region/accepted_replay_fraction", "replay/age_updates"
        for row in rows.values():
            for name in ("policy/kl_online", "replay/policy_lag_updates", *replayed):
                self.assertTrue(np.isfinite(row[name]), name)
        steps = np.mean([row["learner/new_steps"] for row in rows.values()])
        self.assertAlmostEqual(steps, 20 / 3, delta=1)

    def test_priorities_are_written_to_the_sampled_items(self):
        config = fakes.r2d2_catch_config(
            run={"env_frames": 1_200}, replay={"importance_exponent": 1.0}
        )
        updated, written = [], []
        update, write = learner.Learner.update, connection.ReplayConnection.update_priorities

        def recorded_update(self, batch):
            metrics_, priorities = update(self, batch)
            updated.append((batch.key, priorities))
            return metrics_, priorities

        def recorded_write(self, keys, priorities):
            written.append((keys, priorities))
            write(self, keys, priorities)

        with (
            mock.patch.object(learner.Learner, "update", recorded_update),
            mock.patch.object(connection.ReplayConnection, "update_priorities", recorded_write),
        ):
            runs.train(config, self._workdir)
        self.assertNotEmpty(updated)
        self.assertLen(written, len(updated))
        for (drawn, expected), (keys, priorities) in zip(updated, written, strict=True):
            self.assertTrue(np.all(drawn > 0))
            np.testing.assert_array_equal(keys, drawn)
            np.testing.assert_array_equal(priorities, expected)

    def test_periodic_evaluations_are_in_log_and_tensorboard(self):
        config = fakes.catch_config(
            run={"env_frames": 6_000, "evaluate_every_env_frames": 1_000,
                 "periodic_evaluation_episodes": 5},
        )  # fmt: skip
        run = runs.make(config, self._workdir)
        with evaluator_process.maybe_start(config, self._workdir) as beside:
            runs.go_on(run, evaluator=beside)
        self.assertTrue(run.finished)
        rows = evaluation_log.EvaluationLog(self._workdir).read()
        self.assertNotEmpty(rows)
        frames = [row.env_frames for row in rows]
        self.assertBetween(frames[0], 1_000, 1_039)  # of an update, 40
        self.assertTrue(np.all(np.diff([frame // 1_000 for frame in frames]) >= 1))
        for row in rows:
            self.assertEqual(row.episodes, 5)
            self.assertEqual(row.learner_updates * 40, row.env_frames)
        steps, values = tensorboard.read_scalars(
            self._workdir / "tensorboard", tensorboard.EVALUATION_RETURN
        )
        np.testing.assert_array_equal(steps, frames)
        np.testing.assert_allclose(values, [row.mean_return for row in rows], atol=1e-6)
        frames, _ = tensorboard.read_scalars(self._workdir / "tensorboard", tensorboard.RETURN)
        self.assertEqual(frames[-1], 6_000)  # the training's, as ever

    def test_equal_seeds_give_equal_weights(self):
        config = fakes.catch_config()
        one, two = (runs.build(config, self._workdir)._learner for _ in range(2))
        other = runs.build(fakes.catch_config(run={"seed": 2}), self._workdir)._learner
        for a, b in zip(one.agent.variables, two.agent.variables, strict=True):
            np.testing.assert_array_equal(a, b)
        kernels = [
            next(v for v in made.agent.trainable_variables if v.shape.rank == 2)
            for made in (one, other)
        ]
        self.assertFalse(np.array_equal(*(tf.convert_to_tensor(k) for k in kernels)))

    def test_network_too_large_for_memory_raises(self):
        config = fakes.catch_config()
        spec = factory.environment_spec(config.environment)
        full = tf.errors.ResourceExhaustedError(None, None, "OOM when allocating shape[9,256]\n x")
        with (
            mock.patch.object(registry, "make", side_effect=full),
            self.assertRaises(errors.UserError) as caught,
        ):
            assembly.build_agent(config, spec, "float32", seed=0)
        self.assertIn("shape[9,256]", str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))

    @parameterized.parameters(
        (factory, "make_environment"), (saver, "Saver"), (assembly, "make_batches")
    )
    def test_error_before_learning_stops_actors_and_replay(self, module, name):
        run = runs.make(fakes.catch_config(), self._workdir)
        stop = server.ReplayServer.stop
        with (
            mock.patch.object(module, name, side_effect=RuntimeError("broken")),
            mock.patch.object(
                server.ReplayServer, "stop", autospec=True, side_effect=stop
            ) as stopped,
            self.assertRaisesRegex(RuntimeError, "broken"),
        ):
            runs.go_on(run)
        stopped.assert_called_once()
        self.assertNotIn("actor", [thread.name for thread in threading.enumerate()])

    def test_evaluation_that_cannot_be_written_is_in_the_error(self):
        full = OSError(errno.ENOSPC, "No space left on device")
        stopped = threading.Event()
        stopped.set()
        runs.go_on(runs.make(fakes.catch_config(), self._workdir), stopped)  # Saves its weights.
        with (
            mock.patch.object(os, "fsync", side_effect=full),
            messages.raises(run_directory.WorkdirError, "No space left", "mean_return"),
        ):
            run_evaluation.evaluate(self._workdir, episodes=2, seed=1, video=False)

    def test_evaluation_without_a_run_is_rejected(self):
        with messages.raises(run_directory.WorkdirError, self._workdir):
            run_evaluation.evaluate(self._workdir, episodes=1, seed=1, video=False)


if __name__ == "__main__":
    absltest.main()
