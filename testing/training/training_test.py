"""Whole runs on catch: learning, metrics, priorities and evaluations, with the production loops."""

import errno
import json
import os
import threading
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.agents import registry
from laser_tf.environments import factory
from laser_tf.evaluation import evaluator, run_evaluation
from laser_tf.monitoring import evaluation_log, metrics, tensorboard
from laser_tf.replay import connection, server
from laser_tf.training import assembly, learner, run_config
from laser_tf.workdir import run_directory
from testing import fakes, folders, messages, runs

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


class _BlockingEvaluator:
    """An evaluator in the process of the test that has each result at once."""

    def __init__(self, config: run_config.RunConfig):
        self._evaluator = evaluator.Evaluator.during_training(config)
        self._summary = None

    def begin(self, *arguments: Any) -> None:
        self._summary = self._evaluator.evaluate(*arguments)

    def result(self) -> dict[str, Any] | None:
        summary, self._summary = self._summary, None
        return summary


class TrainingTest(folders.FolderTest):
    def test_laser_learns_catch(self):
        config = fakes.catch_config(replay={"replay_fraction": 0.75}, run={"env_frames": 60_000})
        self._check_learns(config, 0.8)
        self._check_metrics(LASER_METRICS)

    @parameterized.named_parameters(
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
    @pytest.mark.long
    def test_other_agents_learn_catch(self, min_return, config):
        self._check_learns(config, min_return)

    def _check_learns(self, config: run_config.RunConfig, min_return: float) -> None:
        run = runs.train(config, self._workdir)
        # The last update of R2D2 and Reactor waits for new steps, in unrolls of 5.
        self.assertBetween(run.env_frames, config.run.env_frames, config.run.env_frames + 44)
        summary = run_evaluation.evaluate(self._workdir, episodes=50, seed=2, video=True)
        self.assertGreater(summary["mean_return"], min_return)
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
            run={"env_frames": 8_000, "seed": 3, "metrics_seconds": 1e6},
        )
        run = runs.train(config, self._workdir)
        self.assertEqual(run.env_frames, 8_000)
        online = 8_000 // (2 * 10)  # frames over those of two unrolls
        # The run ends with its last frames, without the replayed updates after them.
        counts = np.random.default_rng((3, 0)).poisson(2.0, online - 1)
        self.assertEqual(int(run.counters.learner_updates), online + counts.sum())
        self.assertAlmostEqual(counts.mean(), 2.0, delta=5 * (2 / online) ** 0.5)
        # Each logged step averages over two online updates and the replayed updates between them.
        # The mean of a metric includes only updates that have this metric.
        rows = tensorboard.read_rows(self._workdir / "tensorboard")
        self.assertLen(rows, 200)
        for row in rows.values():
            for name in ("policy/kl_online", "replay/policy_lag_updates"):
                self.assertTrue(np.isfinite(row[name]), name)
        for name in (
            "policy/kl_own",
            "trust_region/accepted_replay_fraction",
            "replay/age_updates",
        ):
            values = [row[name] for row in rows.values() if name in row]
            self.assertGreater(len(values), 180)  # exp(-4) of the rows have no replayed update.
            self.assertTrue(np.isfinite(values).all(), name)
        steps = np.mean([row["learner/new_steps"] for row in rows.values()])
        self.assertAlmostEqual(steps, 7.5, delta=1)  # The mean of 2 * 20 / (2 + Poisson(4)).

    def test_r2d2_writes_priorities_of_the_sampled_items(self):
        sequences = {"unroll_length": 3, "sequence_length": 3, "sequence_overlap": 0, "burn_in": 3}
        config = fakes.r2d2_catch_config(replay=sequences | {"importance_exponent": 1.0})
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
        for (sampled, expected), (keys, priorities) in zip(updated, written, strict=True):
            self.assertTrue(np.all(sampled > 0))
            np.testing.assert_array_equal(keys, sampled)
            np.testing.assert_array_equal(priorities, expected)
        self._check_metrics(R2D2_METRICS)

    def test_periodic_evaluations_are_in_log_and_tensorboard(self):
        config = fakes.catch_config(
            run={"env_frames": 4_000, "evaluate_every_env_frames": 1_000,
                 "periodic_evaluation_episodes": 5},
        )  # fmt: skip
        run = runs.make(config, self._workdir)
        runs.go_on(run, evaluator=_BlockingEvaluator(config))
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
            self._workdir / "tensorboard", evaluation_log.RETURN
        )
        np.testing.assert_array_equal(steps, frames)
        np.testing.assert_allclose(values, [row.mean_return for row in rows], atol=1e-6)
        frames, _ = tensorboard.read_scalars(self._workdir / "tensorboard", tensorboard.RETURN)
        self.assertEqual(frames[-1], 4_000)  # The returns of training.

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
            messages.raises(errors.UserError, "shape[9,256]"),
        ):
            assembly.build_agent(config, spec, "float32", seed=0)

    @parameterized.parameters((factory, "make_environment"), (assembly, "make_batches"))
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


if __name__ == "__main__":
    absltest.main()
