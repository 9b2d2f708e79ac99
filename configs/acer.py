"""ACER (Wang et al. 2017). Section and algorithm numbers are ACER's.

    --config=configs/acer.py:VARIANT

| variant | environment |
|---|---|
| atari | an Atari game, for two CPU cores: network, environments and budget are smaller |
| atari_paper | an Atari game at the paper's size (section 4), for accelerators |
| minatar | a MinAtar game, minutes on a laptop |
| control | continuous actions: Pendulum-v1, or any environment of vectors and bounded floats |
| control_tis, control_trust_tis, control_a3c, control_trust_a3c | the baselines of section 6 |

Tasks of the control suite: `make control`, then --config.environment.suite=dm_control
--config.environment.task=cheetah/run.
"""

import functools
from collections.abc import Callable
from typing import Any

import ml_collections

from configs import environments
from laser_tf.agents import acer_config
from laser_tf.replay.schemes import alternating, online, replay_only


def _agent(torso: str, **others: Any) -> acer_config.AcerConfig:
    return acer_config.AcerConfig(
        torso=torso,
        discount=0.99,  # section 4
        reward_clip="unit",  # A3C, whose preprocessing section 4 takes
        truncation=10.0,  # c; section 4
        delta=1.0,  # section 4
        average_decay=0.99,  # alpha; section 4
        **others,
    )


def _replay(**others: Any) -> alternating.Alternating:
    return alternating.Alternating(
        unroll_length=20,  # agent steps, k; section 4
        replay_ratio=4.0,  # replayed batches after an online one; section 4
        **others,
    )


def _atari() -> ml_collections.ConfigDict:
    return environments.atari().config(
        _agent(
            "shallow",
            center_observation=True,  # its results were made so, see docs/results/atari.md
            entropy_cost=0.001,  # section 4
        ),
        _replay(
            frame_stack=4,  # frames
            batch_size=4,  # unrolls; online, and as many replayed ones
            capacity=50_000,  # agent steps; section 4 has 50,000 frames a thread
            queue_capacity=8,  # unrolls
        ),
        learning_rate=6e-4,
        learning_rate_schedule="constant",  # section 4
        rmsprop_epsilon=1e-5,
    )


def _atari_paper() -> ml_collections.ConfigDict:
    config = environments.atari().config(
        _agent(
            "nature",  # section 4: three convolutions and a dense layer of 512
            entropy_cost=0.001,  # section 4
        ),
        _replay(
            frame_stack=4,  # frames
            # Section 4: one trajectory an update, of 16 threads that do not wait for one another.
            batch_size=16,
            capacity=800_000,  # agent steps; section 4: 50,000 of each of 16 threads
            queue_capacity=32,  # unrolls
        ),
        learning_rate=7e-4,  # A3C (Mnih et al. 2016); section 4 prints none
        learning_rate_schedule="constant",  # section 4
        rmsprop_epsilon=0.1,  # A3C's
        gradient_clip=40.0,  # A3C's
    )
    config.environment.num_envs = 16  # section 4: threads
    # Frames: figure 1's axis ends there.
    config.run.update(env_frames=200_000_000, evaluation_episodes=200)
    return config


def _minatar() -> ml_collections.ConfigDict:
    return environments.minatar().config(
        _agent(
            "minatar",
            entropy_cost=0.01,  # as LASER's; the paper's 0.001 is Atari's
        ),
        _replay(
            frame_stack=1,  # frames
            batch_size=4,  # unrolls; online, and as many replayed ones
            capacity=100_000,  # agent steps
            queue_capacity=32,  # unrolls
        ),
        learning_rate=1e-3,
        learning_rate_schedule="constant",  # section 4
        rmsprop_epsilon=1e-5,
    )


# The methods of section 6 share these values.
_CONTROL: dict[str, Any] = {
    "mlp_units": (64, 64),
    "discount": 0.99,  # appendix E.1
    # The suite's rewards of up to 1 make returns of up to 100. Values start at 0 and approach the
    # returns by steps of the learning rate; until then all advantages are far above 0, hence noise.
    "reward_scale": 0.1,
    "entropy_cost": 0.0,  # the deviation is fixed
    "truncation": 5.0,  # c; section 6, and appendix E.2
    "delta": 1.0,  # section 6 samples 0.1 to 2
    "average_decay": 0.995,  # alpha; section 6
    "policy_std": 0.3,  # half ranges; section 6
}
_CONTROL_UNROLLS: dict[str, Any] = {
    "unroll_length": 20,  # agent steps
    "frame_stack": 1,
    "batch_size": 8,  # unrolls
    "queue_capacity": 4,  # unrolls
}


def _control(
    agent: acer_config.AcerConfig | acer_config.A3CConfig, is_on_policy: bool = False
) -> ml_collections.ConfigDict:
    # Section 6 updates by one trajectory of k = 50 at a time, each sampled 4 times on average:
    # 80,000 updates in a million agent steps. These are 50,000, of 8 draws a step.
    off_policy = replay_only.ReplayOnly(
        **_CONTROL_UNROLLS,
        steps_per_update=20,  # agent steps
        warm_up=2_000,  # agent steps
        capacity=50_000,  # agent steps; section 6 has 5,000 frames a thread
    )
    return environments.gymnasium("Pendulum-v1", env_frames=300_000).config(
        agent,
        online.Online(**_CONTROL_UNROLLS) if is_on_policy else off_policy,
        learning_rate=1e-3,  # section 6 samples 1e-4 to 10^-3.3
        learning_rate_schedule="constant",
        rmsprop_epsilon=1e-5,
        gradient_clip=40.0,
    )


def _control_acer() -> ml_collections.ConfigDict:
    return _control(
        acer_config.AcerConfig(
            **_CONTROL,
            advantage_units=(64, 64),
            dueling_samples=5,  # n; section 6
        )
    )


def _baseline(importance: str, trust_region: bool) -> ml_collections.ConfigDict:
    agent = acer_config.A3CConfig(**_CONTROL, importance=importance, trust_region=trust_region)
    return _control(agent, is_on_policy=importance == "none")


VARIANTS: dict[str, Callable[[], ml_collections.ConfigDict]] = {
    "atari": _atari,
    "atari_paper": _atari_paper,
    "minatar": _minatar,
    "control": _control_acer,
    "control_tis": functools.partial(_baseline, "truncated", False),
    "control_trust_tis": functools.partial(_baseline, "truncated", True),
    "control_a3c": functools.partial(_baseline, "none", False),
    "control_trust_a3c": functools.partial(_baseline, "none", True),
}
get_config = environments.selector(VARIANTS, default="atari")
