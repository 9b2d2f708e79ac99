"""The paper's comparisons at a scale of one's own: trains, aggregates and draws.

    python -m launch.reproduce --figure=3_left
    python -m launch.reproduce --figure=3_right --games=breakout --config.run.env_frames=100000

The same command goes on where it stopped. The defaults are for two cores and hours.
"""

import dataclasses
import logging
import pathlib
import re
import signal
import subprocess
import sys

from absl import flags
from ml_collections import config_flags

from laser_tf.runtime import supervisor
from launch import command_line

_FIGURE = flags.DEFINE_string("figure", None, "which of LASER's figures, e.g. 3_left")
_CONFIG = config_flags.DEFINE_config_file(
    "config", "configs/sweep_laser_minatar.py", "a sweep's configuration"
)
_GAMES = flags.DEFINE_list("games", ["breakout", "space_invaders"], "tasks, a sweep each")
_REPLICAS = flags.DEFINE_integer("replicas", 3, "repetitions, with other seeds")
_WORKDIR = flags.DEFINE_string("workdir", None, "of everything [runs/figure_<figure>]")

_NO_TRUST = {"agent.relevance": "none"}


@dataclasses.dataclass(frozen=True)
class Condition:
    """One curve of a figure."""

    label: str
    overrides: dict[str, object]  # of the configuration, "section.key" -> value
    replay_fraction: float | None = None  # of a batch, whose online part stays; [configuration's]

    def batch(self, replay: dict) -> dict[str, object]:
        """How batches are made: as many online unrolls, and so updates a frame, in all curves."""
        if self.replay_fraction is None:
            return {}
        online_rows = round(replay["batch_size"] * (1 - replay["replay_fraction"]))
        if self.replay_fraction == 1:
            return {"replay.new_steps": online_rows * replay["unroll_length"]}
        return {
            "replay.batch_size": round(online_rows / (1 - self.replay_fraction)),
            "replay.replay_fraction": self.replay_fraction,
        }


_OWN = {"sweep.shared_replay": False}
_NO_REPLAY = Condition("no replay", _OWN | _NO_TRUST, replay_fraction=0.0)
_SHARED_NO_TRUST = Condition("shared replay, no trust region", _NO_TRUST)
_SHARED = Condition("shared replay, trust region", {})
_SEPARATE = Condition("a replay each, trust region", _OWN)
# A copy of an agent may live to any age: its schedule must not end with its own frames.
_PBT = {"population.method": "pbt", "learner.learning_rate_schedule": "constant"}

FIGURES: dict[str, tuple[Condition, ...]] = {
    # Shared experience: harmful without the trust region, useful with it (section 5.4).
    "3_left": (_NO_REPLAY, _SHARED_NO_TRUST, _SHARED),
    "3_right": tuple(
        dataclasses.replace(condition, overrides=condition.overrides | _PBT)
        for condition in (_NO_REPLAY, _SEPARATE, _SHARED)
    ),
    # What fresh experience in the batch is worth (section 5.3).
    "2_left": (
        Condition(
            "all from replay",
            _OWN | {"agent.entropy_on_replay": True},
            replay_fraction=1.0,
        ),
        *(Condition(f"{part:.1%} replay", _OWN, part) for part in (0.875, 0.75, 0.5, 0.0)),
    ),
    # Replay's capacity (section 5.3).
    "2_right": tuple(
        Condition(f"capacity {capacity:,}", _OWN | {"replay.capacity": capacity})
        for capacity in (10_000, 50_000, 250_000)
    ),
    # Clipping less is no substitute for the trust region (section A.1).
    "4_left": (
        _NO_REPLAY,
        *(
            Condition(f"shared replay, rho_bar {rho_bar}", _NO_TRUST | {"agent.rho_bar": rho_bar})
            for rho_bar in (1.0, 2.0, 4.0)
        ),
    ),
}


def main() -> None:
    """Runs what is missing of a figure, one sweep after the other, and draws it."""
    if _FIGURE.value not in FIGURES:
        raise command_line.UsageError(
            f"--figure={_FIGURE.value}: choose one of {', '.join(FIGURES)}"
        )
    if _REPLICAS.value < 1:
        raise command_line.UsageError(f"--replicas={_REPLICAS.value}: use 1 or more")
    config = command_line.config_values(_CONFIG)
    workdir = pathlib.Path(_WORKDIR.value or f"runs/figure_{_FIGURE.value}").absolute()
    for replica in range(1, _REPLICAS.value + 1):
        for game in _GAMES.value:
            for condition in FIGURES[_FIGURE.value]:
                _sweep(workdir, config, condition, game, replica)
    _run("report", f"--workdir={workdir}")


def _sweep(
    workdir: pathlib.Path, config: dict, condition: Condition, game: str, replica: int
) -> None:
    folder = workdir / _slug(condition.label) / f"replica_{replica}" / game
    logging.info("%s, %s, replica %d: %s", condition.label, game, replica, folder)
    given = config_flags.get_override_values(flags.FLAGS[_CONFIG.name])
    values = given | overrides(config, condition, game, replica)
    _run(
        "sweep",
        f"--config={command_line.config_file(_CONFIG.name)}",
        f"--workdir={folder}",
        *(f"--config.{key}={value}" for key, value in values.items()),
    )


def overrides(config: dict, condition: Condition, game: str, replica: int) -> dict[str, object]:
    """What one sweep of a figure changes in the configuration, "section.key" -> value."""
    return {
        "environment.task": game,
        "run.seed": config["run"]["seed"] + 1_000 * (replica - 1),
        "run.evaluation_episodes": 0,
        "sweep.label": condition.label,
        "sweep.replica": replica,
        **condition.overrides,
        **condition.batch(config["replay"]),
    }


def _run(module: str, *arguments: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", f"launch.{module}", *arguments],
        stdin=subprocess.DEVNULL,
        # A group of its own: it gets each Ctrl-C once, from here, and has the time to save all.
        start_new_session=True,
        preexec_fn=supervisor.end_with_parent,
    )
    interrupted = []

    def forward(signal_number: int, _: object) -> None:
        interrupted.append(signal_number)
        process.send_signal(signal_number)

    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, forward)
    code = process.wait()
    if interrupted:
        logging.info("stopped; the same command goes on")
        command_line.leave(0)
    if code:
        raise command_line.UsageError(
            f"launch.{module} ended with {code}: see above; the same command goes on"
        )


def _slug(label: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "_", label.lower())


if __name__ == "__main__":
    command_line.run(main, ())
