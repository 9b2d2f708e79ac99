"""Unrolls of agents with known ends of episodes, and gradients."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from laser_tf import observations, types
from testing import fakes

Steps = Iterable[tuple[int, int]]  # pairs (t, b)


def make(
    agent: Any,
    spec: types.EnvironmentSpec,
    T: int,
    B: int,
    *,
    terminations: Steps = (),
    time_limits: Steps = (),
    lost_lives: Steps = (),
    poison: float = 0.5,
) -> types.Unroll:
    """Returns an unroll [T + 1, B, ...] of the agent's initial policy, then changes its weights.

    Args:
      agent: Agent with fresh weights.
      spec: Spec of vector observations, or of a nest of vectors, images, texts and masks.
      T: Number of transitions.
      B: Batch size.
      terminations: Steps whose observation ends an episode with a discount of 0.
      time_limits: Steps whose observation ends an episode with a discount of 1.
      lost_lives: Steps with a discount of 0 within an episode.
      poison: Value of rewards, policies and extras of steps between episodes and the last step.
    """
    generator = np.random.default_rng(0)
    is_first, discount = np.zeros([T + 1, B], bool), np.ones([T + 1, B])
    for t, b in (*terminations, *lost_lives):
        discount[t, b] = 0.0
    for t, b in (*terminations, *time_limits):
        is_first[t + 1, b] = True
    blank = observations.padding_steps(spec, (T + 1, B))
    env_output = types.EnvOutput(
        tf.nest.map_structure(
            lambda leaf: tf.constant(
                generator.normal(size=leaf.shape)
                if np.issubdtype(leaf.dtype, np.floating)
                else generator.integers(0, 2 if leaf.dtype == bool else 200, leaf.shape),
                leaf.dtype,
            ),
            blank.observation,
        ),
        tf.constant(np.where(is_first, poison, generator.normal(0, 1.5, [T + 1, B])), tf.float32),
        tf.constant(discount, tf.float32),
        tf.constant(is_first),
        tf.zeros_like(blank.previous_action),
    )
    agent_output, core_state = fakes.act(agent, env_output)
    shake(agent.trainable_variables, scale=0.3)
    ends = np.roll(is_first, -1, axis=0)
    ends[-1] = True  # The outcome of the last step is in the next unroll.

    def poisoned(leaf: tf.Tensor) -> tf.Tensor:
        mask = ends.reshape(*ends.shape, *[1] * (leaf.shape.rank - 2))
        return tf.where(mask, tf.constant(poison, leaf.dtype), leaf)

    agent_output = agent_output._replace(
        policy=tf.nest.map_structure(poisoned, agent_output.policy),
        extras=tf.nest.map_structure(poisoned, agent_output.extras),
    )
    return types.Unroll(
        env_output,
        agent_output,
        tf.nest.map_structure(
            lambda leaf: tf.constant(generator.normal(size=leaf.shape), tf.float32), core_state
        ),
        task=tf.zeros([B], tf.int32),
        is_online=tf.constant(np.arange(B) < 2),
        is_own=tf.ones([B], tf.bool),
        importance_weight=tf.constant(([1.0, 0.5, 0.25, 0.8] * B)[:B]),
    )


def shake(variables: Iterable[tf.Variable], seed: int = 2, scale: float = 0.5) -> None:
    """Adds normal numbers of standard deviation `scale` to variables."""
    generator = np.random.default_rng(seed)
    for variable in variables:
        variable.assign_add(generator.normal(0, scale, variable.shape).astype(np.float32))


def at(nest: Any, index: int | slice) -> Any:
    """Returns the time steps `index` of a nest [T, ...]."""
    return tf.nest.map_structure(lambda leaf: leaf[index], nest)


def gradients(function: Callable[[], Any], variables: Iterable[tf.Variable]) -> list[np.ndarray]:
    """Returns the gradients of a scalar; zeros for independent variables."""
    with tf.GradientTape() as tape:
        value = function()
    return [
        np.zeros(variable.shape) if gradient is None else np.array(gradient)
        for gradient, variable in zip(tape.gradient(value, variables), variables, strict=True)
    ]


def assert_gradients_equal(
    function: Callable[[], Any],
    expected: Callable[[], Any],
    variables: Iterable[tf.Variable],
    rtol: float = 2e-4,
    atol: float = 2e-4,
) -> None:
    """Asserts that two scalars have the same gradients, which do not vanish."""
    for one, other in zip(
        gradients(function, variables), gradients(expected, variables), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)
        assert np.abs(one).max() > 0
