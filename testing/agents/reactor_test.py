"""Tests Reactor's loss against NumPy loops, masks, acting and validation."""

from typing import Any

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import types
from laser_tf.agents import base, reactor, reactor_config, registry
from laser_tf.ops import n_step
from testing import messages, numpy_reference, reactor_reference

T, B, V, A, N, BURN_IN = 6, 4, 3, 3, 7, 2
SPEC = types.EnvironmentSpec(specs.Array([V], np.float32), specs.DiscreteArray(A))


def _agent(*, burn_in: int = 0, apart: bool = True, **overrides) -> reactor.Reactor:
    """Returns an agent whose target and online networks differ if `apart`."""
    tf.keras.utils.set_random_seed(1)
    values = {"mlp_units": (6,), "normalise_vectors": False, "core_size": 5, "hidden_units": 4}
    values |= {"bins": N, "v_min": -3.0, "v_max": 2.0, "discount": 0.9, "uniform_share": 0.1}
    values |= {"reward_clip": "none", "entropy_cost": 0.2}
    config = reactor_config.ReactorConfig(**values | overrides)
    agent = registry.make(config, base.Context(SPEC, burn_in=burn_in, seed=3))
    if apart:
        _shake(agent._online, 2)
        _shake(agent._target, 3)
    return agent


def _shake(module: tf.Module, seed: int) -> None:
    generator = np.random.default_rng(seed)
    for variable in module.trainable_variables:
        variable.assign_add(generator.normal(0, 0.5, variable.shape).astype(np.float32))


def _unroll(agent: reactor.Reactor, poison: float = 0.5) -> types.Unroll:
    """Returns a random unroll whose steps between episodes hold `poison`.

    Entry 1 terminates at step 4, entry 2 reaches a time limit at step 3, entry 3 loses a life.
    """
    generator = np.random.default_rng(0)
    size = (T + 1, B)
    is_first, discount = np.zeros(size, bool), np.ones(size)
    discount[4, 1] = discount[3, 3] = 0.0
    is_first[5, 1] = is_first[4, 2] = True
    reward = generator.normal(0, 1.5, size)
    reward[is_first] = poison
    log_mu = numpy_reference.log_softmax(generator.normal(0, 1, (*size, A)))
    log_mu[np.roll(is_first, -1, axis=0)] = poison
    env_output = types.EnvOutput(
        tf.constant(generator.normal(size=(*size, V)), tf.float32),
        tf.constant(reward, tf.float32),
        tf.constant(discount, tf.float32),
        tf.constant(is_first),
        tf.zeros(size, tf.int32),
    )
    actions = tf.constant(generator.integers(0, A, size), tf.int32)
    state = tf.nest.map_structure(
        lambda zeros: tf.constant(generator.normal(size=zeros.shape), tf.float32),
        agent.initial_state(B),
    )
    return types.Unroll(
        env_output,
        types.AgentOutput(actions, tf.constant(log_mu, tf.float32)),
        state,
        task=tf.zeros([B], tf.int32),
        is_online=tf.zeros([B], tf.bool),
        is_own=tf.ones([B], tf.bool),
        importance_weight=tf.constant([1.0, 0.5, 0.25, 0.8]),
    )


def _steps(unroll: types.Unroll, start: int, stop: int | None = None) -> types.EnvOutput:
    return tf.nest.map_structure(lambda leaf: leaf[start:stop], unroll.env_output)


def _stepped(network: Any, unroll: types.Unroll, burn_in: int) -> tuple[np.ndarray, np.ndarray]:
    """Computes policy [T + 1, B, A] and critic [T + 1, B, A, N] step by step, after burn-in."""
    state, outputs = unroll.core_state, []
    for step in range(T + 1):
        output, state = network(_steps(unroll, step, step + 1), state)
        outputs.append([leaf[0].numpy().astype(np.float64) for leaf in output])
    policy, critic = (np.stack(leaves)[burn_in:] for leaves in zip(*outputs, strict=True))
    return policy, critic


class _Naive:
    """Loss of a batch and its gradients with respect to both outputs, as NumPy loops."""

    def __init__(self, agent: reactor.Reactor, unroll: types.Unroll, burn_in: int):
        self._config, self.weight = agent._config, unroll.importance_weight.numpy() / B
        env_output, acted = _steps(unroll, burn_in), unroll.agent_output
        self.pi, self._outputs = _stepped(agent._online, unroll, burn_in)
        self._target_pi, self._target_outputs = _stepped(agent._target, unroll, burn_in)
        self._mu = numpy_reference.softmax(acted.policy.numpy()[burn_in:-1])
        self._actions = acted.action.numpy()[burn_in:-1]
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
        returns = reactor_reference.retrace(
            self._rewards, self._discounts, taken, (self._target_pi * q_target).sum(-1),
            self._traces, self.mask,
        )  # fmt: skip
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


def _gradients(function, variables) -> list[np.ndarray]:
    """Returns the gradients of a scalar; zeros for independent variables."""
    with tf.GradientTape() as tape:
        value = function()
    return [
        np.zeros(variable.shape) if gradient is None else gradient.numpy()
        for gradient, variable in zip(tape.gradient(value, variables), variables, strict=True)
    ]


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
        naive = _Naive(agent, unroll, burn_in)
        output = agent.loss(unroll)
        np.testing.assert_allclose(output.loss, naive.loss, rtol=1e-4)
        priorities = [naive.errors[naive.mask[:, b], b].mean() for b in range(B)]
        self.assertGreater(np.ptp(priorities), 0.02)
        np.testing.assert_allclose(output.priorities, priorities, rtol=1e-4)

        def by_hand() -> tf.Tensor:
            """Computes a scalar whose gradient backpropagates the reference gradients."""
            state = unroll.core_state
            if burn_in:
                _, state = agent._online(_steps(unroll, 0, burn_in), state)
                state = tf.nest.map_structure(tf.stop_gradient, state)
            policy, critic = agent._online(_steps(unroll, burn_in, T), state)[0]
            loss = tf.reduce_sum(tf.constant(naive.policy_gradient, tf.float32) * policy)
            return loss + tf.reduce_sum(tf.constant(naive.critic_gradient, tf.float32) * critic)

        variables = agent.trainable_variables
        expected = _gradients(by_hand, variables)
        actual = _gradients(lambda: agent.loss(unroll).loss, variables)
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)
        self.assertTrue(all(np.abs(one).max() > 0 for one in actual))

    @parameterized.parameters(True, False)
    def test_policy_loss_does_not_train_encoder(self, distributional):
        agent = _agent(distributional=distributional)
        unroll = _unroll(agent)
        variables = agent.trainable_variables
        ours = {
            variable.ref()
            for part in (agent._online._policy_core, agent._online._policy_head)
            for variable in part.trainable_variables
        }
        before = _gradients(lambda: agent.loss(unroll).loss, variables)
        agent.entropy_cost.assign(100.0)
        after = _gradients(lambda: agent.loss(unroll).loss, variables)
        for variable, old, new in zip(variables, before, after, strict=True):
            if variable.ref() in ours:
                self.assertGreater(np.abs(new - old).max(), 0.1)
            else:
                np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)

    @parameterized.product(
        policy_gradient=reactor_config.POLICY_GRADIENTS, distributional=(True, False)
    )
    def test_nan_between_episodes_is_ignored(self, **options):
        agent, results = _agent(**options), []
        for poison in (0.5, np.nan):
            unroll = _unroll(agent, poison)
            output = agent.loss(unroll)
            gradients = _gradients(
                lambda unroll=unroll: agent.loss(unroll).loss, agent.trainable_variables
            )
            results.append([output.loss.numpy(), output.priorities.numpy(), *gradients])
        for clean, poisoned in zip(*results, strict=True):
            np.testing.assert_allclose(poisoned, clean, rtol=1e-5, atol=1e-6)
            self.assertTrue(np.isfinite(poisoned).all())

    @parameterized.parameters(True, False)
    def test_no_transitions_give_zero_loss_and_gradient(self, distributional):
        agent = _agent(burn_in=BURN_IN, distributional=distributional)
        unroll = _unroll(agent)
        is_first = tf.ones([T + 1, B], tf.bool)
        blank = unroll._replace(env_output=unroll.env_output._replace(is_first=is_first))
        output = agent.loss(blank)
        self.assertEqual(output.loss, 0.0)
        np.testing.assert_allclose(output.priorities, n_step.MIN_PRIORITY)
        for gradient in _gradients(lambda: agent.loss(blank).loss, agent.trainable_variables):
            np.testing.assert_array_equal(gradient, 0)

    @parameterized.parameters(("lstm", True), ("none", False))
    def test_compiled_loss_equals_eager(self, core, distributional):
        agent = _agent(core=core, distributional=distributional)
        unroll = _unroll(agent)
        compiled = tf.function(lambda unroll: agent.loss(unroll).loss, jit_compile=True)
        np.testing.assert_allclose(compiled(unroll), agent.loss(unroll).loss, rtol=1e-4)


class ActingTest(absltest.TestCase):
    def test_actions_follow_policy_with_uniform_share(self):
        agent = _agent(uniform_share=0.3)
        step = tf.nest.map_structure(lambda leaf: leaf[0], _unroll(agent).env_output)
        state = agent.initial_state(B)
        act = tf.function(agent.act)
        counts = np.zeros([B, A])
        for _ in range(3_000):
            output, _ = act(step, state)
            counts[np.arange(B), output.action.numpy()] += 1
        probabilities = np.exp(output.policy.numpy())
        self.assertGreater(probabilities.min(), 0.3 / A)
        np.testing.assert_allclose(probabilities.sum(-1), 1, rtol=1e-5)
        np.testing.assert_allclose(counts / 3_000, probabilities, atol=0.04)
        np.testing.assert_array_equal(agent.greedy_action(output), probabilities.argmax(-1))
        np.testing.assert_array_equal(agent.action_preferences(output), output.policy)

    def test_stored_policy_is_behaviour_policy_of_loss(self):
        agent = _agent(apart=False, lambda_=0.7)
        _shake(agent._online, 2)
        agent._copy_to_target()
        unroll = _unroll(agent)
        state, outputs = unroll.core_state, []
        for step in range(T + 1):
            one = tf.nest.map_structure(lambda leaf, step=step: leaf[step], unroll.env_output)
            output, state = agent.act(one, state)
            outputs.append(output)
        acted = tf.nest.map_structure(lambda *steps: tf.stack(steps), *outputs)
        metrics = agent.loss(unroll._replace(agent_output=acted)).metrics
        np.testing.assert_allclose(metrics["retrace/trace"].value, 0.7, rtol=1e-5)
        np.testing.assert_allclose(metrics["policy/kl_replay"].value, 0, atol=1e-6)


class ConfigTest(parameterized.TestCase):
    @parameterized.parameters(
        ("kind", "laser"),
        ("core", "preco_lstm"),
        ("policy_gradient", "a2c"),
        ("reward_clip", "some"),
        ("bins", 1),
        ("v_min", 10.0),
        ("truncation", 0.5),
        ("uniform_share", 0.0),
        ("uniform_share", 1.5),
        ("entropy_cost", -1.0),
        ("lambda_", 1.5),
        ("discount", -0.5),
        ("target_period", 0),
        ("hidden_units", 0),
    )
    def test_invalid_value_raises(self, name, value):
        with messages.raises(ValueError, name, value):
            reactor_config.ReactorConfig(**{name: value})

    def test_continuous_actions_raise(self):
        spec = SPEC._replace(action=specs.BoundedArray([2], np.float32, -1, 1))
        with messages.raises(ValueError, "configs/laser.py:control"):
            registry.make(reactor_config.ReactorConfig(), base.Context(spec))


if __name__ == "__main__":
    absltest.main()
