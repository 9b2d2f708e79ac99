"""Where naive sharing should hurt: two agents that learn beside eight that are meant to collapse.

Fixed before the first run, with the agents of `configs/sweep_laser_catch.py:companions`:

Conditions: a replay each, one replay without the trust region (naive sharing), and one replay with
it at b = 0.3, 0.1 and 0.03 nats; each with the game's own rewards and with 1 more a step, which
makes all returns positive. The agents with a replay each have no trust region, either: from naive
sharing they differ in the sharing alone. 87.5% of a batch is replayed.

Metric: an agent's mean return over its last 100 training episodes, the offset taken out, so that
random play is at -0.6 everywhere; a repetition counts by the mean of its two normal agents.
Conditions are compared by their mean over repetitions, with its bootstrap interval, and by the
repetitions below 0, whose agents miss more balls than they catch. All ten agents are reported, and
so is whether the eight, with a learning rate far too high, did collapse: to an entropy near 0 and a
return about that of random play.
"""

from collections.abc import Mapping

from laser_tf import errors
from laser_tf.analysis import figure, figures_laser

NAME = "sharing"
OFFSETS = {"": 0.0, ", +1 a step": 1.0}  # end of a label -> reward

_NAIVE: dict[str, object] = {"sweep.shared_replay": True, "agent.relevance": "none"}
_COMPARED: dict[str, dict[str, object]] = {
    "a replay each": _NAIVE | {"sweep.shared_replay": False},
    "naive sharing": _NAIVE,
    **{
        f"sharing, b = {b}": {
            "sweep.shared_replay": True,
            "agent.relevance": "implied",
            "agent.kl_threshold": b,
        }
        for b in (0.3, 0.1, 0.03)
    },
}

FIGURES = {
    NAME: figure.Figure(
        "configs/sweep_laser_catch.py:companions",
        tuple(
            figures_laser.Condition(
                label + ending, overrides | {"environment.reward_offset": offset}
            )
            for ending, offset in OFFSETS.items()
            for label, overrides in _COMPARED.items()
        ),
        makes_run="sweep",
        games=(),
    )
}


def check(name: str, config: Mapping[str, Mapping]) -> None:
    """Refuses, before anything is trained, a configuration without what the figure compares.

    Args:
      name: of the figure.
      config: the nested values, as the user gives them.

    Raises:
      UserError: the message names the value and the remedy.
    """
    figure.check_agent(name, FIGURES[name], dict(config), "laser")
    suite = config["environment"].get("suite")
    if "reward_offset" not in config["environment"]:
        raise errors.UserError(
            f"--figure={name} compares sweeps in an environment with a reward_offset, not in "
            f"{suite}: use e.g. --config={FIGURES[name].config}"
        )
    rates = config["sweep"].get("grid", {}).get("learner", {}).get("learning_rate", ())
    if len(set(rates)) < 2:
        raise errors.UserError(
            f"--figure={name}: sweep.grid.learner.learning_rate is {tuple(rates)}, but normal "
            "agents are told from companions by a lower one: use two values, e.g. "
            f"--config={FIGURES[name].config}"
        )
    clip = config["agent"]["reward_clip"]
    if clip != "none":
        raise errors.UserError(
            f"--figure={name}: agent.reward_clip is {clip!r}, which would cut rewards with an "
            "offset: use 'none'"
        )
