"""Where naive sharing should hurt: agents that learn beside others that are meant to collapse.

Fixed before the first run:

Agents: two normal ones and eight with a learning rate far too high on catch, those of
`configs/sweep_laser_catch.py:companions`; two and four on ViZDoom's health_gathering with a memory,
those of `configs/sweep_laser_vizdoom.py`, whose four have hardly an entropy cost, either.

Conditions: a replay each, one replay without the trust region (naive sharing), and one replay with
it at b = 0.3, 0.1 and 0.03 nats; on catch each with the game's own rewards and with 1 more a step,
which makes all returns positive, as health_gathering's are, which pays for each frame. The agents
with a replay each have no trust region, either: from naive sharing they differ in the sharing
alone. 87.5% of a batch is replayed.

Metric: an agent's mean return over its last 100 training episodes, the offset taken out, so that on
catch random play is at -0.6 everywhere; a repetition counts by the mean of its two normal agents.
Conditions are compared by their mean over repetitions, with its bootstrap interval, and by the
repetitions that have failed: below 0 on catch, whose agents miss more balls than they catch; below
random play on health_gathering. All agents are reported, and so is whether the companions did
collapse: to an entropy near 0 and a return about that of random play.
"""

from collections.abc import Mapping

from laser_tf import config_values, errors
from laser_tf.analysis import figure, figures_laser

CATCH, VIZDOOM = "sharing", "sharing_vizdoom"
FAILED_BELOW = {CATCH: 0.0, VIZDOOM: 384.0}  # return; the latter of 200 random episodes
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
    CATCH: figure.Figure(
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
    ),
    VIZDOOM: figure.Figure(
        "configs/sweep_laser_vizdoom.py",
        tuple(figures_laser.Condition(*condition) for condition in _COMPARED.items()),
        makes_run="sweep",
        games=(),
    ),
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
    task = config["environment"]["task"]
    if name == VIZDOOM and (suite, task) != ("vizdoom", "health_gathering"):
        raise errors.UserError(
            f"--figure={name} compares agents with random play of vizdoom's health_gathering, not "
            f"{suite}'s {task}: leave the task as it is"
        )
    if "," in task or task == "all":
        raise errors.UserError(
            f"--figure={name} compares agents of one task, not of {task}: name one"
        )
    compares_offsets = name == CATCH
    if compares_offsets and "reward_offset" not in config["environment"]:
        raise errors.UserError(
            f"--figure={name} compares sweeps in an environment with a reward_offset, not in "
            f"{suite}: use e.g. --config={FIGURES[name].config}"
        )
    given = [config_values.flatten(config["sweep"].get(part, {})) for part in ("grid", "zipped")]
    rates = (given[0] | given[1]).get("learner.learning_rate", ())
    if len(set(rates)) < 2:
        raise errors.UserError(
            f"--figure={name}: the sweep's learner.learning_rate is {tuple(rates)}, but normal "
            "agents are told from companions by a lower one: use two values, e.g. "
            f"--config={FIGURES[name].config}"
        )
    clip = config["agent"]["reward_clip"]
    if compares_offsets and clip != "none":
        raise errors.UserError(
            f"--figure={name}: agent.reward_clip is {clip!r}, which would cut rewards with an "
            "offset: use 'none'"
        )
