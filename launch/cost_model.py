"""The cost model of launch.benchmark: processor time per agent step, and the pace it allows.

All costs and paces refer to new agent steps, those that a run counts. A learner that replays trains
on each of them several times, so its update costs that many times more.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

# Of a CSV file. The pace of the row "bound" is that of all cores, of a part that of the part alone.
COLUMNS = (
    "configuration",
    "part",
    "agent_steps_per_second",
    "processor_us_per_agent_step",
    "fixed_wall_ms_per_call",
    "wall_ms_per_entry",
    "fixed_processor_ms_per_call",
    "processor_ms_per_entry",
    "cores",
)


class Timing(NamedTuple):
    """Seconds of a call."""

    wall: float
    processor: float  # of all threads and worker processes


class Part(NamedTuple):
    """A part of a run, measured alone."""

    call: Timing
    agent_steps: float  # new agent steps that a call serves

    @property
    def agent_steps_per_second(self) -> float:
        """The pace of a run that consists of this part."""
        return self.agent_steps / self.call.wall

    @property
    def microseconds(self) -> float:
        """Processor time per agent step."""
        return 1e6 * self.call.processor / self.agent_steps


class Call(NamedTuple):
    """A part measured with two batch sizes, which give its fixed cost and its cost per entry."""

    entry: str  # what the batch consists of
    sizes: tuple[int, int]  # entries
    timings: tuple[Timing, Timing]

    def costs(self, clock: str) -> tuple[float, float]:
        """Returns c0 and c1 of the milliseconds c0 + c1 * n of n entries; `clock` is a `Timing`."""
        small, large = (1e3 * getattr(timing, clock) for timing in self.timings)
        per_entry = (large - small) / (self.sizes[1] - self.sizes[0])
        return small - per_entry * self.sizes[0], per_entry


class EndToEnd(NamedTuple):
    """A measured part of a run."""

    seconds: float
    processor_seconds: float
    agent_steps: int
    learner_updates: int
    learner_seconds: float  # spent in updates

    @property
    def agent_steps_per_second(self) -> float:
        """The pace of the run."""
        return self.agent_steps / self.seconds

    @property
    def microseconds(self) -> float:
        """Processor time per agent step."""
        return 1e6 * self.processor_seconds / self.agent_steps


@dataclasses.dataclass(frozen=True)
class CostModel:
    """Costs of the parts, and a run of all parts together."""

    configuration: str
    cores: int  # that this process may use
    parts: Mapping[str, Part]
    calls: Mapping[str, Call]
    end_to_end: EndToEnd

    @property
    def microseconds(self) -> float:
        """Processor time of all parts per agent step."""
        return sum(part.microseconds for part in self.parts.values())

    @property
    def bound(self) -> float:
        """Agent steps per second of cores that do nothing but the parts."""
        return 1e6 * self.cores / self.microseconds

    @property
    def share_of_bound(self) -> float:
        """Share of the bound that the run reaches."""
        return self.end_to_end.agent_steps_per_second / self.bound

    def to_json(self) -> dict[str, Any]:
        """Returns all numbers in nested dictionaries."""
        parts, run = self.parts, self.end_to_end
        return {
            "agent_steps_per_second_alone": {
                name: round(part.agent_steps_per_second) for name, part in parts.items()
            },
            "processor_us_per_agent_step": {
                name: round(part.microseconds, 2) for name, part in parts.items()
            },
            "learner_updates_per_second_alone": round(1 / parts["update"].call.wall, 3),
            "calls": {name: _call_to_json(call) for name, call in self.calls.items()},
            "cores": self.cores,
            "bound_agent_steps_per_second": round(self.bound, 1),
            "share_of_bound": round(self.share_of_bound, 3),
            "end_to_end": {
                "agent_steps_per_second": round(run.agent_steps_per_second, 1),
                "processor_us_per_agent_step": round(run.microseconds, 2),
                "busy_cores": round(run.processor_seconds / run.seconds, 3),
                "learner_updates_per_second": round(run.learner_updates / run.seconds, 3),
                "learner_busy_fraction": round(run.learner_seconds / run.seconds, 3),
            },
        }

    def rows(self) -> list[dict[str, Any]]:
        """Returns the rows of a CSV file, with the `COLUMNS`."""
        rows = []
        for name, paces in self._paces().items():
            call = self.calls.get(name)
            costs = call.costs("wall") + call.costs("processor") if call else (None,) * 4
            numbers = (*paces, *costs)
            values = (self.configuration, name, *map(_rounded, numbers), self.cores)
            rows.append(dict(zip(COLUMNS, values, strict=True)))
        return rows

    def table(self) -> str:
        """Returns aligned tables for a terminal."""
        run = self.end_to_end
        lines = [_line("part", "agent steps/s", "us per agent step", "share of run")]
        for name, (pace, microseconds) in self._paces().items():
            share = f"{microseconds / run.microseconds:.0%}"
            lines.append(_line(name, f"{pace:,.0f}", f"{microseconds:,.1f}", share))
        lines += [
            "",
            f"share of bound     {self.share_of_bound:7.0%}",
            f"outside the parts  {run.microseconds - self.microseconds:7.1f} us per agent step",
            f"busy cores         {run.processor_seconds / run.seconds:7.2f} of {self.cores}",
            f"learner busy       {run.learner_seconds / run.seconds:7.0%}",
            "",
            _line("call", "batch", "wall ms", "processor ms"),
        ]
        return "\n".join(lines + self._calls())

    def _paces(self) -> dict[str, tuple[float, float]]:
        """Returns agent steps per second and microseconds per agent step by name."""
        run = self.end_to_end
        paces = {name.replace("_", " "): (part.agent_steps_per_second, part.microseconds)
                 for name, part in self.parts.items()}  # fmt: skip
        paces["bound"] = self.bound, self.microseconds
        paces["end to end"] = run.agent_steps_per_second, run.microseconds
        return paces

    def _calls(self) -> list[str]:
        lines = []
        for name, call in self.calls.items():
            for size, timing in zip(call.sizes, call.timings, strict=True):
                times = (f"{1e3 * seconds:,.2f}" for seconds in timing)
                lines.append(_line(name, f"{size} {call.entry}s", *times))
            costs = ("{:.2f} + {:.3f} n".format(*call.costs(clock)) for clock in Timing._fields)
            lines.append(_line(name, f"n {call.entry}s", *costs))
        return lines


def _line(*cells: str) -> str:
    widths = (-18, 17, 19, 19)
    padded = (
        f"{cell:{'<' if w < 0 else '>'}{abs(w)}}" for cell, w in zip(cells, widths, strict=True)
    )
    return " ".join(padded).rstrip()


def _call_to_json(call: Call) -> dict[str, Any]:
    numbers: dict[str, Any] = {"entry": call.entry, "sizes": list(call.sizes)}
    for clock in Timing._fields:
        fixed, per_entry = call.costs(clock)
        numbers[f"{clock}_ms"] = [_rounded(1e3 * getattr(timing, clock)) for timing in call.timings]
        numbers[f"fixed_{clock}_ms"] = _rounded(fixed)
        numbers[f"{clock}_ms_per_{call.entry}"] = _rounded(per_entry)
    return numbers


def _rounded(value: float | None) -> float | None:
    if value is None:
        return None
    return round(value) if abs(value) >= 1_000 else float(f"{value:.4g}")
