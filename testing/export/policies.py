"""Agents of each kind with own weights, and their greedy actions in an environment."""

import pathlib
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from dm_env import specs

from configs import laser, reactor
from laser_tf import array_function, observations, types
from laser_tf.agents import base as agents_base
from laser_tf.environments import base, factory
from laser_tf.export import exporter, portable_policy
from laser_tf.training import actor, assembly, run_config
from testing import fakes

KINDS = ("feed_forward", "lstm", "r2d2", "continuous")
NUM_ENVS = 5
_EPISODE_LENGTH = 7
STEPS = 40


class ContinuousEnvironment(base.BatchedEnvironment):
    """Random observations, an image and vectors in a nest, that move with the action [2]."""

    def __init__(self, num_envs: int, seed: int):
        super().__init__(
            num_envs,
            observation={
                "image": observations.image_spec(4, 4, 1),
                "part": {"vector": specs.Array([3], np.float32, "vector")},
                "number": specs.Array([1], np.float32, "number"),
            },
            action=specs.BoundedArray([2], np.float32, [-2, 0], [2, 5], "action"),
        )
        self._generator = np.random.default_rng(seed)
        self._step_count = 0

    def _observe(self, action: np.ndarray) -> dict[str, np.ndarray]:
        size = self.num_envs
        vector = self._generator.normal(5, 3, (size, 4)) + action[:, :1]
        vector = vector.astype(np.float32)
        return {
            "image": self._generator.integers(0, 256, (size, 4, 4, 1), np.uint8),
            "part": {"vector": vector[:, :3]},
            "number": vector[:, 3:],
        }

    def _reset(self) -> dict[str, np.ndarray]:
        return self._observe(np.zeros([self.num_envs, 2]))

    def _step(self, actions: np.ndarray, is_first: np.ndarray) -> base.Transition:
        self._step_count += 1
        # The episodes of the environments start one after the other.
        phase = (self._step_count + np.arange(self.num_envs)) % (_EPISODE_LENGTH + 1)
        return base.Transition(
            self._observe(actions),
            actions[:, 1],
            phase != _EPISODE_LENGTH,
            phase == _EPISODE_LENGTH,
        )

    def render(self, index: int) -> np.ndarray:
        raise NotImplementedError


class Example(NamedTuple):
    agent: agents_base.Agent
    environment: base.BatchedEnvironment
    policy: portable_policy.PortablePolicy
    frame_stack: int


def make(kind: str) -> Example:
    settings = config(kind)
    tf.keras.utils.set_random_seed(3)
    if kind == "continuous":
        environment = ContinuousEnvironment(NUM_ENVS, seed=2)
    else:
        environment = factory.make_environment(settings.environment, seed=2, num_envs=NUM_ENVS)
    agent = assembly.build_agent(settings, environment.spec(), "float32", 1, is_evaluating=True)
    for index, variable in enumerate(agent.acting_variables):
        # Fresh weights would take one action in all states, and moments would be initial.
        noise = tf.random.stateless_uniform(variable.shape, [index, 7], 0.1, 0.9)
        # Large deviations of the moments keep the policy away from certainty.
        factor, shift = (2, 0.5) if variable.trainable else (32, 0)
        variable.assign(factor * variable + noise - shift)
    depth = settings.replay.frame_stack
    policy = portable_policy.PortablePolicy(agent, environment.spec(), depth)
    return Example(agent, environment, policy, depth)


def config(kind: str) -> run_config.RunConfig:
    """Returns the configuration of a run whose agent is of a kind."""
    if kind == "feed_forward":
        return fakes.catch_config(
            replay={"frame_stack": 4}, agent={"image_normalisation": "running"}
        )
    if kind == "r2d2":
        return fakes.r2d2_catch_config(replay={"frame_stack": 2})
    if kind == "continuous":
        return fakes.catch_config(
            replay={"frame_stack": 3},
            agent={"core": "preco_lstm", "core_size": 16, "trust_region": "behaviour"},
        )
    if kind == "deep":
        agent = {"torso": "deep", "core": "lstm", "core_size": 16}
        return fakes.catch_config(replay={"frame_stack": 2}, agent=agent)
    if kind == "reactor":
        return run_config.parse(reactor.get_config("minatar").to_dict())
    values = laser.get_config({"lstm": "tmaze", "vectors": "gymnasium"}.get(kind, kind)).to_dict()
    if kind == "lstm":
        values["environment"]["corridor_length"] = 3
    if kind == "vectors":  # CartPole; normalised by random moments, all states would be alike.
        values["agent"]["normalise_vectors"] = False
    if kind == "minatar":
        values["replay"]["frame_stack"] = 3
    return run_config.parse(values)


def act_greedily(example: Example) -> tuple[list[types.EnvOutput], list[np.ndarray]]:
    """Returns the steps, and the actions that `launch.evaluate --greedy` takes."""
    policy = actor.ActingPolicy(example.agent, example.environment, example.frame_stack)
    best = array_function.ArrayFunction(example.agent.greedy_action)
    steps, actions = [example.environment.reset()], []
    for _ in range(STEPS):
        actions.append(best(policy(steps[-1])))
        steps.append(example.environment.step(actions[-1]))
    return steps[:-1], actions


def save(example: Example, folder: pathlib.Path) -> None:
    exporter.save(example.policy, folder, train_step=12)
