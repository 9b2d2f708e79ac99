"""Sweeps of LASER agents that share one replay (Schmitt et al. 2020, sections 5.1, 5.3 and 5.5).

    --config=configs/sweeps.py:VARIANT

| variant | members |
|---|---|
| catch | four on catch, for first tries and tests: a minute on a laptop |
| catch_companions | ten on catch, of which eight have a learning rate far too high |
| minatar | four on a MinAtar game: two learning rates, two entropy costs |
| minatar_multitask | ten, each on five MinAtar games, with settings good and bad |
| vizdoom | six recurrent ones on ViZDoom, of which four get stuck; requires `make vizdoom` |
| atari | the grid of the paper's sweep with the small agents of `laser.py:atari` |
| atari_paper | the paper's sweep: nine agents with constant learning rates, for accelerators |
"""

from collections.abc import Mapping
from typing import Any

import ml_collections

from configs import environments, laser
from laser_tf.sweeps import sweep_config


def _sweep(
    agent: str, max_lead_env_frames: int, ready_env_frames: int, **search: Any
) -> ml_collections.ConfigDict:
    """Returns a variant of `laser.py` with the sections of a sweep.

    Args:
      agent: Variant of `laser.py`.
      max_lead_env_frames: Env frames of each member that it may be ahead of the slowest.
      ready_env_frames: Env frames of each member before PBT may copy from it.
      **search: Hyper-parameters of the members, keys of the section `sweep`.
    """
    config = laser.get_config(agent)
    config.sweep = environments.section(
        sweep_config.Config(
            equal_speed=True,  # LASER, section 5.1
            max_lead_env_frames=max_lead_env_frames,
            **search,
        )
    )
    config.population = ml_collections.ConfigDict(
        {"method": "none", "ready_env_frames": ready_env_frames, "truncation_fraction": 0.25}
    )
    return config


_SMALL_GRID: Mapping[str, Any] = {
    "learner": {"learning_rate": (5e-4, 2e-3)},
    "agent": {"entropy_cost": (5e-3, 2e-2)},
}
_PAPER_GRID: Mapping[str, Any] = {  # LASER, section 5.1
    "learner": {"learning_rate": (3e-4, 6e-4, 1.2e-3)},
    "agent": {"entropy_cost": (5e-3, 1e-2, 2e-2)},
}


def _catch() -> ml_collections.ConfigDict:
    return _sweep("catch", max_lead_env_frames=2_000, ready_env_frames=10_000, grid=_SMALL_GRID)


def _catch_companions() -> ml_collections.ConfigDict:
    rates = (3e-3,) * 2 + (0.5,) * 8  # that of `laser.py:catch`, and one with which agents collapse
    config = _sweep(
        "catch",
        max_lead_env_frames=2_000,
        ready_env_frames=10_000,
        grid={"learner": {"learning_rate": rates}},
    )
    config.agent.reward_clip = "none"  # with an offset rewards are not in [-1, 1]
    config.environment.num_envs = 4  # of each member; few, so that online unrolls are fresh
    config.replay.update(
        replay_fraction=0.875,  # LASER, section 5.3: 2 online unrolls of 16
        capacity=400_000,  # agent steps; more than ten members produce
        queue_capacity=4,  # unrolls, of each member
    )
    config.run.update(env_frames=30_000, evaluation_episodes=0)
    return config


def _minatar() -> ml_collections.ConfigDict:
    config = _sweep(
        "minatar", max_lead_env_frames=10_000, ready_env_frames=50_000, grid=_SMALL_GRID
    )
    config.environment.num_envs = 8  # of each member
    config.replay.update(
        batch_size=16,  # unrolls
        replay_fraction=0.875,  # LASER, section 5.3
        capacity=400_000,  # agent steps, of all members together
        queue_capacity=8,  # unrolls, of each member
    )
    config.run.update(env_frames=300_000, evaluation_episodes=30)
    return config


def _minatar_multitask() -> ml_collections.ConfigDict:
    config = _sweep(
        "minatar_multitask",
        max_lead_env_frames=10_000,
        ready_env_frames=50_000,
        # A thousandfold each: some of ten members learn well, some not at all.
        log_uniform={
            "learner": {"learning_rate": (1e-4, 1e-1)},
            "agent": {"entropy_cost": (5e-5, 1e-1)},
        },
        samples=10,  # members
    )
    # Of each task and member; few, so that online unrolls are fresh.
    config.environment.num_envs = 2
    config.replay.update(
        batch_size=16,  # unrolls
        replay_fraction=0.875,  # LASER, section 5.3: 2 online unrolls
        capacity=1_000_000,  # agent steps, of all members together
        queue_capacity=8,  # unrolls, of each member
    )
    config.run.update(env_frames=300_000, evaluation_episodes=0)
    return config


def _vizdoom() -> ml_collections.ConfigDict:
    # The settings of `laser.py:vizdoom` twice; four times a learning rate far too high and hardly
    # an entropy cost, with which agents get stuck.
    config = _sweep(
        "vizdoom",
        max_lead_env_frames=10_000,
        ready_env_frames=50_000,
        zipped={
            "learner": {"learning_rate": (6e-4,) * 2 + (1e-2,) * 4},
            "agent": {"entropy_cost": (0.01,) * 2 + (1e-4,) * 4},
        },
    )
    config.environment.num_envs = 4  # of each member; few, so that online unrolls are fresh
    config.replay.update(
        replay_fraction=0.875,  # LASER, section 5.3: 2 online unrolls of 16
        capacity=1_000_000,  # agent steps; more than six members produce
        queue_capacity=4,  # unrolls, of each member
    )
    config.run.update(env_frames=500_000, evaluation_episodes=0)
    return config


def _atari() -> ml_collections.ConfigDict:
    config = _sweep("atari", max_lead_env_frames=50_000, ready_env_frames=500_000, grid=_PAPER_GRID)
    config.learner.learning_rate_schedule = "constant"  # LASER, section 5.1
    config.replay.capacity = 180_000  # agent steps, of all members together
    return config


def _atari_paper() -> ml_collections.ConfigDict:
    """Returns 32 online and 128 replayed unrolls a batch (section 5.1).

    Section 5.1 also says "96% replay data per batch", which they are not: use
    --config.replay.batch_size=800 --config.replay.replay_fraction=0.96 for 32 online unrolls.
    """
    config = _sweep(
        "atari_paper", max_lead_env_frames=50_000, ready_env_frames=500_000, grid=_PAPER_GRID
    )
    config.replay.update(
        batch_size=160,  # 32 online and 128 replayed unrolls, section 5.1
        replay_fraction=0.8,
        capacity=10_000_000,  # agent steps, of all; figure 3's: none is printed for Atari
    )
    config.learner.learning_rate_schedule = "constant"  # section 5.1
    return config


VARIANTS = {
    "atari": _atari,
    "atari_paper": _atari_paper,
    "catch": _catch,
    "catch_companions": _catch_companions,
    "minatar": _minatar,
    "minatar_multitask": _minatar_multitask,
    "vizdoom": _vizdoom,
}
get_config = environments.selector(VARIANTS, default="catch")
