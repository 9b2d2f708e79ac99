"""LASER (Schmitt et al. 2020). `make train` runs the variant `atari`.

    --config=configs/laser.py:VARIANT

| variant | environment |
|---|---|
| atari | an Atari game, for two CPU cores, by IMPALA's protocol |
| atari_dopamine, atari_revisiting | the same by other papers' protocols (docs/environments.md) |
| atari_paper | the paper's single agent on Atari, for accelerators |
| babyai | a BabyAI task, recurrent; requires `make minigrid` |
| catch | catch, seconds on a laptop |
| control | continuous actions: Pendulum-v1, or any environment of vectors and bounded floats |
| dmlab30 | the paper's setting on DMLab-30; requires `deepmind_lab` and a cluster |
| gymnasium | vectors: CartPole-v1, or any environment of gymnasium, dm_env or TF-Agents |
| minatar | a MinAtar game, minutes on a laptop |
| minatar_multitask | one agent on five MinAtar games, with PopArt |
| tmaze | T-maze, recurrent |
| vizdoom | a ViZDoom scenario, recurrent; requires `make vizdoom` |

In all files of this folder, a number without a source is this project's choice. Section numbers are
LASER's.
"""

import functools
from collections.abc import Callable
from typing import Any

import ml_collections

from configs import environments
from laser_tf.agents import laser_config
from laser_tf.environments import atari
from laser_tf.replay.schemes import episodes, mixed


def _agent(**others: Any) -> laser_config.LaserConfig:
    loss: dict[str, Any] = {
        "discount": 0.99,  # IMPALA's; LASER's 0.995 learns more slowly in short runs
        "reward_clip": "unit",  # IMPALA, Atari
        "baseline_cost": 0.5,  # IMPALA, Atari
        "entropy_cost": 0.01,  # IMPALA, Atari
        "rho_bar": 1.0,  # V-trace, both papers
        "c_bar": 1.0,
        "lambda_": 1.0,
        "relevance": "implied",  # section 4.3
        "kl_threshold": 0.1,  # nats; the paper prints none: see docs/agents/laser.md
    }
    return laser_config.LaserConfig(**loss | others)


def _atari(protocol: str = atari.IMPALA) -> ml_collections.ConfigDict:
    return environments.atari(protocol).config(
        _agent(
            torso="shallow",  # IMPALA, figure 3 left: 14 times the deep one's speed on a CPU
            normalise_images=True,  # keeps units alive, see docs/results/atari.md
        ),
        mixed.Mixed(
            unroll_length=20,  # agent steps, T; IMPALA, Atari
            frame_stack=4,  # frames; IMPALA, Atari
            batch_size=8,  # unrolls; smaller than the papers': more updates a frame
            replay_fraction=0.75,  # of a batch; of the 1/2, 3/4 and 7/8 that LASER considers
            capacity=20_000,  # agent steps; see docs/design.md
            queue_capacity=8,  # unrolls
            priority_exponent=0.0,  # uniform; section 5.2
        ),
        learning_rate=3e-4,  # half of IMPALA's: see docs/results/atari.md
        learning_rate_schedule="linear",  # IMPALA, Atari
        optimizer="rmsprop",  # IMPALA, Atari
        rmsprop_decay=0.99,  # IMPALA, Atari
        rmsprop_momentum=0.0,  # IMPALA, Atari
        rmsprop_epsilon=1e-5,  # 0.01 makes short runs too slow, see docs/design.md
        gradient_clip=0.0,  # section 5.1: none on Atari
    )


def _atari_paper() -> ml_collections.ConfigDict:
    """Returns the single agent of section 5.1; the sweep's members are in `sweeps.py`."""
    config = _atari()
    config.agent.update(
        torso="deep",  # section 5.1
        channel_multiplier=4,  # section 5.1
        normalise_images=False,  # neither paper does
        discount=0.995,  # section 5.1
        entropy_cost=0.01,  # IMPALA's initial parameters, section 5.1
    )
    config.environment.update(
        num_envs=64,
        no_op_max=37,  # env frames, appendix D
    )
    config.replay.update(
        unroll_length=19,  # agent steps, section 5.1
        # Unrolls: section 5.1's 32 online ones, which IMPALA's learning rate is tuned for, and 224
        # replayed ones by the ratio. Its 128 replayed ones would be 80%.
        batch_size=256,
        replay_fraction=0.875,  # section 5.1: the single agent's
        capacity=15_000_000,  # agent steps; section 5.1 ("15M") prints no unit
        queue_capacity=64,  # unrolls
    )
    config.learner.update(
        learning_rate=6e-4,  # section 5.1: IMPALA's tuned schedule,
        learning_rate_schedule="linear",  # which falls to zero at the run's end
        rmsprop_epsilon=0.01,  # IMPALA, Atari
        gradient_clip=0.0,  # section 5.1: none
    )
    # Frames: table 1. Episodes: IMPALA, Atari; LASER reports its last 100 training episodes.
    config.run.update(env_frames=200_000_000, evaluation_episodes=200)
    return config


def _catch() -> ml_collections.ConfigDict:
    return environments.catch_().config(
        _agent(torso="flat"),
        mixed.Mixed(
            unroll_length=10,  # agent steps; an episode has 9 and its reset
            frame_stack=1,  # frames
            batch_size=16,  # unrolls
            replay_fraction=0.75,
            capacity=20_000,  # agent steps
            queue_capacity=16,  # unrolls
        ),
        learning_rate=3e-3,
        rmsprop_epsilon=1e-5,
    )


def _minatar(
    setting: Callable[[], environments.Setting] = environments.minatar,
) -> ml_collections.ConfigDict:
    return setting().config(
        _agent(torso="minatar"),
        mixed.Mixed(
            unroll_length=20,  # agent steps
            frame_stack=1,  # frames
            # One fresh unroll an update: see docs/results/laser.md.
            batch_size=8,  # unrolls
            replay_fraction=0.875,  # of the 1/2, 3/4 and 7/8 that LASER considers
            capacity=100_000,  # agent steps
            queue_capacity=32,  # unrolls
        ),
        learning_rate=1e-3,
        rmsprop_epsilon=1e-5,
    )


def _minatar_multitask() -> ml_collections.ConfigDict:
    config = _minatar(environments.minatar_multitask)
    config.agent.update(
        reward_clip="none",  # PopArt takes rewards as they are
        popart=True,
        # PopArt's moments grow fast even with the paper's small step, since targets count by their
        # squares. With a large step, the moments of a game without rewards yet would shrink to
        # nothing, and its advantages, divided by them, be noise at full scale.
        popart_step=3e-4,  # an update; Hessel et al. 2019
    )
    config.replay.update(
        batch_size=20,  # unrolls
        replay_fraction=0.75,
        capacity=500_000,  # agent steps
        queue_capacity=20,  # unrolls
    )
    return config


def _tmaze(
    setting: Callable[[], environments.Setting] = environments.t_maze,
) -> ml_collections.ConfigDict:
    return setting().config(
        _agent(
            torso="flat",
            core="lstm",
            core_size=64,
            core_memory_span=100,  # agent steps; see docs/configuration.md
            reward_clip="none",  # returns are within [-2, 1]
        ),
        episodes.Episodes(
            unroll_length=79,  # agent steps; LASER, DMLab: reaches from turn to cue
            frame_stack=1,  # frames
            batch_size=16,  # unrolls
            replay_fraction=0.75,
            capacity=100_000,  # agent steps
            queue_capacity=16,  # unrolls
        ),
        learning_rate=1e-3,
        rmsprop_epsilon=1e-5,
    )


def _babyai() -> ml_collections.ConfigDict:
    config = _tmaze(environments.babyai)
    config.agent.update(torso="minatar", core_size=128, core_memory_span=0)
    config.replay.unroll_length = 20  # agent steps
    return config


def _gymnasium() -> ml_collections.ConfigDict:
    """Returns settings for vectors; the suites dm_env and tf_agents have the same keys."""
    return environments.gymnasium().config(
        _agent(
            torso="shallow",  # of images, where an observation has some
            mlp_units=(64, 64),
            # Values of rarely seen states overshoot with ReLU, see docs/results/laser.md.
            mlp_activation="tanh",
            normalise_vectors=True,
            fusion_units=128,  # of observations with images, texts and vectors
            popart=True,
            # An update; Hessel et al. have 3e-4. A run has only a few thousand updates. At 0.01
            # sigma falls below 0.1 where all returns are alike, which leaves noisy advantages.
            popart_step=1e-3,
            # Returns of 500 and of -1,500 at one learning rate; unnormalised, the value loss would
            # be a thousand times the policy's in the layers that they share.
            reward_clip="none",
        ),
        mixed.Mixed(
            unroll_length=20,  # agent steps
            frame_stack=1,
            batch_size=16,  # unrolls
            replay_fraction=0.875,  # an update for every 40 agent steps
            capacity=50_000,  # agent steps
            queue_capacity=4,  # unrolls
        ),
        learning_rate=1e-3,
        rmsprop_epsilon=1e-5,
        gradient_clip=40.0,  # IMPALA; for the first updates, before PopArt has the scale
    )


def _control() -> ml_collections.ConfigDict:
    config = _gymnasium()
    config.agent.update(
        relevance="behaviour",  # KL(pi || mu): "implied" has no closed form for densities
        discount=0.95,  # found on Pendulum with one seed
        mlp_activation="relu",  # Pendulum's results were made with it,
        popart_step=0.01,  # an update; and with this
        kl_threshold=0.3,  # nats; densities move apart faster than probabilities
    )
    # RMSProp's mean of squares starts at one, so that small gradients first take small steps.
    config.learner.gradient_clip = 1.0
    config.environment.task = "Pendulum-v1"
    config.run.env_frames = 300_000
    return config


def _vizdoom() -> ml_collections.ConfigDict:
    return environments.doom().config(
        _agent(
            torso="shallow",  # as `_atari`'s
            center_observation=True,
            core="lstm",
            core_size=256,
        ),
        episodes.Episodes(
            unroll_length=32,  # agent steps
            frame_stack=1,  # frames
            batch_size=16,  # unrolls
            replay_fraction=0.75,
            capacity=50_000,  # agent steps
            queue_capacity=8,  # unrolls
        ),
        learning_rate=6e-4,  # IMPALA, Atari
        rmsprop_epsilon=1e-5,
        gradient_clip=40.0,  # IMPALA
    )


def _dmlab30() -> ml_collections.ConfigDict:
    """Returns the text's share of replay: 32 and 128 unrolls a batch (section 5.1), which are 80%.

    Figures 2 and 3 have 87.5%: --config.replay.batch_size=256 --config.replay.replay_fraction=0.875
    with 32 online unrolls.
    """
    return environments.dmlab30().config(
        laser_config.LaserConfig(
            torso="deep",  # IMPALA, figure 3 right
            core="preco_lstm",  # section 5.1
            core_size=256,  # IMPALA, figure 3
            discount=0.99,  # IMPALA, DMLab
            reward_clip="none",  # Hessel et al. 2019: PopArt instead
            baseline_cost=0.5,  # IMPALA
            entropy_cost=2e-3,  # within IMPALA's 5e-5 to 1e-2, sampled by a sweep there
            popart=True,
            popart_step=3e-4,  # Hessel et al. 2019
            pixel_control_cost=2e-3,  # per cell; the paper prints none
            pixel_control_cell=4,  # UNREAL
        ),
        episodes.Episodes(
            unroll_length=79,  # agent steps; section 5.1
            frame_stack=1,  # frames
            batch_size=160,  # 32 online and 128 replayed unrolls; section 5.1
            replay_fraction=0.8,
            capacity=10_000_000,  # agent steps; figure 2
            queue_capacity=64,  # unrolls
        ),
        learning_rate=3e-4,  # within IMPALA's 5e-6 to 5e-3, sampled by a sweep there
        learning_rate_schedule="linear",  # IMPALA
        rmsprop_epsilon=0.1,  # section 5.1
        gradient_clip=40.0,  # global norm; IMPALA. LASER: "no clipping", of Atari alone
    )


VARIANTS: dict[str, Callable[[], ml_collections.ConfigDict]] = {
    "atari": _atari,
    "atari_dopamine": functools.partial(_atari, atari.DOPAMINE),
    "atari_revisiting": functools.partial(_atari, atari.REVISITING),
    "atari_paper": _atari_paper,
    "babyai": _babyai,
    "catch": _catch,
    "control": _control,
    "dmlab30": _dmlab30,
    "gymnasium": _gymnasium,
    "minatar": _minatar,
    "minatar_multitask": _minatar_multitask,
    "tmaze": _tmaze,
    "vizdoom": _vizdoom,
}
get_config = environments.selector(VARIANTS, default="atari")
