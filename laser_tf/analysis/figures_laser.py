"""LASER's comparisons (Schmitt et al. 2019): each curve is a sweep's best agent."""

import dataclasses
from collections.abc import Mapping

from laser_tf import errors
from laser_tf.analysis import figure


@dataclasses.dataclass(frozen=True)
class Condition(figure.Condition):
    """What makes one sweep of a figure."""

    replay_fraction: float | None = None  # of a batch, whose online part stays; [configuration's]

    def values(self, config: dict, game: str, replica: int) -> dict[str, object]:
        """What one sweep changes in the configuration, "section.key" -> value."""
        return {
            **super().values(config, game, replica),
            "sweep.label": self.label,
            "sweep.replica": replica,
            **self._batch(config["replay"]),
        }

    def _batch(self, replay: dict) -> dict[str, object]:
        """How batches are made: as many online unrolls, and so updates a frame, in all curves."""
        if self.replay_fraction is None:
            return {}
        online_entries = round(replay["batch_size"] * (1 - replay["replay_fraction"]))
        if self.replay_fraction == 1:
            return {"replay.steps_per_update": online_entries * replay["unroll_length"]}
        return {
            "replay.batch_size": round(online_entries / (1 - self.replay_fraction)),
            "replay.replay_fraction": self.replay_fraction,
        }


_OWN: dict[str, object] = {"sweep.shared_replay": False}
_NO_TRUST: dict[str, object] = {"agent.relevance": "none"}
_NO_REPLAY = Condition("no replay", _OWN | _NO_TRUST, replay_fraction=0.0)
_SHARED_NO_TRUST = Condition("shared replay, no trust region", _NO_TRUST)
_SHARED = Condition("shared replay, trust region", {})
_SEPARATE = Condition("a replay each, trust region", _OWN)
# A copy of an agent may live to any age: its schedule must not end with its own frames.
_PBT: dict[str, object] = {
    "population.method": "pbt",
    "learner.learning_rate_schedule": "constant",
}

_CONDITIONS: dict[str, tuple[Condition, ...]] = {
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

# Figure 3 once more, of agents whose settings differ a thousandfold, on five games at once.
#
# Fixed before the first run: an agent's score is the median over its games of the mean return of
# the last 100 training episodes, where random play is 0 and LASER alone on the game is 1. All
# agents are reported; conditions are compared by each sweep's best and median agent and by how
# many of its agents end at or below random play, each as the mean over repetitions.
_MULTITASK = (
    _NO_REPLAY,
    # Like naive sharing but for the sharing.
    Condition("a replay each, no trust region", _OWN | _NO_TRUST),
    _SHARED_NO_TRUST,
    *(
        Condition(
            f"shared replay, b = {b}", {"agent.relevance": "implied", "agent.kl_threshold": b}
        )
        for b in (0.1, 0.03)
    ),
)

FIGURES = {
    **{
        name: figure.Figure("configs/sweep_laser_minatar.py", conditions, "sweep")
        for name, conditions in _CONDITIONS.items()
    },
    "3_multitask": figure.Figure(
        "configs/sweep_laser_minatar_multitask.py", _MULTITASK, "sweep", games=()
    ),
}


def check(name: str, config: Mapping[str, Mapping]) -> None:
    """Refuses, before anything is trained, replay that no share of a batch stands for.

    Args:
      name: of the figure.
      config: the nested values, as the user gives them.

    Raises:
      UserError: the message names the value and the remedy.
    """
    for key in ("replay_ratio", "steps_per_update"):
        if value := config["replay"].get(key):
            raise errors.UserError(
                f"--figure={name} compares batches by the share of them that is replayed, but "
                f"replay.{key} is {value}, which replays whatever that share is: use 0"
            )
