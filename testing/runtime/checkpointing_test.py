"""A run's folder: refusals, damage, and what is kept."""

import json
import pathlib
import tempfile

import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.runtime import checkpointing

CONFIG = {"agent": {"discount": 0.99}, "run": {"seed": 1}}


class _Module(tf.Module):
    def __init__(self):
        super().__init__()
        self.value = tf.Variable(0.0)


class FolderTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)


class LearnerCheckpointsTest(FolderTest, parameterized.TestCase):
    def _saved(self, *numbers: int) -> checkpointing.LearnerCheckpoints:
        module = _Module()
        checkpoints = checkpointing.LearnerCheckpoints(self._folder, module)
        for number in numbers:
            module.value.assign(number)
            checkpoints.save(number)
        return checkpoints

    def _restore(self) -> tuple[int | None, float]:
        module = _Module()
        number = checkpointing.LearnerCheckpoints(self._folder, module).restore()
        return number, float(module.value)

    def test_restores_the_newest_and_keeps_three(self):
        checkpoints = self._saved(1, 2, 9, 10)
        self.assertEqual(checkpoints.numbers(), [2, 9, 10])
        self.assertEqual(self._restore(), (10, 10.0))

    def test_a_new_folder_holds_none(self):
        self.assertEqual(self._restore(), (None, 0.0))

    @parameterized.parameters("data-00000-of-00001", "index")
    def test_a_damaged_newest_falls_back_to_the_one_before(self, suffix):
        self._saved(1, 2)
        path = self._folder / f"checkpoint-2.{suffix}"
        content = bytearray(path.read_bytes())
        content[: len(content) // 2] = bytes(len(content) // 2)
        path.write_bytes(content)
        with self.assertLogs(level="WARNING") as logs:
            self.assertEqual(self._restore(), (1, 1.0))
        self.assertRegex(logs.output[0], "checkpoint-2 .* is damaged.*falling back")

    def test_only_damaged_ones_are_refused_not_overwritten(self):
        self._saved(1)
        path = self._folder / "checkpoint-1.data-00000-of-00001"
        path.write_bytes(b"")
        with self.assertRaisesRegex(checkpointing.WorkdirError, "none of the checkpoints"):
            self._restore()
        self.assertTrue(path.exists())


class WorkdirTest(FolderTest, parameterized.TestCase):
    def test_the_same_config_resumes(self):
        self.assertFalse(checkpointing.open_workdir(self._folder / "r", CONFIG, {"versions": {}}))
        self.assertTrue(checkpointing.open_workdir(self._folder / "r", CONFIG, {"versions": {}}))
        self.assertEqual(checkpointing.read_config(self._folder / "r"), CONFIG)

    def test_another_config_is_refused_with_the_differing_keys(self):
        checkpointing.open_workdir(self._folder, CONFIG, {})
        before = (self._folder / "config.json").read_text()
        other = {"agent": {"discount": 0.95}, "run": {"seed": 2}}
        with self.assertRaisesRegex(
            checkpointing.WorkdirError,
            r"agent.discount \(there 0.99, now 0.95\), run.seed \(there 1, now 2\)",
        ):
            checkpointing.open_workdir(self._folder, other, {})
        self.assertEqual((self._folder / "config.json").read_text(), before)

    def test_more_frames_are_the_same_run_at_a_constant_learning_rate(self):
        config = {"learner": {"learning_rate_schedule": "constant"}, "run": {"env_frames": 10}}
        longer = {**config, "run": {"env_frames": 20}}
        checkpointing.open_workdir(self._folder, config, {"versions": "noted"})
        self.assertTrue(checkpointing.open_workdir(self._folder, longer, {}))
        noted = json.loads((self._folder / "config.json").read_text())
        self.assertEqual(noted, {"config": longer, "sweep_id": "", "versions": "noted"})
        with self.assertRaisesRegex(checkpointing.WorkdirError, "run.env_frames .there 20, now 10"):
            checkpointing.open_workdir(self._folder, config, {})

    @parameterized.parameters(("linear", 0.99), ("constant", 0.9))
    def test_a_schedule_or_another_value_ties_a_run_to_its_frames(self, schedule, discount):
        config = {
            "agent": {"discount": 0.99},
            "learner": {"learning_rate_schedule": schedule},
            "run": {"env_frames": 10},
        }
        longer = {**config, "agent": {"discount": discount}, "run": {"env_frames": 20}}
        checkpointing.open_workdir(self._folder, config, {})
        with self.assertRaisesRegex(checkpointing.WorkdirError, "run.env_frames .there 10, now 20"):
            checkpointing.open_workdir(self._folder, longer, {})
        self.assertEqual(checkpointing.read_config(self._folder), config)

    def test_a_run_of_another_sweep_is_refused_with_the_same_config(self):
        folder = self._folder / "agent_03"
        checkpointing.open_workdir(folder, CONFIG, {}, sweep_id="a")
        self.assertTrue(checkpointing.open_workdir(folder, CONFIG, {}, sweep_id="a"))
        for sweep_id in ("b", ""):
            with self.assertRaisesRegex(
                checkpointing.WorkdirError, "agent_03 belongs to .*another"
            ):
                checkpointing.open_workdir(folder, CONFIG, {}, sweep_id=sweep_id)

    def test_a_sweep_is_told_from_others_and_old_ones_have_no_id(self):
        checkpointing.open_sweep(self._folder / "s", CONFIG, {"id": "a"})
        self.assertTrue(checkpointing.open_sweep(self._folder / "s", CONFIG, {"id": "b"}))
        self.assertEqual(checkpointing.read_sweep_id(self._folder / "s"), "a")
        checkpointing.open_sweep(self._folder / "old", CONFIG, {})
        self.assertEqual(checkpointing.read_sweep_id(self._folder / "old"), "")

    def test_a_file_in_the_way_is_named(self):
        (self._folder / "r").write_text("mine")
        with self.assertRaisesRegex(checkpointing.WorkdirError, "cannot write in .*/r"):
            checkpointing.open_workdir(self._folder / "r", CONFIG, {})
        self.assertEqual((self._folder / "r").read_text(), "mine")

    def test_a_damaged_config_is_named(self):
        for content in ('{"config": ', "null", "[]", "3", '{"config": null}', '{"config": [1]}'):
            (self._folder / "config.json").write_text(content)
            with self.assertRaisesRegex(checkpointing.WorkdirError, "cannot read .*config.json"):
                checkpointing.open_workdir(self._folder, CONFIG, {})
            with self.assertRaisesRegex(checkpointing.WorkdirError, "cannot read .*config.json"):
                checkpointing.read_config(self._folder)

    def test_checkpoints_without_a_config_are_not_taken_over(self):
        (self._folder / "checkpoints/learner").mkdir(parents=True)
        (self._folder / "checkpoints/learner/checkpoint-1.index").touch()
        with self.assertRaisesRegex(checkpointing.WorkdirError, "no config.json"):
            checkpointing.open_workdir(self._folder, CONFIG, {})

    def test_config_json_holds_what_else_is_noted(self):
        checkpointing.open_workdir(self._folder, CONFIG, {"versions": {"tensorflow": "2.15.1"}})
        noted = json.loads((self._folder / "config.json").read_text())
        self.assertEqual(noted["versions"], {"tensorflow": "2.15.1"})


if __name__ == "__main__":
    absltest.main()
