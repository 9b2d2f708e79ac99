"""IMPALA (Espeholt et al. 2018): LASER's agent without replay and without a trust region.

    --config=configs/impala.py:VARIANT

| variant | environment |
|---|---|
| atari | an Atari game with the paper's shallow network; 10 of its 200 million frames |
| minatar | a MinAtar game, minutes on a laptop |
"""

import ml_collections

from configs import environments
from laser_tf.agents import laser_config
from laser_tf.replay.schemes import online


def _agent(torso: str) -> laser_config.LaserConfig:
    return laser_config.LaserConfig(
        torso=torso,
        discount=0.99,  # IMPALA, Atari
        reward_clip="unit",  # IMPALA, Atari
        baseline_cost=0.5,  # IMPALA, Atari
        entropy_cost=0.01,  # IMPALA, Atari
        relevance="none",  # no trust region
    )


def _atari() -> ml_collections.ConfigDict:
    config = environments.atari().config(
        _agent("shallow"),  # figure 3 left
        online.Online(
            unroll_length=20,  # agent steps; IMPALA, Atari
            frame_stack=4,  # frames; IMPALA, Atari
            batch_size=32,  # unrolls; IMPALA, Atari
            queue_capacity=64,  # unrolls
        ),
        learning_rate=6e-4,  # IMPALA, Atari
        learning_rate_schedule="linear",  # IMPALA, Atari
        rmsprop_epsilon=0.01,  # IMPALA, Atari
        gradient_clip=40.0,  # global norm; IMPALA, Atari
    )
    config.environment.num_envs = 64
    config.run.env_frames = 10_000_000  # before action repeat
    return config


def _minatar() -> ml_collections.ConfigDict:
    return environments.minatar().config(
        _agent("minatar"),
        online.Online(
            unroll_length=20,  # agent steps
            frame_stack=1,  # frames
            batch_size=1,  # unrolls; as many online ones as LASER's, hence as many updates a frame
            queue_capacity=32,  # unrolls
        ),
        learning_rate=1e-3,
        rmsprop_epsilon=1e-5,
    )


VARIANTS = {"atari": _atari, "minatar": _minatar}
get_config = environments.selector(VARIANTS, default="atari")
