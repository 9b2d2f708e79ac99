"""Tests ACER's gradient against float64 loops."""

from typing import Any

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import observations, types
from laser_tf.agents import acer_config, base, registry
from testing import numpy_reference
from testing.agents import unrolls

T, B, V, A, D, STD = 6, 3, 3, 4, 2, 0.3
DISCRETE = types.EnvironmentSpec(specs.Array([V], np.float32), specs.DiscreteArray(A))
CONTINUOUS = types.EnvironmentSpec(
    specs.Array([V], np.float32), specs.BoundedArray([D], np.float32, [-1, 0], [1, 4])
)
SPECS = {"discrete": DISCRETE, "continuous": CONTINUOUS}


def make_agent(actions: str, kind: str = "acer", **overrides) -> Any:
    """Returns an agent whose average policy differs from its policy."""
    tf.keras.utils.set_random_seed(1)
    defaults = {"name": kind, "mlp_units": (6,), "normalise_vectors": False, "discount": 0.9}
    defaults |= {"entropy_cost": 0.0 if actions == "continuous" else 0.01}
    defaults |= {"delta": 0.05, "truncation": 1.2}
    if kind == "acer":
        defaults |= {"advantage_units": (5,), "dueling_samples": 3}
    config = registry.config_class(kind)(**defaults | overrides)
    agent = registry.make(config, base.AgentContext(SPECS[actions], seed=3))
    unrolls.shake(agent._average.trainable_variables, seed=5)
    return agent


def make_unroll(agent: Any, actions: str) -> types.Unroll:
    """Returns an unroll; an episode of entry 1 ends, entry 0 loses a life."""
    ends = {"terminations": [(2, 1)], "lost_lives": [(5, 0)]}
    return unrolls.make(agent, SPECS[actions], T, B, **ends)


def networks(agent: Any, unroll: types.Unroll) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Computes features and outputs of policy and average policy, [T + 1, B, ...] each."""
    features, outputs, _ = agent._policy(unroll.env_output, unroll.core_state)
    return features, outputs, agent._average(unroll.env_output, unroll.core_state)[1]


class Naive:
    """Constrained policy gradients as loops over an unroll; subclasses add g and the critic.

    Actions are integers, or latent actions [D] of Gaussians.
    """

    def __init__(self, agent: Any, unroll: types.Unroll):
        _, outputs, average = networks(agent, unroll)
        acted = unroll.agent_output
        self.config, self.is_discrete = agent._config, acted.extras == ()
        to_phi = numpy_reference.softmax if self.is_discrete else lambda x: np.asarray(x, float)
        self.phi, self.average = to_phi(outputs), to_phi(average)
        self.mu = to_phi(acted.policy if self.is_discrete else acted.policy.mean)
        self.taken = np.asarray(acted.action if self.is_discrete else acted.extras)
        self.mask = ~unroll.env_output.is_first.numpy()[1:]
        self.rewards = unroll.env_output.reward.numpy()[1:]
        self.discounts = self.config.discount * unroll.env_output.discount.numpy()[1:]
        self.weight = unroll.importance_weight.numpy()
        self.direction, self.constrained = np.zeros([T, B, self.phi.shape[-1]]), 0

    def transitions(self):
        return ((t, b) for t, b in np.ndindex(T, B) if self.mask[t, b])

    def rho(self, t: int, b: int, action) -> float:
        if self.is_discrete:
            return self.phi[t, b, action] / self.mu[t, b, action]
        squares = (action - self.mu[t, b]) ** 2 - (action - self.phi[t, b]) ** 2
        return np.exp(squares.sum() / (2 * STD**2))

    def rhos(self) -> np.ndarray:
        """Returns the ratios of the actions taken, [T, B]; 1 between episodes."""
        rhos = np.ones([T, B])
        for t, b in self.transitions():
            rhos[t, b] = self.rho(t, b, self.taken[t, b])
        return rhos

    def score(self, t: int, b: int, action) -> np.ndarray:
        """Returns the gradient of log f(a|phi) in phi, the probabilities or means, [S]."""
        if self.is_discrete:
            return np.eye(A)[action] / self.phi[t, b]
        return (action - self.phi[t, b]) / STD**2

    def add(self, t: int, b: int, g: np.ndarray) -> None:
        """Sets z* of a step for a gradient g in phi, without entropy term and weight."""
        phi = self.phi[t, b]
        if self.is_discrete:
            g = g + self.config.entropy_cost * (-np.log(phi) - 1)
            k = -self.average[t, b] / phi
        else:
            k = (phi - self.average[t, b]) / STD**2
        g = self.weight[b] * g
        if self.is_discrete and self.config.statistics == "logits":  # Chain rule.
            jacobian = np.diag(phi) - np.outer(phi, phi)
            g, k = jacobian @ g, jacobian @ k
        self.constrained += k @ g > self.config.delta
        if self.config.trust_region:
            g = numpy_reference.constrain(g, k, self.config.delta)
        self.direction[t, b] = g

    def policy_loss(self, outputs: tf.Tensor) -> tf.Tensor:
        """Returns a scalar with the gradient - z* d phi, given the outputs of the policy."""
        is_probability = self.is_discrete and self.config.statistics == "probabilities"
        phi = tf.nn.softmax(outputs) if is_probability else outputs
        return -tf.reduce_sum(tf.constant(self.direction, tf.float32) * phi[:-1])


class _Discrete(Naive):
    """Algorithm 2, given Q-values [T + 1, B, A]."""

    def __init__(self, agent: Any, unroll: types.Unroll, q):
        super().__init__(agent, unroll)
        q, c = np.asarray(q, np.float64), self.config.truncation
        values, rhos = (self.phi * q).sum(-1), self.rhos()
        taken = np.take_along_axis(q[:-1], self.taken[:-1, :, None], axis=-1)[..., 0]
        traces = self.config.lambda_ * np.minimum(1, rhos)
        self.q_ret = numpy_reference.retrace(
            self.rewards, self.discounts, taken, values, traces, self.mask
        )
        self.q_errors, self.corrected = np.zeros([T + 1, B, A]), 0
        for t, b in self.transitions():
            chosen = self.taken[t, b]
            advantage = self.q_ret[t, b] - values[t, b]
            g = min(c, rhos[t, b]) * advantage * self.score(t, b, chosen)
            for a in range(A):
                correction = max(0, 1 - c / self.rho(t, b, a))
                self.corrected += correction > 0
                g[a] += correction * (q[t, b, a] - values[t, b])
            self.add(t, b, g)
            self.q_errors[t, b, chosen] = self.weight[b] * (taken[t, b] - self.q_ret[t, b])


class _Continuous(Naive):
    """Algorithm 3, given values, Q~ of the taken and of a sampled action, and this action."""

    def __init__(self, agent: Any, unroll: types.Unroll, values, q, sampled):
        super().__init__(agent, unroll)
        values, (q_taken, q_sampled) = np.asarray(values, np.float64), q.numpy()
        rhos, c = self.rhos(), self.config.truncation
        arguments = (self.rewards, self.discounts, q_taken, values)
        traces = self.config.lambda_ * np.minimum(1, rhos ** (1 / D))
        self.q_ret = numpy_reference.retrace(*arguments, traces, self.mask)
        q_opc = numpy_reference.retrace(*arguments, 0 * traces + self.config.lambda_, self.mask)
        self.q_errors, self.value_errors = np.zeros([T, B]), np.zeros([T + 1, B])
        self.corrected = 0
        for t, b in self.transitions():
            correction = max(0, 1 - c / self.rho(t, b, sampled[t, b]))
            self.corrected += correction > 0
            g = min(c, rhos[t, b]) * (q_opc[t, b] - values[t, b]) * self.score(
                t, b, self.taken[t, b]
            ) + correction * (q_sampled[t, b] - values[t, b]) * self.score(t, b, sampled[t, b])
            self.add(t, b, g)
            self.q_errors[t, b] = self.weight[b] * (q_taken[t, b] - self.q_ret[t, b])
            self.value_errors[t, b] = min(1, rhos[t, b]) * self.q_errors[t, b]


class LossTest(parameterized.TestCase):
    def _check(self, agent, unroll, naive, q_taken, expected) -> None:
        self.assertGreater(naive.constrained, 2)
        self.assertGreater(naive.corrected, 2)
        variables = agent.trainable_variables
        unrolls.assert_gradients_equal(lambda: agent.loss(unroll).loss, expected, variables)
        squares = np.where(naive.mask, 0.5 * (naive.q_ret - q_taken) ** 2, 0).sum(0)
        priorities = 1e-3 + squares / naive.mask.sum(0)
        np.testing.assert_allclose(agent.loss(unroll).priorities, priorities, rtol=1e-4)

    @parameterized.parameters(
        {},
        {"trust_region": False},
        {"lambda_": 0.7, "delta": 0.0, "critic_cost": 0.5},
        {"statistics": "logits"},
    )
    def test_gradient_equals_algorithm_2(self, **overrides):
        agent = make_agent("discrete", **overrides)
        unroll = make_unroll(agent, "discrete")
        q_values = agent._critic(networks(agent, unroll)[0])
        naive = _Discrete(agent, unroll, q_values)

        def expected() -> tf.Tensor:
            """Computes a scalar with the gradients - z* d phi and (Q - Q^ret) dQ."""
            features, logits, _ = networks(agent, unroll)
            errors = tf.constant(naive.q_errors, tf.float32)
            critic = tf.reduce_sum(errors * agent._critic(features))
            return naive.policy_loss(logits) + agent._config.critic_cost * critic

        q_taken = np.take_along_axis(q_values.numpy(), naive.taken[..., None], axis=-1)[:-1, :, 0]
        self._check(agent, unroll, naive, q_taken, expected)

    @parameterized.parameters(
        {},
        {"trust_region": False},
        {"lambda_": 0.7, "delta": 0.0, "critic_cost": 0.5},
        {"dueling_samples": 0},
    )
    def test_gradient_equals_algorithm_3(self, **overrides):
        agent = make_agent("continuous", **overrides)
        unroll = make_unroll(agent, "continuous")
        network, samples = agent._critic._network, agent._config.dueling_samples
        # The samples of the loss: a' first, then u_1 .. u_n.
        policy = agent._distribution.parameters(networks(agent, unroll)[1][:-1])
        repeated = tf.nest.map_structure(lambda leaf: tf.stack([leaf] * (1 + samples)), policy)
        sample = agent._distribution.sample(repeated, agent._next_seed())
        actions = tf.stack([unroll.agent_output.action[:-1], sample.action[0]])

        def evaluate() -> tuple[tf.Tensor, tf.Tensor]:
            features = networks(agent, unroll)[0]
            values = network.values(features)
            q = network.action_values(features[:-1], values[:-1], actions, sample.action[1:])
            return values, q

        naive = _Continuous(agent, unroll, *evaluate(), sample.latent[0].numpy())

        def expected() -> tf.Tensor:
            values, q = evaluate()
            critic = tf.reduce_sum(tf.constant(naive.q_errors, tf.float32) * q[0])
            critic += tf.reduce_sum(tf.constant(naive.value_errors, tf.float32) * values)
            policy = naive.policy_loss(networks(agent, unroll)[1])
            return policy + agent._config.critic_cost * critic

        self._check(agent, unroll, naive, evaluate()[1][0].numpy(), expected)

    def test_samples_of_loss_change_only_with_updates(self):
        agent = make_agent("continuous")
        unroll = make_unroll(agent, "continuous")
        once = float(agent.loss(unroll).loss)
        agent.act(unrolls.at(unroll.env_output, 0), ())
        self.assertEqual(float(agent.loss(unroll).loss), once)
        seed = agent._next_seed()
        agent.after_update()
        np.testing.assert_array_equal(agent._next_seed() - seed, [0, 1])

    @parameterized.parameters(*SPECS)
    def test_inputs_of_losses_are_fixed_and_finite(self, actions):
        agent = make_agent(actions)
        ends = {"terminations": [(2, 1)], "lost_lives": [(5, 0)]}
        unroll = unrolls.make(agent, SPECS[actions], T, B, **ends, poison=np.nan)
        with tf.GradientTape() as tape:
            experience = agent._compute_experience(unroll)
            output = agent._critic.evaluate(experience, agent._next_seed())
            fixed = [output.correction, experience.log_rhos, experience.score]
            if actions == "discrete":  # Equation 6 updates Q(x_t, a_t) only.
                fixed.append(output.values)
        gradients = tape.gradient(fixed, agent.trainable_variables)
        self.assertTrue(all(gradient is None for gradient in gradients))
        self.assertTrue(np.isfinite(experience.log_rhos).all())


class AveragePolicyTest(parameterized.TestCase):
    def test_update_moves_average_policy_by_decay(self):
        agent = make_agent("discrete", average_decay=0.75)
        average, policy = agent._average.trainable_variables, agent._policy.trainable_variables
        before = [variable.numpy() for variable in average]
        agent.after_update()
        for old, new, variable in zip(before, average, policy, strict=True):
            np.testing.assert_allclose(new, 0.75 * old + 0.25 * variable.numpy(), atol=1e-6)
        fresh = registry.make(acer_config.AcerConfig(mlp_units=(6,)), base.AgentContext(DISCRETE))
        pairs = (fresh._average.trainable_variables, fresh._policy.trainable_variables)
        for new, variable in zip(*pairs, strict=True):
            np.testing.assert_array_equal(new, variable)

    def test_average_policy_reads_the_same_moments(self):
        agent = make_agent("discrete", normalise_vectors=True)
        before = agent._policy.moments[0].numpy()
        agent.update_normalisers(make_unroll(agent, "discrete").env_output)
        self.assertTrue(np.any(agent._policy.moments[0] != before))
        for one, other in zip(agent._average.moments, agent._policy.moments, strict=True):
            np.testing.assert_array_equal(one, other)

    @parameterized.parameters(*SPECS)
    def test_act_uses_policy_instead_of_average(self, actions):
        agent = make_agent(actions)
        blank = tf.nest.map_structure(
            tf.constant, observations.padding_steps(SPECS[actions], (1, 1))
        )
        (_, outputs, _), (_, average, _) = (
            network(blank, agent.initial_state(1)) for network in (agent._policy, agent._average)
        )
        self.assertGreater(np.abs(outputs - average).max(), 0.1)
        acted, _ = agent.act(unrolls.at(blank, 0), agent.initial_state(1))
        tf.nest.map_structure(
            lambda leaf, expected: np.testing.assert_allclose(leaf, expected[0], rtol=1e-5),
            acted.policy,
            agent._distribution.parameters(outputs),
        )


if __name__ == "__main__":
    absltest.main()
