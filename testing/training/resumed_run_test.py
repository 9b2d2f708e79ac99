"""Runs on catch that stop and resume: weights, counters, logs and replay."""

import dataclasses
import logging
import re
import shutil
import threading
from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized
from tensorboard.backend.event_processing import event_accumulator

from laser_tf.environments import episode_statistics, factory
from laser_tf.monitoring import episode_log, tensorboard
from laser_tf.replay import server
from laser_tf.training import assembly, membership, run_config, training
from laser_tf.workdir import lock, run_directory
from testing import fakes, folders, messages, runs

STOPPED = fakes.catch_config(run={"env_frames": 4_000})


def _stop_at_once(run: training.Training) -> None:
    stopped = threading.Event()
    stopped.set()
    runs.go_on(run, stopped)


class _Member(membership.Membership):
    """The member of a sweep, for a run that is stopped at once."""

    name = "member_00"

    def __init__(self, copied: int):
        self._copied = copied

    def resume(self, *_) -> int:
        return self._copied


class ResumedRunTest(folders.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls._stopped = folders.of_class(cls) / "run"

    def _stop_at(self, config: run_config.RunConfig, env_frames: int = 2_000) -> training.Training:
        """Returns a run that was stopped and saved at a number of frames."""
        run_directory.open_workdir(self._workdir, dataclasses.asdict(config), {})
        run = runs.build(config, self._workdir)
        stop = mock.Mock(is_set=lambda: run.env_frames >= env_frames)
        runs.go_on(run, stop)
        return run

    def test_resumed_run_continues_exactly(self):
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
        runs.go_on(again)
        self.assertTrue(again.finished)
        self.assertGreater(again.counters.learner_updates, before)
        # 40 agent steps an update from the first to the last: none was lost or counted twice.
        self.assertEqual(again.counters.learner_updates * 40, again.counters.agent_steps)
        _, rates = tensorboard.read_scalars(self._workdir / "tensorboard", "learner/learning_rate")
        self.assertTrue(np.all(np.diff(rates) < 0), rates)

    def _copy_stopped(self) -> None:
        """Makes the directory of a run of `STOPPED` that was saved at 2,000 frames."""
        if not self._stopped.exists():
            self._stop_at(STOPPED)
            shutil.copytree(self._workdir, self._stopped)
        else:
            shutil.copytree(self._stopped, self._workdir)

    def test_extended_run_follows_the_longer_schedule(self):
        self._copy_stopped()
        config = fakes.catch_config(run={"env_frames": 6_000})
        with self.assertLogs(level="WARNING"):
            run_directory.open_workdir(self._workdir, dataclasses.asdict(config), {}, extend=True)
        again = runs.build(config, self._workdir)
        self.assertBetween(again.env_frames, 2_000, 2_100)
        runs.go_on(again)
        self.assertEqual(again.env_frames, 6_000)
        frames, rates = tensorboard.read_scalars(
            self._workdir / "tensorboard", "learner/learning_rate"
        )
        resumed = rates[frames > 2_100]
        self.assertGreater(resumed[0], 0.5 * config.learner.learning_rate)  # 2/3 at its start
        self.assertLess(resumed[-1], 0.2 * config.learner.learning_rate)

    def test_overridden_values_replace_those_of_the_checkpoint(self):
        config = fakes.catch_config(
            run={"env_frames": 2_000}, learner={"learning_rate_schedule": "constant"}
        )
        frames = self._stop_at(config, 1_000).env_frames
        values = fakes.config_values(config)
        values["agent"]["entropy_cost"] = 0.5
        values["learner"]["learning_rate"] = 2e-5
        values["environment"]["num_envs"] = 4
        keys = "agent.entropy_cost", "learner.learning_rate", "environment.num_envs"
        run_directory.open_workdir(self._workdir, values, {}, overridden=keys)
        config = run_config.parse(run_directory.read_config(self._workdir))
        runs.build(config, self._workdir)  # Ends before it trains.
        again = runs.build(config, self._workdir)
        with self.assertLogs(level="INFO") as logs:
            runs.go_on(again)
        for key in keys:
            self.assertLen([line for line in logs.output if f"Changed {key} " in line], 1)
        learner = again._learner
        self.assertEqual(learner.hyperparameters()["agent.entropy_cost"], 0.5)
        steps, rates = tensorboard.read_scalars(
            self._workdir / "tensorboard", "learner/learning_rate"
        )
        np.testing.assert_allclose(rates[steps > frames + 100], 2e-5, rtol=1e-5)
        # TensorBoard shows the overrides as a text.
        found = event_accumulator.EventAccumulator(str(self._workdir / "tensorboard")).Reload()
        (event,) = found.Tensors("overrides")
        self.assertEqual(event.step, frames)
        text = event.tensor_proto.string_val[0].decode()
        messages.assert_names(text, "agent.entropy_cost", 0.5, 0.01)

    def test_stopped_warm_up_is_counted_and_continued(self):
        config = fakes.r2d2_catch_config(run={"env_frames": 4_000}, replay={"warm_up": 1_500})
        run = runs.make(config, self._workdir)
        stop, episodes = threading.Event(), []

        def add(episode: episode_statistics.Episode) -> None:
            episodes.append(episode)
            if len(episodes) == 50:
                stop.set()

        with mock.patch.object(run, "_add_episode", add):
            runs.go_on(run, stop)
        self.assertEqual(int(run.counters.learner_updates), 0)
        self.assertEqual(int(run.counters.agent_steps), run.env_frames)
        again = runs.build(config, self._workdir)
        self.assertEqual(again.env_frames, run.env_frames)
        # An episode of catch has 10 steps; some wait in the queue.
        self.assertBetween(again.env_frames, 10 * 50 - 400, 10 * len(episodes) + 400)
        runs.go_on(again)
        # A sequence counts as 5 steps, so that the warm-up takes 3,000 steps.
        expected = (4_000 - 3_000) / 40
        self.assertAlmostEqual(int(again.counters.learner_updates), expected, delta=3)

    def test_contextual_replay_is_restored(self):
        config = fakes.r2d2_catch_config(
            run={"env_frames": 2_000, "metrics_seconds": 0.05}, replay={"scheme": "contextual"}
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

    @parameterized.parameters("sequences", "contextual")
    def test_run_without_saved_replay_repeats_its_warm_up(self, scheme):
        # A sequence counts as 5 steps, so that the warm-up takes 500 steps.
        replay = {"scheme": scheme, "warm_up": 250}
        config = fakes.r2d2_catch_config(run={"env_frames": 1_600}, replay=replay)
        first = self._stop_at(config, 800)
        replay["in_checkpoints"] = False
        config = fakes.r2d2_catch_config(run={"env_frames": 1_600}, replay=replay)
        again = runs.make(config, self._workdir)
        updates = int(again.counters.learner_updates)
        self.assertGreater(updates, 4)
        with self.assertNoLogs(level="WARNING"):
            runs.go_on(again)
        updates += (1_600 - first.env_frames - 500) / 40
        self.assertAlmostEqual(int(again.counters.learner_updates), updates, delta=3)
        # The older replay is gone, so that no later resumption restores it.
        checkpoints = self._workdir / "checkpoints"
        self.assertEqual([path.name for path in checkpoints.iterdir()], ["learner"])

    def test_experience_of_an_earlier_run_is_logged_in_a_new_run(self):
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

    def test_missing_replay_checkpoint_is_logged(self):
        self._copy_stopped()
        shutil.rmtree(self._workdir / "checkpoints/replay")
        with messages.warns():
            _stop_at_once(runs.build(STOPPED, self._workdir))

    def test_resumed_run_continues_its_log_of_episodes(self):
        config = fakes.catch_config(run={"env_frames": 4_000})
        first = self._stop_at(config, 2_000)
        before = episode_log.read(self._workdir)["catch"]
        self.assertGreater(len(before.returns), 160)  # an episode has 9 steps and its reset
        self.assertTrue(np.all(np.diff(before.env_frames) >= 0))
        self.assertLessEqual(before.env_frames[-1], 2_000)
        self.assertAlmostEqual(first.returns.mean_return(), before.returns[-100:].mean())

        with (self._workdir / "episodes.csv").open("a") as log:
            log.write("2040,catch,77,9\n2080,catch,7")  # of a crashed process
        again = runs.build(config, self._workdir)
        _stop_at_once(again)
        # A few episodes at most came from this process, all else from the log.
        last = episode_log.read(self._workdir)["catch"].returns[-100:]
        self.assertAlmostEqual(again.returns.mean_return(), last.mean())
        again = runs.build(config, self._workdir)
        runs.go_on(again)
        after = episode_log.read(self._workdir)["catch"]
        self.assertNotIn(77.0, after.returns)
        np.testing.assert_array_equal(after.returns[: len(before.returns)], before.returns)
        self.assertBetween(after.env_frames[-1], 3_000, 4_000)

    def test_returns_before_a_copy_are_not_restored(self):
        self._copy_stopped()
        rows = ["1000,catch,50,9"] * 40 + ["1900,catch,7,9"] * 40  # no return that catch can give
        (self._workdir / "episodes.csv").write_text(
            "\n".join(["env_frames,task,return,length", *rows, ""])
        )
        again = runs.build(STOPPED, self._workdir, _Member(copied=1_500))
        _stop_at_once(again)
        # The episodes of this process come last. Their number depends on when it stops.
        episodes = episode_log.read(self._workdir)["catch"]
        since = episodes.returns[episodes.env_frames > 1_500]
        self.assertEqual(list(since[:40]), [7.0] * 40)
        self.assertAlmostEqual(again.returns.mean_return(), since[-100:].mean())

    def test_resaved_log_is_rejected_before_any_write(self):
        self._copy_stopped()
        with (self._workdir / "episodes.csv").open("a") as log:
            log.write("3900,catch,1,9\n")  # beyond the checkpoint
        resaved = self._workdir / "evaluations.csv"
        resaved.write_text("a;b\n1;2\n")
        run = runs.build(STOPPED, self._workdir)
        paths = [path for path in self._workdir.rglob("*") if path.is_file()]
        before = {path: path.read_bytes() for path in paths}
        with self.assertRaises(run_directory.WorkdirError) as caught:
            runs.go_on(run)
        self.assertIn(str(resaved), str(caught.exception))
        paths = [path for path in self._workdir.rglob("*") if path.is_file()]
        self.assertEqual({path: path.read_bytes() for path in paths}, before)

    def test_renamed_run_directory_ends_the_run(self):
        run = runs.make(fakes.catch_config(), self._workdir)

        def rename(_: object) -> None:
            if self._workdir.exists():
                self._workdir.rename(self._workdir.with_name("moved"))

        self.enter_context(mock.patch.object(run.returns, "add", side_effect=rename))
        with self.assertRaises(lock.LostError) as caught:
            runs.go_on(run)
        self.assertIn(str(self._workdir), str(caught.exception))
        self.assertFalse(self._workdir.exists())


if __name__ == "__main__":
    absltest.main()
