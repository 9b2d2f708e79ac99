"""Tests ACER's gradient against float64 loops and finite differences."""

from typing import Any

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import observations, types
from laser_tf.agents import acer_config, base, registry
from testing import fakes, messages, numpy_reference

T, B, V, A, D, STD = 6, 3, 3, 4, 2, 0.3
DISCRETE = types.EnvironmentSpec(specs.Array([V], np.float32), specs.DiscreteArray(A))
CONTINUOUS = types.EnvironmentSpec(
    specs.Array([V], np.float32), specs.BoundedArray([D], np.float32, [-1, 0], [1, 4])
)
SPECS = {"discrete": DISCRETE, "continuous": CONTINUOUS}


def agent_of(spec: types.EnvironmentSpec, kind: str = "acer", **overrides) -> Any:
    """Returns an agent whose average policy differs from its policy."""
    tf.keras.utils.set_random_seed(1)
    continuous = not isinstance(spec.action, specs.DiscreteArray)
    defaults = {"kind": kind, "mlp_units": (6,), "normalise_vectors": False, "discount": 0.9}
    defaults |= {"entropy_cost": 0.0 if continuous else 0.01, "delta": 0.05, "truncation": 1.2}
    if kind == acer_config.KIND:
        defaults |= {"advantage_units": (5,), "dueling_samples": 3}
    config = registry.config_class(kind)(**defaults | overrides)
    agent = registry.make(config, base.Context(spec, seed=3))
    generator = np.random.default_rng(5)
    for variable in agent._average.trainable_variables:
        variable.assign_add(generator.normal(0, 0.5, variable.shape).astype(np.float32))
    return agent


def unroll_of(agent: Any, spec: types.EnvironmentSpec, poison: float = 0.5) -> types.Unroll:
    """Returns an unroll of the agent's initial policy, then changes the agent's weights.

    The episode of entry 1 ends after two transitions. Steps between two episodes hold `poison`.
    """
    generator = np.random.default_rng(0)
    is_first = np.zeros([T + 1, B], bool)
    is_first[3, 1] = True
    discount = np.ones([T + 1, B])
    discount[2, 1] = discount[5, 0] = 0.0
    reward = generator.normal(size=[T + 1, B])
    reward[is_first] = poison
    shape = spec.action.shape
    env_output = types.EnvOutput(
        tf.constant(generator.normal(size=[T + 1, B, V]), tf.float32),
        tf.constant(reward, tf.float32),
        tf.constant(discount, tf.float32),
        tf.constant(is_first),
        tf.zeros([T + 1, B, *shape], spec.action.dtype),
    )
    acted, start = fakes.act(agent, env_output)
    for variable in agent.trainable_variables:
        variable.assign_add(generator.normal(0, 0.5, variable.shape).astype(np.float32))
    before_reset = np.roll(is_first, -1, axis=0)

    def poisoned(leaf: tf.Tensor) -> tf.Tensor:
        mask = before_reset.reshape(*before_reset.shape, *[1] * (leaf.shape.rank - 2))
        return tf.where(mask, tf.constant(poison, leaf.dtype), leaf)

    acted = acted._replace(
        policy=tf.nest.map_structure(poisoned, acted.policy),
        extras=tf.nest.map_structure(poisoned, acted.extras),
    )
    return types.Unroll(
        env_output,
        acted,
        start,
        task=tf.zeros([B], tf.int32),
        is_online=tf.constant([True, True, False]),
        is_own=tf.ones([B], tf.bool),
        importance_weight=tf.constant([1.0, 0.5, 0.25]),
    )


def networks(agent: Any, unroll: types.Unroll) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Computes features and outputs of policy and average policy, [T + 1, B, ...] each."""
    features, outputs, _ = agent._policy(unroll.env_output, unroll.core_state)
    return features, outputs, agent._average(unroll.env_output, unroll.core_state)[1]


def gradients_of(function, variables) -> list[np.ndarray]:
    """Returns the gradients of a scalar; zeros for independent variables."""
    with tf.GradientTape() as tape:
        value = function()
    return [
        np.zeros(variable.shape) if gradient is None else gradient.numpy()
        for gradient, variable in zip(tape.gradient(value, variables), variables, strict=True)
    ]


class _Discrete:
    """Algorithm 2 as loops over an unroll, given logits and Q-values [T + 1, B, A]."""

    def __init__(self, agent: Any, unroll: types.Unroll, logits, average, q):
        config = agent._config
        pi, average = numpy_reference.softmax(logits), numpy_reference.softmax(average)
        mu = numpy_reference.softmax(unroll.agent_output.policy)
        action = unroll.agent_output.action.numpy()
        self.mask = ~unroll.env_output.is_first.numpy()[1:]
        q = np.asarray(q, np.float64)
        values = (pi * q).sum(-1)
        taken, rho = np.zeros([T, B]), np.zeros([T, B])
        for t, b in np.ndindex(T, B):
            taken[t, b] = q[t, b, action[t, b]]
            rho[t, b] = pi[t, b, action[t, b]] / mu[t, b, action[t, b]]
        self.targets = numpy_reference.retrace(
            unroll.env_output.reward.numpy()[1:],
            config.discount * unroll.env_output.discount.numpy()[1:],
            taken,
            values,
            config.lambda_ * np.minimum(1, rho),
            self.mask,
        )
        self.direction, self.constrained = np.zeros([T, B, A]), 0
        self.q_errors = np.zeros([T + 1, B, A])
        c, weight = config.truncation, unroll.importance_weight.numpy()
        self.corrected = 0
        for t, b in np.ndindex(T, B):
            if not self.mask[t, b]:
                continue
            phi, chosen = pi[t, b], action[t, b]
            g = np.zeros(A)
            advantage = self.targets[t, b] - values[t, b]
            g[chosen] = min(c, rho[t, b]) / phi[chosen] * advantage
            for a in range(A):
                ratio = phi[a] / mu[t, b, a]
                self.corrected += ratio > c
                g[a] += max(0, 1 - c / ratio) * phi[a] / phi[a] * (q[t, b, a] - values[t, b])
            g = weight[b] * (g + config.entropy_cost * (-np.log(phi) - 1))
            k = -average[t, b] / phi
            if config.statistics == "logits":  # Chain rule.
                softmaxs = np.diag(phi) - np.outer(phi, phi)
                g, k = softmaxs @ g, softmaxs @ k
            self.constrained += k @ g > config.delta
            self.direction[t, b] = (
                numpy_reference.constrain(g, k, config.delta) if config.trust_region else g
            )
            self.q_errors[t, b, chosen] = weight[b] * (taken[t, b] - self.targets[t, b])


class DiscreteTest(parameterized.TestCase):
    @parameterized.parameters(
        {},
        {"trust_region": False},
        {"lambda_": 0.7, "delta": 0.0},
        {"statistics": "logits"},
    )
    def test_gradient_equals_algorithm_2(self, **overrides):
        agent = agent_of(DISCRETE, **overrides)
        unroll = unroll_of(agent, DISCRETE)
        features, logits, average = networks(agent, unroll)
        naive = _Discrete(agent, unroll, logits, average, agent._critic(features))
        self.assertGreater(naive.constrained, 2)
        self.assertGreater(naive.corrected, 2)

        probabilities = agent._config.statistics == "probabilities"

        def by_hand() -> tf.Tensor:
            """Computes a scalar with the gradients - z* d phi and (Q - Q^ret) dQ."""
            features, logits, _ = networks(agent, unroll)
            direction = tf.constant(naive.direction, tf.float32)
            phi = tf.nn.softmax(logits) if probabilities else logits
            policy = -tf.reduce_sum(direction * phi[:-1])
            errors = tf.constant(naive.q_errors, tf.float32)
            return policy + agent._config.critic_cost * tf.reduce_sum(
                errors * agent._critic(features)
            )

        variables = agent.trainable_variables
        expected = gradients_of(by_hand, variables)
        actual = gradients_of(lambda: agent.loss(unroll).loss, variables)
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)
        self._check_finite_differences(agent, unroll, naive, actual)

    def _check_finite_differences(self, agent, unroll, naive, gradients) -> None:
        """Compares derivatives in a random direction, with z* and targets constant."""
        generator = np.random.default_rng(1)
        variables = agent.trainable_variables
        first = [variable.numpy() for variable in variables]
        along = [generator.normal(size=variable.shape) for variable in variables]
        expected = sum((one * two).sum() for one, two in zip(gradients, along, strict=True))
        sums = []
        for step in (1e-3, -1e-3):
            for variable, start, direction in zip(variables, first, along, strict=True):
                variable.assign((start + step * direction).astype(np.float32))
            features, logits, _ = networks(agent, unroll)
            phi = logits.numpy().astype(np.float64)[:-1]
            if agent._config.statistics == "probabilities":
                phi = numpy_reference.softmax(phi)
            q = agent._critic(features).numpy().astype(np.float64)
            cost = agent._config.critic_cost
            sums.append(-(naive.direction * phi).sum() + cost * (naive.q_errors * q).sum())
        for variable, start in zip(variables, first, strict=True):
            variable.assign(start)
        np.testing.assert_allclose((sums[0] - sums[1]) / 2e-3, expected, rtol=5e-3, atol=1e-3)

    def test_update_moves_average_policy_by_decay(self):
        agent = agent_of(DISCRETE, average_decay=0.75)
        before = [variable.numpy() for variable in agent._average.trainable_variables]
        agent.after_update()
        for old, average, variable in zip(
            before,
            agent._average.trainable_variables,
            agent._policy.trainable_variables,
            strict=True,
        ):
            np.testing.assert_allclose(average, 0.75 * old + 0.25 * variable.numpy(), atol=1e-6)

    def test_fresh_average_policy_equals_policy(self):
        config = acer_config.AcerConfig(mlp_units=(6,))
        agent = registry.make(config, base.Context(DISCRETE))
        for average, variable in zip(
            agent._average.trainable_variables, agent._policy.trainable_variables, strict=True
        ):
            np.testing.assert_array_equal(average, variable)


class _Continuous:
    """Algorithm 3 as loops over an unroll, given means, values, the critic's samples and Q~."""

    def __init__(self, agent: Any, unroll: types.Unroll, means, average, values, judged):
        config, env_output = agent._config, unroll.env_output
        self.mask = ~env_output.is_first.numpy()[1:]
        means, average = (np.asarray(x, np.float64)[:-1] for x in (means, average))
        mu, latent = unroll.agent_output.policy.mean.numpy(), unroll.agent_output.extras.numpy()
        q_taken, q_drawn, drawn = judged
        values = np.asarray(values, np.float64)
        rho = np.exp(self._log_ratio(latent[:-1], means, mu[:-1]))
        rho_drawn = np.exp(self._log_ratio(drawn, means, mu[:-1]))
        arguments = (
            env_output.reward.numpy()[1:],
            config.discount * env_output.discount.numpy()[1:],
            q_taken,
            values,
        )
        traces = config.lambda_ * np.minimum(1, rho ** (1 / D))
        self.q_ret = numpy_reference.retrace(*arguments, traces, self.mask)
        q_opc = numpy_reference.retrace(*arguments, np.full([T, B], config.lambda_), self.mask)
        self.direction, self.constrained, self.corrected = np.zeros([T, B, D]), 0, 0
        c, weight = config.truncation, unroll.importance_weight.numpy()
        self.q_errors, self.value_errors = np.zeros([T, B]), np.zeros([T + 1, B])
        for t, b in np.ndindex(T, B):
            if not self.mask[t, b]:
                continue
            score = (latent[t, b] - means[t, b]) / STD**2
            score_drawn = (drawn[t, b] - means[t, b]) / STD**2
            g = min(c, rho[t, b]) * score * (q_opc[t, b] - values[t, b])
            correction = max(0, 1 - c / rho_drawn[t, b])
            self.corrected += correction > 0
            g += correction * (q_drawn[t, b] - values[t, b]) * score_drawn
            g *= weight[b]
            k = (means[t, b] - average[t, b]) / STD**2
            self.constrained += k @ g > config.delta
            self.direction[t, b] = (
                numpy_reference.constrain(g, k, config.delta) if config.trust_region else g
            )
            self.q_errors[t, b] = weight[b] * (q_taken[t, b] - self.q_ret[t, b])
            self.value_errors[t, b] = min(1, rho[t, b]) * self.q_errors[t, b]

    def _log_ratio(self, latent, means, mu) -> np.ndarray:
        return ((latent - mu) ** 2 - (latent - means) ** 2).sum(-1) / (2 * STD**2)


class ContinuousTest(parameterized.TestCase):
    @parameterized.parameters(
        {}, {"trust_region": False}, {"lambda_": 0.7, "delta": 0.0}, {"dueling_samples": 0}
    )
    def test_gradient_equals_algorithm_3(self, **overrides):
        agent = agent_of(CONTINUOUS, **overrides)
        unroll = unroll_of(agent, CONTINUOUS)
        network, samples = agent._critic._network, agent._config.dueling_samples
        _, means, average = networks(agent, unroll)
        # The samples of the loss: a' first, then u_1 .. u_n.
        policy = agent._distribution.parameters(means[:-1])
        several = tf.nest.map_structure(lambda leaf: tf.stack([leaf] * (1 + samples)), policy)
        draw = agent._distribution.sample(several, agent._next_seed())
        actions = tf.stack([unroll.agent_output.action[:-1], draw.action[0]])

        def judge() -> tuple[tf.Tensor, tf.Tensor]:
            features, _, _ = networks(agent, unroll)
            values = network.values(features)
            q = network.action_values(features[:-1], values[:-1], actions, draw.action[1:])
            return values, q

        values, q = judge()
        judged = (q[0].numpy(), q[1].numpy(), draw.latent[0].numpy())
        naive = _Continuous(agent, unroll, means, average, values, judged)
        self.assertGreater(naive.constrained, 2)
        self.assertGreater(naive.corrected, 2)

        def by_hand() -> tf.Tensor:
            _, means, _ = networks(agent, unroll)
            values, q = judge()
            critic = tf.reduce_sum(tf.constant(naive.q_errors, tf.float32) * q[0])
            critic += tf.reduce_sum(tf.constant(naive.value_errors, tf.float32) * values)
            policy = -tf.reduce_sum(tf.constant(naive.direction, tf.float32) * means[:-1])
            return policy + agent._config.critic_cost * critic

        variables = agent.trainable_variables
        expected = gradients_of(by_hand, variables)
        actual = gradients_of(lambda: agent.loss(unroll).loss, variables)
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)

    def test_samples_of_loss_change_only_with_updates(self):
        agent = agent_of(CONTINUOUS)
        unroll = unroll_of(agent, CONTINUOUS)
        once, again = agent.loss(unroll).loss, agent.loss(unroll).loss
        self.assertEqual(float(once), float(again))
        agent.act(tf.nest.map_structure(lambda leaf: leaf[0], unroll.env_output), ())
        self.assertEqual(float(agent.loss(unroll).loss), float(once))
        agent._updates.assign_add(1)
        self.assertNotEqual(float(agent.loss(unroll).loss), float(once))


class AgentTest(parameterized.TestCase):
    @parameterized.parameters(*SPECS)
    def test_nan_between_episodes_is_ignored(self, actions):
        agent = agent_of(SPECS[actions])
        weights = [variable.numpy() for variable in agent.trainable_variables]
        results = []
        for poison in (0.5, np.nan):
            for variable, value in zip(agent.trainable_variables, weights, strict=True):
                variable.assign(value)
            agent._random.reset_from_seed(3)
            unroll = unroll_of(agent, SPECS[actions], poison)
            output = agent.loss(unroll)
            gradients = gradients_of(
                lambda unroll=unroll: agent.loss(unroll).loss, agent.trainable_variables
            )
            results.append([output.loss.numpy(), output.priorities.numpy(), *gradients])
        for clean, poisoned in zip(*results, strict=True):
            self.assertTrue(np.isfinite(poisoned).all())
            np.testing.assert_allclose(poisoned, clean, rtol=1e-5, atol=1e-6)

    @parameterized.parameters(*SPECS)
    def test_average_policy_receives_no_gradient(self, actions):
        agent = agent_of(SPECS[actions])
        learned = {variable.ref() for variable in agent.trainable_variables}
        self.assertEmpty(learned & {variable.ref() for variable in agent._average.variables})
        for gradient in gradients_of(
            lambda: agent.loss(unroll_of(agent, SPECS[actions])).loss, agent._average.variables
        ):
            np.testing.assert_array_equal(gradient, 0.0)

    @parameterized.parameters(*SPECS)
    def test_act_uses_policy_instead_of_average(self, actions):
        agent = agent_of(SPECS[actions])
        blank = tf.nest.map_structure(
            tf.constant, observations.padding_steps(SPECS[actions], (1, 1))
        )
        _, outputs, _ = agent._policy(blank, agent.initial_state(1))
        _, average, _ = agent._average(blank, agent.initial_state(1))
        self.assertGreater(np.abs(outputs - average).max(), 0.1)
        step = tf.nest.map_structure(lambda leaf: leaf[0], blank)
        acted, _ = agent.act(step, agent.initial_state(1))
        tf.nest.map_structure(
            lambda leaf, expected: np.testing.assert_allclose(leaf, expected[0], rtol=1e-5),
            acted.policy,
            agent._distribution.parameters(outputs),
        )

    @parameterized.parameters(("discrete", "lstm"), ("continuous", "none"))
    def test_compiled_loss_equals_eager(self, actions, core):
        agent = agent_of(SPECS[actions], core=core, core_size=4)
        unroll = unroll_of(agent, SPECS[actions])
        compiled = tf.function(lambda unroll: agent.loss(unroll).loss, jit_compile=True)
        # The continuous loss depends on random numbers, which differ in XLA.
        tolerance = 1e-4 if actions == "discrete" else 0.5
        np.testing.assert_allclose(compiled(unroll), agent.loss(unroll).loss, rtol=tolerance)

    def test_entropy_cost_with_continuous_actions_raises(self):
        with messages.raises(ValueError, "entropy_cost", 0.01, "agent.entropy_cost=0"):
            agent_of(CONTINUOUS, entropy_cost=0.01)

    @parameterized.named_parameters(
        ("lambda", {"lambda_": 1.1}, ("lambda_", 1.1)),
        ("truncation", {"truncation": 0.0}, ("truncation", 0.0)),
        ("delta", {"delta": -1.0}, ("delta",)),
        ("decay", {"average_decay": 2.0}, ("average_decay", 2.0)),
        ("samples", {"dueling_samples": -1}, ("dueling_samples",)),
        ("units", {"advantage_units": (0,)}, ("advantage_units",)),
        ("clip", {"reward_clip": "some"}, ("reward_clip",)),
    )
    def test_invalid_value_raises(self, overrides, names):
        with messages.raises(ValueError, *names):
            acer_config.AcerConfig(**overrides)

    def test_refuses_sequences(self):
        with messages.raises(ValueError, "replay.scheme", "sequences", "alternating"):
            acer_config.AcerConfig().check_scheme("sequences")


class TrustRegionTest(parameterized.TestCase):
    @parameterized.named_parameters(
        ("logits", DISCRETE, {"statistics": "logits", "delta": 0.02}, 0.005, 0.3),
        ("means", CONTINUOUS, {"delta": 0.1}, 0.001, 0.05),
    )
    def test_trust_region_bounds_divergence(self, spec, overrides, rate, bound):
        """Moves the policy in the same direction with every update."""
        largest = {}
        for trust_region in (True, False):
            agent = agent_of(spec, trust_region=trust_region, **overrides)
            largest[trust_region] = self._push(agent, spec, rate)
        self.assertLess(largest[True], bound)
        self.assertGreater(largest[False], 4 * bound)

    def _push(self, agent, spec, rate) -> float:
        """Returns the max mean divergence from the average policy in 50 updates."""
        unroll = unroll_of(agent, spec)
        agent._update_average(0.0)
        variables = agent._policy.trainable_variables

        @tf.function
        def update() -> tf.Tensor:
            with tf.GradientTape() as tape:
                experience = agent._compute_experience(unroll)
                first = tf.one_hot(0, experience.outputs.shape[-1])
                gradient = 3.0 * first * tf.ones_like(experience.outputs[:-1])
                loss, metrics = agent._policy_loss(unroll, experience, gradient)
            for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
                if gradient is not None:
                    variable.assign_sub(rate * gradient)
            agent._update_average(0.95)
            return metrics["trust_region/kl_average"].value

        return max(float(update()) for _ in range(50))


if __name__ == "__main__":
    absltest.main()
