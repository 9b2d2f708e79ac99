"""The progress display of a sweep on terminals and in plain text."""

import io
import math
from unittest import mock

from absl.testing import absltest
from rich import console

from laser_tf.monitoring import progress
from laser_tf.sweeps import sweep_display
from testing import messages

STATES = {
    "member_00": "running, restarted 2 times",
    "member_01": "finished, evaluating",
    "member_02": "failed",
}
REPORTS = {
    "member_00": {"env_frames": 1_500_000, "mean_return": -12.34},
    "member_01": {"env_frames": 3_000_000, "mean_return": math.nan},
}


def _shown() -> tuple[str, console.RenderableType]:
    """Plain text, and what is drawn."""
    display = sweep_display.SweepDisplay(3_000_000, "pong, 3 members", io.StringIO())
    with mock.patch.object(progress.LiveText, "show") as show:
        display.update(REPORTS, STATES)
    return show.call_args.args


def _lines(width: int, height: int | None = None) -> list[str]:
    terminal = console.Console(file=io.StringIO(), width=width, height=height)
    terminal.print(_shown()[1])
    return [line.rstrip() for line in terminal.file.getvalue().splitlines()]


class SweepDisplayTest(absltest.TestCase):
    def test_80_columns_show_all_members(self):
        title, bar, numbers, head, *members = _lines(80)
        self.assertEqual(title, "pong, 3 members")
        messages.assert_names(bar, "50.0%")
        messages.assert_names(numbers, "4,500,000", "9,000,000", "-12.34")
        self.assertLen(head.split(), 5)
        self.assertLen(members, 3)
        messages.assert_names(members[0], "member_00", "50.0%", "-12.34")
        messages.assert_names(members[1], "member_01", "100.0%")
        messages.assert_names(members[2], "member_02", "0.0%")
        self.assertLessEqual(max(map(len, [title, bar, numbers, head, *members])), 80)

    def test_narrow_terminal_shows_all_numbers(self):
        lines = _lines(40)
        self.assertLessEqual(max(map(len, lines)), 40)
        members = [line for line in lines if line.startswith("member_0")]
        self.assertLen(members, 3)
        messages.assert_names(members[0], "member_00", "50.0%", "-12.34")
        messages.assert_names(members[1], "member_01", "100.0%")

    def test_plain_text_has_a_line_for_each_member(self):
        first, second, third, total = _shown()[0].splitlines()
        messages.assert_names(first, "member_00", "1,500,000", "50.0%", "-12.34", 2)
        messages.assert_names(second, "member_01", "3,000,000", "100.0%")
        messages.assert_names(third, "member_02", 0, "0.0%")
        messages.assert_names(total, "pong, 3 members", "4,500,000", "50.0%", "-12.34")


if __name__ == "__main__":
    absltest.main()
