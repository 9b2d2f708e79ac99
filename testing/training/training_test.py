"""Whole runs on catch: learning, resuming, evaluating, with the production loops."""

import dataclasses
import errno
import json
import logging
import os
import pathlib
import re
import shutil
import tempfile
import threading
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.agents import registry
from laser_tf.environments import catch, episode_statistics, factory
from laser_tf.evaluation import evaluator_process, run_evaluation
from laser_tf.monitoring import episode_log, evaluation_log, tensorboard
from laser_tf.replay import connection, server
from laser_tf.scores import reference
from laser_tf.training import assembly, learner, named_variables, run_config, training
from laser_tf.workdir import lock, run_directory
from testing import fakes, messages, runs


def _stop_at_once(run: training.Training) -> None:
    stopped = threading.Event()
    stopped.set()
    runs.go_on(run, stopped)


class _Member:
    """A sweep's only agent, as far as a run that is stopped at once has to do with it."""

    name, index, replay_address = "member_00", 0, None

    def __init__(self, copied: int):
        self._copied = copied

    def resume(self, *_) -> int:
        return self._copied

    def start(self, *_) -> None:
        pass

    def check(self) -> None:
        pass

    def throttle(self, *_) -> None:
        pass

    def close(self, *, finished: bool) -> None:
        pass


class TrainingTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._workdir = pathlib.Path(folder.name) / "run"

    @parameterized.named_parameters(
        (
            "laser",
            0.8,
            fakes.catch_config(replay={"replay_fraction": 0.75}, run={"env_frames": 60_000}),
        ),
        (
            "impala",
            0.8,
            fakes.catch_config(
                agent={"relevance": "none"},
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
    def test_learns_catch(self, least_return, config):
        run = runs.train(config, self._workdir)
        # The last update of R2D2 and Reactor waits for new steps, in unrolls of 5.
        self.assertBetween(run.env_frames, config.run.env_frames, config.run.env_frames + 44)
        summary = run_evaluation.evaluate(self._workdir, episodes=50, seed=2, video=True)
        self.assertGreater(summary["mean_return"], least_return)
        self.assertEqual((summary["episodes"], summary["env_frames"]), (50, run.env_frames))
        kept = self._workdir / "evaluations/evaluation_001.json"
        for path in (self._workdir / "evaluation.json", kept):
            self.assertEqual(json.loads(path.read_text()), summary)
        film = self._workdir / "videos/evaluation_001.mp4"
        self.assertEqual(summary["videos"], [str(film)])
        self.assertGreater(film.stat().st_size, 1000)

    def test_updates_on_replay_alone_follow_those_on_online_unrolls(self):
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

    def test_a_run_of_known_specs_makes_the_environments_that_it_plays_alone(self):
        config = fakes.catch_config(run={"env_frames": 400})
        run_directory.open_workdir(self._workdir, dataclasses.asdict(config), {})
        spec = factory.environment_spec(config.environment)
        with mock.patch.object(
            factory, "make_environment", wraps=factory.make_environment
        ) as making:
            runs.go_on(training.Training(config, self._workdir, spec))
        making.assert_called_once()

    def test_the_fitness_of_a_run_of_one_game_is_normalised(self):
        values = fakes.config_values(fakes.catch_config())
        values["environment"] = {"suite": "minatar", "task": "breakout"}
        run = runs.make(run_config.parse(values), self._workdir)
        random_score, score = reference.reference_scores("minatar")["breakout"]
        run.returns.add(episode_log.Row(0, "breakout", (random_score + score) / 2, 9))
        self.assertAlmostEqual(run.returns.fitness(), 0.5)

    def test_a_new_run_is_told_of_the_experience_that_its_server_holds_and_a_resumed_one_not(self):
        config = fakes.catch_config(run={"env_frames": 400})
        spec = factory.environment_spec(config.environment)
        agent = assembly.build_agent(config, spec, "float32", seed=0)
        served = server.ReplayServer(
            config.replay,
            assembly.unroll_signature(config, spec, agent),
            self._workdir.with_name("replay"),
            is_external=True,
        )
        self.addCleanup(served.stop)
        values = fakes.config_values(config)
        values["replay"]["address"] = f"localhost:{served.port}"
        config = run_config.parse(values)

        def warnings(run: training.Training) -> list[str]:
            with mock.patch.object(logging, "warning") as warn:
                _stop_at_once(run)
            texts = [call.args[0] for call in warn.call_args_list]
            return [text for text in texts if "items of an earlier run" in text]

        runs.train(config, self._workdir)
        other = self._workdir.with_name("other")
        self.assertLen(warnings(runs.make(config, other)), 1)
        self.assertEmpty(warnings(runs.build(config, other)))

    def test_what_was_played_before_a_warm_up_was_stopped_is_counted_and_the_warm_up_goes_on(self):
        config = fakes.r2d2_catch_config(run={"env_frames": 12_000}, replay={"warm_up": 5_000})
        run = runs.make(config, self._workdir)
        stop, played = threading.Event(), []

        def add(episode: episode_statistics.Episode) -> None:
            played.append(episode)
            if len(played) == 100:
                stop.set()

        with mock.patch.object(run, "_add_episode", add):
            runs.go_on(run, stop)
        self.assertEqual(int(run.counters.learner_updates), 0)
        self.assertEqual(int(run.counters.agent_steps), run.env_frames)
        again = runs.build(config, self._workdir)
        self.assertEqual(again.env_frames, run.env_frames)
        # An episode of catch has 10 steps; some wait in the queue.
        self.assertBetween(again.env_frames, 10 * 100 - 400, 10 * len(played) + 400)
        runs.go_on(again)
        # A sequence counts as 5 steps, so that 10,000 are played before the warm-up is there.
        expected = (12_000 - 10_000) / 40
        self.assertAlmostEqual(int(again.counters.learner_updates), expected, delta=3)

    @pytest.mark.long
    def test_a_resumed_r2d2_goes_on_without_another_warm_up(self):
        config = fakes.r2d2_catch_config(run={"env_frames": 1_500})
        first = runs.train(config, self._workdir)
        values = fakes.config_values(config)
        values["run"]["env_frames"] = 3_000
        config_file = self._workdir / "config.json"
        stored = json.loads(config_file.read_text())
        stored["config"]["run"]["env_frames"] = 3_000
        config_file.write_text(json.dumps(stored))
        again = runs.build(run_config.parse(values), self._workdir)
        for old, new in zip(first._learner.variables, again._learner.variables, strict=True):
            np.testing.assert_array_equal(old, new)
        runs.go_on(again, threading.Event())
        # One update for every 40 steps, but for the first 1,000: a sequence counts as the 5 steps
        # that adjacent ones add, and the warm-up's 500 make 100 sequences, here of an episode each.
        self.assertAlmostEqual(int(again.counters.learner_updates), (3_000 - 1_000) / 40, delta=3)

    def test_a_resumed_r2d2_has_the_sequences_that_it_kept_itself(self):
        config = fakes.r2d2_catch_config(
            run={"env_frames": 2_000, "metrics_seconds": 1e-3}, replay={"scheme": "contextual"}
        )
        first = runs.train(config, self._workdir)
        values = fakes.config_values(config)
        values["run"]["env_frames"] = 3_000
        config = run_config.parse(values)
        run_directory.open_workdir(self._workdir, dataclasses.asdict(config), {})
        again = runs.build(config, self._workdir)
        with self.assertLogs(level="INFO") as logs:
            runs.go_on(again)
        begun = [re.search(r"starts with ([\d,]+) sequences", line) for line in logs.output]
        (sequences,) = (int(found[1].replace(",", "")) for found in begun if found)
        # An episode of catch makes one; some wait in the queue, or came when the run was stopping.
        self.assertBetween(sequences, first.env_frames / 10 - 40, first.env_frames / 10 + 40)
        _, fills = tensorboard.read_scalars(self._workdir / "tensorboard", "replay/fill")
        self.assertGreater(fills[-1] * config.replay.max_items, sequences + 50)
        # Both kinds of update took place: 40 steps each but for the warm-up's 1,000.
        self.assertAlmostEqual(int(again.counters.learner_updates), (3_000 - 1_000) / 40, delta=3)
        for name, least in (("replay/fill", 0.01), ("replay/unknown_priorities", 0.01)):
            _, shares = tensorboard.read_scalars(self._workdir / "tensorboard", name)
            self.assertBetween(shares[-1], least, 0.99, name)

    def test_the_learners_priorities_are_written_back_to_what_was_drawn(self):
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

    def test_what_tensorboard_gets_of_r2d2(self):
        replay = {"unroll_length": 3, "sequence_length": 3, "sequence_overlap": 0, "burn_in": 3}
        runs.train(fakes.r2d2_catch_config(replay=replay), self._workdir)
        for name in (
            "loss/total",
            "q_learning/q_value",
            "q_learning/absolute_error",
            "replay/importance_weight",
            "replay/age_updates",
            "staleness/delta_q_first",
            "staleness/delta_q_last",
        ):
            steps, values = tensorboard.read_scalars(self._workdir / "tensorboard", name)
            self.assertNotEmpty(steps, name)
            self.assertTrue(np.isfinite(values).all(), name)
        self._check_that_no_unroll_was_lost()

    def test_what_tensorboard_gets(self):
        runs.train(fakes.catch_config(), self._workdir)
        for name in (
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
        ):
            steps, values = tensorboard.read_scalars(self._workdir / "tensorboard", name)
            self.assertNotEmpty(steps, name)
            self.assertTrue(np.isfinite(values).all(), name)
        self._check_that_no_unroll_was_lost()

    def _check_that_no_unroll_was_lost(self):
        for name in ("replay/lost_unrolls", "replay/duplicated_unrolls"):
            steps, values = tensorboard.read_scalars(self._workdir / "tensorboard", name)
            self.assertNotEmpty(steps, name)
            np.testing.assert_array_equal(values, 0)

    def test_evaluations_beside_training_are_in_the_log_and_in_tensorboard(self):
        config = fakes.catch_config(
            run={"env_frames": 20_000, "evaluate_every_env_frames": 2_000,
                 "evaluation_episodes_beside": 5},
        )  # fmt: skip
        run = runs.make(config, self._workdir)
        with evaluator_process.maybe_start(config, self._workdir) as beside:
            runs.go_on(run, evaluator=beside)
        self.assertTrue(run.finished)
        rows = evaluation_log.EvaluationLog(self._workdir).read()
        self.assertNotEmpty(rows)
        frames = [row.env_frames for row in rows]
        self.assertBetween(frames[0], 2_000, 2_039)  # of an update, 40
        self.assertTrue(np.all(np.diff([frame // 2_000 for frame in frames]) >= 1))
        for row in rows:
            self.assertEqual(row.episodes, 5)
            self.assertEqual(row.learner_updates * 40, row.env_frames)
        steps, values = tensorboard.read_scalars(
            self._workdir / "tensorboard", tensorboard.EVALUATION_RETURN
        )
        np.testing.assert_array_equal(steps, frames)
        np.testing.assert_allclose(values, [row.mean_return for row in rows], atol=1e-6)
        frames, _ = tensorboard.read_scalars(self._workdir / "tensorboard", tensorboard.RETURN)
        self.assertEqual(frames[-1], 20_000)  # the training's, as ever

    def test_a_resumed_run_goes_on_exactly_where_it_stopped(self):
        config = fakes.catch_config(run={"env_frames": 4_000})
        first = self._stop_at(config)
        self.assertEqual(first.env_frames, 2_000)
        again = runs.build(config, self._workdir)
        self.assertTrue(again.resumed)
        self.assertEqual(again.env_frames, first.env_frames)
        # Weights, optimiser, counters and runtime hyper-parameters are all its variables.
        for old, new in zip(first._learner.variables, again._learner.variables, strict=True):
            np.testing.assert_array_equal(old, new)
        before = first.counters.learner_updates.numpy()
        runs.go_on(again, threading.Event())
        self.assertTrue(again.finished)
        self.assertGreater(again.counters.learner_updates, before)
        # 40 agent steps an update from the first to the last: none was lost or counted twice.
        self.assertEqual(again.counters.learner_updates * 40, again.counters.agent_steps)
        steps, rates = tensorboard.read_scalars(
            self._workdir / "tensorboard", "learner/learning_rate"
        )
        self.assertTrue(np.all(np.diff(rates) < 0), rates)
        del steps

    def test_the_log_of_episodes_goes_on_with_the_run(self):
        config = fakes.catch_config(run={"env_frames": 20_000})
        first = self._stop_at(config, 10_000)
        before = episode_log.read(self._workdir)["catch"]
        self.assertGreater(len(before.returns), 800)  # an episode has 9 steps and its reset
        self.assertTrue(np.all(np.diff(before.env_frames) >= 0))
        self.assertLessEqual(before.env_frames[-1], 10_000)
        self.assertAlmostEqual(first.returns.mean_return(), before.returns[-100:].mean())

        with (self._workdir / "episodes.csv").open("a") as log:
            log.write("10040,catch,77,9\n10080,catch,7")  # of a crashed process
        again = runs.build(config, self._workdir)
        _stop_at_once(again)
        # A few episodes at most came from this process, all else from the log.
        last = episode_log.read(self._workdir)["catch"].returns[-100:]
        self.assertAlmostEqual(again.returns.mean_return(), last.mean())
        again = runs.build(config, self._workdir)
        runs.go_on(again, threading.Event())
        after = episode_log.read(self._workdir)["catch"]
        self.assertNotIn(77.0, after.returns)
        np.testing.assert_array_equal(after.returns[: len(before.returns)], before.returns)
        self.assertBetween(after.env_frames[-1], 19_000, 20_000)

    def test_returns_of_before_a_copy_do_not_come_back(self):
        config = fakes.catch_config()
        runs.train(config, self._workdir)
        rows = ["1000,catch,50,9"] * 40 + ["1900,catch,7,9"] * 40  # no return that catch can give
        (self._workdir / "episodes.csv").write_text(
            "\n".join(["env_frames,task,return,length", *rows, ""])
        )
        again = runs.build(config, self._workdir, _Member(copied=1_500))
        _stop_at_once(again)
        # How many episodes this process plays before it stops is not known: they come last.
        episodes = episode_log.read(self._workdir)["catch"]
        since = episodes.returns[episodes.env_frames > 1_500]
        self.assertEqual(list(since[:40]), [7.0] * 40)
        self.assertAlmostEqual(again.returns.mean_return(), since[-100:].mean())

    def _stop_at(self, config: run_config.RunConfig, env_frames: int = 2_000) -> training.Training:
        """Returns a run that was stopped and saved at a number of frames."""
        run_directory.open_workdir(self._workdir, dataclasses.asdict(config), {})
        run = runs.build(config, self._workdir)
        stop = mock.Mock(is_set=lambda: run.env_frames >= env_frames)
        runs.go_on(run, stop)
        return run

    def test_episodes_that_were_deleted_are_logged_on_resume(self):
        config = fakes.catch_config(run={"env_frames": 4_000})
        self._stop_at(config)
        path = self._workdir / "episodes.csv"
        lines = path.read_text().splitlines(keepends=True)
        with self.assertNoLogs(level="WARNING"):
            _stop_at_once(runs.build(config, self._workdir))
        path.write_text("".join(lines[:10]))
        with self.assertLogs(level="WARNING") as logs:
            _stop_at_once(runs.build(config, self._workdir))
        self.assertLen(logs.output, 1)
        self.assertIn(str(path), logs.output[0])
        with self.assertNoLogs(level="WARNING"):
            _stop_at_once(runs.build(config, self._workdir))

    @parameterized.parameters("episodes.csv", "evaluations.csv")
    def test_a_resaved_log_is_rejected_before_anything_is_written(self, name):
        config = fakes.catch_config(run={"env_frames": 4_000})
        self._stop_at(config)
        with (self._workdir / "episodes.csv").open("a") as log:
            log.write("3900,catch,1,9\n")  # beyond the checkpoint
        (self._workdir / name).write_text("a;b\n1;2\n")
        run = runs.build(config, self._workdir)
        paths = [path for path in self._workdir.rglob("*") if path.is_file()]
        before = {path: path.read_bytes() for path in paths}
        with self.assertRaises(run_directory.WorkdirError) as caught:
            runs.go_on(run)
        self.assertIn(str(self._workdir / name), str(caught.exception))
        paths = [path for path in self._workdir.rglob("*") if path.is_file()]
        self.assertEqual({path: path.read_bytes() for path in paths}, before)

    def test_weights_that_are_not_finite_end_the_run_and_are_not_saved(self):
        config = fakes.catch_config(run={"env_frames": 4_000})
        first = self._stop_at(config)
        saved = sorted((self._workdir / "checkpoints").rglob("*"))
        broken = runs.build(config, self._workdir)
        bias = next(v for v in broken._learner.agent.trainable_variables if v.shape.rank == 1)
        bias.assign(tf.fill(bias.shape, np.nan))
        with self.assertRaises(named_variables.NonFiniteWeightsError):
            runs.go_on(broken, threading.Event())
        self.assertEqual(sorted((self._workdir / "checkpoints").rglob("*")), saved)
        again = runs.build(config, self._workdir)
        self.assertEqual(again.env_frames, first.env_frames)
        runs.go_on(again, threading.Event())
        self.assertTrue(again.finished)

    def test_a_run_whose_replay_is_gone_says_so(self):
        config = fakes.catch_config(run={"env_frames": 4_000})
        self._stop_at(config)
        shutil.rmtree(self._workdir / "checkpoints/replay")
        with self.assertLogs(level="WARNING") as logs:
            _stop_at_once(runs.build(config, self._workdir))
        self.assertLen(logs.output, 1)

    def test_a_run_that_lost_its_checkpoints_is_no_new_one(self):
        config = fakes.catch_config(run={"env_frames": 4_000})
        self._stop_at(config)
        shutil.rmtree(self._workdir / "checkpoints")
        episodes = (self._workdir / "episodes.csv").read_text()
        with messages.raises(run_directory.WorkdirError, "checkpoints/learner"):
            run_directory.open_workdir(self._workdir, dataclasses.asdict(config), {})
        self.assertEqual((self._workdir / "episodes.csv").read_text(), episodes)

    def test_an_extended_run_goes_on_with_the_longer_schedule(self):
        self._stop_at(fakes.catch_config(run={"env_frames": 4_000}))
        config = fakes.catch_config(run={"env_frames": 8_000})
        with self.assertLogs(level="WARNING"):
            run_directory.open_workdir(self._workdir, dataclasses.asdict(config), {}, extend=True)
        again = runs.build(config, self._workdir)
        self.assertBetween(again.env_frames, 2_000, 2_100)
        runs.go_on(again, threading.Event())
        self.assertEqual(again.env_frames, 8_000)
        frames, rates = tensorboard.read_scalars(
            self._workdir / "tensorboard", "learner/learning_rate"
        )
        resumed = rates[frames > 2_100]
        self.assertGreater(resumed[0], 0.5 * config.learner.learning_rate)  # 3/4 at its start
        self.assertLess(resumed[-1], 0.2 * config.learner.learning_rate)

    def test_an_actors_error_ends_the_run(self):
        config = fakes.catch_config()
        with (
            absltest.mock.patch.object(
                catch.Catch, "_step", side_effect=RuntimeError("the emulator broke")
            ),
            messages.raises(RuntimeError, "the emulator broke"),
        ):
            runs.train(config, self._workdir)

    def test_the_same_seed_starts_with_the_same_weights(self):
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


class AssemblyTest(absltest.TestCase):
    def test_a_network_too_large_for_memory_gives_one_line(self):
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


class LostDirectoryTest(parameterized.TestCase):
    @parameterized.parameters("delete", "rename")
    def test_a_lost_run_directory_ends_the_run(self, how):
        folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        workdir, moved = folder / "run", folder / "moved"
        run = runs.make(fakes.catch_config(), workdir)

        def lose(_: object) -> None:
            if not workdir.exists():
                return
            if how == "rename":
                workdir.rename(moved)
            else:
                shutil.rmtree(workdir)

        self.enter_context(mock.patch.object(run.returns, "add", side_effect=lose))
        with self.assertRaises(lock.LostError) as caught:
            runs.go_on(run)
        self.assertIn(str(workdir), str(caught.exception))
        self.assertFalse(workdir.exists())


class EvaluatorTest(absltest.TestCase):
    def test_a_folder_without_a_run_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            with messages.raises(run_directory.WorkdirError, folder):
                run_evaluation.evaluate(pathlib.Path(folder), episodes=1, seed=1, video=False)

    def test_a_result_that_cannot_be_written_is_told_instead(self):
        full = OSError(errno.ENOSPC, "No space left on device")
        with tempfile.TemporaryDirectory() as folder:
            runs.train(fakes.catch_config(), pathlib.Path(folder) / "run")
            with (
                absltest.mock.patch.object(os, "fsync", side_effect=full),
                messages.raises(run_directory.WorkdirError, "No space left", "mean_return"),
            ):
                run_evaluation.evaluate(
                    pathlib.Path(folder) / "run", episodes=2, seed=1, video=False
                )


if __name__ == "__main__":
    absltest.main()
