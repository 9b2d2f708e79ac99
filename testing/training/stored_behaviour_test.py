"""Tests that replayed unrolls reproduce the stored behaviour from their core states."""

import dataclasses
import pathlib
import threading
from typing import Any

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf import types
from laser_tf.agents import base
from laser_tf.environments import factory, tmaze
from laser_tf.replay import client, server, stored_unroll
from laser_tf.training import acting, assembly, run_config
from testing import fakes, folders

_MAX_BATCHES = 100
_TOLERANCE = 1e-5
_MIN_CASES = 20  # replayed unrolls that start inside an episode
# Episodes take 3 to 10 steps, so many unrolls start inside an episode and contain its end.
_ENVIRONMENT = dataclasses.asdict(tmaze.TMazeConfig(corridor_length=3, num_envs=4))
_AGENT = {"core": "lstm", "core_size": 8}
_UNROLLS = {"unroll_length": 4, "batch_size": 4, "capacity": 2_000, "queue_capacity": 8}
_SEQUENCES = {
    "unroll_length": 2,
    "batch_size": 4,
    "burn_in": 2,
    "sequence_length": 4,
    "sequence_overlap": 2,
    "steps_per_update": 8,
    "warm_up": 40,
}


def _on_tmaze(config: run_config.RunConfig, agent: dict, replay: dict) -> run_config.RunConfig:
    values = fakes.config_values(config)
    values["environment"] = _ENVIRONMENT
    values["agent"].update(_AGENT | agent)
    scheme = replay.get("scheme", values["replay"]["scheme"])
    values["replay"] = fakes.switched(values["replay"], scheme) | replay
    return run_config.parse(values)


def _laser(core: str, scheme: str) -> run_config.RunConfig:
    replay = _UNROLLS | {"scheme": scheme}
    return _on_tmaze(fakes.catch_config(), {"core": core}, replay)


def _acer() -> run_config.RunConfig:
    return _on_tmaze(fakes.acer_catch_config(), {}, _UNROLLS)


def _r2d2() -> run_config.RunConfig:
    return _on_tmaze(fakes.r2d2_catch_config(), {"hidden_units": 8}, _SEQUENCES)


def _reactor() -> run_config.RunConfig:
    replay = _SEQUENCES | {"scheme": "contextual"}
    return _on_tmaze(fakes.reactor_catch_config(), {"hidden_units": 8}, replay)


def _make_agent(config: run_config.RunConfig) -> base.Agent:
    """Creates an agent whose outputs depend clearly on the core state."""
    spec = factory.environment_spec(config.environment)
    agent = assembly.build_agent(config, spec, "float32", seed=1)
    generator = np.random.default_rng(1)
    for variable in agent.trainable_variables:
        variable.assign(generator.normal(0, 0.5, variable.shape).astype(np.float32))
    return agent


def _read_batches(
    config: run_config.RunConfig, agent: base.Agent, folder: pathlib.Path
) -> list[stored_unroll.Batch]:
    """Runs an actor with frozen weights and returns the learner's batches."""
    environment = factory.make_environment(config.environment, seed=1)
    signature = assembly.unroll_signature(config, environment.spec(), agent)
    served = server.ReplayServer(config.replay, signature, folder / "replay")
    connected = served.connect()
    replay = config.replay.make_learner_client(
        client.ReplayClient(connected, served), signature, folder
    )
    acts = acting.make_actor(
        config,
        environment,
        agent,
        connected,
        signature,
        member_index=0,
        refresh=lambda: 0,
        on_episode=lambda _: None,
    )
    acts.start(replay)
    stream = fakes.make_batches(config.replay, replay, signature, agent)

    def should_stop() -> bool:
        acts.check()
        return False

    batches: list[stored_unroll.Batch] = []
    try:
        while len(batches) < _MAX_BATCHES and sum(map(_num_cases, batches)) < _MIN_CASES:
            batches.append(stream.get(should_stop))
        return batches
    finally:
        closing = threading.Thread(target=stream.close)
        closing.start()
        acts.stop()
        closing.join()
        replay.stop()


def _num_cases(batch: stored_unroll.Batch) -> int:
    """Counts the replayed unrolls that start inside an episode."""
    is_first = np.asarray(batch.unrolls.env_output.is_first)
    return int(np.sum(~np.asarray(batch.is_online) & ~is_first[:, 0]))


def _join(batches: list[stored_unroll.Batch]) -> stored_unroll.Batch:
    """Joins batches along the batch axis."""
    unrolls, is_online, stored_states = tf.nest.map_structure(
        lambda *leaves: np.concatenate(leaves),
        *[(batch.unrolls, batch.is_online, batch.stored_states) for batch in batches],
    )
    joined = stored_unroll.unweighted(unrolls, is_online)._replace(stored_states=stored_states)
    return tf.nest.map_structure(tf.constant, joined)


def _behaviour(agent_output: types.AgentOutput) -> np.ndarray:
    """Returns the stored Q-values of R2D2 and the stored policy of the other agents."""
    outputs = agent_output.extras if agent_output.policy == () else agent_output.policy
    return outputs.numpy()


def _stack_state(core_state: Any) -> np.ndarray:
    """Concatenates all parts of a core state along their last axis."""
    return np.concatenate([part.numpy() for part in tf.nest.flatten(core_state)], axis=-1)


def _run_again(agent: base.Agent, unroll: types.Unroll) -> tuple[np.ndarray, np.ndarray]:
    """Acts on an unroll again from its core state.

    Returns:
      The behaviour [T + 1, B, A] and the core states before each step [T + 1, B, S].
    """
    behaviour, states, state = [], [], unroll.core_state
    for step in range(unroll.env_output.reward.shape[0]):
        states.append(_stack_state(state))
        env_output = tf.nest.map_structure(lambda leaf, step=step: leaf[step], unroll.env_output)
        output, state = agent.act(env_output, state)
        behaviour.append(_behaviour(output))
    return np.stack(behaviour), np.stack(states)


class StoredBehaviourTest(folders.FolderTest):
    @parameterized.named_parameters(
        ("laser_stored", _laser("lstm", "mixed")),
        ("laser_recomputed", _laser("lstm", "episodes")),
        ("laser_preco", _laser("preco_lstm", "mixed")),
        ("acer", _acer()),
        ("r2d2", _r2d2()),
        ("reactor_contextual", _reactor()),
    )
    def test_core_states_reproduce_behaviour_of(self, config):
        agent = _make_agent(config)
        batches = _read_batches(config, agent, self._folder)
        self.assertGreaterEqual(sum(map(_num_cases, batches)), _MIN_CASES)
        unroll = stored_unroll.unpack(_join(batches))
        is_first = unroll.env_output.is_first.numpy()
        # Each step of padding has `is_first`, and so does the step after it.
        is_acted_on = ~is_first
        is_acted_on[:-1] |= ~is_first[1:]
        behaviour, states = _run_again(agent, unroll)
        stored = _behaviour(unroll.agent_output)
        np.testing.assert_allclose(behaviour[is_acted_on], stored[is_acted_on], atol=_TOLERANCE)
        if unroll.stored_states != ():
            length = config.replay.unroll_length
            later = ~is_first[::length]  # an episode's first step resets the core
            np.testing.assert_allclose(
                states[::length][later], _stack_state(unroll.stored_states)[later], atol=_TOLERANCE
            )


if __name__ == "__main__":
    absltest.main()
