"""Files in full or not at all."""

import os
import pathlib
import tempfile
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.workdir import atomic
from testing import messages


class WholeFilesTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._path = pathlib.Path(folder.name) / "[a] file.json"

    @parameterized.parameters(("größe", "größe".encode()), (b"\0\1", b"\0\1"), ("", b""))
    def test_writes_text_and_bytes_over_what_was_there(self, content, expected):
        for before in (None, b"something longer than what comes"):
            if before:
                self._path.write_bytes(before)
            atomic.write(self._path, content)
            self.assertEqual(self._path.read_bytes(), expected)
            self.assertEqual(list(self._path.parent.iterdir()), [self._path])

    @parameterized.parameters(None, b"before")
    def test_a_failure_leaves_what_was_there(self, before):
        if before:
            self._path.write_bytes(before)
        names = list(self._path.parent.iterdir())
        with (
            mock.patch.object(os, "fsync", side_effect=OSError(28, "No space left on device")),
            messages.raises(OSError, "No space left"),
        ):
            atomic.write(self._path, "after")
        self.assertEqual(list(self._path.parent.iterdir()), names)
        if before:
            self.assertEqual(self._path.read_bytes(), before)


if __name__ == "__main__":
    absltest.main()
