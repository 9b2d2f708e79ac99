"""Weights that are not finite: nothing that follows from them is worth keeping."""

import math
from collections.abc import Iterable

import numpy as np
import tensorflow as tf
import tree

from laser_tf import errors
from laser_tf.replay import stored_unroll
from laser_tf.training import run_config

_GRADIENT_CLIP = 40.0  # global norm; IMPALA's
_LARGE = 1e3  # rewards and observations above it are the likely cause of an infinite loss


class NonFiniteWeightsError(errors.UserError):
    """Weights, or what the optimiser or PopArt keeps of them, hold NaN or infinity."""


def find_non_finite(named: Iterable[tuple[str, tf.Variable | np.ndarray]]) -> str | None:
    """The name of the first value that holds NaN or infinity; None where all are finite."""
    for name, value in named:
        array = value.numpy() if isinstance(value, tf.Variable) else value
        if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
            return name
    return None


def remedies_of_loss(
    config: run_config.RunConfig, dtype: str, learning_rate: float, batch: stored_unroll.Batch
) -> str:
    """Returns the remedies of a non-finite loss, except for settings that the run already has.

    Args:
      config: Configuration of the run.
      dtype: Compute dtype of the run.
      learning_rate: Current learning rate before its schedule.
      batch: Arrays of the last update.
    """
    env_output = batch.unrolls.env_output
    reward, observation = _largest(env_output.reward), _largest(env_output.observation)
    scales = ""
    remedies = [f"a lower learner.learning_rate (now {learning_rate:g})"]
    if not 0 < config.learner.gradient_clip <= _GRADIENT_CLIP:
        remedies.append(f"learner.gradient_clip={_GRADIENT_CLIP:g}")
    if dtype != "float32":
        remedies.append("learner.compute_dtype=float32")
    if getattr(config.agent, "reward_clip", "") == "none" and reward > 1:
        scales += f"The largest absolute reward of the last batch is {reward:g}. "
        of_rewards = ["agent.reward_clip=unit", _smaller_scales(config, reward)]
        remedies = [*of_rewards, *remedies] if reward > _LARGE else [*remedies, *of_rewards]
    if observation > _LARGE:
        scales += f"The largest absolute observation of the last batch is {observation:g}. "
        remedies.insert(0, "observations that the environment scales to about 1")
    choices = " or ".join([", ".join(remedies[:-1]), remedies[-1]] if remedies[1:] else remedies)
    return f"{scales}Use another --workdir with {choices}"


def _largest(arrays: Iterable) -> float:
    """Returns the largest absolute value of all float arrays; 0 without any."""
    floats = [leaf for leaf in tree.flatten(arrays) if np.issubdtype(leaf.dtype, np.floating)]
    return max((float(np.abs(leaf).max()) for leaf in floats), default=0.0)


def _smaller_scales(config: run_config.RunConfig, reward: float) -> str:
    """Returns the value of environment.reward_scales that brings rewards to about 1."""
    old = config.environment.reward_scales or (1.0,)
    if len(config.environment.tasks) > 1 or not math.isfinite(reward):
        return "lower environment.reward_scales"
    return f"environment.reward_scales=({old[0] * 10.0 ** -round(math.log10(reward)):g},)"
