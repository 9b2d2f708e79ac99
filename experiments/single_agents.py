"""LASER alone and next to other agents, each agent by its own configuration."""

import functools

from experiments import base
from laser_tf.environments import atari as atari_suite
from laser_tf.plotting import atari, atari5, curves, retention
from laser_tf.scores import atari5 as atari5_scores

_MINATAR = ("breakout", "space_invaders")
_LASER = base.Condition("LASER")
_DOPAMINE: base.Overrides = {
    f"environment.{key}": value
    for key, value in atari_suite.PROTOCOLS[atari_suite.DOPAMINE].items()
    # Each agent keeps its own `life_loss_is_end`: it affects learning, not episodes and returns.
    if key != "life_loss_is_end"
}


def _all_agents(suite: str) -> tuple[base.Condition, ...]:
    return tuple(
        base.Condition(label, config=f"{label.lower()}:{suite}")
        for label in ("LASER", "IMPALA", "ACER", "R2D2", "Reactor")
    )


EXPERIMENTS = {
    "agents_minatar": base.Experiment(
        config="laser:minatar",
        tasks=_MINATAR,
        conditions=_all_agents("minatar"),
        overrides={"run.env_frames": 1_000_000},
        draw=curves.write_agents,
    ),
    "agents_pong": base.Experiment(
        config="laser:atari",
        tasks=("pong",),
        conditions=_all_agents("atari"),
        draw=curves.write_agents,
    ),
    "laser_impala_minatar": base.Experiment(
        config="laser:minatar",
        tasks=_MINATAR,
        conditions=(_LASER, base.Condition("IMPALA", config="impala:minatar")),
        overrides={"run.env_frames": 300_000},
        draw=curves.write,
    ),
    # Next to Dopamine's published agents, by their protocol.
    "atari": base.Experiment(
        config="laser:atari_dopamine",
        tasks=("pong", "breakout", "space_invaders", "seaquest", "qbert", "beam_rider"),
        conditions=(base.Condition(atari.LABEL),),
        overrides={"run.env_frames": 10_000_000},
        draw=atari.write,
    ),
    # All agents on five games that estimate the median over 57, by Dopamine's protocol.
    "atari5": base.Experiment(
        config="laser:atari",
        tasks=atari5_scores.GAMES,
        conditions=(
            base.Condition(atari.LABEL),
            base.Condition(
                atari5.BASELINE,
                {
                    "agent.trust_region": "none",
                    "replay.scheme": "online",
                    "replay.batch_size": 2,  # unrolls; LASER's batch without its replayed unrolls
                },
            ),
            *(
                base.Condition(label, config=f"{label.lower()}:atari")
                for label in ("ACER", "R2D2", "Reactor")
            ),
        ),
        overrides={"run.env_frames": 10_000_000, **_DOPAMINE},
        draw=atari5.write,
    ),
    # PopArt (Hessel et al. 2019): one agent on five games whose rewards differ a hundredfold.
    "popart_minatar": base.Experiment(
        config="laser:minatar_multitask",
        conditions=(
            base.Condition("PopArt"),
            base.Condition("no PopArt", {"agent.popart": False}),
            base.Condition("clipped rewards", {"agent.popart": False, "agent.reward_clip": "unit"}),
        ),
        draw=functools.partial(curves.write, metric="episode/median_single_task_normalised"),
    ),
    # Recurrent LASER in the T-maze: recomputed core states against stored ones and zeros.
    "core_states_tmaze": base.Experiment(
        config="laser:tmaze",
        conditions=(
            base.Condition("recomputed states"),
            *(
                base.Condition(
                    f"{state} states", {"replay.scheme": "mixed", "replay.core_state": state}
                )
                for state in ("stored", "zero")
            ),
        ),
        draw=curves.write,
    ),
    # Vectors and discrete actions.
    "classic_control": base.Experiment(
        config="laser:gymnasium",
        tasks=("CartPole-v1", "Acrobot-v1"),
        conditions=(_LASER,),
        draw=retention.write,
    ),
    # Continuous actions.
    "continuous_control": base.Experiment(
        config="laser:control",
        tasks=("Pendulum-v1", "MountainCarContinuous-v0"),
        conditions=(_LASER,),
        draw=retention.write,
    ),
    # By its configuration and with a longer horizon.
    "lunar_lander": base.Experiment(
        config="laser:gymnasium",
        tasks=("LunarLander-v3",),
        conditions=(
            _LASER,
            base.Condition(
                "discount 0.995",
                {
                    "agent.discount": 0.995,
                    "agent.lambda_": 0.95,
                    "learner.learning_rate": 5e-4,
                    "run.env_frames": 1_000_000,
                },
            ),
            base.Condition("discount 0.999", {"agent.discount": 0.999}),
        ),
        overrides={"run.env_frames": 700_000},
        draw=retention.write,
    ),
}
