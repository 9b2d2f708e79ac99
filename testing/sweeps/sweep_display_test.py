"""What a sweep shows fits the terminal, and says of each agent how far it is."""

import io
from unittest import mock

from absl.testing import absltest, parameterized
from rich import console

from laser_tf.monitoring import live_text
from laser_tf.sweeps import sweep_display

STATES = {
    "agent_00": "running, restarted 2 times",
    "agent_01": "finished, evaluating",
    "agent_02": "failed",
}
REPORTS = {
    "agent_00": {"env_frames": 1_500_000, "mean_return": -12.34},
    "agent_01": {"env_frames": 3_000_000, "mean_return": None},
}


def _shown() -> tuple[str, console.RenderableType]:
    """Plain text, and what is drawn."""
    display = sweep_display.SweepDisplay(3_000_000, "pong, 3 agents", io.StringIO())
    with mock.patch.object(live_text.LiveText, "show") as show:
        display.update(REPORTS, STATES)
    return show.call_args.args


def _lines(width: int, height: int | None = None) -> list[str]:
    terminal = console.Console(file=io.StringIO(), width=width, height=height)
    terminal.print(_shown()[1])
    return [line.rstrip() for line in terminal.file.getvalue().splitlines()]


class SweepDisplayTest(parameterized.TestCase):
    def test_one_line_for_all_and_one_for_each_agent_within_80_columns(self):
        title, bar, numbers, head, *agents = _lines(80)
        self.assertEqual(title, "pong, 3 agents")
        self.assertRegex(bar, r"^\S+ +50\.0%  left -$")
        self.assertEqual(
            numbers, "frames 4,500,000 of 9,000,000   0 frames/s   best mean return -12.34"
        )
        self.assertEqual(head.split(), ["agent", "done", "frames/s", "return", "state"])
        self.assertLen(agents, 3)
        self.assertRegex(
            agents[0], r"^agent_00 ━+\S* +50\.0% +0 -12\.34 running, restarted 2 times$"
        )
        self.assertRegex(agents[1], r"^agent_01 ━+ 100\.0% +0 +- finished, evaluating$")
        self.assertRegex(agents[2], r"^agent_02 +0\.0% +0 +- failed$")
        self.assertLessEqual(max(map(len, [title, bar, numbers, head, *agents])), 80)

    @parameterized.parameters(40, 60)
    def test_a_narrow_terminal_costs_bars_and_states_but_no_numbers(self, width):
        lines = _lines(width)
        self.assertLessEqual(max(map(len, lines)), width)
        agents = [line for line in lines if line.startswith("agent_0")]
        self.assertLen(agents, 3)
        self.assertRegex(agents[0], r"^agent_00 .*50\.0% +0 -12\.34 running")
        self.assertRegex(agents[1], r"^agent_01 .*100\.0% +0 +- finished")

    def test_plain_lines(self):
        self.assertEqual(
            _shown()[0].splitlines(),
            [
                "agent_00: frames 1,500,000 (50.0%)  0 frames/s  mean return -12.34  running, "
                "restarted 2 times",
                "agent_01: frames 3,000,000 (100.0%)  0 frames/s  mean return -  finished, "
                "evaluating",
                "agent_02: frames 0 (0.0%)  0 frames/s  mean return -  failed",
                "pong, 3 agents: frames 4,500,000 (50.0%)  0 frames/s  best mean return -12.34  "
                "left -",
            ],
        )


if __name__ == "__main__":
    absltest.main()
