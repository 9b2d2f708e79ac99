"""LASER on Atari games beside Dopamine's agents, by their protocol, at equal frames."""

from laser_tf import errors
from laser_tf.analysis import figure
from laser_tf.environments import atari_protocols
from laser_tf.scores import dopamine

LABEL = "LASER"  # of the one condition

FIGURES = {
    "atari": figure.Figure(
        config="configs/laser_atari.py:dopamine",
        conditions=(figure.Condition(LABEL, {}),),
        makes_run="train",
        games=("pong", "breakout", "space_invaders", "seaquest", "qbert", "beam_rider"),
        known_games=tuple(dopamine.curves()),
        defaults={"run.env_frames": 10_000_000},
    ),
}


def check(name: str, config: dict) -> None:
    """Refuses a configuration whose returns do not compare with the published ones.

    Args:
      name: of the figure.
      config: the nested values, as the user gives them.

    Raises:
      UserError: the message names the value and the remedy.
    """
    chosen = FIGURES[name]
    figure.check_agent(name, chosen, config, "laser")
    wanted = {"suite": "atari", **atari_protocols.values(atari_protocols.DOPAMINE)}
    for key, value in wanted.items():
        given = config["environment"].get(key)
        if given != value:
            raise errors.UserError(
                f"--figure={name} compares with curves of Dopamine's protocol, but "
                f"environment.{key} is {given}, not {value}: leave it out, and use --config="
                f"{chosen.config}"
            )
