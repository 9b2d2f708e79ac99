"""Tests of the log format."""

import contextlib
import io
import logging

from absl.testing import absltest

from laser_tf.host import log_messages


class LogMessagesTest(absltest.TestCase):
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


if __name__ == "__main__":
    absltest.main()
