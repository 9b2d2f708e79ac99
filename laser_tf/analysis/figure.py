"""A paper's figure at a scale of one's own: what its runs are, and where they lie."""

import dataclasses
import pathlib
import re
from collections.abc import Mapping, Sequence

from laser_tf import errors

Runs = Mapping[str, Mapping[str, Sequence[pathlib.Path]]]  # game -> label -> one each replica


@dataclasses.dataclass(frozen=True)
class Condition:
    """What makes one curve of a figure."""

    label: str
    overrides: dict[str, object]  # of the configuration, "section.key" -> value
    _: dataclasses.KW_ONLY
    argument: str = ""  # of the configuration's get_config; "": none
    config: str = ""  # a configuration of its own; "": the figure's

    def values(self, config: dict, game: str, replica: int) -> dict[str, object]:
        """What one of its runs changes in the configuration, "section.key" -> value.

        Args:
          config: the nested values, as the user gives them.
          game: the task.
          replica: from 1 on; each has another seed.
        """
        return {
            "environment.task": game,
            "run.seed": config["run"]["seed"] + 1_000 * (replica - 1),
            "run.evaluation_episodes": 0,
            **self.overrides,
        }

    def folder(self, workdir: pathlib.Path, game: str, replica: int) -> pathlib.Path:
        """Where one of its runs lies."""
        name = re.sub(r"[^a-z0-9.]+", "_", self.label.lower())
        return workdir / name / f"replica_{replica}" / game


@dataclasses.dataclass(frozen=True)
class Figure:
    """What is compared with what, by which commands of launch."""

    config: str  # the configuration, unless the user names another
    conditions: tuple[Condition, ...]
    makes_run: str  # the command that makes one run
    games: tuple[str, ...] = ("breakout", "space_invaders")  # by default; (): the configuration's
    restricts_memory: bool = False  # whether runs are evaluated with histories of several lengths
    known_games: tuple[str, ...] = ()  # that there is something to compare with; (): any
    # Of the configuration, "section.key" -> value, unless the user's flags give another.
    defaults: Mapping[str, object] = dataclasses.field(default_factory=dict)

    def runs(self, workdir: pathlib.Path, games: Sequence[str], replicas: int) -> Runs:
        """The folders of all its runs."""
        numbers = range(1, replicas + 1)
        return {
            game: {c.label: [c.folder(workdir, game, n) for n in numbers] for c in self.conditions}
            for game in games
        }


def check_agent(name: str, chosen: Figure, config: dict, kind: str) -> None:
    """Refuses the configuration of another agent than the one whose variants a figure compares.

    Args:
      name: of the figure.
      chosen: the figure.
      config: the nested values, as the user gives them.
      kind: the agent's, as the registry names it.

    Raises:
      UserError: the message names the value and the remedy.
    """
    given = config["agent"].get("kind")
    if given != kind:
        raise errors.UserError(
            f"--figure={name} compares variants of {kind}, not {given}: use e.g. "
            f"--config={chosen.config}"
        )
