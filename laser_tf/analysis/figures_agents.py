"""All agents on the same games, each by its own configuration, for as many frames."""

import dataclasses

from laser_tf.analysis import figure


@dataclasses.dataclass(frozen=True)
class Condition(figure.Condition):
    """One agent."""

    def values(self, config: dict, game: str, replica: int) -> dict[str, object]:
        """What one of its runs changes in the agent's own configuration, "section.key" -> value."""
        frames = config["run"]["env_frames"]
        return super().values(config, game, replica) | {"run.env_frames": frames}


FIGURES = {
    "agents": figure.Figure(
        config="configs/laser_minatar.py",
        conditions=tuple(
            Condition(label, {}, config=f"configs/{label.lower()}_minatar.py")
            for label in ("LASER", "IMPALA", "ACER", "R2D2", "Reactor")
        ),
        makes_run="train",
    ),
}
