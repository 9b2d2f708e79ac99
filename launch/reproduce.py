"""The paper's comparisons at a scale of one's own: trains, aggregates and draws.

    python -m launch.reproduce --figure=3_left
    python -m launch.reproduce --figure=3_right --games=breakout --replicas=1

The same command goes on where it stopped. The defaults are for two cores and hours.
"""

import dataclasses
import logging
import pathlib
import re
import subprocess
import sys

from absl import flags

from launch import command_line

_FIGURE = flags.DEFINE_string("figure", None, "which of LASER's figures, e.g. 3_left")
_CONFIG = flags.DEFINE_string("config", "configs/sweep_laser_minatar.py", "a sweep's configuration")
_GAMES = flags.DEFINE_list("games", ["breakout", "space_invaders"], "tasks, a sweep each")
_REPLICAS = flags.DEFINE_integer("replicas", 3, "repetitions, with other seeds")
_ENV_FRAMES = flags.DEFINE_integer("env_frames", None, "of each agent [the configuration's]")
_WORKDIR = flags.DEFINE_string("workdir", None, "of everything [runs/figure_<figure>]")
_SETTINGS = flags.DEFINE_multi_string("setting", [], "SECTION.KEY=VALUE, for all conditions")

_NO_TRUST = ("--config.agent.relevance=none",)
_PBT = ("--population=pbt",)


@dataclasses.dataclass(frozen=True)
class Condition:
    """One curve of a figure."""

    label: str
    flags: tuple[str, ...]  # of launch.sweep


_NO_REPLAY = Condition(
    "no replay",
    ("--shared_replay=false", "--config.replay.replay_fraction=0.0", *_NO_TRUST),
)
_SHARED_NO_TRUST = Condition("shared replay, no trust region", _NO_TRUST)
_SHARED = Condition("shared replay, trust region", ())
_OWN = Condition("own replay, trust region", ("--shared_replay=false",))

FIGURES: dict[str, tuple[Condition, ...]] = {
    # Shared experience: harmful without the trust region, useful with it (section 5.4).
    "3_left": (_NO_REPLAY, _SHARED_NO_TRUST, _SHARED),
    "3_right": tuple(
        dataclasses.replace(condition, flags=(*condition.flags, *_PBT))
        for condition in (_NO_REPLAY, _OWN, _SHARED)
    ),
    # What fresh experience in the batch is worth (section 5.3).
    "2_left": (
        Condition(
            "replay alone",
            (
                "--shared_replay=false",
                "--config.replay.learn_online=false",
                "--config.agent.entropy_on_replay=true",
            ),
        ),
        *(
            Condition(
                f"{1 - fraction:.1%} online",
                ("--shared_replay=false", f"--config.replay.replay_fraction={fraction}"),
            )
            for fraction in (0.875, 0.75, 0.5)
        ),
    ),
    # Replay's capacity (section 5.3).
    "2_right": tuple(
        Condition(
            f"capacity {capacity:,}",
            ("--shared_replay=false", f"--config.replay.capacity={capacity}"),
        )
        for capacity in (10_000, 100_000, 1_000_000)
    ),
    # Clipping less is no substitute for the trust region (section A.1).
    "4_left": (
        _NO_REPLAY,
        *(
            Condition(
                f"shared replay, rho_bar {rho_bar}",
                (*_NO_TRUST, f"--config.agent.rho_bar={rho_bar}.0"),
            )
            for rho_bar in (1, 2, 4)
        ),
    ),
}


def main() -> None:
    """Runs what is missing of a figure, one sweep after the other, and draws it."""
    if _FIGURE.value not in FIGURES:
        raise command_line.UsageError(
            f"--figure={_FIGURE.value}: choose one of {', '.join(FIGURES)}"
        )
    workdir = pathlib.Path(_WORKDIR.value or f"runs/figure_{_FIGURE.value}").absolute()
    for replica in range(1, _REPLICAS.value + 1):
        for game in _GAMES.value:
            for condition in FIGURES[_FIGURE.value]:
                _sweep(workdir, condition, game, replica)
    _run("report", f"--workdir={workdir}")


def _sweep(workdir: pathlib.Path, condition: Condition, game: str, replica: int) -> None:
    folder = workdir / _slug(condition.label) / f"replica_{replica}" / game
    logging.info("%s, %s, replica %d: %s", condition.label, game, replica, folder)
    budget = () if _ENV_FRAMES.value is None else (f"--config.run.env_frames={_ENV_FRAMES.value}",)
    _run(
        "sweep",
        f"--config={_CONFIG.value}",
        f"--workdir={folder}",
        f"--config.environment.task={game}",
        f"--config.run.seed={1_000 * replica}",
        "--config.run.evaluation_episodes=0",
        f"--config.sweep.label={condition.label}",
        f"--config.sweep.replica={replica}",
        *budget,
        *(f"--config.{setting}" for setting in _SETTINGS.value),
        *condition.flags,
    )


def _run(module: str, *arguments: str) -> None:
    code = subprocess.run([sys.executable, "-m", f"launch.{module}", *arguments]).returncode
    if code:
        raise command_line.UsageError(
            f"launch.{module} ended with {code}: see above; the same command goes on"
        )


def _slug(label: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "_", label.lower())


if __name__ == "__main__":
    command_line.run(main, ())
