"""Naive NumPy implementations of the ops of Reactor, by the formulas of the paper."""

import numpy as np


def kernel(i, x, support):
    """Returns h_{z_i}(x), with the cases of section 3.2."""
    last = len(support) - 1
    if (x <= support[0] and i == 0) or (x >= support[-1] and i == last):
        return 1.0
    if i > 0 and support[i - 1] <= x <= support[i]:
        return (x - support[i - 1]) / (support[i] - support[i - 1])
    if i < last and support[i] <= x <= support[i + 1]:
        return (support[i + 1] - x) / (support[i + 1] - support[i])
    return 0.0


def project(atoms, masses, support):
    """Projects masses [R, M] at atoms [R, M] onto the support [N]; returns [R, N]."""
    projected = np.zeros([len(atoms), len(support)])
    for r, j, i in np.ndindex(*atoms.shape, len(support)):
        projected[r, i] += masses[r, j] * kernel(i, atoms[r, j], support)
    return projected


def distributional_retrace(rewards, discounts, q, pi, actions, traces, is_transition, support):
    """Computes q*(x_t, a_t) as the sum over n and a of section 3.2.

    In contrast to the op, q [T + 1, B, A, N] and pi [T + 1, B, A] contain all actions.

    Returns:
      Targets [T, B, N] and sums of the alphas [T, B], both 0 where `is_transition` is false.
    """
    T, B = is_transition.shape
    A, N = q.shape[2:]
    targets, alphas = np.zeros([T, B, N]), np.zeros([T, B])
    for t, b in np.ndindex(T, B):
        product, reward_sum, discount, k = 1.0, 0.0, 1.0, t
        while k < T and is_transition[k, b]:
            reward_sum += discount * float(rewards[k, b])
            discount *= float(discounts[k, b])
            k += 1
            continues = k < T and is_transition[k, b]
            c = float(traces[k, b]) if continues else 0.0
            for a in range(A):
                is_taken = continues and a == actions[k, b]
                alpha = product * (float(pi[k, b, a]) - (c if is_taken else 0.0))
                alphas[t, b] += alpha
                for j, i in np.ndindex(N, N):
                    moved = reward_sum + discount * float(support[j])
                    mass = alpha * float(q[k, b, a, j])
                    targets[t, b, i] += mass * kernel(i, moved, support)
            product *= c
    return targets, alphas


def beta_leave_one_out(pi, q_values, returns, actions, mu_taken, mask, clip):
    """Returns the loss of equation 10, [T, B], and its gradient in `pi`, [T, B, A]."""
    loss, gradient = np.zeros(mask.shape), np.zeros(pi.shape)
    for t, b in np.ndindex(*mask.shape):
        if not mask[t, b]:
            continue
        beta = min(clip, 1.0 / mu_taken[t, b])
        for a in range(pi.shape[-1]):
            weight = q_values[t, b, a]
            if a == actions[t, b]:
                weight += beta * (returns[t, b] - q_values[t, b, a])
            loss[t, b] -= weight * pi[t, b, a]
            gradient[t, b, a] = -weight
    return loss, gradient


def truncated_importance_sampling(pi, q_values, returns, actions, mu, mask, clip):
    """Returns the TISLR loss of section 3.1, [T, B], and its gradient in `pi`, [T, B, A]."""
    loss, gradient = np.zeros(mask.shape), np.zeros(pi.shape)
    for t, b in np.ndindex(*mask.shape):
        if not mask[t, b]:
            continue
        value = sum(pi[t, b, a] * q_values[t, b, a] for a in range(pi.shape[-1]))
        for a in range(pi.shape[-1]):
            rho = pi[t, b, a] / mu[t, b, a]
            weight = max(0.0, rho - clip) * mu[t, b, a] * (q_values[t, b, a] - value)
            if a == actions[t, b]:
                weight += min(clip, rho) * (returns[t, b] - value)
            loss[t, b] -= weight * np.log(pi[t, b, a])
            gradient[t, b, a] = -weight / pi[t, b, a]
    return loss, gradient
