"""Tests of propositions 1 to 5 of LASER (appendix C) with exact expectations of the ops.

Expectations are weighted sums over all states, actions and trajectories, without sampling errors.
Policies are arrays of probabilities [x, a].
"""

import itertools
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import categorical, policy_gradient, trust_region, vtrace


def _log(probabilities):
    return tf.math.log(tf.cast(probabilities, tf.float32))


def _bandit_vtrace(logits, mu, q, value=0.0, rho_bar=1.0):
    """Computes V-trace for all pairs (x, a), where reward q[x, a] ends the episode."""
    x, a = (tf.constant(index.ravel()) for index in np.indices(q.shape))
    log_rhos = categorical.log_importance_ratio(tf.gather(logits, x), tf.gather(_log(mu), x), a)
    return vtrace.vtrace(
        log_rhos=log_rhos[None],
        discounts=tf.zeros([1, q.size]),
        rewards=tf.constant(q.reshape([1, -1]), tf.float32),
        values=tf.fill([2, q.size], value),
        trusted=tf.ones([1, q.size], tf.bool),
        rho_bar=rho_bar,
    )


def _ascent_direction(logits, mu, q, weights, rho_bar=1.0):
    """Returns E[rho Q(x, a) grad log pi(a|x)], the ascent direction of equation 2.

    Args:
      logits: Logits of pi, [x, a].
      mu: Policy that samples the actions, [x, a].
      q: Action values, [x, a]. As in the paper, no baseline is subtracted.
      weights: Probabilities of the states, [x].
      rho_bar: Clip of the importance ratios.
    """
    logits = tf.cast(logits, tf.float32)
    output = _bandit_vtrace(logits, mu, q, rho_bar=rho_bar)
    probabilities = tf.cast(weights, tf.float32)[:, None] * tf.cast(mu, tf.float32)
    x, a = (tf.constant(index.ravel()) for index in np.indices(q.shape))
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = policy_gradient.policy_gradient_loss(
            categorical.log_probability(tf.gather(logits, x), a)[None],
            tf.reshape(probabilities, [1, -1]) * output.rhos * output.advantages,
            mask=tf.ones([1, q.size], tf.bool),
        )
    return -tf.convert_to_tensor(tape.gradient(loss, logits))


def _mixed_ascent_direction(logits, mu, q, online_weights, replay_weights, rho_bar=1.0):
    """Returns the direction of equation 11 for online data from pi and replay from mu."""
    online = _ascent_direction(logits, tf.nn.softmax(logits), q, online_weights, rho_bar)
    return online + _ascent_direction(logits, mu, q, replay_weights, rho_bar)


class Proposition1Test(parameterized.TestCase):
    """Tests that V-trace estimates the value of the implied policy, not of pi."""

    @parameterized.parameters(0.3, 1e-6)
    def test_implied_policy_of_opposite_policies_is_uniform(self, phi):
        pi, mu = np.array([[1 - phi, phi]]), np.array([[phi, 1 - phi]])
        implied = trust_region.implied_policy_log_probabilities(_log(pi), _log(mu))
        np.testing.assert_allclose(tf.exp(implied), [[0.5, 0.5]], rtol=1e-5)


class Proposition2Test(absltest.TestCase):
    """Tests that the off-policy V-trace gradient may miss the optimal policy."""

    q, mu, pi = np.array([[2.0, 5.0]]), np.array([[0.9, 0.1]]), np.array([[0.5, 0.5]])

    def test_implied_action_values_swap_the_argmax(self):
        # Equation 10: Q^omega = omega Q with omega = min(1, rho_bar mu / pi) = rho mu / pi.
        omega = _bandit_vtrace(_log(self.pi), self.mu, self.q).rhos * self.mu / self.pi
        np.testing.assert_allclose(omega * self.q, [[2.0, 1.0]], rtol=1e-6)

    def test_off_policy_gradient_prefers_the_worse_action(self):
        on_policy = _ascent_direction(_log(self.pi), self.pi, self.q, [1.0])
        off_policy = _ascent_direction(_log(self.pi), self.mu, self.q, [1.0])
        # The gradient in the logits is pi(a) (Q(a) - E_pi Q). Off policy, Q is Q^omega = (2, 1).
        np.testing.assert_allclose(on_policy, [[-0.75, 0.75]], rtol=1e-5)
        np.testing.assert_allclose(off_policy, [[0.25, -0.25]], rtol=1e-5)


class Proposition3Test(parameterized.TestCase):
    """Tests that a share alpha of online data restores the argmax."""

    @parameterized.parameters(1.0, 1.5)  # below 1, rho_bar would clip online data, too
    def test_equation_13_is_the_exact_bound_of_online_data(self, rho_bar):
        num_states, num_actions = 64, 4
        rng = np.random.default_rng(0)
        q = rng.normal(size=[num_states, num_actions])
        pi, mu = rng.dirichlet(np.ones(num_actions), size=[2, num_states])
        d_pi, d_mu = rng.dirichlet(np.full(num_states, 5.0), size=2)

        rhos = _bandit_vtrace(_log(pi), mu, q, rho_bar=rho_bar).rhos.numpy().reshape(q.shape)
        q_omega = rhos * mu / pi * q
        best = q.argmax(axis=1)
        bound = np.array(
            [
                max(
                    (q_omega[x, b] - q_omega[x, best[x]]) / (q[x, best[x]] - q[x, b])
                    for b in range(num_actions)
                    if b != best[x]
                )
                * (d_mu[x] / d_pi[x])
                for x in range(num_states)
            ]
        )
        # With a negative bound, replay alone preserves the argmax.
        needs_online = bound > 0
        self.assertBetween(needs_online.sum(), 5, num_states - 5)

        def argmax_of_q_alpha(ratio):
            alpha = ratio / (1 + ratio)  # differs between states, which do not interact
            direction = _mixed_ascent_direction(
                _log(pi), mu, q, alpha * d_pi, (1 - alpha) * d_mu, rho_bar
            )
            return np.argmax(direction / pi, axis=1)  # Q^alpha - E_pi Q^alpha

        above = argmax_of_q_alpha(np.maximum(0.0, 1.01 * bound))
        below = argmax_of_q_alpha(np.maximum(0.0, 0.99 * bound))
        np.testing.assert_array_equal(above, best)
        np.testing.assert_array_equal(below != best, needs_online)


S, A, T, GAMMA = 3, 2, 3, 0.9


class Mdp(NamedTuple):
    rewards: np.ndarray  # [x, a]
    transitions: np.ndarray  # [x, a, y]

    def bellman(self, policy, values):
        """Applies the Bellman operator of a policy to values [y]; returns [x]."""
        return np.sum(policy * (self.rewards + GAMMA * self.transitions @ values), axis=1)

    def value(self, policy):
        """Returns the values [x] of a policy."""
        transitions = np.einsum("xa,xay->xy", policy, self.transitions)
        return np.linalg.solve(np.eye(S) - GAMMA * transitions, self.bellman(policy, np.zeros(S)))


class Problem(NamedTuple):
    """MDP with a target policy pi and behaviour policies mu_z, where mu_0 = pi."""

    mdp: Mdp
    pi: np.ndarray  # [x, a]
    mus: np.ndarray  # [z, x, a]
    p_z: np.ndarray  # [z]
    bootstraps: list[np.ndarray]  # [x] each

    @classmethod
    def random(cls, seed):
        rng = np.random.default_rng(seed)
        mdp = Mdp(rng.normal(size=[S, A]), rng.dirichlet(np.ones(S), size=[S, A]))
        policies = 0.9 * rng.dirichlet(np.ones(A), size=[5, S]) + 0.1 / A
        # The worst cases in the sup norm are the corners of a cube around the fixed point.
        corners = [np.array(signs) for signs in itertools.product([-1.0, 1.0], repeat=S)]
        value = mdp.value(policies[0])
        return cls(
            mdp, policies[0], policies, rng.dirichlet(np.ones(5)), [value + c for c in corners]
        )

    def trusted(self, relevance, rho_bar):
        """Returns M_beta,pi, bool [z, x], with pi and the more relevant half of behaviours."""
        pi = np.broadcast_to(self.pi, self.mus.shape)
        beta = (
            trust_region.implied_relevance(_log(pi), _log(self.mus), rho_bar)
            if relevance == "implied"
            else categorical.kl_divergence(_log(pi), _log(self.mus))
        ).numpy()
        return beta < np.median(beta[1:])

    def expected_target(self, z, values, trusted, **clips):
        """Returns E_mu_z[G(x)] of equation 8, [x], over all trajectories of T steps."""
        trajectories = np.array(list(itertools.product(range(S), *[range(A), range(S)] * T))).T
        states, actions = trajectories[::2], trajectories[1::2]  # [T + 1, N], [T, N]
        log_rhos = categorical.log_importance_ratio(
            _log(self.pi[states[:-1]]), _log(self.mus[z][states[:-1]]), tf.constant(actions)
        )
        targets = vtrace.vtrace(
            log_rhos=log_rhos,
            discounts=tf.fill(actions.shape, GAMMA),
            rewards=tf.constant(self.mdp.rewards[states[:-1], actions], tf.float32),
            values=tf.constant(values[states], tf.float32),
            trusted=tf.constant(trusted[states[:-1]]),
            **clips,
        ).values[0]
        probabilities = self.mus[z][states[:-1], actions]
        probabilities = probabilities * self.mdp.transitions[states[:-1], actions, states[1:]]
        return np.bincount(states[0], weights=probabilities.prod(axis=0) * targets.numpy())

    def given_trusted(self, trusted, per_behaviour):
        """Returns E_z[. | mu_z in M(x)] of values [z, x], [x] (equation 6)."""
        weights = self.p_z[:, None] * trusted
        return np.sum(weights * per_behaviour, axis=0) / np.sum(weights, axis=0)


class Proposition4Test(parameterized.TestCase):
    """Tests that importance sampling in the trust region contracts to V^pi by gamma or faster."""

    # Without a clip the implied policy is pi, so that relevance must be KL(pi || mu).
    clips = {"rho_bar": np.inf, "c_bar": np.inf}

    @parameterized.parameters(0, 1)
    def test_expectation_follows_pi_until_an_untrusted_state(self, seed):
        problem = Problem.random(seed)
        values = problem.bootstraps[seed]
        for z, trusted in enumerate(problem.trusted("behaviour", np.inf)):
            expected = values
            for _ in range(T):
                expected = np.where(trusted, problem.mdp.bellman(problem.pi, expected), values)
            actual = problem.expected_target(z, values, trusted, **self.clips)
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)

    @parameterized.parameters(0, 1)
    def test_trusted_estimate_contracts_by_gamma(self, seed):
        problem = Problem.random(seed)
        trusted = problem.trusted("behaviour", np.inf)
        fixed_point = problem.mdp.value(problem.pi)
        for values in [fixed_point, *problem.bootstraps]:
            targets = [
                problem.expected_target(z, values, t, **self.clips) for z, t in enumerate(trusted)
            ]
            error = np.abs(problem.given_trusted(trusted, targets) - fixed_point).max()
            self.assertLessEqual(error, GAMMA * np.abs(values - fixed_point).max() + 1e-4)


class Proposition5Test(parameterized.TestCase):
    """Tests that V-trace in the trust region contracts to the mean of trusted fixed points."""

    @parameterized.product(seed=(0, 1), rho_bar=(1.0, 1.5), c_bar=(0.5, 1.0))
    def test_value_of_the_implied_policy_is_the_fixed_point(self, seed, rho_bar, c_bar):
        problem = Problem.random(seed)
        for z, trusted in enumerate(problem.trusted("implied", rho_bar)):
            fixed_point = _fixed_point(problem, z, rho_bar)
            for mask in (trusted, np.ones(S, bool)):
                actual = problem.expected_target(z, fixed_point, mask, rho_bar=rho_bar, c_bar=c_bar)
                np.testing.assert_allclose(actual, fixed_point, rtol=1e-4, atol=1e-4)

    @parameterized.product(seed=(0, 1), rho_bar=(1.0, 1.5))
    def test_trusted_estimate_contracts(self, seed, rho_bar):
        problem = Problem.random(seed)
        trusted = problem.trusted("implied", rho_bar)
        fixed_points = [_fixed_point(problem, z, rho_bar) for z in range(len(trusted))]
        v_beta = problem.given_trusted(trusted, fixed_points)
        # IMPALA, theorem 1: eta = 1 - (1 - gamma) E_mu[rho], for the worst state.
        mean_rhos = np.minimum(rho_bar * problem.mus, problem.pi).sum(axis=-1)
        eta = 1 - (1 - GAMMA) * mean_rhos.min(axis=-1)
        for values in problem.bootstraps:
            targets = [
                problem.expected_target(z, values, t, rho_bar=rho_bar)
                for z, t in enumerate(trusted)
            ]
            error = np.abs(problem.given_trusted(trusted, targets) - v_beta)
            distance = eta * np.abs(values - np.array(fixed_points)).max(axis=-1)
            for x in range(S):
                self.assertLess(error[x], distance[trusted[:, x]].max())


def _fixed_point(problem, z, rho_bar):
    """Returns V^z, the values of the implied policy of pi and mu_z (equation 3)."""
    implied = trust_region.implied_policy_log_probabilities(
        _log(problem.pi), _log(problem.mus[z]), rho_bar
    )
    return problem.mdp.value(np.exp(implied))


if __name__ == "__main__":
    absltest.main()
