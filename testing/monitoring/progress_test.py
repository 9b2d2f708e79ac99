"""Tests of the progress displays, on terminals and in files."""

import io
import logging
import math
import os
import pathlib
import re
import sys
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.evaluation import episode_runner
from laser_tf.monitoring import progress
from testing import messages

ROW = progress.Progress(
    env_frames=500,
    updates_per_second=12.34,
    mean_return=-3.21,
    replay_fill=0.41,
    policy_lag=6.5,
    learner_busy=0.93,
)


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
        self._handler = logging.StreamHandler(_Terminal())
        self._handler.setFormatter(logging.Formatter("%(message)s"))
        # In place of the runner's own handlers, which differ between pytest and absltest.
        self.enter_context(mock.patch.object(logging.getLogger(), "handlers", [self._handler]))

    @parameterized.parameters(60, 200)
    def test_logged_and_printed_lines_stay_above_the_display(self, columns):
        stream = _Terminal()
        environment = {"TERM": "xterm", "COLUMNS": str(columns)}
        with (
            mock.patch.dict(os.environ, environment),
            progress.ProgressDisplay(2_000, "pong", stream) as display,
        ):
            display.update(ROW._replace(env_frames=500))
            logging.warning("a logged line")
            display.update(ROW._replace(env_frames=1_000))
            print("a printed line")
            display.update(ROW._replace(env_frames=1_500))
        screen = _screen(stream)
        self.assertStartsWith(screen, "a logged line\na printed line\npong\n")
        self.assertIn("frames 1,500 of 2,000", screen)
        self.assertEqual(screen.count("pong"), 1)
        self.assertEqual(screen.count("frames/s"), 1)
        self.assertLessEqual(max(map(len, screen.splitlines())), columns)

    def test_start_shows_processes_by_activity(self):
        stream = io.StringIO()
        with progress.ProgressDisplay(2_000, "pong", stream) as display:
            display.show_startup(
                {"replay": "running", "actor_00": "starting", "actor_01": "starting"}
            )
        self.assertEqual(stream.getvalue(), "pong  replay: running  actor_00, actor_01: starting\n")

    def test_only_a_log_on_the_terminal_is_redirected(self):
        before, file = self._handler.stream, io.StringIO()
        for stream in (before, file):
            self._handler.setStream(stream)
            with mock.patch.dict(os.environ, {"TERM": "xterm"}):
                with progress.ProgressDisplay(2_000, "pong", _Terminal()):
                    self.assertIs(self._handler.stream, sys.stderr if stream is before else file)
            self.assertIs(self._handler.stream, stream)

    @parameterized.parameters(
        (io.StringIO, {"FORCE_COLOR": "1", "TERM": "xterm"}), (_Terminal, {"TERM": "dumb"})
    )
    def test_pipe_or_dumb_terminal_gets_no_control_codes(self, make_stream, environment):
        stream = make_stream()
        with (
            mock.patch.dict(os.environ, environment),
            progress.ProgressDisplay(2_000, "pong", stream) as display,
        ):
            display.update(ROW._replace(env_frames=500))
        self.assertStartsWith(stream.getvalue(), "pong: frames 500 of 2,000 (25.0%)")
        self.assertNotIn("\x1b", stream.getvalue())

    def test_pipe_gets_a_plain_line_every_ten_seconds(self):
        stream = io.StringIO()
        with (
            mock.patch.object(progress.time, "monotonic", side_effect=range(100, 200, 2)),
            progress.ProgressDisplay(2_000, "pong", stream) as display,
        ):
            display.update(ROW._replace(env_frames=1_000, mean_return=math.nan))
            for frames in range(1_100, 1_600, 100):
                display.update(ROW._replace(env_frames=frames))
        lines = stream.getvalue().splitlines()
        self.assertLess(len(lines), 5)  # one every ten seconds, not one an update
        self.assertIn("return -", lines[0])
        self.assertIn("left -", lines[0])
        self.assertStartsWith(lines[-1], "pong: frames 1,500 of 2,000 (75.0%)")
        messages.assert_names(lines[-1], "12.3", "-3.21", "41%", "6.5", "93%")

    def test_pace_counts_from_the_resumption(self):
        stream = io.StringIO()
        with (
            mock.patch.object(progress.time, "monotonic", side_effect=[0, 0, 0, 100, 100, 100]),
            progress.ProgressDisplay(3_000_000, "pong", stream) as display,
        ):
            display.update(ROW._replace(env_frames=2_000_000))
            display.update(ROW._replace(env_frames=2_100_000))
        self.assertIn("1,000 frames/s", stream.getvalue())
        self.assertIn("left 0:15:00", stream.getvalue())

    def _lines(self, width: int, env_frames: int) -> list[str]:
        """What a run of 3 million frames shows on a terminal, after 100 seconds."""
        stream, clock = _Terminal(), [0.0]
        environment = {"TERM": "xterm", "COLUMNS": str(width), "NO_COLOR": "1"}
        with (
            mock.patch.dict(os.environ, environment),
            mock.patch.object(progress.time, "monotonic", side_effect=lambda: clock[0]),
            progress.ProgressDisplay(3_000_000, "ms_pacman, seed 1234567", stream) as display,
        ):
            display.update(ROW._replace(env_frames=0))
            clock[0] = 100.0
            display.update(ROW._replace(env_frames=env_frames, mean_return=-12345.67))
        return _screen(stream).splitlines()

    @parameterized.parameters(80, 40)
    def test_display_fits_the_terminal(self, width):
        lines = self._lines(width, 1_500_000)
        self.assertEqual(lines[0], "ms_pacman, seed 1234567")
        self.assertRegex(lines[1], r"^━+╸? +50\.0%  left 0:01:40$")
        self.assertLen(lines[1], width)
        bar = len(lines[1]) - len("  50.0%  left 0:01:40")
        self.assertLessEqual(abs(lines[1].count("━") - bar / 2), 1)
        shown = " ".join(" ".join(lines[2:]).split())
        for words in (
            "frames 1,500,000 of 3,000,000", "15,000 frames/s", "12.3 updates/s",
            "mean return -12345.67", "replay 41% full", "actor 6.5 updates behind",
            "learner computes 93% of the time",
        ):  # fmt: skip
            self.assertIn(words, shown)
        self.assertLessEqual(max(map(len, lines)), width)

    def test_full_disk_is_logged_once(self):
        with pathlib.Path("/dev/full").open("w") as stream:
            with self.assertLogs(level="WARNING") as logs:
                with progress.LiveText(stream) as text:
                    text.show("12%", "12%")
                    text.show("13%", "13%")  # printed at the end
            self.assertLen(logs.output, 1)
            self.assertIn("No space left", logs.output[0])
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # so that it can close


class EvaluationDisplayTest(absltest.TestCase):
    def _episode(self, episode_return: float) -> episode_runner.Episode:
        return episode_runner.Episode(0, 0, 0, episode_return, 9)

    def test_terminal_shows_a_bar(self):
        stream, clock = _Terminal(), [0.0]
        with (
            mock.patch.dict(os.environ, {"TERM": "xterm", "COLUMNS": "80", "NO_COLOR": "1"}),
            mock.patch.object(progress.time, "monotonic", side_effect=lambda: clock[0]),
            progress.EvaluationDisplay(8, "evaluating pong", stream) as display,
        ):
            for clock[0], episodes in (
                (1.0, []),
                (60.0, [self._episode(3.0), self._episode(4.0)]),
                (60.1, [self._episode(1000.0)] * 3),  # too soon to be shown
            ):
                display.update(episodes, 640)
        title, bar, numbers = _screen(stream).splitlines()
        self.assertEqual(title, "evaluating pong")
        self.assertRegex(bar, r"^\S+ +25\.0%  left 0:03:00$")
        self.assertLen(bar, 80)
        messages.assert_names(numbers, "2 of 8", "3.50", 640)

    def test_pipe_gets_the_first_and_last_line(self):
        stream = io.StringIO()
        with (
            mock.patch.object(progress.time, "monotonic", return_value=100.0),
            progress.EvaluationDisplay(2, "evaluating pong", stream) as display,
        ):
            for episodes in range(3):
                display.update([self._episode(2.0)] * episodes, 10 * episodes)
        first, last = stream.getvalue().splitlines()
        messages.assert_names(first, "0 of 2", "0.0%")
        messages.assert_names(last, "2 of 2", "100.0%", "2.00", 20)


if __name__ == "__main__":
    absltest.main()
