"""Tests of the log format."""

import contextlib
import io
import logging
import subprocess
import sys

from absl.testing import absltest, parameterized

from laser_tf.host import log_messages

# Exits with 1 if a new file gets the descriptor of a standard stream.
_PRINTS = """import os, sys
from laser_tf.host import log_messages
log_messages.ignore_closed_terminal()
for stream in (sys.stdout, sys.stderr):
    print(stream.isatty(), file=stream)
log_messages.flush()
os._exit(os.open(os.devnull, os.O_RDONLY) <= 2)"""


class LogMessagesTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        root = logging.getLogger()
        before, level = root.handlers[:], root.level
        root.handlers.clear()  # `show` would close them

        def put_back():
            root.handlers[:] = before
            root.setLevel(level)

        self.addCleanup(put_back)
        fonts = logging.getLogger("matplotlib.font_manager")
        self.addCleanup(fonts.setLevel, fonts.level)

    def test_libraries_log_only_warnings(self):
        with contextlib.redirect_stderr(io.StringIO()) as shown:
            log_messages.show()
            logging.info("ours")
            logging.debug("ours, in detail")
            logging.getLogger("some_library.module").info("generated something")
            logging.getLogger("some_library.module").warning("something is wrong")
            logging.getLogger("matplotlib.font_manager").warning("building the font cache")
        self.assertEqual(shown.getvalue(), "ours\nsomething is wrong\n")

    def test_format_is_used(self):
        with contextlib.redirect_stderr(io.StringIO()) as shown:
            log_messages.show("%(asctime)s %(message)s")
            logging.info("ours")
        self.assertRegex(shown.getvalue(), r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ours\n$")

    @parameterized.parameters(">&-", "2>&-", ">&- 2>&-")
    def test_output_to_a_closed_stream_is_ignored(self, redirections):
        shell = f"'{sys.executable}' -c '{_PRINTS}' {redirections}"
        process = subprocess.run(
            ["sh", "-c", shell], stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        self.assertEqual(process.returncode, 0, process.stderr)


if __name__ == "__main__":
    absltest.main()
