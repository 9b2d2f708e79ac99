"""Tests of checkpoints of weights: damage, a full disk, odd directories, NaN."""

import os
import pathlib
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.training import learner_checkpoints, named_variables
from laser_tf.workdir import run_directory
from testing import folders, messages


class _Module(tf.Module):
    """Learner with one variable, whose agent has none."""

    def __init__(self):
        super().__init__()
        self.agent = tf.Module()
        self.value = tf.Variable(0.0)


class _Agent(tf.Module):
    """Agent with two variables [2], whose values are their positions, under given names."""

    def __init__(self, *names: str):
        super().__init__()
        for position, name in enumerate(names):
            setattr(self, name, tf.Variable([float(position)] * 2))
        self.random = tf.random.Generator.from_seed(1)


class _Learner(tf.Module):
    """Learner that also finds the variables by their position, as earlier checkpoints did."""

    def __init__(self, agent: tf.Module, by_position: bool = False):
        super().__init__()
        self.agent = agent
        if by_position:
            self._variables = agent.trainable_variables


class ChangedAgentTest(folders.FolderTest):
    def _checkpoints(self, learner: tf.Module) -> learner_checkpoints.LearnerCheckpoints:
        return learner_checkpoints.LearnerCheckpoints(self._folder, learner)

    @parameterized.parameters(True, False)
    def test_equal_names_restore_values_by_name(self, by_position):
        self._checkpoints(_Learner(_Agent("first", "second"), by_position)).save(3)
        agent = _Agent("second", "first")  # Created in another order.
        self.assertEqual(self._checkpoints(_Learner(agent)).restore(), 3)
        np.testing.assert_array_equal(agent.first, [0.0, 0.0])
        np.testing.assert_array_equal(agent.second, [1.0, 1.0])

    @parameterized.product(
        by_position=[True, False],
        names=[("z_first", "a_second"), ("first", "second", "third"), ("second",)],
    )
    def test_other_names_raise_and_assign_nothing(self, by_position, names):
        self._checkpoints(_Learner(_Agent("first", "second"), by_position)).save(3)
        agent = _Agent(*names)
        before = [variable.numpy() for variable in agent.trainable_variables]
        for act in (self._checkpoints(_Learner(agent)).restore,
                    self._checkpoints(_Learner(agent)).check_variables):  # fmt: skip
            with (
                self.assertNoLogs(level="WARNING"),
                messages.raises(
                    learner_checkpoints.VariablesDifferError,
                    self._folder / "checkpoint-3", "float32[2]", "module:Class",
                ),
            ):  # fmt: skip
                act()
        np.testing.assert_array_equal(before, [v.numpy() for v in agent.trainable_variables])


class LearnerCheckpointsTest(folders.FolderTest):
    def _saved(self, *numbers: int) -> learner_checkpoints.LearnerCheckpoints:
        module = _Module()
        checkpoints = learner_checkpoints.LearnerCheckpoints(self._folder, module)
        for number in numbers:
            module.value.assign(number)
            checkpoints.save(number)
        return checkpoints

    def _restore(self) -> tuple[int | None, float]:
        module = _Module()
        number = learner_checkpoints.LearnerCheckpoints(self._folder, module).restore()
        return number, float(module.value)

    def test_newest_is_restored_and_three_are_kept(self):
        checkpoints = self._saved(1, 2, 9, 10)
        self.assertEqual(checkpoints.numbers(), [2, 9, 10])
        self.assertEqual(self._restore(), (10, 10.0))

    def test_unfinished_files_of_a_killed_process_are_removed(self):
        # While it writes, TensorFlow has a folder for what is not complete.
        left = self._folder / "unfinished" / "checkpoint-2_temp"
        left.mkdir(parents=True)
        (left / "part-00000-of-00001.data-00000-of-00001").write_bytes(b"half")
        self._saved(2)
        self.assertEqual(self._restore(), (2, 2.0))
        self.assertFalse(left.parent.exists())

    def test_missing_newest_index_is_logged(self):
        self._saved(1, 2)
        (self._folder / "checkpoint-2.index").unlink()
        with self.assertLogs(level="WARNING") as logs:
            self.assertEqual(self._restore(), (1, 1.0))
        messages.assert_names(logs.output[0], self._folder / "checkpoint-2")
        with self.assertNoLogs(level="WARNING"):
            self._saved(3)
        self.assertEmpty(list(self._folder.glob("checkpoint-2.*")))
        with self.assertNoLogs(level="WARNING"):
            self.assertEqual(self._restore(), (3, 3.0))

    @parameterized.parameters("checkpoint-1.index", "checkpoint-1.data-00000-of-00001")
    def test_old_file_that_cannot_be_deleted_is_logged(self, name):
        checkpoints = self._saved(1, 2, 3)
        (self._folder / name).unlink()
        (self._folder / name).mkdir()
        with self.assertLogs(level="WARNING") as logs:
            checkpoints.save(4)
        self.assertLen(logs.output, 1)
        with self.assertLogs(level="WARNING"):
            checkpoints.save(5)
        self.assertIn(str(self._folder / name), logs.output[0])
        self.assertEqual(checkpoints.numbers()[-3:], [3, 4, 5])

    def test_new_directory_restores_nothing(self):
        self.assertEqual(self._restore(), (None, 0.0))

    @parameterized.parameters("data-00000-of-00001", "index")
    def test_damaged_newest_restores_the_previous(self, suffix):
        self._saved(1, 2)
        path = self._folder / f"checkpoint-2.{suffix}"
        content = bytearray(path.read_bytes())
        content[: len(content) // 2] = bytes(len(content) // 2)
        path.write_bytes(content)
        with messages.warns(self._folder / "checkpoint-2"):
            self.assertEqual(self._restore(), (1, 1.0))

    def test_only_damaged_checkpoints_raise(self):
        self._saved(1)
        path = self._folder / "checkpoint-1.data-00000-of-00001"
        path.write_bytes(b"")
        with messages.raises(run_directory.WorkdirError, self._folder):
            self._restore()
        self.assertTrue(path.exists())

    def _names(self) -> list[str]:
        return sorted(path.name for path in self._folder.iterdir())

    def test_damaged_newer_checkpoint_is_deleted_by_later_saves(self):
        self._saved(1, 2, 3)
        (self._folder / "checkpoint-3.index").write_bytes(b"")
        module = _Module()
        checkpoints = learner_checkpoints.LearnerCheckpoints(self._folder, module)
        with self.assertLogs(level="WARNING"):
            self.assertEqual(checkpoints.restore(), 2)
        # Fewer updates than the damaged one has.
        module.value.assign(2.5)
        (self._folder / "checkpoint-3.index").rename(self._folder / "checkpoint-30.index")
        checkpoints.save(4)
        self.assertEqual(checkpoints.numbers(), [1, 2, 4])
        with self.assertNoLogs(level="WARNING"):
            self.assertEqual(self._restore(), (4, 2.5))

    @parameterized.parameters(np.nan, -np.inf)
    def test_weights_that_are_not_finite_are_not_written(self, value):
        self._saved(1)
        before = self._names()
        module = _Module()
        module.moments = [tf.Variable([1.0, value])]
        with messages.raises(
            named_variables.NonFiniteWeightsError, "2,000", "learner.learning_rate"
        ):
            learner_checkpoints.LearnerCheckpoints(self._folder, module).save(2_000)
        self.assertEqual(self._names(), before)

    def test_not_finite_newest_restores_the_previous(self):
        self._saved(1)
        module = _Module()
        module.value.assign(np.nan)
        tf.train.Checkpoint(learner=module).write(str(self._folder / "checkpoint-2"))
        with messages.warns(self._folder / "checkpoint-2"):
            self.assertEqual(self._restore(), (1, 1.0))

    @parameterized.parameters(
        tf.errors.ResourceExhaustedError(None, None, "unfinished/x; No space left on device"),
        OSError(28, "No space left on device", "unfinished/checkpoint-2.index"),
    )
    def test_full_disk_keeps_only_older_checkpoints(self, error):
        checkpoints = self._saved(1)
        before = self._names()

        def fail(path):
            pathlib.Path(path + ".data-00000-of-00001.tempstate1").write_bytes(b"half")
            raise error

        with (
            mock.patch.object(checkpoints._checkpoint, "write", fail),
            messages.raises(run_directory.WorkdirError, "No space left", self._folder) as caught,
        ):
            checkpoints.save(2)
        self.assertNotIn("unfinished", str(caught.exception))
        self.assertEqual(self._names(), before)
        checkpoints.save(2)
        self.assertEqual(checkpoints.numbers(), [1, 2])

    def test_same_number_replaces_the_weights(self):
        # As when an agent becomes a copy before its first update.
        module = _Module()
        checkpoints = learner_checkpoints.LearnerCheckpoints(self._folder, module)
        for value in (1.0, 2.0):
            module.value.assign(value)
            checkpoints.save(7)
        self.assertEqual(self._restore(), (7, 2.0))

    def test_kill_during_a_replacement_keeps_the_checkpoint(self):
        checkpoints = self._saved(7)
        with mock.patch.object(os, "fsync", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                checkpoints.save(7)
        self.assertEqual(self._restore(), (7, 7.0))

    @parameterized.parameters(
        "a[1]", "all*", "back\\slash", "%41", "größe", "a'\"b", "{a,b}", "new\nline"
    )
    def test_directory_with_special_characters_works(self, name):
        self._folder = self._folder / name
        self._saved(1, 2)
        self.assertEqual(self._restore(), (2, 2.0))
        self.assertLen(self._names(), 4)  # weights and index of each

    @parameterized.parameters("relative", "a[1]")
    def test_relative_directory_works(self, name):
        before = pathlib.Path.cwd()
        os.chdir(self._folder)
        self.addCleanup(os.chdir, before)
        self._folder = pathlib.Path(name)
        self._saved(1)
        self.assertEqual(self._restore(), (1, 1.0))


if __name__ == "__main__":
    absltest.main()
