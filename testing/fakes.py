"""Small real things for tests: configurations and experience with known contents."""

import dataclasses

import numpy as np
import tensorflow as tf

from configs import laser_catch
from laser_tf import types
from laser_tf.agents import r2d2_config
from laser_tf.runtime import run_config


def catch_config(**sections) -> run_config.RunConfig:
    """`configs/laser_catch.py`, made smaller; keywords are sections of overrides."""
    values = laser_catch.get_config().to_dict()
    values["run"].update(env_frames=2_000, evaluation_episodes=4, metrics_seconds=0.2)
    for section, overrides in sections.items():
        values[section].update(overrides)
    return run_config.parse(values)


def r2d2_catch_config(**sections) -> run_config.RunConfig:
    """R2D2 on the games of `catch_config`; keywords are sections of overrides."""
    values = config_values(catch_config())
    values["agent"] = dataclasses.asdict(
        r2d2_config.R2D2Config(
            torso="flat", core_size=32, hidden_units=32, discount=0.99, n_steps=3, target_period=100
        )
    )
    values["replay"].update(
        unroll_length=5,
        sequence_length=10,
        sequence_overlap=5,
        burn_in=5,
        new_steps=40,
        warm_up=500,
        priority_exponent=0.9,
        importance_exponent=0.6,
    )
    values["learner"].update(
        optimizer="adam", learning_rate=3e-3, learning_rate_schedule="constant"
    )
    for section, overrides in sections.items():
        values[section].update(overrides)
    return run_config.parse(values)


def config_values(config: run_config.RunConfig) -> dict:
    """The nested values of a configuration."""
    return dataclasses.asdict(config)


def random_unroll(
    rows: int, batch: int, num_actions: int, shape: tuple[int, ...], seed: int = 0
) -> types.Unroll:
    """An unroll [rows, batch, ...] of random contents without episode ends."""
    generator = np.random.default_rng(seed)
    size = (rows, batch)
    env_output = types.EnvOutput(
        observation=tf.constant(generator.integers(0, 256, (*size, *shape)), tf.uint8),
        reward=tf.constant(generator.normal(size=size), tf.float32),
        discount=tf.ones(size),
        is_first=tf.zeros(size, tf.bool),
        previous_action=tf.zeros(size, tf.int32),
    )
    agent_output = types.AgentOutput(
        action=tf.constant(generator.integers(0, num_actions, size), tf.int32),
        logits=tf.constant(generator.normal(size=(*size, num_actions)), tf.float32),
    )
    is_online = tf.constant(np.arange(batch) < max(1, batch // 4))
    return types.Unroll(
        env_output,
        agent_output,
        core_state=(),
        task=tf.zeros([batch], tf.int32),
        is_online=is_online,
        is_own=tf.ones([batch], tf.bool),
        weight=tf.ones([batch]),
    )
