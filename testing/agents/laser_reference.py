"""LASER's loss in float64 NumPy for discrete and continuous actions."""

import numpy as np

from laser_tf import types
from laser_tf.agents import laser
from testing import numpy_reference


class _Categorical:
    """Formulas of log-probabilities float64 [..., A]."""

    def __init__(self, agent: laser.Laser, unroll: types.Unroll):
        self._action = unroll.agent_output.action.numpy()[:-1, :, None]
        self.behaviour = self.parameters(unroll.agent_output.policy[:-1])

    def parameters(self, outputs):
        return numpy_reference.log_softmax(outputs)

    def log_prob(self, log_pi):
        return np.take_along_axis(log_pi, self._action, axis=-1)[..., 0]

    def entropy(self, log_pi):
        return -(np.exp(log_pi) * log_pi).sum(-1)

    def kl(self, log_p, log_q):
        return (np.exp(log_p) * (log_p - log_q)).sum(-1)


class _Gaussian:
    """Formulas of means and standard deviations, float64 [..., D] each."""

    def __init__(self, agent: laser.Laser, unroll: types.Unroll):
        self._shift = agent._distribution._shift
        self._squashed = agent._config.continuous_policy == "squashed"
        self._latent = unroll.agent_output.extras.numpy()[:-1].astype(np.float64)
        self.behaviour = [leaf.numpy()[:-1].astype(float) for leaf in unroll.agent_output.policy]

    def parameters(self, outputs):
        mean, spread = np.split(np.asarray(outputs, np.float64), 2, axis=-1)
        std = 0.3 + 1.7 / (1 + np.exp(-spread - self._shift))
        return 3 * np.tanh(mean / 3), std

    def log_prob(self, parameters):
        return numpy_reference.gaussian_log_density(self._latent, *parameters)

    def entropy(self, parameters):
        return numpy_reference.gaussian_entropy(*parameters, self._squashed)

    def kl(self, p, q):
        return numpy_reference.gaussian_kl_divergence(p, q)


class Reference:
    """Algorithm 1 for constant targets, given outputs [T, B, P] and values [T + 1, B]."""

    def __init__(self, agent: laser.Laser, unroll: types.Unroll, outputs, values):
        self._config, self._unroll, config = agent._config, unroll, agent._config
        is_discrete = unroll.agent_output.extras == ()
        self._family = (_Categorical if is_discrete else _Gaussian)(agent, unroll)
        policy, behaviour = self._family.parameters(outputs), self._family.behaviour
        self.trusted = ~unroll.env_output.is_first.numpy()[1:]
        if config.trust_region == "implied":
            pi, mu = (np.exp(p).reshape(-1, outputs.shape[-1]) for p in (policy, behaviour))
            implied = numpy_reference.implied_policy(pi, mu, config.rho_bar)
            self.relevance = numpy_reference.kl_divergence(pi, implied).reshape(self.trusted.shape)
        else:
            self.relevance = self._family.kl(policy, behaviour)
        if config.trust_region != "none":
            self.trusted &= self.relevance < config.kl_threshold
        rewards = unroll.env_output.reward.numpy()[1:]
        self._targets, advantages, rhos = numpy_reference.vtrace(
            self._family.log_prob(policy) - self._family.log_prob(behaviour),
            config.discount * unroll.env_output.discount.numpy()[1:],
            np.clip(rewards, -1, 1) if config.reward_clip == "unit" else rewards,
            values,
            self.trusted,
            config.rho_bar,
            config.c_bar,
            config.lambda_,
        )
        self._advantages = rhos * advantages
        squares = np.where(self.trusted, 0.5 * (self._targets - values[:-1]) ** 2, 0.0)
        self.priorities = 1e-3 + squares.sum(0) / np.maximum(1, self.trusted.sum(0))

    def loss(self, outputs, values) -> float:
        """Computes the loss of outputs [T, B, P] and values [T, B]."""
        policy, config = self._family.parameters(outputs), self._config
        weight, trusted = self._unroll.importance_weight.numpy(), self.trusted
        explores = trusted & (self._unroll.is_online.numpy() | config.entropy_on_replay)
        squares = (self._targets - values) ** 2
        return (
            -(weight * self._advantages * self._family.log_prob(policy))[trusted].sum()
            + config.baseline_cost * (weight * squares / 2)[trusted].sum()
            - config.entropy_cost * (weight * self._family.entropy(policy))[explores].sum()
        )
