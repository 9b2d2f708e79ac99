"""R2D2 (Kapturowski et al. 2019). Section and table numbers are R2D2's.

    --config=configs/r2d2.py:VARIANT

| variant | environment |
|---|---|
| atari | an Atari game, for two CPU cores, with a small network and short sequences |
| atari_paper | the paper's Atari setting (table 2), for accelerators |
| dmlab30 | R2D2+ on a level of DMLab-30; requires `deepmind_lab` and a cluster |
| minatar | a MinAtar game, minutes on a laptop |
| tmaze | T-maze: the turn depends on a cue many steps earlier |

Numbers that table 2 leaves out are Ape-X's (Horgan et al. 2018).
"""

from typing import Any

import ml_collections

from configs import environments
from laser_tf.agents import r2d2_config
from laser_tf.replay.schemes import sequences

_ADAM: dict[str, Any] = {
    "optimizer": "adam",  # table 2
    "learning_rate_schedule": "constant",
    "adam_epsilon": 1e-3,  # table 2
}


def _agent(discount: float = 0.99, **others: Any) -> r2d2_config.R2D2Config:
    return r2d2_config.R2D2Config(
        core="lstm",  # appendix
        discount=discount,
        n_steps=5,  # section 2.3
        **others,
    )


def _replay(**others: Any) -> sequences.Sequences:
    return sequences.Sequences(
        priority_exponent=0.9,  # table 2
        importance_exponent=0.6,  # table 2
        **others,
    )


def _atari() -> ml_collections.ConfigDict:
    config = environments.atari().config(
        _agent(
            torso="shallow",  # IMPALA's: a third of the DQN torso's arithmetic
            center_observation=True,  # see docs/results/atari.md
            core_size=128,
            hidden_units=128,
            target_period=250,  # learner updates
        ),
        _replay(
            unroll_length=10,  # agent steps
            frame_stack=4,  # section 2.3
            sequence_length=20,  # agent steps
            sequence_overlap=10,  # agent steps, half of them: section 2.3
            burn_in=10,  # agent steps
            batch_size=16,  # sequences
            steps_per_update=80,  # agent steps an update: each is learned from 4 times
            warm_up=20_000,  # agent steps
            capacity=100_000,  # agent steps
            queue_capacity=16,  # unrolls
        ),
        **_ADAM,
        learning_rate=3e-4,
        gradient_clip=40.0,  # Ape-X
    )
    config.environment.update(num_envs=16, life_loss_is_end=False)
    config.run.env_frames = 14_000_000  # before action repeat; an hour and a half
    return config


def _paper(setting: environments.Setting) -> ml_collections.ConfigDict:
    config = setting.config(
        _agent(
            torso="dqn",  # appendix
            core_size=512,  # appendix
            hidden_units=512,  # appendix
            discount=0.997,  # table 2
            reward_clip="none",  # section 2.3
            rescaling_epsilon=1e-3,  # table 2
            target_period=2_500,  # learner updates, table 2
            priority_eta=0.9,  # section 2.3
            epsilon_base=0.4,  # Ape-X
            epsilon_alpha=7.0,  # Ape-X
            evaluation_epsilon=1e-3,
            reset_at_life_loss=False,  # True with life_loss_is_end: figure 8's "reset"
        ),
        _replay(
            unroll_length=40,  # agent steps; actors copy weights as often (table 2: 400)
            frame_stack=4,  # section 2.3
            sequence_length=80,  # agent steps, m, table 2
            sequence_overlap=40,  # agent steps, section 2.3
            burn_in=40,  # agent steps, l, table 2
            batch_size=64,  # sequences, table 2
            steps_per_update=6_400,  # agent steps; each is learned from 0.8 times, appendix
            warm_up=50_000,  # agent steps, Ape-X
            capacity=4_000_000,  # agent steps, table 2
            queue_capacity=512,  # unrolls
            core_state="stored",  # section 3; "zero" for its variants, burn_in 0 for others
        ),
        **_ADAM,
        learning_rate=1e-4,  # table 2
        gradient_clip=40.0,  # Ape-X
    )
    config.environment.num_envs = 256  # table 2: actors
    config.run.update(env_frames=10_000_000_000, replay_checkpoint_minutes=120.0)
    return config


def _atari_paper() -> ml_collections.ConfigDict:
    config = _paper(environments.atari())
    config.environment.update(
        num_threads=0,
        full_action_space=True,  # section 2.3
        life_loss_is_end=False,  # section 2.3; True: figure 8's "roll"
        no_op_max=30,  # table 4
    )
    return config


def _dmlab30() -> ml_collections.ConfigDict:
    config = _paper(environments.dmlab30())
    config.agent.update(
        torso="deep",  # section 4.2
        # Section 4.2: IMPALA's clip, here as IMPALA's published code computes it. What IMPALA
        # prints, "optimistic_asymmetric", counts a goal of 10 as 1.3 apples of 1.
        reward_clip="soft_asymmetric",
        target_period=400,  # learner updates, section 4.2
    )
    config.environment.task = "rooms_watermaze"
    # One frame: section 2.3. Batches of half the size, and half as many steps an update: table 2.
    config.replay.update(frame_stack=1, batch_size=32, steps_per_update=3_200)
    return config


def _minatar() -> ml_collections.ConfigDict:
    return environments.minatar().config(
        _agent(
            torso="minatar",
            core_size=128,
            hidden_units=128,
            target_period=500,  # learner updates; the paper's 2,500 are of a far longer run
        ),
        _replay(
            unroll_length=20,  # agent steps
            frame_stack=1,  # frames
            sequence_length=40,  # agent steps
            sequence_overlap=20,  # agent steps, half of them: section 2.3
            burn_in=20,  # agent steps
            batch_size=16,  # sequences
            steps_per_update=40,  # agent steps an update: each is learned from 16 times
            warm_up=10_000,  # agent steps
            capacity=200_000,  # agent steps
            queue_capacity=32,  # unrolls
        ),
        **_ADAM,
        learning_rate=5e-4,
    )


def _tmaze() -> ml_collections.ConfigDict:
    return environments.t_maze().config(
        _agent(
            torso="flat",
            core_size=64,
            core_memory_span=100,  # agent steps; see docs/configuration.md
            hidden_units=64,
            target_period=100,  # learner updates; the paper's 2,500 are of a run 1,000 times longer
        ),
        _replay(
            unroll_length=20,  # agent steps
            frame_stack=1,  # frames
            sequence_length=60,  # agent steps: from cue to turn, or no gradient joins them
            sequence_overlap=20,  # agent steps
            burn_in=20,  # agent steps
            batch_size=16,  # sequences
            steps_per_update=80,  # agent steps an update: each is learned from 12 times
            warm_up=10_000,  # agent steps
            capacity=100_000,  # agent steps
            queue_capacity=16,  # unrolls
        ),
        **_ADAM,
        learning_rate=1e-3,
        jit_compile="on",  # XLA: no convolutions, hence three times as fast on a CPU
    )


VARIANTS = {
    "atari": _atari,
    "atari_paper": _atari_paper,
    "dmlab30": _dmlab30,
    "minatar": _minatar,
    "tmaze": _tmaze,
}
get_config = environments.selector(VARIANTS, default="atari")
