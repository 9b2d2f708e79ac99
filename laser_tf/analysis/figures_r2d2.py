"""R2D2's comparisons (Kapturowski et al. 2019): how recurrent agents are trained from replay."""

from laser_tf import errors
from laser_tf.analysis import figure

_ZERO: dict[str, object] = {"replay.core_state": "zero"}
_STORED: dict[str, object] = {"replay.core_state": "stored"}
_NO_BURN_IN: dict[str, object] = {"replay.burn_in": 0}
_ZERO_STATE = figure.Condition("zero state", _ZERO | _NO_BURN_IN)
_STORED_STATE = figure.Condition("stored state", _STORED | _NO_BURN_IN)

FIGURES = {
    # What replayed sequences start from, and whether a burn-in comes first (section 3).
    "r2d2_1": figure.Figure(
        config="configs/r2d2_minatar.py",
        conditions=(
            _ZERO_STATE,
            figure.Condition("burn-in", _ZERO),
            _STORED_STATE,
            figure.Condition("stored state, burn-in", _STORED),
        ),
        makes_run="train",
    ),
    # What agents make of their memory, "using the zero and stored state strategies" (section 5):
    # in section 3's words these are without a burn-in, which is a third strategy.
    "r2d2_5": figure.Figure(
        config="configs/r2d2_tmaze.py",
        conditions=(_ZERO_STATE, _STORED_STATE),
        makes_run="train",
        games=(),
        restricts_memory=True,
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
    figure.check_agent(name, FIGURES[name], config, "r2d2")
    if config["agent"]["core"] == "none":
        raise errors.UserError(
            f"--figure={name} compares agents with a memory: use --config.agent.core=lstm"
        )
    if name == "r2d2_1" and not config["replay"]["burn_in"]:
        raise errors.UserError(
            f"--figure={name} compares a burn-in with none: set --config.replay.burn_in"
        )
    if FIGURES[name].restricts_memory and not config["run"]["evaluation_episodes"]:
        raise errors.UserError(
            f"--figure={name} is of evaluations: set --config.run.evaluation_episodes to 1 or more"
        )
