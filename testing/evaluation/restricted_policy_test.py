"""Acting from the last k steps: against naive loops, full memory and counts made by hand."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf import errors, types
from laser_tf.environments import factory
from laser_tf.evaluation import episode_runner, restricted_policy
from laser_tf.replay import frame_stacking
from laser_tf.training import assembly
from testing import fakes, messages
from testing.export import policies

NUM_ENVS = 2
FRAME_STACK = 2
MAZE = fakes.catch_config(
    agent={"core": "lstm", "core_size": 8},
    environment={"suite": "tmaze", "task": "tmaze", "corridor_length": 2},
    replay={"frame_stack": FRAME_STACK},
)
EPISODE = 9  # env_outputs of an episode in the maze at most


class _Counter(tf.Module):
    """Counts the env_outputs that it remembers of an episode; greedy action 0 from 6 on, else 1."""

    def initial_state(self, batch_size):
        return tf.zeros([batch_size])

    def next_state(self, env_output, core_state):
        for is_first in tf.unstack(env_output.is_first):
            core_state = tf.where(is_first, 0.0, core_state) + 1
        return core_state

    def act(self, env_output, core_state):
        env_outputs = tf.nest.map_structure(lambda column: column[None], env_output)
        count = self.next_state(env_outputs, core_state)
        logits = tf.stack([count, tf.fill(count.shape, 5.5)], axis=-1)
        return types.AgentOutput(tf.argmax(logits, -1, tf.int32), logits), count

    def action_preferences(self, agent_output):
        return agent_output.policy


def _environment(config=MAZE):
    return factory.make_environment(config.environment, seed=3, num_envs=NUM_ENVS)


def _agent(config=MAZE):
    return assembly.build_agent(config, _environment(config).spec(), "float32", seed=1)


def _policy(agent, history_length: int, config=MAZE):
    environment = _environment(config)
    return restricted_policy.RestrictedPolicy(agent, environment, FRAME_STACK, history_length)


def _env_outputs(steps: int) -> list[types.EnvOutput]:
    """Acts randomly, mostly forward: episodes end by a turn or at the time limit."""
    generator = np.random.default_rng(0)
    environment = _environment()
    env_outputs = [environment.reset()]
    for _ in range(steps - 1):
        env_outputs.append(environment.step(generator.choice(4, NUM_ENVS, p=(0.2, 0.6, 0.2, 0.0))))
    return env_outputs


def _naive_logits(agent, env_outputs: list[types.EnvOutput], history_length: int) -> np.ndarray:
    """Returns logits [steps, N, A], each from k acts in sequence from a zero state."""
    act = tf.function(agent.act, autograph=False)
    stacker = frame_stacking.FrameStacker(NUM_ENVS, _environment().observation_spec(), FRAME_STACK)
    stacks = [
        stacker.push(env_output.observation, env_output.is_first).copy()
        for env_output in env_outputs
    ]
    env_outputs = [
        env_output._replace(observation=stack)
        for env_output, stack in zip(env_outputs, stacks, strict=True)
    ]
    logits = np.zeros([len(env_outputs), NUM_ENVS, 4], np.float32)
    for step, index in np.ndindex(len(env_outputs), NUM_ENVS):
        opened = max(past for past in range(step + 1) if env_outputs[past].is_first[index])
        state = agent.initial_state(1)
        for past in range(max(opened, step - history_length + 1), step + 1):
            output, state = act(_one(env_outputs[past], index), state)
        logits[step, index] = output.policy[0]
    return logits


def _one(env_output: types.EnvOutput, index: int) -> types.EnvOutput:
    """Returns the part of one environment, [1, ...]."""
    return tf.nest.map_structure(lambda column: tf.constant(column[[index]]), env_output)


class RestrictedPolicyTest(parameterized.TestCase):
    @parameterized.parameters(1, 2, 3, 12)
    def test_equals_a_loop_over_the_last_k_steps(self, history_length):
        agent, env_outputs = _agent(), _env_outputs(3 * EPISODE)
        starts = np.array([env_output.is_first for env_output in env_outputs])
        self.assertFalse(np.array_equal(starts[:, 0], starts[:, 1]))
        policy = _policy(agent, history_length)
        logits = np.array([policy(env_output).policy for env_output in env_outputs])
        np.testing.assert_allclose(
            logits, _naive_logits(agent, env_outputs, history_length), atol=1e-5
        )
        if history_length < EPISODE:  # Neighbouring lengths give other logits.
            longer = _naive_logits(agent, env_outputs, history_length + 1)
            self.assertGreater(np.abs(logits - longer).max(), 1e-3)

    def test_full_memory_reads_the_same_steps(self):
        agent, env_outputs = _agent(), _env_outputs(2 * EPISODE)
        policy = _policy(agent, 2)
        cut = np.array([policy(env_output).policy for env_output in env_outputs])
        full = _naive_logits(agent, env_outputs, len(env_outputs))
        for step, index in np.ndindex(len(env_outputs), NUM_ENVS):
            # As if each step were an episode with one action.
            one = policy.agreement([episode_runner.Episode(index, 0, step, 0.0, 1)])
            difference = abs(cut[step, index].max() - full[step, index].max())
            self.assertAlmostEqual(one["max_logit_difference"], difference, places=5)
            match = cut[step, index].argmax() == full[step, index].argmax()
            self.assertEqual(one["greedy_match_fraction"], float(match))

    def test_only_decisions_of_given_episodes_count(self):
        config = fakes.catch_config()  # nine decisions, ten env_outputs
        policy = _policy(_Counter(), 3, config)
        # The second episode of the other environment is not requested.
        episodes, actions = episode_runner.run_episodes(
            _environment(config), lambda env_output: policy(env_output).action, 3
        )
        agreement = policy.agreement(episodes)
        # Full memory counts from 1 to 9, and 10 at the last step, which has no action. From 6 on it
        # prefers action 0. Three steps count to 3 and prefer action 1.
        self.assertAlmostEqual(agreement["greedy_match_fraction"], 5 / 9)
        self.assertAlmostEqual(agreement["max_logit_difference"], (0.5 + 1.5 + 2.5 + 3.5) / 9)
        np.testing.assert_array_equal(actions, 1)  # The restricted policy acts.
        agreement = policy.agreement([episodes[-1]._replace(length=5)])
        self.assertEqual(list(agreement.values()), [3, 1.0, 0.0])

    def test_agent_without_a_core_raises(self):
        config = fakes.catch_config()
        with messages.raises(errors.ConfigError, "--history_length", 3, "--config.agent.core"):
            _policy(_agent(config), 3, config)

    def test_continuous_actions_raise(self):
        environment = policies.ContinuousEnvironment(2, seed=1)
        with messages.raises(errors.ConfigError, "--history_length", 3, "continuous"):
            restricted_policy.RestrictedPolicy(_agent(), environment, FRAME_STACK, 3)


if __name__ == "__main__":
    absltest.main()
