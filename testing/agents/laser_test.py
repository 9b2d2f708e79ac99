"""The agent's loss and acting, on unrolls whose right answers are known."""

import dataclasses

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.agents import laser
from laser_tf.ops import policy_gradient
from testing import fakes, numpy_reference

NUM_ACTIONS = 3
SHAPE = (10, 5, 1)


def _agent(**overrides) -> laser.Laser:
    tf.keras.utils.set_random_seed(1)
    config = laser.Config(**({"torso": "flat", "reward_clip": "none"} | overrides))
    agent = laser.Laser(config, NUM_ACTIONS)
    agent.loss(fakes.random_unroll(2, 1, NUM_ACTIONS, SHAPE))  # creates the weights
    return agent


def _gradients(agent: laser.Laser, unroll) -> list[np.ndarray]:
    with tf.GradientTape() as tape:
        loss = agent.loss(unroll).loss
    return [g.numpy() for g in tape.gradient(loss, agent.trainable_variables)]


def _replace_env(unroll, **fields):
    return unroll._replace(env_output=unroll.env_output._replace(**fields))


def _reference_loss(config, unroll, logits, values) -> float:
    """Algorithm 1 of LASER from the naive pieces, rejections decided on probabilities."""
    pi = numpy_reference.softmax(logits[:-1])
    mu = numpy_reference.softmax(unroll.agent_output.logits[:-1])
    actions = unroll.agent_output.action.numpy()[:-1]
    flat = (-1, NUM_ACTIONS)
    other = {
        "none": pi,  # KL(pi || pi) = 0: everything is trusted
        "behaviour": mu,
        "implied": numpy_reference.implied_policy(
            pi.reshape(flat), mu.reshape(flat), config.rho_bar
        ).reshape(pi.shape),
    }[config.relevance]
    relevance = numpy_reference.kl_divergence(pi.reshape(flat), other.reshape(flat))
    trusted = relevance.reshape(actions.shape) < config.kl_threshold
    trusted &= ~unroll.env_output.is_first.numpy()[1:]
    targets, advantages, rhos = numpy_reference.vtrace(
        numpy_reference.log_importance_ratios(
            logits[:-1], unroll.agent_output.logits.numpy()[:-1], actions
        ),
        config.discount * unroll.env_output.discount.numpy()[1:],
        unroll.env_output.reward.numpy()[1:],
        values,
        trusted,
        config.rho_bar,
        config.c_bar,
        config.lambda_,
    )
    online = trusted & unroll.is_online.numpy()
    return (
        numpy_reference.policy_gradient_loss(logits[:-1], actions, rhos * advantages, trusted)[0]
        + config.baseline_cost * numpy_reference.baseline_loss(values[:-1], targets, trusted)[0]
        + config.entropy_cost * numpy_reference.entropy_loss(logits[:-1], online)[0]
    )


class LossTest(parameterized.TestCase):
    @parameterized.parameters("none", "implied", "behaviour")
    def test_agrees_with_the_naive_reference(self, relevance):
        config = laser.Config(
            torso="flat",
            reward_clip="none",
            relevance=relevance,
            kl_threshold=0.3,
            discount=0.9,
            rho_bar=1.3,
            c_bar=0.8,
            lambda_=0.95,
        )
        agent = _agent(**dataclasses.asdict(config))
        unroll = fakes.random_unroll(6, 8, NUM_ACTIONS, SHAPE)
        is_first = np.zeros((6, 8), bool)
        is_first[3, 2] = True
        unroll = _replace_env(unroll, is_first=tf.constant(is_first))
        logits, values = agent._unroll_network(unroll.env_output.observation)

        expected = _reference_loss(config, unroll, logits.numpy(), values.numpy())
        np.testing.assert_allclose(agent.loss(unroll).loss, expected, rtol=1e-4)

    def test_rejected_transitions_change_nothing(self):
        agent = _agent(kl_threshold=1e-6)
        unroll = fakes.random_unroll(5, 4, NUM_ACTIONS, SHAPE)
        output = agent.loss(unroll)
        self.assertEqual(output.metrics["trust_region/accepted_fraction"], 0.0)
        self.assertEqual(output.loss, 0.0)
        for gradient in _gradients(agent, unroll):
            self.assertFalse(np.any(gradient))

    def test_entropy_counts_on_online_rows_only(self):
        agent = _agent(relevance="none", entropy_cost=1.0, baseline_cost=0.0)
        unroll = fakes.random_unroll(5, 4, NUM_ACTIONS, SHAPE)
        nobody = agent.loss(unroll._replace(is_online=tf.zeros([4], tf.bool)))
        one = agent.loss(unroll)
        logits, _ = agent._unroll_network(unroll.env_output.observation)
        entropy = tf.reduce_sum(policy_gradient.entropy(logits[:-1, 0]))
        np.testing.assert_allclose(nobody.loss - one.loss, entropy, rtol=1e-5)

    def test_entropy_cost_is_a_runtime_variable(self):
        agent = _agent(relevance="none")
        unroll = fakes.random_unroll(5, 4, NUM_ACTIONS, SHAPE)
        before = agent.loss(unroll)
        agent.entropy_cost.assign(agent.entropy_cost + 1.0)
        after = agent.loss(unroll)
        np.testing.assert_allclose(
            after.loss - before.loss, before.metrics["loss/entropy"], rtol=1e-4
        )

    def test_the_step_between_two_episodes_is_no_transition(self):
        agent = _agent(relevance="none")
        unroll = fakes.random_unroll(5, 2, NUM_ACTIONS, SHAPE)
        is_first = np.zeros((5, 2), bool)
        is_first[3] = True  # rows 2 -> 3 belong to different episodes
        unroll = _replace_env(unroll, is_first=tf.constant(is_first))
        actions = unroll.agent_output.action.numpy()
        rewards = unroll.env_output.reward.numpy()
        actions[2] = (actions[2] + 1) % NUM_ACTIONS
        rewards[3] = 1e6
        changed = _replace_env(unroll, reward=tf.constant(rewards))
        changed = changed._replace(
            agent_output=changed.agent_output._replace(action=tf.constant(actions))
        )
        np.testing.assert_allclose(agent.loss(changed).loss, agent.loss(unroll).loss)

    def test_rewards_are_clipped_in_the_loss(self):
        agent = _agent(relevance="none", reward_clip="unit")
        unroll = fakes.random_unroll(5, 2, NUM_ACTIONS, SHAPE)
        large = _replace_env(unroll, reward=tf.fill([5, 2], 7.0))
        one = _replace_env(unroll, reward=tf.fill([5, 2], 1.0))
        np.testing.assert_allclose(agent.loss(large).loss, agent.loss(one).loss)

    def test_the_last_row_only_bootstraps(self):
        agent = _agent(relevance="none")
        unroll = fakes.random_unroll(5, 2, NUM_ACTIONS, SHAPE)
        actions, logits = (array.numpy() for array in unroll.agent_output)
        logits[-1], actions[-1] = np.nan, 0
        poisoned = unroll._replace(
            agent_output=unroll.agent_output._replace(
                action=tf.constant(actions), logits=tf.constant(logits)
            )
        )
        np.testing.assert_allclose(agent.loss(poisoned).loss, agent.loss(unroll).loss)


class ActTest(absltest.TestCase):
    def test_actions_follow_the_returned_logits(self):
        agent = _agent()
        env_output = fakes.random_unroll(1, 1, NUM_ACTIONS, SHAPE).env_output
        env_output = tf.nest.map_structure(lambda x: tf.repeat(x[0], 20_000, axis=0), env_output)
        output, _ = agent.act(env_output, agent.initial_state(20_000))
        frequencies = np.bincount(output.action, minlength=NUM_ACTIONS) / 20_000
        np.testing.assert_allclose(frequencies, tf.nn.softmax(output.logits[0]), atol=0.02)

    def test_centered_observations_have_no_brightness(self):
        output = fakes.random_unroll(1, 4, NUM_ACTIONS, SHAPE).env_output
        row = tf.nest.map_structure(lambda x: x[0], output)
        dark, bright = row.observation // 2, row.observation // 2 + 100
        for center in (False, True):
            agent = _agent(center_observation=center)
            logits = [agent.act(row._replace(observation=o), ())[0].logits for o in (dark, bright)]
            self.assertEqual(np.allclose(*logits, atol=1e-4), center)

    def test_successive_calls_draw_different_actions(self):
        agent = _agent()
        env_output = fakes.random_unroll(1, 64, NUM_ACTIONS, SHAPE).env_output
        env_output = tf.nest.map_structure(lambda x: x[0], env_output)
        first, second = (agent.act(env_output, ())[0].action.numpy() for _ in range(2))
        self.assertTrue(np.any(first != second))


class ConfigTest(parameterized.TestCase):
    @parameterized.parameters(
        ("discount", 1.5),
        ("kl_threshold", -1.0),
        ("rho_bar", 0.0),
        ("c_bar", 2.0),
        ("entropy_cost", float("nan")),
        ("torso", "deeep"),
        ("relevance", "maybe"),
        ("channel_multiplier", 0),
    )
    def test_refuses_a_value_and_names_it(self, name, value):
        with self.assertRaisesRegex(ValueError, f"{name}.*{value}"):
            laser.Config(**{name: value})


if __name__ == "__main__":
    absltest.main()
