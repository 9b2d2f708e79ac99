"""Figures of ACER, R2D2 and Reactor.

The papers are Wang et al. 2017, Kapturowski et al. 2019, and Gruslys et al. 2018.
"""

import functools

from experiments import base
from laser_tf.plotting import curves, r2d2

_MINATAR = ("breakout", "space_invaders")
_DM_CONTROL: base.Overrides = {"environment.suite": "dm_control"}
_HISTORY_LENGTHS = (80, 60, 50, 40, 20, 10, 1)  # agent steps
_ZERO_STATE = base.Condition("zero state", {"replay.core_state": "zero", "replay.burn_in": 0})
_STORED_STATE = base.Condition("stored state", {"replay.core_state": "stored", "replay.burn_in": 0})

EXPERIMENTS = {
    # What replay is worth, by experience and by time, with and without trust region.
    "acer_1": base.Experiment(
        config="acer:minatar",
        tasks=_MINATAR,
        conditions=tuple(
            base.Condition(
                f"replay ratio {ratio}{', trust region' if trust_region else ''}",
                {"agent.trust_region": trust_region}
                | ({"replay.replay_ratio": float(ratio)} if ratio else {"replay.scheme": "online"}),
            )
            for trust_region in (True, False)
            for ratio in (0, 1, 4)  # updates on replay after each one on online unrolls
        ),
        draw=functools.partial(curves.write, with_time=True),
    ),
    # Continuous control against the baselines of section 6.
    "acer_2": base.Experiment(
        config="acer:control",
        tasks=("cartpole/swingup", "reacher/easy", "cheetah/run"),
        conditions=(
            base.Condition("ACER"),
            base.Condition("Trust-TIS", config="acer:control_trust_tis"),
            base.Condition("TIS", config="acer:control_tis"),
            base.Condition("Trust-A3C", config="acer:control_trust_a3c"),
            base.Condition("A3C", config="acer:control_a3c"),
        ),
        overrides=_DM_CONTROL,
        draw=curves.write,
    ),
    # Ablation of the continuous agent: one part at a time is removed.
    "acer_3": base.Experiment(
        config="acer:control",
        tasks=("cheetah/run",),
        conditions=(
            base.Condition("ACER"),
            base.Condition("no Retrace", {"agent.lambda_": 0.0}),  # one-step targets
            base.Condition("no SDN", {"agent.dueling_samples": 0}),  # Q = V + A
            # No action's ratio reaches this clip.
            base.Condition("no truncation", {"agent.truncation": 1e6}),
            base.Condition("no trust region", {"agent.trust_region": False}),
        ),
        overrides=_DM_CONTROL,
        draw=curves.write,
    ),
    # Where replayed sequences start, and whether a burn-in comes first (section 3).
    "r2d2_1": base.Experiment(
        config="r2d2:minatar",
        tasks=_MINATAR,
        conditions=(
            _ZERO_STATE,
            base.Condition("burn-in", {"replay.core_state": "zero"}),
            _STORED_STATE,
            base.Condition("stored state, burn-in", {"replay.core_state": "stored"}),
        ),
        draw=r2d2.write_staleness,
    ),
    # What remains of agents whose policy remembers the last k steps only, by the strategies of
    # section 5, which has no burn-in.
    "r2d2_5": base.Experiment(
        config="r2d2:tmaze",
        conditions=(_ZERO_STATE, _STORED_STATE),
        history_lengths=_HISTORY_LENGTHS,
        draw=functools.partial(r2d2.write_memory, history_lengths=_HISTORY_LENGTHS),
    ),
    # Figure 3 left: the agent without one of its parts at a time.
    "reactor_3": base.Experiment(
        config="reactor:minatar",
        tasks=_MINATAR,
        conditions=(
            base.Condition("Reactor"),
            base.Condition("no distributional Retrace", {"agent.distributional": False}),
            base.Condition(
                "TISLR for beta-LOO",
                {"agent.policy_gradient": "tislr", "agent.truncation": 10.0},  # c: ACER's
            ),
            base.Condition(
                "no prioritisation",
                {"replay.scheme": "sequences", "replay.priority_exponent": 0.0},
            ),
        ),
        draw=curves.write,
    ),
}
