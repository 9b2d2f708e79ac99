"""Tests of proposition 1 of ACER with exact expectations on random finite MDPs.

    B Q = E_mu[sum_t gamma^t (prod_i min(c, rho_i))
                     (r_t + gamma E_pi [1 - c / rho]_+ Q(x_{t+1}, .))]      (equation 20)

The operator B contracts to Q^pi and equals the Retrace operator. It equals the Bellman operator for
c = 0, and importance sampling for an infinite c. Expectations are sums over states and actions. The
op computes the weights.
"""

import itertools

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import importance_truncation, retrace

GAMMA = 0.8
INFINITY, ZERO = 1e9, 1e-9  # values of c
SEEDS = (0, 1)


class _Mdp:
    """Random MDP with X states and A actions, whose pairs [x, a] have the index x A + a."""

    def __init__(self, seed: int, states: int = 4, actions: int = 3):
        rng = np.random.default_rng(seed)
        self.states, self.actions = states, actions
        self.transition = rng.dirichlet(np.ones(states), [states, actions])  # [x, a, x']
        self.reward = rng.normal(size=[states, actions])
        self.pi, self.mu = (rng.dirichlet(np.full(actions, 0.7), states) for _ in range(2))
        self.log_rhos = np.log(self.pi / self.mu)
        self.size = states * actions
        self.q = rng.normal(size=self.size)
        self.q_pi = np.linalg.solve(
            np.eye(self.size) - GAMMA * self.next_pairs(self.pi), self.reward.ravel()
        )

    def next_pairs(self, weights: np.ndarray) -> np.ndarray:
        """Returns the matrix P(x'|x, a) w(x', a') from pairs [x, a] to pairs [x', a']."""
        return np.einsum("xay,yb->xayb", self.transition, weights).reshape(self.size, self.size)

    def truncated(self, c: float) -> np.ndarray:
        """Returns mu(a|x) min(c, rho)."""
        log_rhos = tf.constant(self.log_rhos, tf.float64)
        return self.mu * importance_truncation.truncated_ratios(log_rhos, c).numpy()

    def correction(self, c: float) -> np.ndarray:
        """Returns pi(a|x) [1 - c / rho]_+."""
        log_rhos = tf.constant(self.log_rhos, tf.float64)
        return self.pi * importance_truncation.correction_weights(log_rhos, c).numpy()

    def operator_b(self, q: np.ndarray, c: float) -> np.ndarray:
        """Returns B Q of equation 20."""
        rewards = self.reward.ravel() + GAMMA * self.next_pairs(self.correction(c)) @ q
        traces = np.eye(self.size) - GAMMA * self.next_pairs(self.truncated(c))
        return np.linalg.solve(traces, rewards)

    def operator_retrace(self, q: np.ndarray, c: float) -> np.ndarray:
        """Returns Q + (I - gamma P^{c mu})^-1 (r + gamma P^pi Q - Q) (Munos et al. 2016)."""
        errors = self.reward.ravel() + GAMMA * self.next_pairs(self.pi) @ q - q
        traces = np.eye(self.size) - GAMMA * self.next_pairs(self.truncated(c))
        return q + np.linalg.solve(traces, errors)


class PropositionTest(parameterized.TestCase):
    @parameterized.product(seed=SEEDS, c=(ZERO, 0.3, 1.0, 2.5, INFINITY))
    def test_operator_contracts_to_q_pi_by_gamma(self, seed, c):
        mdp = _Mdp(seed)
        once = mdp.operator_b(mdp.q, c)
        bound = GAMMA * np.abs(mdp.q - mdp.q_pi).max()
        self.assertLessEqual(np.abs(once - mdp.q_pi).max(), bound + 1e-7)
        np.testing.assert_allclose(mdp.operator_b(mdp.q_pi, c), mdp.q_pi, atol=1e-7)
        np.testing.assert_allclose(once, mdp.operator_retrace(mdp.q, c), atol=1e-7)
        if c == ZERO:  # The Bellman operator.
            bellman = mdp.reward.ravel() + GAMMA * mdp.next_pairs(mdp.pi) @ mdp.q
            np.testing.assert_allclose(once, bellman, atol=1e-7)
        if c == INFINITY:  # Importance sampling, independent of Q.
            np.testing.assert_allclose(once, mdp.q_pi, atol=1e-7)

    @parameterized.parameters(*itertools.product(SEEDS, (0.3, 2.5)))
    def test_op_has_the_expectation_of_retrace(self, seed, c):
        # The expectation under mu is over all trajectories of T transitions.
        mdp, T = _Mdp(seed, states=2, actions=2), 4
        choices = np.array(list(itertools.product(range(2), repeat=2 * T)))
        actual = np.zeros([2, 2])
        for x, a in np.ndindex(2, 2):
            states = np.concatenate([np.full([len(choices), 1], x), choices[:, :T]], axis=1).T
            actions = np.concatenate([np.full([len(choices), 1], a), choices[:, T:]], axis=1).T
            probability = mdp.transition[states[:-1], actions[:-1], states[1:]].prod(0)
            probability = probability * mdp.mu[states[1:], actions[1:]].prod(0)
            q = mdp.q.reshape(2, 2)
            log_rhos = tf.constant(mdp.log_rhos[states[:-1], actions[:-1]])
            targets = retrace.retrace(
                tf.constant(mdp.reward[states[:-1], actions[:-1]]),
                tf.fill([T, len(choices)], tf.constant(GAMMA, tf.float64)),
                tf.constant(q[states[:-1], actions[:-1]]),
                tf.constant((mdp.pi * q).sum(-1)[states]),
                importance_truncation.truncated_ratios(log_rhos, c),
                tf.ones([T, len(choices)], tf.bool),
            )
            actual[x, a] = (probability * targets[0].numpy()).sum()
        errors = mdp.reward.ravel() + GAMMA * mdp.next_pairs(mdp.pi) @ mdp.q - mdp.q
        expected, term = mdp.q.copy(), errors
        for _ in range(T):
            expected += term
            term = GAMMA * mdp.next_pairs(mdp.truncated(c)) @ term
        np.testing.assert_allclose(actual.ravel(), expected, atol=1e-10)


if __name__ == "__main__":
    absltest.main()
