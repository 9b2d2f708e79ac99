"""The display keeps to terminals, and what is said meanwhile is not lost on them."""

import io
import logging
import os
import re
import sys
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.runtime import progress

ROW = {
    "updates_per_second": 12.34,
    "mean_return": -3.21,
    "replay_fill": 0.41,
    "policy_lag": 6.5,
    "learner_busy": 0.93,
}


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _screen(stream: io.StringIO) -> str:
    """What a terminal is left with: redrawn lines replace the ones that they erase."""
    lines = [""]
    for part in re.findall(
        r"\x1b\[(?:\d*[A-Za-z]|\?\d+[a-z])|\r|\n|[^\x1b\r\n]+", stream.getvalue()
    ):
        if part == "\x1b[1A":
            lines.pop()
        elif part == "\x1b[2K":
            lines[-1] = ""
        elif part == "\n":
            lines.append("")
        elif not part.startswith(("\x1b", "\r")):
            lines[-1] += part
    return "\n".join(line.rstrip() for line in lines).strip()


class ProgressTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self._logger = logging.getLogger()
        self._handler = logging.StreamHandler(_Terminal())
        self._handler.setFormatter(logging.Formatter("%(message)s"))
        self._logger.addHandler(self._handler)
        self.addCleanup(self._logger.removeHandler, self._handler)

    @parameterized.parameters(60, 200)
    def test_what_is_logged_or_printed_meanwhile_stays_above_one_live_line(self, columns):
        stream = _Terminal()
        environment = {"TERM": "xterm", "COLUMNS": str(columns)}
        with (
            mock.patch.dict(os.environ, environment),
            progress.ProgressDisplay(2_000, "pong", stream) as display,
        ):
            display.update(env_frames=500, **ROW)
            logging.warning("a logged line")
            display.update(env_frames=1_000, **ROW)
            print("a printed line")
            display.update(env_frames=1_500, **ROW)
        screen = _screen(stream)
        self.assertStartsWith(screen, "a logged line\na printed line\npong: frames 1,500 (75.0%)")
        self.assertEqual(screen.count("pong:"), 1)
        self.assertLessEqual(max(map(len, screen.splitlines())), columns)

    def test_logging_has_its_streams_back_afterwards(self):
        before = self._handler.stream
        with mock.patch.dict(os.environ, {"TERM": "xterm"}):
            with progress.ProgressDisplay(2_000, "pong", _Terminal()):
                self.assertIs(self._handler.stream, sys.stderr)
        self.assertIs(self._handler.stream, before)

    def test_a_log_that_goes_to_a_file_stays_there(self):
        file = io.StringIO()
        self._handler.setStream(file)
        with mock.patch.dict(os.environ, {"TERM": "xterm"}):
            with progress.ProgressDisplay(2_000, "pong", _Terminal()):
                logging.warning("a logged line")
        self.assertEqual(file.getvalue(), "a logged line\n")

    @parameterized.parameters(
        (io.StringIO, {"FORCE_COLOR": "1", "TERM": "xterm"}), (_Terminal, {"TERM": "dumb"})
    )
    def test_no_control_codes_where_they_are_not_understood(self, make_stream, environment):
        stream = make_stream()
        with (
            mock.patch.dict(os.environ, environment),
            progress.ProgressDisplay(2_000, "pong", stream) as display,
        ):
            display.update(env_frames=500, **ROW)
        self.assertStartsWith(stream.getvalue(), "pong: frames 500 (25.0%)")
        self.assertNotIn("\x1b", stream.getvalue())


if __name__ == "__main__":
    absltest.main()
