"""Reactor (Gruslys et al. 2018). Section and table numbers are Reactor's.

    --config=configs/reactor.py:VARIANT

| variant | environment |
|---|---|
| atari | an Atari game, for two CPU cores, without recurrent cores |
| atari_paper | an Atari game with the paper's numbers, for accelerators |
| minatar | a MinAtar game, minutes on a laptop |

Numbers that Reactor takes from DQN's pipeline (section 4.1) without printing them are DQN's
(Mnih et al. 2015).
"""

from typing import Any

import ml_collections

from configs import environments
from laser_tf.agents import reactor_config
from laser_tf.replay.schemes import contextual

_ADAM: dict[str, Any] = {
    "optimizer": "adam",  # section 3.4.1
    "learning_rate_schedule": "constant",
    "adam_beta1": 0.0,  # section 3.4.1: zero momentum
}


def _agent(**others: Any) -> reactor_config.ReactorConfig:
    return reactor_config.ReactorConfig(
        discount=0.99,  # DQN
        reward_clip="unit",  # DQN
        bins=51,  # C51 (Bellemare et al. 2017)
        v_min=-10.0,  # C51; a fresh critic predicts the middle, which has to be near 0
        v_max=10.0,  # C51
        **others,
    )


def _replay(**others: Any) -> contextual.Contextual:
    return contextual.Contextual(
        unroll_length=16,  # agent steps
        sequence_length=32,  # agent steps between 33 frames; section 3.4
        sequence_overlap=16,  # agent steps
        priority_exponent=1.0,  # section 3.3
        importance_exponent=1.0,  # section 3.3
        **others,
    )


def _atari() -> ml_collections.ConfigDict:
    config = environments.atari().config(
        _agent(
            torso="shallow",  # IMPALA's
            center_observation=True,  # its results were made so, see docs/results/atari.md
            core="none",  # stacked frames show what moves; a core's steps take turns on a CPU
            hidden_units=128,
            entropy_cost=0.005,
            target_period=60,  # learner updates; the paper's 1,000 are of a far longer run
        ),
        _replay(
            frame_stack=4,  # frames
            batch_size=4,  # sequences; section 3.4
            steps_per_update=24,  # agent steps an update: each is learned from 5 times
            warm_up=20_000,  # agent steps
            capacity=100_000,  # agent steps
            queue_capacity=16,  # unrolls
        ),
        **_ADAM,
        learning_rate=3e-4,
        adam_epsilon=1e-5,
    )
    config.environment.num_envs = 16
    return config


def _atari_paper() -> ml_collections.ConfigDict:
    config = environments.atari().config(
        _agent(
            torso="reactor",  # table 3
            core="lstm",  # table 3; of policy and critic each
            core_size=128,  # table 3
            hidden_units=32,  # table 3
            uniform_share=0.01,  # section 6.4
            lambda_=1.0,  # section 4.1
            policy_gradient="beta_loo",  # section 3.1
            truncation=1.0,  # c; section 4.1: beta is 1
            entropy_cost=0.01,  # A3C (Mnih et al. 2016), whose method section 6.5 names
            target_period=1_000,  # learner updates; section 4.1
        ),
        _replay(
            frame_stack=1,  # table 3: cores remember the frames before
            batch_size=4,  # sequences; section 3.4
            steps_per_update=5,  # agent steps; section 3.4: 4 to 6
            warm_up=50_000,  # agent steps; DQN
            capacity=1_000_000,  # agent steps; DQN
            queue_capacity=16,  # unrolls
        ),
        **_ADAM,
        learning_rate=5e-5,  # section 3.4.1
        adam_epsilon=1e-8,  # TensorFlow's
    )
    config.environment.update(
        num_envs=10,  # section 4.1: workers
        num_threads=0,
    )
    config.run.update(env_frames=200_000_000, evaluation_episodes=200)  # section 4.1
    return config


def _minatar() -> ml_collections.ConfigDict:
    return environments.minatar().config(
        _agent(
            torso="minatar",
            core="none",  # boards show what moves, and where to
            hidden_units=64,
            entropy_cost=0.05,  # see docs/agents/reactor.md: A3C's 0.01 acts by one action
            target_period=250,  # learner updates; the paper's 1,000 are of a far longer run
        ),
        _replay(
            frame_stack=1,  # frames
            batch_size=16,  # sequences
            steps_per_update=32,  # agent steps an update: each is learned from 16 times
            warm_up=5_000,  # agent steps
            capacity=200_000,  # agent steps
            queue_capacity=32,  # unrolls
        ),
        **_ADAM,
        learning_rate=5e-4,
        adam_epsilon=1e-5,
    )


VARIANTS = {"atari": _atari, "atari_paper": _atari_paper, "minatar": _minatar}
get_config = environments.selector(VARIANTS, default="atari")
