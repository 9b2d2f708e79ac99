"""Tests Reactor's loss against NumPy loops, masks, acting and validation."""

from typing import Any

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import types
from laser_tf.agents import base, reactor, reactor_config, registry
from testing import fakes, numpy_reference, reactor_reference
from testing.agents import unrolls

T, B, V, A, N, BURN_IN = 6, 4, 3, 3, 7, 2
SPEC = types.EnvironmentSpec(specs.Array([V], np.float32), specs.DiscreteArray(A))


def _agent(*, burn_in: int = 0, **overrides) -> reactor.Reactor:
    tf.keras.utils.set_random_seed(1)
    values = {"mlp_units": (6,), "normalise_vectors": False, "core_size": 5, "hidden_units": 4}
    values |= {"bins": N, "v_min": -3.0, "v_max": 2.0, "discount": 0.9, "uniform_share": 0.1}
    values |= {"reward_clip": "none", "entropy_cost": 0.2}
    config = reactor_config.ReactorConfig(**values | overrides)
    return registry.make(config, base.AgentContext(SPEC, burn_in=burn_in, seed=3))


def _unroll(agent: reactor.Reactor) -> types.Unroll:
    """Returns an unroll of a fresh agent, whose networks then change differently.

    Entry 1 terminates at step 4, entry 2 reaches a time limit at step 3, entry 3 loses a life.
    """
    ends = {"terminations": [(4, 1)], "time_limits": [(3, 2)], "lost_lives": [(3, 3)]}
    unroll = unrolls.make(agent, SPEC, T, B, **ends)
    for seed, network in enumerate((agent._online, agent._target)):
        unrolls.shake(network.trainable_variables, seed)
    return unroll


def _stepped(network: Any, unroll: types.Unroll, burn_in: int) -> tuple[np.ndarray, np.ndarray]:
    """Computes policy [T + 1, B, A] and critic [T + 1, B, A, N] step by step, after burn-in."""
    state, outputs = unroll.core_state, []
    for step in range(T + 1):
        output, state = network(unrolls.at(unroll.env_output, slice(step, step + 1)), state)
        outputs.append([leaf[0].numpy().astype(np.float64) for leaf in output])
    policy, critic = (np.stack(leaves)[burn_in:] for leaves in zip(*outputs, strict=True))
    return policy, critic


class _Naive:
    """Loss of a batch and its gradients with respect to both outputs, as NumPy loops."""

    def __init__(self, agent: reactor.Reactor, unroll: types.Unroll, burn_in: int):
        self._config, self.weight = agent._config, unroll.importance_weight.numpy() / B
        env_output, acted = unrolls.at(
            (unroll.env_output, unroll.agent_output), slice(burn_in, None)
        )
        self.pi, self._outputs = _stepped(agent._online, unroll, burn_in)
        self._target_pi, self._target_outputs = _stepped(agent._target, unroll, burn_in)
        self._mu = numpy_reference.softmax(acted.policy.numpy()[:-1])
        self._actions = acted.action.numpy()[:-1]
        self.mask = ~env_output.is_first.numpy()[1:]
        self._rewards = env_output.reward.numpy()[1:]
        if self._config.reward_clip == "unit":
            self._rewards = np.clip(self._rewards, -1, 1)
        self._discounts = self._config.discount * env_output.discount.numpy()[1:]
        self._traces = np.zeros(self.mask.shape)
        for t, b in self._transitions():
            a = self._actions[t, b]
            rho = self._target_pi[t, b, a] / self._mu[t, b, a]
            self._traces[t, b] = self._config.lambda_ * min(1, rho)
        self.loss, self.errors = 0.0, np.zeros(self.mask.shape)
        self.critic_gradient = np.zeros(self._outputs[:-1].shape)
        if self._config.distributional:
            q, returns = self._distributional()
        else:
            q, returns = self._scalar()
        self._policy(q, returns)

    def _transitions(self):
        return (index for index in np.ndindex(*self.mask.shape) if self.mask[index])

    def _distributional(self) -> tuple[np.ndarray, np.ndarray]:
        support = np.linspace(self._config.v_min, self._config.v_max, self._config.bins)
        targets, _ = reactor_reference.distributional_retrace(
            self._rewards, self._discounts, numpy_reference.softmax(self._target_outputs),
            self._target_pi, self._actions, self._traces, self.mask, support,
        )  # fmt: skip
        masses = numpy_reference.softmax(self._outputs)[:-1]
        for t, b in self._transitions():
            a = self._actions[t, b]
            self.loss -= self.weight[b] * (targets[t, b] * np.log(masses[t, b, a])).sum()
            self.errors[t, b] = np.abs(targets[t, b] - masses[t, b, a]).sum()
            # The target masses sum to 1.
            self.critic_gradient[t, b, a] = self.weight[b] * (masses[t, b, a] - targets[t, b])
        return masses @ support, targets @ support

    def _scalar(self) -> tuple[np.ndarray, np.ndarray]:
        q, q_target = self._outputs[:-1, ..., 0], self._target_outputs[..., 0]
        taken = np.take_along_axis(q_target[:-1], self._actions[..., None], axis=-1)[..., 0]
        values = (self._target_pi * q_target).sum(-1)
        returns = numpy_reference.retrace(
            self._rewards, self._discounts, taken, values, self._traces, self.mask
        )
        for t, b in self._transitions():
            a = self._actions[t, b]
            error = q[t, b, a] - returns[t, b]
            self.loss += self.weight[b] * 0.5 * error**2
            self.errors[t, b] = abs(error)
            self.critic_gradient[t, b, a] = self.weight[b] * error
        return q, returns

    def _policy(self, q: np.ndarray, returns: np.ndarray) -> None:
        pi, config = self.pi[:-1], self._config
        if config.policy_gradient == "tislr":
            loss, gradient = reactor_reference.truncated_importance_sampling(
                pi, q, returns, self._actions, self._mu, self.mask, config.truncation
            )
        else:
            clip = {"loo": 1.0, "one_over_mu_loo": np.inf}
            mu_taken = np.take_along_axis(self._mu, self._actions[..., None], axis=-1)[..., 0]
            loss, gradient = reactor_reference.beta_leave_one_out(
                pi, q, returns, self._actions, mu_taken, self.mask,
                clip.get(config.policy_gradient, config.truncation),
            )  # fmt: skip
        self.policy_gradient = np.zeros(pi.shape)
        for t, b in self._transitions():
            log_pi = np.log(pi[t, b])
            entropy_loss = config.entropy_cost * (pi[t, b] * log_pi).sum()
            self.loss += self.weight[b] * (loss[t, b] + entropy_loss)
            entropy_gradient = config.entropy_cost * (log_pi + 1)
            self.policy_gradient[t, b] = self.weight[b] * (gradient[t, b] + entropy_gradient)


class LossTest(parameterized.TestCase):
    @parameterized.parameters(
        {},
        {"burn_in": BURN_IN},
        {"core": "none", "burn_in": BURN_IN},
        {"lambda_": 0.7, "reward_clip": "unit"},
        {"policy_gradient": "beta_loo", "truncation": 2.0},
        {"policy_gradient": "loo", "truncation": 2.0},
        {"policy_gradient": "one_over_mu_loo"},
        {"policy_gradient": "tislr", "truncation": 1.5},
        {"distributional": False},
        {"distributional": False, "policy_gradient": "tislr"},
    )
    def test_loss_gradient_and_priorities_equal_reference(self, burn_in=0, **options):
        agent = _agent(burn_in=burn_in, **options)
        unroll = _unroll(agent)
        naive, output = _Naive(agent, unroll, burn_in), agent.loss(unroll)
        np.testing.assert_allclose(output.loss, naive.loss, rtol=1e-4)
        priorities = [naive.errors[naive.mask[:, b], b].mean() for b in range(B)]
        self.assertGreater(np.ptp(priorities), 0.02)
        np.testing.assert_allclose(output.priorities, priorities, rtol=1e-4)

        def expected() -> tf.Tensor:
            """Computes a scalar whose gradient backpropagates the reference gradients."""
            state = unroll.core_state
            if burn_in:
                _, state = agent._online(unrolls.at(unroll.env_output, slice(burn_in)), state)
                state = tf.nest.map_structure(tf.stop_gradient, state)
            policy, critic = agent._online(unrolls.at(unroll.env_output, slice(burn_in, T)), state)[
                0
            ]
            loss = tf.reduce_sum(tf.constant(naive.policy_gradient, tf.float32) * policy)
            return loss + tf.reduce_sum(tf.constant(naive.critic_gradient, tf.float32) * critic)

        variables = agent.trainable_variables
        unrolls.assert_gradients_equal(lambda: agent.loss(unroll).loss, expected, variables)


class ActingTest(absltest.TestCase):
    def test_stored_policy_is_behaviour_policy_of_loss(self):
        agent = _agent(lambda_=0.7)
        unroll = _unroll(agent)
        agent._copy_to_target()
        output, start = fakes.act(agent, unroll.env_output)
        probabilities = np.exp(output.policy)
        self.assertGreater(probabilities.min(), 0.1 / A)
        np.testing.assert_allclose(probabilities.sum(-1), 1, rtol=1e-5)
        np.testing.assert_array_equal(agent.greedy_action(output), probabilities.argmax(-1))
        np.testing.assert_array_equal(agent.action_preferences(output), output.policy)
        metrics = agent.loss(unroll._replace(agent_output=output, core_state=start)).metrics
        np.testing.assert_allclose(metrics["retrace/trace"].value, 0.7, rtol=1e-5)
        np.testing.assert_allclose(metrics["policy/kl_online"].value, 0, atol=1e-6)


if __name__ == "__main__":
    absltest.main()
