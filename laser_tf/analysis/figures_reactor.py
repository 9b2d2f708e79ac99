"""Reactor's comparison (Gruslys et al. 2018): the agent without one of its parts at a time."""

from laser_tf import errors
from laser_tf.analysis import figure

_WHOLE: dict[str, object] = {"agent.distributional": True, "agent.policy_gradient": "beta_loo"}
_TISLR = {"agent.policy_gradient": "tislr", "agent.truncation": 10.0}  # c: ACER's, none is printed
_UNIFORM = {"replay.priorities": "proportional", "replay.priority_exponent": 0.0}

FIGURES = {
    # Figure 3, left.
    "reactor_3": figure.Figure(
        config="configs/reactor_minatar.py",
        conditions=(
            figure.Condition("Reactor", _WHOLE),
            figure.Condition("no distributional Retrace", _WHOLE | {"agent.distributional": False}),
            figure.Condition("TISLR for beta-LOO", _WHOLE | _TISLR),
            figure.Condition("no prioritisation", _WHOLE | _UNIFORM),
        ),
        makes_run="train",
    ),
}


def check(name: str, config: dict) -> None:
    """Refuses a configuration that a figure cannot compare its conditions by.

    Args:
      name: of the figure.
      config: the nested values, as the user gives them.

    Raises:
      UserError: the message names the value and the remedy.
    """
    figure.check_agent(name, FIGURES[name], config, "reactor")
    if not config["replay"]["priority_exponent"]:
        raise errors.UserError(
            f"--figure={name} compares prioritised replay with uniform, but "
            "replay.priority_exponent is 0, which is uniform: use e.g. 0.6"
        )
