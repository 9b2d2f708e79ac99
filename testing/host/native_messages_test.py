"""Output of C++ libraries in a file, for a limited time."""

import io
import sys
from unittest import mock

from absl.testing import absltest

from laser_tf import errors
from laser_tf.host import native_messages
from testing import commands, folders, messages

_PROGRAM = """
import faulthandler, logging, os, pathlib, sys
from laser_tf.host import native_messages

logging.basicConfig(format="%(message)s")
faulthandler.enable()
before = sys.stderr
for _ in range(2):
    with native_messages.diverted(pathlib.Path(sys.argv[1])):
        os.write(2, b"native\\n")
        print("python", file=sys.stderr)
        logging.warning("logged")
    os.write(2, b"restored\\n")
    logging.warning("logged again")
    assert sys.stderr is before and faulthandler.is_enabled()
with native_messages.diverted(pathlib.Path(sys.argv[1])):
    faulthandler._sigsegv()
"""


class NativeMessagesTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._log = self._folder / "native.log"

    def test_only_native_messages_are_diverted_and_streams_restored(self):
        done = commands.run_program(_PROGRAM, self._log)
        self.assertEqual(self._log.read_text().splitlines(), ["native"] * 2)
        lines = done.stderr.splitlines()
        self.assertEqual(lines[:8], ["python", "logged", "restored", "logged again"] * 2)
        self.assertIn("Segmentation fault", lines[8])  # The traceback of a crash is shown.

    def test_other_stream_stays(self):
        with mock.patch.object(sys, "stderr", io.StringIO()) as stream:  # As in a notebook.
            with native_messages.diverted(self._log):
                self.assertIs(sys.stderr, stream)

    def test_file_that_cannot_be_written_is_named(self):
        with messages.raises(errors.UserError, self._log.parent):
            with native_messages.diverted(self._log.parent):
                self.fail()


if __name__ == "__main__":
    absltest.main()
