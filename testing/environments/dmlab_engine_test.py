"""DMLab-30 and its engine, by a stand-in: what reaches it, what it refuses, how it dies."""

import os
import pathlib
import shutil
import signal
import tempfile
from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.environments import (
    dmlab,
    dmlab_game,
    dmlab_levels,
    faults,
    worker_pool,
)
from testing import messages
from testing.environments import fake_deepmind_lab, rollouts

TASK = "language_execute_random_task"


def _make(task=TASK, **options):
    options = {"action_repeat": 4, "num_envs": 2, **options}
    return rollouts.make("dmlab", task, **options)


class DMLabTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self._log = self.enter_context(fake_deepmind_lab.installed())

    def _calls(self, kind):
        """The engines' calls of a kind, a list for each engine in the order of their start."""
        engines = {}
        for call in fake_deepmind_lab.calls(self._log):
            engines.setdefault(call["process"], [])
            if call["call"] == kind:
                engines[call["process"]].append(call)
        return list(engines.values())


class EngineTest(DMLabTest):
    def test_actions_reach_the_engine_as_their_seven_values(self):
        with _make("rooms_watermaze", num_envs=1, action_repeat=3) as environment:
            rollouts.play(environment, np.arange(15)[:, None])
        (steps,) = self._calls("step")
        self.assertEqual({step["num_steps"] for step in steps}, {3})
        self.assertEqual(
            [step["action"] for step in steps],
            [
                [0, 0, 0, 1, 0, 0, 0],
                [0, 0, 0, -1, 0, 0, 0],
                [0, 0, -1, 0, 0, 0, 0],
                [0, 0, 1, 0, 0, 0, 0],
                [-10, 0, 0, 0, 0, 0, 0],
                [10, 0, 0, 0, 0, 0, 0],
                [-60, 0, 0, 0, 0, 0, 0],
                [60, 0, 0, 0, 0, 0, 0],
                [0, 10, 0, 0, 0, 0, 0],
                [0, -10, 0, 0, 0, 0, 0],
                [-10, 0, 0, 1, 0, 0, 0],
                [10, 0, 0, 1, 0, 0, 0],
                [-60, 0, 0, 1, 0, 0, 0],
                [60, 0, 0, 1, 0, 0, 0],
                [0, 0, 0, 0, 1, 0, 0],
            ],
        )

    @parameterized.parameters(
        (False, "rooms_collect_good_objects_train", {"mixerSeed": "0"}),
        (
            True,
            "rooms_collect_good_objects_test",
            {"mixerSeed": "1611489005", "allowHoldOutLevels": "true"},  # 0x600D5EED
        ),
    )
    def test_the_engine_is_set_for_training_and_for_what_is_held_out(self, hold_out, level, own):
        with _make("rooms_collect_good_objects_train", num_envs=1, hold_out=hold_out):
            pass
        ((started,),) = self._calls("Lab")
        self.assertEqual(started["level"], f"contributed/dmlab30/{level}")
        self.assertEqual(
            started["config"], {"width": "96", "height": "72", "logLevel": "WARN", **own}
        )

    def test_held_out_games_have_other_seeds(self):
        rows = []
        for hold_out in (False, True):
            with _make("rooms_watermaze", num_envs=1, hold_out=hold_out) as environment:
                rows.append(rollouts.play(environment, np.zeros([40, 1], int)))
        self.assertFalse(np.array_equal(rows[0].is_first, rows[1].is_first))

    def test_each_game_is_a_process_and_closing_closes_the_engines(self):
        with _make(num_envs=3) as environment:
            environment.reset()
        self.assertLen(self._calls("close"), 3)
        self.assertEqual([len(closes) for closes in self._calls("close")], [1, 1, 1])
        with messages.raises(RuntimeError):
            environment.step(np.zeros(3, int))
        environment.close()

    def test_a_game_loads_no_tensorflow(self):
        with _make(num_envs=1):
            pass
        ((started,),) = self._calls("Lab")
        self.assertFalse(started["tensorflow"])

    def test_a_dataset_reaches_the_engine(self):
        with _make("psychlab_continuous_recognition", num_envs=1, dataset_path="/images"):
            pass
        ((started,),) = self._calls("Lab")
        self.assertEqual(started["config"]["datasetPath"], "/images")


class InstructionTest(DMLabTest):
    def test_levels_without_a_text_have_an_empty_one(self):
        with _make("rooms_watermaze", num_envs=1) as environment:
            np.testing.assert_array_equal(
                environment.reset().observation["text"], np.zeros([1, 16])
            )

    def test_no_instructions_are_asked_for_where_none_are_read(self):
        with _make(num_envs=1, instruction_length=0) as environment:
            self.assertEqual(environment.reset().observation.shape, (1, 72, 96, 3))
            self.assertEqual(environment.step([0]).observation.shape, (1, 72, 96, 3))
        ((started,),) = self._calls("Lab")
        self.assertEqual(started["observations"], ["RGB_INTERLEAVED"])

    def test_a_text_that_is_too_long_is_refused(self):
        with _make(num_envs=1, instruction_length=2) as environment:
            with messages.raises(faults.EnvironmentFailedError, "Find object 0"):
                environment.reset()


class RefusalTest(DMLabTest):
    @parameterized.parameters("rooms_watermase", "rooms_collect_good_objects_test", "pong")
    def test_a_misspelt_level_is_refused_with_close_names(self, task):
        with messages.raises(ValueError, task) as context:
            dmlab.DMLabConfig(task=task)
        hint = {
            "rooms_watermase": "rooms_watermaze",
            "rooms_collect_good_objects_test": "rooms_collect_good_objects_train",
            "pong": "rooms_watermaze",
        }
        self.assertIn(hint[task], str(context.exception))
        self.assertNotIn("\n", str(context.exception))

    def test_a_dead_engine_ends_its_episode_as_a_time_limit_and_the_next_begins(self):
        with _make(seed=3) as environment:
            environment.reset()
            shown = environment.step([0, 0])
            with mock.patch.dict(os.environ, FAKE_DEEPMIND_LAB_DIES_AT="6"):
                (engine, other) = self._processes()
                os.kill(engine, signal.SIGKILL)
                with self.assertLogs(level="WARNING") as logs:
                    cut = environment.step([0, 0])  # its successor dies in its second step
            begun = environment.step([0, 0])
            # Engines start side by side: either game's may have been the first.
            stands = [
                np.array_equal(new, old)
                for new, old in zip(
                    cut.observation["image"], shown.observation["image"], strict=True
                )
            ]
            self.assertCountEqual(stands, [True, False])
            dead = stands.index(True)
            self.assertEqual(
                (cut.reward[dead], cut.discount[dead], cut.is_first[dead]), (0, 1, False)
            )
            np.testing.assert_array_equal(begun.is_first, stands)
            environment.step([0, 0])
            with self.assertNoLogs(level="WARNING"):  # told once
                again = environment.step([0, 0])
            np.testing.assert_array_equal(again.discount, 1)
            self.assertEqual(environment.fault_counts()["restarted_games"], 2)
            self.assertIn(other, self._processes())
        self.assertLen(logs.output, 1)
        messages.assert_names(logs.output[0], dead, TASK, "-9", 1)
        seeds = [
            call["seed"] for call in fake_deepmind_lab.calls(self._log) if call["call"] == "reset"
        ]
        self.assertLen(set(seeds), len(seeds))  # the game does not play its first episodes again

    def _processes(self):
        """The engines' processes, in the order of their start."""
        return list(dict.fromkeys(c["process"] for c in fake_deepmind_lab.calls(self._log)))

    def test_an_engine_that_dies_again_and_again_is_given_up(self):
        self.enter_context(mock.patch.dict(os.environ, FAKE_DEEPMIND_LAB_DIES_AT="2"))
        with _make(num_envs=1, max_broken_episodes=2) as environment:
            environment.reset()
            named = 0, TASK, 7, "environment.max_broken_episodes"
            with messages.raises(faults.EnvironmentFailedError, *named):
                for _ in range(6):
                    environment.step([0])

    def test_what_the_engine_refuses_is_told_in_one_line(self):
        with mock.patch.object(
            dmlab_levels, "settings", return_value={}
        ):  # test levels do not load so
            with messages.raises(
                faults.EnvironmentFailedError,
                "rooms_collect_good_objects_train",
                "allowHoldOutLevels",
            ):
                _make("rooms_collect_good_objects_train", hold_out=True)


class MissingEngineTest(parameterized.TestCase):
    def test_the_message_says_how_to_install_it_before_anything_starts(self):
        with mock.patch.object(worker_pool, "WorkerPool") as started:
            with messages.raises(ImportError, "github.com/google-deepmind/lab") as context:
                _make()
        self.assertNotIn("\n", str(context.exception))
        self.assertIn("bazel build", str(context.exception))
        started.assert_not_called()


class LevelCacheTest(DMLabTest):
    def setUp(self):
        super().setUp()
        folder = self.enter_context(tempfile.TemporaryDirectory())
        self._folder = pathlib.Path(folder)

    def test_a_map_is_compiled_once_for_all_runs(self):
        folder = self._folder / "of" / "maps"
        for num_envs in (1, 2):
            with _make(num_envs=num_envs, level_cache=str(folder)) as environment:
                environment.reset()
        maps = [[entry["fetched"] for entry in engine] for engine in self._calls("compile")]
        self.assertEqual(maps, [[False], [True], [True]])
        self.assertLen(list(folder.iterdir()), 1)

    def test_a_second_writer_and_readers_never_see_half_of_a_map(self):
        cache = dmlab_game.LevelCache(str(self._folder))
        ours, theirs, read = (self._folder.with_name(f"{self._folder.name}.{n}") for n in "123")
        for path in (ours, theirs, read):
            self.addCleanup(path.unlink, missing_ok=True)
        ours.write_text("map of ours")
        theirs.write_text("map of theirs")
        copy = shutil.copyfile

        def copy_slowly(source, target):
            mock.patch.stopall()
            pathlib.Path(target).write_text("map of")
            self.assertFalse(cache.fetch("key", str(read)))
            cache.write("key", str(theirs))
            self.assertTrue(cache.fetch("key", str(read)))
            self.assertEqual(read.read_text(), "map of theirs")
            return copy(source, target)

        mock.patch.object(shutil, "copyfile", copy_slowly).start()
        self.addCleanup(mock.patch.stopall)
        cache.write("key", str(ours))
        self.assertTrue(cache.fetch("key", str(read)))
        self.assertEqual(read.read_text(), "map of ours")
        self.assertEqual([path.name for path in self._folder.iterdir()], ["key"])

    def test_a_write_that_fails_leaves_nothing(self):
        def fill_the_disk(_, target):
            pathlib.Path(target).write_text("map of")
            raise OSError("No space left on device")

        cache = dmlab_game.LevelCache(str(self._folder))
        with mock.patch.object(shutil, "copyfile", fill_the_disk):
            with messages.raises(OSError):
                cache.write("key", "map.pk3")
        self.assertEmpty(list(self._folder.iterdir()))
        self.assertFalse(cache.fetch("key", str(self._folder / "target")))


if __name__ == "__main__":
    absltest.main()
