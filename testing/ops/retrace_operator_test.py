"""ACER's proposition 1, exactly, on random finite Markov decision processes.

    B Q = E_mu[sum_t gamma^t (prod_i min(c, rho_i))
                     (r_t + gamma E_pi [1 - c / rho]_+ Q(x_{t+1}, .))]      (equation 20)

is a contraction about Q^pi, and the Retrace operator; with c = 0 it is Bellman's, with c = infinity
importance sampling. The expectations are sums over states and actions, weights are the op's own.
"""

import itertools

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import importance_truncation, retrace

GAMMA = 0.8
INFINITY, ZERO = 1e9, 1e-9  # as clips
SEEDS = range(5)


class _Process:
    """X states, A actions; indices [x, a] are flattened to x A + a."""

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
            np.eye(self.size) - GAMMA * self.then(self.pi), self.reward.ravel()
        )

    def then(self, weights: np.ndarray) -> np.ndarray:
        """P(x'|x, a) w(x', a'): from [x, a] to [x', a']."""
        return np.einsum("xay,yb->xayb", self.transition, weights).reshape(self.size, self.size)

    def truncated(self, c: float) -> np.ndarray:
        """mu(a|x) min(c, rho)."""
        log_rhos = tf.constant(self.log_rhos, tf.float64)
        return self.mu * importance_truncation.truncated(log_rhos, c).numpy()

    def correction(self, c: float) -> np.ndarray:
        """pi(a|x) [1 - c / rho]_+."""
        log_rhos = tf.constant(self.log_rhos, tf.float64)
        return self.pi * importance_truncation.correction(log_rhos, c).numpy()

    def operator_b(self, q: np.ndarray, c: float) -> np.ndarray:
        """Equation 20."""
        rewards = self.reward.ravel() + GAMMA * self.then(self.correction(c)) @ q
        return np.linalg.solve(np.eye(self.size) - GAMMA * self.then(self.truncated(c)), rewards)

    def operator_retrace(self, q: np.ndarray, c: float) -> np.ndarray:
        """Q + (I - gamma P^{c mu})^-1 (r + gamma P^pi Q - Q) (Munos et al. 2016)."""
        errors = self.reward.ravel() + GAMMA * self.then(self.pi) @ q - q
        traces = np.eye(self.size) - GAMMA * self.then(self.truncated(c))
        return q + np.linalg.solve(traces, errors)


class PropositionTest(parameterized.TestCase):
    @parameterized.parameters(*itertools.product(SEEDS, (0.3, 1.0, 2.5)))
    def test_it_contracts_by_gamma_about_the_policys_values(self, seed, c):
        process = _Process(seed)
        error = np.abs(process.operator_b(process.q, c) - process.q_pi).max()
        self.assertLessEqual(error, GAMMA * np.abs(process.q - process.q_pi).max() + 1e-12)
        np.testing.assert_allclose(process.operator_b(process.q_pi, c), process.q_pi, atol=1e-10)

    @parameterized.parameters(*itertools.product(SEEDS, (0.3, 1.0, 2.5)))
    def test_it_is_retrace(self, seed, c):
        process = _Process(seed)
        np.testing.assert_allclose(
            process.operator_b(process.q, c), process.operator_retrace(process.q, c), atol=1e-10
        )

    @parameterized.parameters(*SEEDS)
    def test_with_c_0_it_is_bellmans_operator(self, seed):
        process = _Process(seed)
        bellman = process.reward.ravel() + GAMMA * process.then(process.pi) @ process.q
        np.testing.assert_allclose(process.operator_b(process.q, ZERO), bellman, atol=1e-7)

    @parameterized.parameters(*SEEDS)
    def test_with_c_infinite_it_is_importance_sampling(self, seed):
        # Nothing of Q is left: the expectation of weighted rewards under mu.
        process = _Process(seed)
        np.testing.assert_allclose(process.operator_b(process.q, INFINITY), process.q_pi, atol=1e-7)

    @parameterized.parameters(*itertools.product(range(3), (0.3, 1.0, 2.5)))
    def test_the_op_has_retraces_expectation(self, seed, c):
        """All trajectories of T transitions, each with its probability under mu."""
        process, T = _Process(seed, states=2, actions=2), 4
        choices = np.array(list(itertools.product(range(2), repeat=2 * T)))
        actual = np.zeros([2, 2])
        for x, a in np.ndindex(2, 2):
            states = np.concatenate([np.full([len(choices), 1], x), choices[:, :T]], axis=1).T
            actions = np.concatenate([np.full([len(choices), 1], a), choices[:, T:]], axis=1).T
            arrived = process.transition[states[:-1], actions[:-1], states[1:]].prod(0)
            chance = arrived * process.mu[states[1:], actions[1:]].prod(0)
            q = process.q.reshape(2, 2)
            log_rhos = tf.constant(process.log_rhos[states[:-1], actions[:-1]])
            targets = retrace.retrace(
                tf.constant(process.reward[states[:-1], actions[:-1]]),
                tf.fill([T, len(choices)], tf.constant(GAMMA, tf.float64)),
                tf.constant(q[states[:-1], actions[:-1]]),
                tf.constant((process.pi * q).sum(-1)[states]),
                importance_truncation.truncated(log_rhos, c),
                tf.ones([T, len(choices)], tf.bool),
            )
            actual[x, a] = (chance * targets[0].numpy()).sum()
        errors = process.reward.ravel() + GAMMA * process.then(process.pi) @ process.q - process.q
        expected, term = process.q.copy(), errors
        for _ in range(T):
            expected += term
            term = GAMMA * process.then(process.truncated(c)) @ term
        np.testing.assert_allclose(actual.ravel(), expected, atol=1e-10)


if __name__ == "__main__":
    absltest.main()
