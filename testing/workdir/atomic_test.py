"""Tests of atomic writes."""

import errno
import os
import stat
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.workdir import atomic
from testing import folders

FULL = OSError(errno.ENOSPC, "No space left on device")


class AtomicTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._path = self._folder / "[a] file.json"

    def _names(self) -> list[str]:
        return sorted(path.name for path in self._path.parent.iterdir())

    @parameterized.parameters(("größe", "größe".encode()), (b"\0\1", b"\0\1"), ("", b""))
    def test_write_replaces_the_previous_file(self, content, expected):
        for before in (None, b"something longer than the new content"):
            if before:
                self._path.write_bytes(before)
            atomic.write(self._path, content)
            self.assertEqual(self._path.read_bytes(), expected)
            self.assertEqual(self._names(), [self._path.name])

    @parameterized.parameters(None, b"before")
    def test_failed_write_keeps_the_previous_file(self, before):
        if before:
            self._path.write_bytes(before)
        names = self._names()
        with (
            mock.patch.object(os, "fsync", side_effect=FULL),
            self.assertRaises(OSError) as caught,
        ):
            atomic.write(self._path, "after")
        self.assertEqual(caught.exception.errno, errno.ENOSPC)
        self.assertEqual(caught.exception.filename, str(self._path))
        self.assertEqual(self._names(), names)
        if before:
            self.assertEqual(self._path.read_bytes(), before)

    def test_error_names_the_file_where_none_can_be_created(self):
        self._path.write_bytes(b"no directory")
        path = self._path / "file.json"
        with self.assertRaises(OSError) as caught:  # As on a read-only file system.
            atomic.write(path, "after")
        self.assertEqual(caught.exception.filename, str(path))

    def _record_syncs(self) -> list[int]:
        """Records the inode of each fsync."""
        synced, fsync = [], os.fsync

        def record(descriptor):
            synced.append(os.fstat(descriptor).st_ino)
            fsync(descriptor)

        self.enter_context(mock.patch.object(os, "fsync", record))
        return synced

    def test_write_syncs_the_file_and_its_directory(self):
        synced = self._record_syncs()
        atomic.write(self._path, "content")
        self.assertEqual(synced, [self._path.stat().st_ino, self._path.parent.stat().st_ino])

    def test_replace_syncs_all_files_of_a_directory(self):
        source = self._path.parent / "unfinished"
        (source / "inner").mkdir(parents=True)
        (source / "inner/file").write_bytes(b"content")
        expected = {path.stat().st_ino for path in (source, *source.rglob("*"))}
        synced = self._record_syncs()
        atomic.replace(source, self._path)
        self.assertEqual((self._path / "inner/file").read_bytes(), b"content")
        self.assertFalse(source.exists())
        self.assertEqual(set(synced), expected | {self._path.parent.stat().st_ino})

    @parameterized.parameters(errno.EINVAL, errno.ENOTSUP)
    def test_file_system_without_directory_sync_passes(self, number):
        fsync = os.fsync

        def reject_directories(descriptor):
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                raise OSError(number, os.strerror(number))
            fsync(descriptor)

        with mock.patch.object(os, "fsync", reject_directories):
            atomic.write(self._path, "content")
        self.assertEqual(self._path.read_text(), "content")


if __name__ == "__main__":
    absltest.main()
