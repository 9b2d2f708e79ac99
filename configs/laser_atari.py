"""LASER on an Atari game, for two CPU cores: what `make train` runs.

By the protocol of other papers (docs/environments.md): `--config=configs/laser_atari.py:dopamine`,
or revisiting.

In all files of this folder a number is ours where no source stands beside it.
"""

import dataclasses

import ml_collections

from laser_tf.agents import laser_config
from laser_tf.environments import atari, atari_protocols
from laser_tf.replay import replay_config
from laser_tf.training import cluster_config, learner_config, run_config


def get_config(protocol: str = atari_protocols.IMPALA) -> ml_collections.ConfigDict:
    """Every value can be overridden by a flag, e.g. --config.environment.task=breakout.

    Args:
      protocol: how games are played, a name of `atari_protocols`.

    Raises:
      ValueError: for another one.
    """
    config = ml_collections.ConfigDict()
    config.agent = dataclasses.asdict(
        laser_config.LaserConfig(
            torso="shallow",  # IMPALA, figure 3 left: 14 times the deep one's speed on a CPU
            channel_multiplier=1,
            normalise_images=True,  # ours: keeps units alive, see docs/results/images.md
            discount=0.99,  # IMPALA's; LASER's 0.995 learns more slowly in short runs
            reward_clip="unit",  # IMPALA, Atari
            baseline_cost=0.5,  # IMPALA, Atari
            entropy_cost=0.01,  # IMPALA, Atari
            rho_bar=1.0,  # V-trace, both papers
            c_bar=1.0,
            lambda_=1.0,
            relevance="implied",  # LASER, section 4.3
            kl_threshold=0.1,  # nats; ours, the paper prints none: see docs/agents/laser.md
        )
    )
    config.environment = dataclasses.asdict(
        atari.AtariConfig(
            task="pong",
            num_envs=8,  # games played at once; few, so that online unrolls are fresh
            num_threads=2,  # of the emulators; 0: as many as cores
            action_repeat=4,  # env frames an agent step; IMPALA, Atari
            # No-ops, sticky actions, what a lost life is, the actions, an episode's frames.
            **atari_protocols.values(protocol),
        )
    )
    config.replay = dataclasses.asdict(
        replay_config.ReplayConfig(
            unroll_length=20,  # agent steps, T; IMPALA, Atari
            frame_stack=4,  # frames; IMPALA, Atari
            batch_size=8,  # unrolls; ours, smaller than the papers': more updates a frame
            replay_fraction=0.75,  # of a batch; of the 1/2, 3/4 and 7/8 that LASER considers
            capacity=20_000,  # agent steps; ours, see docs/design.md
            queue_capacity=8,  # unrolls
            priority_exponent=0.0,  # uniform; LASER, section 5.2
            core_state="stored",  # of replayed unrolls; read by recurrent agents only
        )
    )
    config.learner = dataclasses.asdict(
        learner_config.LearnerConfig(
            learning_rate=3e-4,  # ours, half of IMPALA's: see docs/results/images.md
            learning_rate_schedule="linear",  # IMPALA, Atari
            optimizer="rmsprop",  # IMPALA, Atari
            rmsprop_decay=0.99,  # IMPALA, Atari
            rmsprop_momentum=0.0,  # IMPALA, Atari
            rmsprop_epsilon=1e-5,  # ours: 0.01 makes short runs too slow, see docs/design.md
            gradient_clip=0.0,  # LASER, section 5.1: none on Atari
        )
    )
    config.run = dataclasses.asdict(
        run_config.Config(
            env_frames=4_000_000,  # before action repeat
            evaluation_episodes=30,
        )
    )
    config.cluster = dataclasses.asdict(cluster_config.ClusterConfig())
    return config
