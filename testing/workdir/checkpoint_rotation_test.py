"""Tests of the rotation of checkpoints."""

import errno
import os
import pathlib
import shutil
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.workdir import checkpoint_rotation
from testing import folders, messages


def _load(path: pathlib.Path) -> str:
    """Loads a checkpoint that is a file, or a directory with a file."""
    text = (path / "content" if path.is_dir() else path).read_text()
    if text == "damaged":
        raise checkpoint_rotation.DamagedError("it is damaged")
    return text


def _write(path: pathlib.Path, text: str, is_directory: bool) -> None:
    if is_directory:
        path.mkdir()
        path = path / "content"
    path.write_text(text)


@parameterized.named_parameters(("files", False), ("directories", True))
class CheckpointRotationTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._path = self._folder / "checkpoints" / "replay.zip"
        self._rotation = checkpoint_rotation.CheckpointRotation(self._path)

    def _save(self, *texts: str, is_directory: bool) -> None:
        for text in texts:
            with self._rotation.saving() as path:
                _write(path, text, is_directory)

    def _names(self) -> list[str]:
        return sorted(path.name for path in self._path.parent.iterdir())

    def test_no_checkpoint_restores_nothing(self, is_directory):
        self.assertIsNone(self._rotation.restore(_load))
        if is_directory:  # An empty directory is no checkpoint.
            self._path.mkdir(parents=True)
            self.assertIsNone(self._rotation.restore(_load))

    def test_newest_and_previous_are_kept(self, is_directory):
        self._save("a", "b", "c", is_directory=is_directory)
        self.assertEqual(self._names(), ["replay.zip", "replay_previous.zip"])
        with self.assertNoLogs():
            self.assertEqual(self._rotation.restore(_load), "c")
        self.assertEqual(_load(self._path.with_stem("replay_previous")), "b")

    def test_damaged_newest_restores_the_previous(self, is_directory):
        self._save("a", "damaged", is_directory=is_directory)
        with messages.warns(self._path):
            self.assertEqual(self._rotation.restore(_load), "a")
        self.assertEqual(self._names(), ["replay.zip", "replay_damaged.zip"])
        self._save("b", is_directory=is_directory)
        self.assertEqual(self._names(), ["replay.zip", "replay_damaged.zip", "replay_previous.zip"])
        self.assertEqual(self._rotation.restore(_load), "b")

    def test_two_damaged_checkpoints_restore_nothing(self, is_directory):
        self._save("damaged", "damaged", is_directory=is_directory)
        with self.assertLogs(level="WARNING") as logs:
            self.assertIsNone(self._rotation.restore(_load))
        self.assertLen(logs.output, 2)
        self.assertEqual(self._names(), ["replay_damaged.zip"])

    def test_missing_newest_restores_the_previous(self, is_directory):
        self._save("a", "b", is_directory=is_directory)
        if is_directory:
            shutil.rmtree(self._path)
        else:
            self._path.unlink()
        with messages.warns():
            self.assertEqual(self._rotation.restore(_load), "a")
        self.assertEqual(self._names(), ["replay.zip"])

    def test_failed_save_keeps_the_newest(self, is_directory):
        self._save("a", "b", is_directory=is_directory)
        with self.assertRaises(KeyError), self._rotation.saving() as path:
            _write(path, "half", is_directory)
            raise KeyError
        self.assertEqual(self._names(), ["replay.zip"])
        self.assertEqual(_load(self._path), "b")

    def test_full_disk_at_sync_keeps_the_newest(self, is_directory):
        self._save("a", is_directory=is_directory)
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with mock.patch.object(os, "fsync", side_effect=full), self.assertRaises(OSError):
            self._save("b", is_directory=is_directory)
        self.assertEqual(self._names(), ["replay.zip"])
        self.assertEqual(_load(self._path), "a")

    def test_rest_of_a_killed_process_is_deleted(self, is_directory):
        self._save("a", is_directory=is_directory)
        _write(self._path.with_stem("replay_saving"), "half", is_directory)
        self.assertEqual(self._rotation.restore(_load), "a")
        self.assertEqual(self._names(), ["replay.zip"])

    def test_temporary_checkpoint_is_deleted(self, is_directory):
        self._save("a", "b", is_directory=is_directory)
        with self._rotation.temporary() as path:
            _write(path, "c", is_directory)
        self.assertEqual(self._names(), ["replay.zip", "replay_previous.zip"])


if __name__ == "__main__":
    absltest.main()
