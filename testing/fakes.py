"""Small configurations and experience with known contents."""

import dataclasses
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf
from dm_env import specs

from configs import laser
from laser_tf import observations, types
from laser_tf.agents import r2d2_config, reactor_config, registry
from laser_tf.evaluation import episode_runner
from laser_tf.replay import client, connection, stored_unroll
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.replay.schemes import registry as schemes
from laser_tf.training import run_config


def catch_config(**sections) -> run_config.RunConfig:
    """Returns a small `configs/laser.py:catch`; keywords are sections of overrides."""
    values = laser.get_config("catch").to_dict()
    values["run"].update(env_frames=2_000, evaluation_episodes=4, metrics_seconds=0.2)
    if sections.get("environment", {}).get("suite", "catch") != "catch":
        for key in ("reward_offset", "wait_seconds"):  # Keys of catch only.
            del values["environment"][key]
    return _parse(values, sections)


def r2d2_catch_config(**sections) -> run_config.RunConfig:
    """Returns R2D2 on `catch_config`; keywords are sections of overrides."""
    values = config_values(catch_config())
    values["agent"] = dataclasses.asdict(
        r2d2_config.R2D2Config(
            torso="flat", core_size=32, hidden_units=32, discount=0.99, n_steps=3, target_period=100
        )
    )
    values["replay"] = switched(values["replay"], "sequences") | {
        "unroll_length": 5,
        "sequence_length": 10,
        "sequence_overlap": 5,
        "burn_in": 5,
        "steps_per_update": 40,
        "warm_up": 500,
        "priority_exponent": 0.9,
        "importance_exponent": 0.6,
    }
    values["learner"].update(
        optimizer="adam", learning_rate=3e-3, learning_rate_schedule="constant"
    )
    return _parse(values, sections)


def reactor_catch_config(**sections) -> run_config.RunConfig:
    """Returns Reactor on `catch_config`; keywords are sections of overrides."""
    values = config_values(r2d2_catch_config())
    values["agent"] = dataclasses.asdict(
        reactor_config.ReactorConfig(
            torso="flat",
            core_size=32,
            bins=21,
            v_min=-1.5,
            v_max=1.5,
            entropy_cost=0.003,
            target_period=50,
        )
    )
    values["replay"].update(burn_in=0, priority_exponent=1.0, importance_exponent=1.0)
    values["learner"].update(adam_beta1=0.0)
    return _parse(values, sections)


def acer_catch_config(kind: str = "acer", **sections) -> run_config.RunConfig:
    """Returns ACER or a baseline on `catch_config`, with alternating replay."""
    values = config_values(catch_config())
    values["agent"] = dataclasses.asdict(
        registry.config_class(kind)(torso="flat", entropy_cost=0.01)
    )
    values["replay"] = switched(values["replay"], "alternating") | {
        "replay_ratio": 2.0,
        "batch_size": 4,
    }
    return _parse(values, sections)


def switched(values: dict, scheme: str) -> dict:
    """Returns the values of section `replay` for another scheme, without keys that it lacks."""
    known = schemes.config_class(scheme).__dataclass_fields__
    return {key: value for key, value in values.items() if key in known} | {"scheme": scheme}


def _parse(values: dict, sections: dict) -> run_config.RunConfig:
    """Parses nested values with sections of overrides, which may switch the replay scheme."""
    for section, overrides in sections.items():
        if section == "replay" and "scheme" in overrides:
            values[section] = switched(values[section], overrides["scheme"])
        values[section].update(overrides)
    return run_config.parse(values)


def config_values(config: run_config.RunConfig) -> dict:
    """Returns the nested values of a configuration."""
    return dataclasses.asdict(config)


def image_spec(
    shape: tuple[int, int, int], num_actions: int, num_tasks: int = 1
) -> types.EnvironmentSpec:
    """Returns the spec of an environment with an image [H, W, C] and discrete actions."""
    action = specs.DiscreteArray(num_actions, name="action")
    return types.EnvironmentSpec(observations.image_spec(*shape), action, num_tasks)


def signature(spec: types.EnvironmentSpec, core_state: Any, **arguments) -> Any:
    """Returns the signature of stored unrolls of an agent like `laser.Laser`.

    Args:
      spec: Environment spec with discrete actions.
      core_state: Core state of one environment, [1, ...].
      **arguments: Arguments of `stored_unroll.signature`.
    """
    agent_output = types.AgentOutput(
        tf.TensorSpec([], tf.int32), tf.TensorSpec([spec.action.num_values], tf.float32)
    )
    states = tf.nest.map_structure(
        lambda state: tf.TensorSpec(state.shape[1:], state.dtype), core_state
    )
    return stored_unroll.signature(spec, agent_output, states, **arguments)


def make_batches(
    scheme: schemes_base.ReplayScheme,
    replay: Any,
    signature: Any,
    agent: Any = None,
    seed: Any = (1,),
) -> Any:
    """Starts fetching batches of a scheme, by default without an agent.

    Args:
      scheme: Replay scheme.
      replay: The learner's view of replay, or a connection to the server.
      signature: Signature of an unroll.
      agent: The learner's agent.
      seed: See `LearnerContext`.
    """
    if isinstance(replay, connection.ReplayConnection):
        replay = client.ReplayClient(replay)
    return scheme.make_batches(learner_context(signature, replay, agent, seed))


def learner_context(
    signature: Any, replay: Any = None, agent: Any = None, seed: Any = (1,)
) -> schemes_base.LearnerContext:
    """Returns a context that does not check unrolls, for mocks of what is missing."""
    unchecked = mock.Mock(mask=lambda batch: batch, has_any=lambda unrolls: False)
    return schemes_base.LearnerContext(
        replay or mock.Mock(), signature, agent or mock.Mock(), seed, unchecked
    )


def never() -> bool:
    """Returns False, as the `should_stop` of a run that is not stopped."""
    return False


def evaluation_summary(env_frames: int, learner_updates: int, *returns: float) -> dict[str, Any]:
    """Returns the summary of an evaluation on catch with given returns."""
    episodes = [episode_runner.Episode(0, 0, 0, value, 9) for value in returns]
    summary = episode_runner.summarise_returns(catch_config().environment, episodes)
    counts = {"env_frames": env_frames, "learner_updates": learner_updates, "seconds": 2.5}
    return summary | counts


def random_stored_unrolls(
    signature: Any, batch: int, generator: np.random.Generator
) -> stored_unroll.StoredUnroll:
    """Returns unrolls of task 0, [batch, ...], of zeros and ones in the middle of episodes."""
    unrolls = tf.nest.map_structure(
        lambda s: generator.integers(0, 2, (batch, *s.shape)).astype(s.dtype.as_numpy_dtype),
        signature,
    )
    is_first = np.zeros_like(unrolls.env_output.is_first)
    env_output = unrolls.env_output._replace(is_first=is_first)
    return unrolls._replace(env_output=env_output, task=np.zeros_like(unrolls.task))


def random_unroll(
    steps: int, batch: int, num_actions: int, shape: tuple[int, ...], seed: int = 0
) -> types.Unroll:
    """Returns a random unroll [steps, batch, ...] without ends of episodes."""
    generator = np.random.default_rng(seed)
    size = (steps, batch)
    env_output = types.EnvOutput(
        observation=tf.constant(generator.integers(0, 256, (*size, *shape)), tf.uint8),
        reward=tf.constant(generator.normal(size=size), tf.float32),
        discount=tf.ones(size),
        is_first=tf.zeros(size, tf.bool),
        previous_action=tf.zeros(size, tf.int32),
    )
    agent_output = types.AgentOutput(
        action=tf.constant(generator.integers(0, num_actions, size), tf.int32),
        policy=tf.constant(generator.normal(size=(*size, num_actions)), tf.float32),
    )
    is_online = tf.constant(np.arange(batch) < max(1, batch // 4))
    return types.Unroll(
        env_output,
        agent_output,
        core_state=(),
        task=tf.zeros([batch], tf.int32),
        is_online=is_online,
        is_own=tf.ones([batch], tf.bool),
        importance_weight=tf.ones([batch]),
    )


def act(agent: Any, env_output: types.EnvOutput) -> tuple[types.AgentOutput, Any]:
    """Acts step by step on [T + 1, B, ...]; returns the outputs and the initial core state."""
    steps, batch = env_output.reward.shape
    start = state = agent.initial_state(batch)
    outputs = []
    for step in range(steps):
        one = tf.nest.map_structure(lambda leaf, step=step: leaf[step], env_output)
        output, state = agent.act(one, state)
        outputs.append(output)
    return tf.nest.map_structure(lambda *leaves: tf.stack(leaves), *outputs), start
