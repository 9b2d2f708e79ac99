"""Tests the gradients of A3C, TIS and their trust-region variants against float64 loops."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from configs import acer
from laser_tf.agents import a3c_config
from laser_tf.replay.schemes import registry as schemes
from laser_tf.training import run_config
from testing import messages, numpy_reference
from testing.agents import acer_test
from testing.agents.acer_test import DISCRETE, STD, B, T


def _agent(spec, **overrides):
    return acer_test.agent_of(spec, kind=a3c_config.KIND, **overrides)


class _Naive:
    """Appendix E.2 as loops over an unroll, given outputs and values [T + 1, B, ...]."""

    def __init__(self, agent, unroll, outputs, average, values):
        self._config, self._unroll = agent._config, unroll
        self.mask = ~unroll.env_output.is_first.numpy()[1:]
        values = np.asarray(values, np.float64)
        size = outputs.shape[-1]
        self.direction, self.constrained = np.zeros([T, B, size]), 0
        self.value_errors, self.weights = np.zeros([T + 1, B]), np.full([T, B], np.nan)
        weight = unroll.importance_weight.numpy()
        discrete = outputs.dtype == tf.float32 and unroll.agent_output.extras == ()
        look = self._discrete if discrete else self._continuous
        looked = {}
        for t, b in np.ndindex(T, B):
            if self.mask[t, b]:
                looked[t, b] = look(t, b, outputs[t, b].numpy(), average[t, b].numpy())
        for (t, b), (_, score, k, entropy) in looked.items():
            ratio, total, factor = 1.0, 0.0, 1.0
            for i in range(t, T):
                if not self.mask[i, b]:
                    break
                ratio *= looked[i, b][0]
                total += factor * float(unroll.env_output.reward[i + 1, b])
                factor *= self._config.discount * float(unroll.env_output.discount[i + 1, b])
                end = values[i + 1, b]
                if not factor:  # A lost life ends the return and its weight.
                    break
            error = total + factor * end - values[t, b]
            weights = 1.0
            if self._config.importance == "truncated":
                weights = min(self._config.truncation, ratio)
            self.weights[t, b] = weights
            g = weights * error * score + self._config.entropy_cost * entropy
            g = weight[b] * g
            self.constrained += k @ g > self._config.delta
            self.direction[t, b] = (
                numpy_reference.constrain(g, k, self._config.delta)
                if self._config.trust_region
                else g
            )
            self.value_errors[t, b] = -weight[b] * weights * error

    def _discrete(self, t, b, logits, average):
        """Returns importance ratio, score, k and the gradient of the entropy."""
        phi = numpy_reference.softmax(logits)
        chosen = int(self._unroll.agent_output.action[t, b])
        mu = numpy_reference.softmax(self._unroll.agent_output.policy[t, b])
        score = np.zeros(len(phi))
        score[chosen] = 1 / phi[chosen]
        k = -numpy_reference.softmax(average) / phi
        return phi[chosen] / mu[chosen], score, k, -np.log(phi) - 1

    def _continuous(self, t, b, mean, average):
        latent = self._unroll.agent_output.extras[t, b].numpy().astype(np.float64)
        mu = self._unroll.agent_output.policy.mean[t, b].numpy()
        ratio = np.exp((((latent - mu) ** 2) - (latent - mean) ** 2).sum() / (2 * STD**2))
        return ratio, (latent - mean) / STD**2, (mean - average) / STD**2, np.zeros(len(mean))


class A3CTest(parameterized.TestCase):
    @parameterized.product(
        actions=tuple(acer_test.SPECS),
        importance=("none", "truncated"),
        trust_region=(False, True),
    )
    def test_gradient_equals_appendix_e2(self, actions, importance, trust_region):
        spec = acer_test.SPECS[actions]
        agent = _agent(spec, importance=importance, trust_region=trust_region)
        unroll = acer_test.unroll_of(agent, spec)
        features, outputs, average = acer_test.networks(agent, unroll)
        naive = _Naive(agent, unroll, outputs, average, agent._value(features)[..., 0])
        self.assertGreater(naive.constrained, 2)
        if importance == "truncated":  # Weights above and below the clip.
            self.assertGreater((naive.weights == 1.2).sum(), 1)
            self.assertGreater((naive.weights < 1.2).sum(), 1)

        def by_hand() -> tf.Tensor:
            features, outputs, _ = acer_test.networks(agent, unroll)
            phi = tf.nn.softmax(outputs) if spec is DISCRETE else outputs
            policy = -tf.reduce_sum(tf.constant(naive.direction, tf.float32) * phi[:-1])
            errors = tf.constant(naive.value_errors, tf.float32)
            values = agent._value(features)[..., 0]
            return policy + agent._config.critic_cost * tf.reduce_sum(errors * values)

        variables = agent.trainable_variables
        expected = acer_test.gradients_of(by_hand, variables)
        actual = acer_test.gradients_of(lambda: agent.loss(unroll).loss, variables)
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=5e-4, atol=5e-4)

    @parameterized.parameters(*acer_test.SPECS)
    def test_nan_between_episodes_is_ignored(self, actions):
        spec = acer_test.SPECS[actions]
        agent = _agent(spec, importance="truncated")
        unroll = acer_test.unroll_of(agent, spec, np.nan)
        for gradient in acer_test.gradients_of(
            lambda: agent.loss(unroll).loss, agent.trainable_variables
        ):
            self.assertTrue(np.isfinite(gradient).all())

    @parameterized.parameters("replay_only", "mixed", "alternating")
    def test_on_policy_it_does_not_learn_from_replay(self, scheme):
        values = acer.get_config("control_a3c").to_dict()
        run_config.parse(values)
        values["replay"] = schemes.switched(values["replay"], scheme)
        with messages.raises(ValueError, "config.agent", "agent.importance=truncated"):
            run_config.parse(values)
        values["agent"]["importance"] = "truncated"
        run_config.parse(values)

    def test_unknown_importance_raises(self):
        with messages.raises(ValueError, "importance"):
            a3c_config.A3CConfig(importance="some")


if __name__ == "__main__":
    absltest.main()
