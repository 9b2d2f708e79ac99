"""ACER's comparisons (Wang et al. 2017): replay and trust region, baselines, and its parts."""

from laser_tf import errors
from laser_tf.analysis import figure

_RATIOS = (0, 1, 4)  # updates on replay after each one on online unrolls
_CONTROL: dict[str, object] = {"environment.suite": "dm_control"}
_TRUST: dict[str, object] = {"agent.trust_region": True}
_NO_TRUST: dict[str, object] = {"agent.trust_region": False}
# Whatever the user says of replay: A3C's gradient is of what its own policy has just done.
_ON_POLICY: dict[str, object] = _CONTROL | {
    "replay.steps_per_update": 0,
    "replay.replay_ratio": 0.0,
    "replay.replay_fraction": 0.0,
    "replay.warm_up": 0,
}

FIGURES = {
    # Figure 1: what replay is worth, by experience and by time, with and without the trust region.
    "acer_1": figure.Figure(
        config="configs/acer_minatar.py",
        conditions=tuple(
            figure.Condition(
                f"replay ratio {ratio}{', trust region' if trust else ''}",
                {"replay.replay_ratio": float(ratio)} | (_TRUST if trust else _NO_TRUST),
            )
            for trust in (True, False)
            for ratio in _RATIOS
        ),
        makes_run="train",
    ),
    # Figure 2: continuous control, against the baselines of section 6.
    "acer_2": figure.Figure(
        config="configs/acer_control.py",
        conditions=(
            figure.Condition("ACER", _CONTROL),
            figure.Condition("Trust-TIS", _CONTROL, argument="trust_tis"),
            figure.Condition("TIS", _CONTROL, argument="tis"),
            figure.Condition("Trust-A3C", _ON_POLICY, argument="trust_a3c"),
            figure.Condition("A3C", _ON_POLICY, argument="a3c"),
        ),
        makes_run="train",
        games=("cartpole/swingup", "reacher/easy", "cheetah/run"),
    ),
    # The ablation: one part at a time is taken from the continuous agent.
    "acer_3": figure.Figure(
        config="configs/acer_control.py",
        conditions=(
            figure.Condition("ACER", _CONTROL),
            figure.Condition("no Retrace", _CONTROL | {"agent.lambda_": 0.0}),  # one-step targets
            figure.Condition("no SDN", _CONTROL | {"agent.dueling_samples": 0}),  # Q = V + A
            # A ratio that none of the policy's actions comes to.
            figure.Condition("no truncation", _CONTROL | {"agent.truncation": 1e6}),
            figure.Condition("no trust region", _CONTROL | _NO_TRUST),
        ),
        makes_run="train",
        games=("cheetah/run",),
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
    figure.check_agent(name, FIGURES[name], config, "acer")
    waits = config["replay"]["steps_per_update"]
    if name == "acer_1" and waits:
        raise errors.UserError(
            f"--figure={name} compares replay ratios, but replay.steps_per_update is {waits}, "
            "which learns from replay alone: use 0"
        )
