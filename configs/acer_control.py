"""ACER with continuous actions: Pendulum-v1, or any environment of vectors and bounded floats.

The control suite's tasks: `make control`, then

    python -m launch.train --config=configs/acer_control.py --config.environment.suite=dm_control \
        --config.environment.task=cheetah/run

ACER's baselines on the same runner: `--config=configs/acer_control.py:tis`, or trust_tis, a3c,
trust_a3c. Section numbers are ACER's (Wang et al. 2017).
"""

import dataclasses
from typing import Any

import ml_collections

from configs import laser_gymnasium
from laser_tf.agents import a3c_config, acer_config

# What each baseline of section 6 does, beside what all five methods share.
_BASELINES: dict[str, dict[str, Any]] = {
    "tis": {"importance": "truncated", "trust_region": False},
    "trust_tis": {"importance": "truncated", "trust_region": True},
    "a3c": {"importance": "none", "trust_region": False},
    "trust_a3c": {"importance": "none", "trust_region": True},
}
_SHARED: dict[str, Any] = {
    "mlp_units": (64, 64),
    "discount": 0.99,  # appendix E.1
    # Ours: the suite's rewards of up to 1 make returns of up to 100. Values begin at 0 and go there
    # by steps of the learning rate; until they have, all advantages are far above 0, and are noise.
    "reward_scale": 0.1,
    "entropy_cost": 0.0,  # the deviation is fixed
    "truncation": 5.0,  # c; section 6, and appendix E.2
    "delta": 1.0,  # section 6 draws 0.1 to 2 at random
    "average_decay": 0.995,  # alpha; section 6
    "policy_std": 0.3,  # half ranges; section 6
}


def get_config(method: str = "acer") -> ml_collections.ConfigDict:
    """The environments of `laser_gymnasium`, learned by ACER wholly off-policy.

    Args:
      method: acer, or one of its baselines.

    Raises:
      ValueError: for another one.
    """
    config = laser_gymnasium.get_config()
    config.agent = dataclasses.asdict(_agent(method))
    config.environment.task = "Pendulum-v1"
    config.replay.update(
        {
            # Ours: section 6 updates by one trajectory of k = 50 at a time, each drawn 4 times on
            # average: 80,000 updates in a million agent steps. These are 50,000, of 8 draws a step.
            "unroll_length": 20,  # agent steps
            "batch_size": 8,  # unrolls
            "replay_fraction": 0.0,
            "steps_per_update": 20,  # agent steps
            "warm_up": 2_000,  # agent steps
            "capacity": 50_000,  # agent steps; section 6 has 5,000 frames a thread
        }
    )
    if config.agent.get("importance") == "none":  # on-policy: an update for each fresh batch
        config.replay.update({"steps_per_update": 0, "warm_up": 0})
    config.learner.update(
        {
            "learning_rate": 1e-3,  # ours; section 6 draws 1e-4 to 10^-3.3 at random
            "learning_rate_schedule": "constant",
            "gradient_clip": 40.0,
        }
    )
    config.run.env_frames = 300_000
    return config


def _agent(method: str) -> acer_config.AcerConfig | a3c_config.A3CConfig:
    if method == "acer":
        return acer_config.AcerConfig(
            **_SHARED,
            advantage_units=(64, 64),
            dueling_samples=5,  # n; section 6
        )
    if method not in _BASELINES:
        raise ValueError(f"there is no method {method!r}: use acer, {', '.join(_BASELINES)}")
    return a3c_config.A3CConfig(**_SHARED, **_BASELINES[method])
