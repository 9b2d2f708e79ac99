"""DMLab-30 against a stand-in for the engine."""

import json
import os
import pathlib
import shutil
from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import types
from laser_tf.environments import dmlab, faults
from laser_tf.scores import reference
from testing import folders, messages
from testing.environments import fake_packages, rollouts

TASK = "language_execute_random_task"


class DMLabTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self.enter_context(fake_packages.installed())
        self._log = self._folder / "log"
        variables = {"FAKE_DEEPMIND_LAB_LOG": str(self._log)}
        self.enter_context(mock.patch.dict(os.environ, variables))

    def _calls(self, kind):
        """Returns the engines' calls of a kind, a list for each engine."""
        engines = {}
        for call in map(json.loads, self._log.read_text().splitlines()):
            engines.setdefault(call["process"], [])
            if call["call"] == kind:
                engines[call["process"]].append(call)
        return list(engines.values())

    def _level(self, task=TASK, seed=0, **options):
        config = dmlab.DMLabConfig(task=task, **options)
        return config.maker(task, rendering=False)(seed)


class LevelTest(DMLabTest):
    def test_level_returns_the_values_of_the_engine(self):
        level = self._level(seed=4)
        import deepmind_lab

        random = np.random.RandomState(4)
        engine = deepmind_lab.Lab(
            f"contributed/dmlab30/{TASK}",
            ["RGB_INTERLEAVED", "INSTR"],
            {"width": "96", "height": "72", "mixerSeed": "0"},
        )
        actions = np.random.default_rng(1).integers(15, size=80)
        is_over, ends = True, 0
        for action in actions:
            if is_over:
                time_step = level.reset()
                engine.reset(seed=int(random.randint(2**31 - 1)))
                is_over, ends = False, ends + 1
            else:
                time_step = level.step(action)
                reward = engine.step(np.array(dmlab.ACTIONS[action], np.intc), num_steps=4)
                is_over = not engine.is_running()
                self.assertEqual((time_step.reward, time_step.discount), (reward, 1 - is_over))
            self.assertEqual(time_step.last(), is_over)
            if not is_over:  # At the end the engine shows nothing: the frame before is repeated.
                shown = engine.observations()
            self.assertEqual(time_step.observation["text"], shown["INSTR"])
            np.testing.assert_array_equal(time_step.observation["image"], shown["RGB_INTERLEAVED"])
        self.assertGreater(ends, 2)

    def test_actions_reach_the_engine_as_their_seven_values(self):
        level = self._level("rooms_watermaze", action_repeat=3)
        self.assertEqual(level.action_spec(), specs.DiscreteArray(15, name="action"))
        level.reset()
        for action in range(15):
            level.step(action)
        (steps,) = self._calls("step")
        self.assertEqual({step["num_steps"] for step in steps}, {3})
        self.assertEqual([tuple(step["action"]) for step in steps], list(dmlab.ACTIONS))

    @parameterized.parameters(
        ({}, "rooms_collect_good_objects_train", {"mixerSeed": "0"}),
        (
            {"hold_out": True},
            "rooms_collect_good_objects_test",
            {"mixerSeed": "1611489005", "allowHoldOutLevels": "true"},  # 0x600D5EED
        ),
        (
            {"dataset_path": "~/images"},
            "rooms_collect_good_objects_train",
            {"mixerSeed": "0", "datasetPath": str(pathlib.Path.home() / "images")},
        ),
    )
    def test_engine_has_the_settings_of_the_config(self, options, level, settings):
        self._level("rooms_collect_good_objects_train", **options)
        ((started,),) = self._calls("Lab")
        self.assertEqual(started["level"], f"contributed/dmlab30/{level}")
        self.assertEqual(
            started["config"], {"width": "96", "height": "72", "logLevel": "WARN", **settings}
        )

    def test_levels_are_those_with_reference_scores(self):
        config = dmlab.DMLabConfig(hold_out=True)
        held_out = [config.level(task) for task in dmlab.LEVELS]
        self.assertEqual(
            [level for level in held_out if level not in dmlab.LEVELS],
            ["rooms_collect_good_objects_test", "rooms_exploit_deferred_effects_test"],
        )
        known = reference.reference_scores("dmlab")  # Both levels of a task.
        self.assertEqual({*dmlab.LEVELS, *held_out}, set(known))
        own = [dmlab.DMLabConfig().level(task) for task in dmlab.LEVELS]
        self.assertEqual(own, list(dmlab.LEVELS))


class EnvironmentTest(DMLabTest):
    def test_each_environment_is_a_process_and_is_closed(self):
        with rollouts.make("dmlab", TASK, num_envs=3, instruction_length=5) as environment:
            outputs = rollouts.run(environment, np.zeros([40, 3], np.int32))
            spec = environment.observation_spec()
            np.testing.assert_array_equal(
                environment.render(1), outputs.observation["image"][-1, 1]
            )
        self.assertEqual((spec["image"].shape, spec["text"]), ((72, 96, 3), types.TextSpec(5)))
        np.testing.assert_array_equal(outputs.discount[:-1] == 0, outputs.is_first[1:])
        self.assertTrue(outputs.is_first[1:].any(axis=0).all())
        self.assertEqual([len(closes) for closes in self._calls("close")], [1, 1, 1])
        for (started,), steps in zip(self._calls("Lab"), self._calls("step"), strict=True):
            self.assertFalse(started["tensorflow"])
            self.assertEqual({step["num_steps"] for step in steps}, {4})

    def test_without_instructions_the_image_is_the_observation(self):
        with rollouts.make("dmlab", TASK, num_envs=1, instruction_length=0) as environment:
            self.assertEqual(environment.reset().observation.shape, (1, 72, 96, 3))
        ((started,),) = self._calls("Lab")
        self.assertEqual(started["observations"], ["RGB_INTERLEAVED"])

    def test_text_that_is_too_long_ends_the_run(self):
        with rollouts.make("dmlab", TASK, num_envs=1, instruction_length=2) as environment:
            named = TASK, "Find object 0", "instruction_length=3"
            with messages.raises(faults.EnvironmentFailedError, *named):
                environment.reset()


class LevelCacheTest(DMLabTest):
    def test_map_is_compiled_once_for_all_runs(self):
        folder = self._folder / "of" / "maps"
        self.enter_context(mock.patch.dict(os.environ, HOME=str(self._folder)))
        for path in (str(folder), "~/of/maps"):
            options = {"num_envs": 1, "level_cache": path}
            with rollouts.make("dmlab", TASK, **options) as environment:
                environment.reset()
        maps = [[entry["fetched"] for entry in engine] for engine in self._calls("compile")]
        self.assertEqual(maps, [[False], [True]])
        self.assertLen(list(folder.iterdir()), 1)

    def test_reader_sees_no_incomplete_map(self):
        cache = dmlab.LevelCache(str(self._folder))
        source, read = self._folder / "source", self._folder / "read"
        source.write_text("map")
        copy = shutil.copyfile

        def copy_slowly(source, target):
            pathlib.Path(target).write_text("ma")
            with mock.patch.object(shutil, "copyfile", copy):
                self.assertFalse(cache.fetch("key", str(read)))
            return copy(source, target)

        with mock.patch.object(shutil, "copyfile", copy_slowly):
            cache.write("key", str(source))
        self.assertTrue(cache.fetch("key", str(read)))
        self.assertEqual(read.read_text(), "map")

    def test_failed_write_leaves_no_file(self):
        def fill_the_disk(_, target):
            pathlib.Path(target).write_text("map of")
            raise OSError("No space left on device")

        cache = dmlab.LevelCache(str(self._folder))
        with mock.patch.object(shutil, "copyfile", fill_the_disk), self.assertRaises(OSError):
            cache.write("key", "map.pk3")
        self.assertEmpty(list(self._folder.iterdir()))


if __name__ == "__main__":
    absltest.main()
