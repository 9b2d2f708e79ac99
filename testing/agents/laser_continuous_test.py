"""Tests LASER with continuous actions and nested observations."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import observations, types
from laser_tf.agents import base, laser, laser_config, r2d2_config, registry
from testing import fakes, messages, numpy_reference

T, B, D, V = 4, 3, 2, 3
ACTION = specs.BoundedArray([D], np.float32, [-1.0, 0.0], [1.0, 4.0])
VECTOR = types.EnvironmentSpec(specs.Array([V], np.float32), ACTION)
NEST = types.EnvironmentSpec(
    {
        "image": observations.image_spec(6, 5, 1),
        "state": VECTOR.observation,
        "text": types.TextSpec(3),
    },
    ACTION,
)


def _config(**overrides) -> laser_config.LaserConfig:
    defaults = {"torso": "flat", "mlp_units": (6,), "reward_clip": "none", "discount": 0.9}
    defaults |= {"relevance": "behaviour", "kl_threshold": 1.0, "normalise_vectors": False}
    defaults |= {"mlp_activation": "relu"}  # Increases the distance between policies.
    return laser_config.LaserConfig(**defaults | overrides)


def _agent(spec: types.EnvironmentSpec = VECTOR, **overrides) -> laser.Laser:
    tf.keras.utils.set_random_seed(1)
    return registry.make(_config(**overrides), base.Context(spec, seed=3))


def _unroll(agent: laser.Laser, spec: types.EnvironmentSpec = VECTOR) -> types.Unroll:
    """Returns an unroll of the initial policy, then changes the weights; entry 1 has a reset."""
    generator = np.random.default_rng(0)
    blank = tf.nest.map_structure(tf.constant, observations.padding_steps(spec, (T + 1, B)))
    observation = tf.nest.map_structure(
        lambda leaf: tf.cast(tf.constant(generator.normal(3, 1, leaf.shape)), leaf.dtype),
        blank.observation,
    )
    is_first = np.zeros([T + 1, B], bool)
    is_first[2, 1] = True
    env_output = types.EnvOutput(
        observation,
        tf.constant(generator.normal(size=[T + 1, B]), tf.float32),
        tf.ones([T + 1, B]),
        tf.constant(is_first),
        tf.constant(generator.uniform(0, 1, [T + 1, B, D]), tf.float32),
    )
    acted, start = fakes.act(agent, env_output)
    for variable in agent.trainable_variables:
        variable.assign_add(generator.normal(0, 0.1, variable.shape).astype(np.float32))
    return types.Unroll(
        env_output,
        acted,
        start,
        task=tf.zeros([B], tf.int32),
        is_online=tf.constant([True, True, False]),
        is_own=tf.ones([B], tf.bool),
        importance_weight=tf.constant([1.0, 0.5, 0.25]),
    )


def _log_density(latent, mean, std) -> np.ndarray:
    return (-0.5 * ((latent - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)).sum(-1)


class _Naive:
    """The loss in float64 NumPy, given outputs [T, B, 2 D] and values."""

    def __init__(self, agent: laser.Laser, unroll: types.Unroll, outputs, values):
        self._config, self._unroll, self._shift = agent._config, unroll, agent._distribution._shift
        mean, std = self._parameters(outputs)
        mu_mean, mu_std = (
            leaf.numpy()[:-1].astype(np.float64) for leaf in unroll.agent_output.policy
        )
        self._latent = unroll.agent_output.extras.numpy()[:-1].astype(np.float64)
        kl = np.log(mu_std / std) + (std**2 + (mean - mu_mean) ** 2) / (2 * mu_std**2) - 0.5
        self.trusted = ~unroll.env_output.is_first.numpy()[1:]
        if self._config.relevance == "behaviour":
            self.trusted &= kl.sum(-1) < self._config.kl_threshold
        log_rhos = _log_density(self._latent, mean, std) - _log_density(
            self._latent, mu_mean, mu_std
        )
        self.targets, advantages, rhos = numpy_reference.vtrace(
            log_rhos,
            self._config.discount * unroll.env_output.discount.numpy()[1:],
            unroll.env_output.reward.numpy()[1:],
            values,
            self.trusted,
            self._config.rho_bar,
            self._config.c_bar,
            self._config.lambda_,
        )
        self._advantages = rhos * advantages

    def _parameters(self, outputs):
        mean, spread = np.split(np.asarray(outputs, np.float64), 2, axis=-1)
        return mean, 1e-3 + np.log1p(np.exp(spread + self._shift))

    def _entropy(self, mean, std):
        entropy = 0.5 * np.log(2 * np.pi * np.e * std**2)
        if self._config.continuous_policy == "squashed":
            z = np.linspace(-8, 8, 2_001)
            density = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
            latents = mean[..., None] + std[..., None] * z
            entropy = entropy - (density * 2 * np.log(np.cosh(latents))).sum(-1)
        return entropy.sum(-1)

    def loss(self, outputs, values) -> float:
        """Computes the loss of outputs [T, B, 2 D] and values [T, B] for constant targets."""
        mean, std = self._parameters(outputs)
        weight, trusted = self._unroll.importance_weight.numpy(), self.trusted
        log_probs = _log_density(self._latent, mean, std)
        entropy = self._entropy(mean, std)
        squares = (self.targets - values) ** 2
        explores = trusted & self._unroll.is_online.numpy()
        return (
            -(weight * self._advantages * log_probs)[trusted].sum()
            + self._config.baseline_cost * (weight * squares / 2)[trusted].sum()
            - self._config.entropy_cost * (weight * entropy)[explores].sum()
        )


def _heads(agent: laser.Laser, unroll: types.Unroll) -> tuple[np.ndarray, np.ndarray]:
    features, _ = agent._trunk(unroll.env_output, unroll.core_state)
    return (
        agent._outputs(features[:-1]).numpy().astype(np.float64),
        agent._state_values(features, unroll.task).numpy().astype(np.float64),
    )


def _head_gradients(agent: laser.Laser, unroll: types.Unroll) -> list[np.ndarray]:
    layers = (agent._policy_head, agent._state_values._layer)
    with tf.GradientTape() as tape:
        loss = agent.loss(unroll).loss
    return [g.numpy() for g in tape.gradient(loss, [layer.bias for layer in layers])]


class LossTest(parameterized.TestCase):
    @parameterized.product(
        policy=("squashed", "clipped"), relevance=("none", "behaviour"), threshold=(0.6, 10.0)
    )
    def test_loss_and_gradients_equal_reference(self, policy, relevance, threshold):
        agent = _agent(
            continuous_policy=policy, relevance=relevance, kl_threshold=threshold, rho_bar=1.3,
            c_bar=0.8, lambda_=0.95, entropy_cost=0.1,
        )  # fmt: skip
        unroll = _unroll(agent)
        outputs, values = _heads(agent, unroll)
        naive = _Naive(agent, unroll, outputs, values)
        if relevance == "behaviour" and threshold == 0.6:
            self.assertBetween(naive.trusted.mean(), 0.05, 0.85)  # Both decisions occur.
        output = agent.loss(unroll)
        np.testing.assert_allclose(output.loss, naive.loss(outputs, values[:-1]), rtol=1e-3)
        # A bias shifts the outputs of all steps, so central differences give its gradient.
        step = 1e-5
        expected = [
            (naive.loss(outputs + move, values[:-1]) - naive.loss(outputs - move, values[:-1]))
            / (2 * step)
            for move in step * np.eye(2 * D)
        ]
        of_value = (
            naive.loss(outputs, values[:-1] + step) - naive.loss(outputs, values[:-1] - step)
        ) / (2 * step)
        actual, actual_of_value = _head_gradients(agent, unroll)
        np.testing.assert_allclose(actual, expected, rtol=2e-3, atol=1e-3)
        np.testing.assert_allclose(actual_of_value, [of_value], rtol=2e-3, atol=1e-3)

    @parameterized.parameters("none", "behaviour")
    def test_masked_nan_keeps_loss_and_gradient(self, relevance):
        agent = _agent(relevance=relevance)
        unroll = _unroll(agent)
        poisoned = np.zeros([T + 1, B, 1], bool)
        poisoned[1, 1] = poisoned[T] = True  # Between episodes, and the last step.

        def poison(leaf):
            return tf.where(poisoned, np.float32(np.nan), leaf)

        answered = unroll.agent_output
        bad = unroll._replace(agent_output=tf.nest.map_structure(poison, answered))
        clean, dirty = agent.loss(unroll), agent.loss(bad)
        np.testing.assert_array_equal(dirty.loss, clean.loss)
        with tf.GradientTape() as tape:
            loss = agent.loss(bad).loss
        for gradient in tape.gradient(loss, agent.trainable_variables):
            self.assertTrue(np.isfinite(gradient).all())
        for name, value in dirty.metrics.items():
            np.testing.assert_array_equal(value, clean.metrics[name], name)

    def test_nan_behaviour_is_outside_trust_region(self):
        agent = _agent()
        unroll = _unroll(agent)
        policy = tf.nest.map_structure(lambda leaf: leaf * np.nan, unroll.agent_output.policy)
        bad = unroll._replace(agent_output=unroll.agent_output._replace(policy=policy))
        self.assertEqual(agent.loss(bad).loss, 0.0)
        for gradient in _head_gradients(agent, bad):
            np.testing.assert_array_equal(gradient, 0)

    def test_every_weight_receives_gradient(self):
        agent = _agent(NEST, core="lstm", core_size=4, relevance="none", normalise_vectors=True)
        unroll = _unroll(agent, NEST)
        with tf.GradientTape() as tape:
            loss = agent.loss(unroll).loss
        gradients = tape.gradient(loss, agent.trainable_variables)
        self.assertTrue(all(g is not None for g in gradients))
        self.assertTrue(np.isfinite(loss))


class OptionsTest(absltest.TestCase):
    def test_implied_relevance_raises_in_one_line(self):
        with messages.raises(ValueError, "relevance", "implied") as c:
            _agent(relevance="implied")
        self.assertNotIn("\n", str(c.exception))

    def test_pixel_control_with_continuous_actions_raises(self):
        for spec in (VECTOR, NEST):
            with messages.raises(ValueError, "pixel_control_cost"):
                _agent(spec, pixel_control_cost=1.0)

    def test_preferences_of_continuous_actions_raise(self):
        agent = _agent()
        output, _ = agent.act(*_blank_step(agent, VECTOR, 2))
        with self.assertRaises(ValueError):
            agent.action_preferences(output)

    def test_r2d2_with_continuous_actions_raises(self):
        with messages.raises(ValueError, 2):
            registry.make(r2d2_config.R2D2Config(torso="flat"), base.Context(NEST))


def _blank_step(agent: base.Agent, spec: types.EnvironmentSpec, size: int):
    step = tf.nest.map_structure(tf.constant, observations.padding_steps(spec, (size,)))
    return step, agent.initial_state(size)


class ActTest(parameterized.TestCase):
    def test_fresh_policy_is_similar_in_all_states(self):
        # Far from the middle of the range the squashing has no gradient.
        agent = _agent()
        step, state = _blank_step(agent, VECTOR, 500)
        observation = tf.random.stateless_normal([500, V], [1, 2], stddev=3.0)
        output, _ = agent.act(step._replace(observation=observation), state)
        mean, std = output.policy
        np.testing.assert_allclose(mean, np.zeros([500, D]), atol=0.3)
        np.testing.assert_allclose(std, np.full([500, D], 0.5), atol=0.15)

    def test_act_output_matches_spec_and_log_probs(self):
        agent = _agent(NEST, core="lstm", core_size=4)
        output, _ = agent.act(*_blank_step(agent, NEST, 500))
        for action in output.action.numpy():
            ACTION.validate(action)
        self.assertGreater(output.action.numpy().std(0).min(), 0.05)
        log_probs = agent._distribution.log_prob(output.policy, output.action, output.extras)
        mean, std = (leaf.numpy().astype(np.float64) for leaf in output.policy)
        expected = _log_density(output.extras.numpy(), mean, std)
        np.testing.assert_allclose(log_probs, expected, rtol=1e-4, atol=1e-4)
        greedy = agent.greedy_action(output)
        np.testing.assert_allclose(greedy, agent._distribution.mode(output.policy))

    def test_single_steps_equal_unroll(self):
        agent = _agent(NEST, core="lstm", core_size=4)
        unroll = _unroll(agent, NEST)
        features, _ = agent._trunk(unroll.env_output, unroll.core_state)
        mean, _ = agent._distribution.parameters(agent._outputs(features))
        state = unroll.core_state
        for step in range(T + 1):
            one = tf.nest.map_structure(lambda leaf, step=step: leaf[step], unroll.env_output)
            output, state = agent.act(one, state)
            np.testing.assert_allclose(output.policy.mean, mean[step], atol=1e-5)

    @parameterized.parameters(
        ("laser", "none", False), ("laser", "lstm", False), ("laser", "lstm", True),
        ("r2d2", "lstm", False), ("reactor", "lstm", False),
    )  # fmt: skip
    def test_dynamic_batch_size_is_supported(self, kind, core, continuous):
        spec = NEST if continuous else NEST._replace(action=specs.DiscreteArray(3))
        relevance = {"relevance": "behaviour"} if kind == "laser" else {}
        config = registry.config_class(kind)(torso="flat", core=core, core_size=4, **relevance)
        agent = registry.make(config, base.Context(spec))

        signature = tf.nest.map_structure(
            lambda leaf: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype),
            _blank_step(agent, spec, 1),
        )
        act = tf.function(agent.act, input_signature=signature, autograph=False)
        for size in (1, 5, 2):
            arguments = _blank_step(agent, spec, size)
            output, state = act(*arguments)
            expected, expected_state = agent.act(*arguments)
            tf.nest.map_structure(
                lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), state, expected_state
            )
            self.assertEqual(output.action.shape, expected.action.shape)
            tf.nest.map_structure(
                lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5),
                (output.policy, output.extras if kind == "r2d2" else ()),
                (expected.policy, expected.extras if kind == "r2d2" else ()),
            )


class NormalisationTest(absltest.TestCase):
    def test_only_loss_updates_moments(self):
        agent = _agent(normalise_vectors=True)
        moments = agent._trunk.moments
        unroll = _unroll(agent)  # Acts.
        np.testing.assert_array_equal(moments[0], np.zeros(V))
        agent.loss(unroll)
        seen = unroll.env_output.observation.numpy()[:-1].reshape(-1, V)
        np.testing.assert_allclose(moments[0], seen.mean(0), rtol=1e-4)
        np.testing.assert_allclose(moments[1], seen.var(0), rtol=1e-3)
        acting = {variable.ref() for variable in agent.acting_variables}
        self.assertTrue({moment.ref() for moment in moments} <= acting)

    def test_blank_unrolls_keep_moments(self):
        agent = _agent(normalise_vectors=True)
        unroll = _unroll(agent)
        is_first = np.zeros([T + 1, B], bool)
        is_first[:, 1] = True  # An entry without transitions.
        env_output = unroll.env_output._replace(is_first=tf.constant(is_first))
        agent.loss(unroll._replace(env_output=env_output))
        seen = unroll.env_output.observation.numpy()[:-1, [0, 2]].reshape(-1, V)
        np.testing.assert_allclose(agent._trunk.moments[0], seen.mean(0), rtol=1e-4)


if __name__ == "__main__":
    absltest.main()
