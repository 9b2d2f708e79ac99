"""Agents of each kind with weights of their own, and what they do greedily where they play."""

import pathlib
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from configs import laser
from laser_tf import array_function, types
from laser_tf.agents import base as agents_base
from laser_tf.environments import base, factory
from laser_tf.export import portable_policy, saved_model
from laser_tf.training import actor, assembly, run_config
from testing import fakes
from testing.export import continuous_game

KINDS = ("feed_forward", "lstm", "r2d2", "continuous")
GAMES = 5
STEPS = 40


class Example(NamedTuple):
    agent: agents_base.Agent
    environment: base.BatchedEnvironment
    policy: portable_policy.PortablePolicy
    frame_stack: int


def make(kind: str) -> Example:
    config = _config(kind)
    tf.keras.utils.set_random_seed(3)
    if kind == "continuous":
        environment = continuous_game.ContinuousGame(GAMES, seed=2)
    else:
        environment = factory.make_environment(config.environment, seed=2, num_envs=GAMES)
    agent = assembly.build_agent(config, environment.spec(), "float32", 1, evaluating=True)
    for index, variable in enumerate(agent.acting_variables):
        # Fresh weights would take the same action everywhere, and moments would be as they began.
        noise = tf.random.stateless_uniform(variable.shape, [index, 7], 0.1, 0.9)
        # Deviations that are large beside the inputs: near certainty no draw would differ.
        factor, shift = (2, 0.5) if variable.trainable else (32, 0)
        variable.assign(factor * variable + noise - shift)
    depth = config.replay.frame_stack
    policy = portable_policy.PortablePolicy(agent, environment.spec(), depth)
    return Example(agent, environment, policy, depth)


def _config(kind: str) -> run_config.RunConfig:
    if kind == "feed_forward":
        return fakes.catch_config(replay={"frame_stack": 4}, agent={"normalise_images": True})
    if kind == "r2d2":
        return fakes.r2d2_catch_config(replay={"frame_stack": 2})
    if kind == "continuous":
        return fakes.catch_config(
            replay={"frame_stack": 3},
            agent={"core": "preco_lstm", "core_size": 16, "relevance": "behaviour"},
        )
    values = laser.get_config("tmaze").to_dict()
    values["environment"]["corridor_length"] = 3
    return run_config.parse(values)


def play_greedily(example: Example) -> tuple[list[types.EnvOutput], list[np.ndarray]]:
    """What the games showed and the actions that `launch.evaluate --greedy` would have taken."""
    policy = actor.ActingPolicy(example.agent, example.environment, example.frame_stack)
    best = array_function.ArrayFunction(example.agent.greedy_action)
    steps, actions = [example.environment.reset()], []
    for _ in range(STEPS):
        actions.append(best(policy(steps[-1])))
        steps.append(example.environment.step(actions[-1]))
    return steps[:-1], actions


def save(example: Example, folder: pathlib.Path) -> None:
    saved_model.save(example.policy, folder, train_step=12)
