"""Naive NumPy versions of Reactor's ops, in the way of `numpy_reference`: from the paper alone."""

import numpy as np


def kernel(i, x, support):
    """h_{z_i}(x) as section 3.2 prints it, case by case."""
    last = len(support) - 1
    if (x <= support[0] and i == 0) or (x >= support[-1] and i == last):
        return 1.0
    if i > 0 and support[i - 1] <= x <= support[i]:
        return (x - support[i - 1]) / (support[i] - support[i - 1])
    if i < last and support[i] <= x <= support[i + 1]:
        return (support[i + 1] - x) / (support[i + 1] - support[i])
    return 0.0


def project(atoms, masses, support):
    """[R, M] twice, [N] -> [R, N]."""
    projected = np.zeros([len(atoms), len(support)])
    for row, j, i in np.ndindex(*atoms.shape, len(support)):
        projected[row, i] += masses[row, j] * kernel(i, atoms[row, j], support)
    return projected


def distributional_retrace(rewards, discounts, q, pi, actions, traces, is_transition, support):
    """q*(x_t, a_t) as the sum over n and a of section 3.2, and the alphas' sums.

    Args:
      rewards: [T, B].
      discounts: [T, B].
      q: [T + 1, B, A, N].
      pi: [T + 1, B, A].
      actions: [T, B].
      traces: [T, B].
      is_transition: [T, B].
      support: [N].

    Returns:
      [T, B, N] and [T, B]; 0 where `is_transition` is false.
    """
    T, B = is_transition.shape
    A, N = q.shape[2:]
    targets, alphas = np.zeros([T, B, N]), np.zeros([T, B])
    for t, b in np.ndindex(T, B):
        product, collected, discount, row = 1.0, 0.0, 1.0, t
        while row < T and is_transition[row, b]:
            collected += discount * float(rewards[row, b])
            discount *= float(discounts[row, b])
            row += 1
            goes_on = row < T and is_transition[row, b]
            c = float(traces[row, b]) if goes_on else 0.0
            for a in range(A):
                is_taken = goes_on and a == actions[row, b]
                alpha = product * (float(pi[row, b, a]) - (c if is_taken else 0.0))
                alphas[t, b] += alpha
                for j, i in np.ndindex(N, N):
                    moved = collected + discount * float(support[j])
                    mass = alpha * float(q[row, b, a, j])
                    targets[t, b, i] += mass * kernel(i, moved, support)
            product *= c
    return targets, alphas


def retrace(rewards, discounts, q_taken, values, traces, is_transition):
    """Q_ret_t = r_t + gamma_t (V_{t+1} + c_{t+1} (Q_ret_{t+1} - Q_{t+1})), all [T, B]."""
    T, B = is_transition.shape
    targets = np.zeros([T, B])
    for b in range(B):
        for t in reversed(range(T)):
            if not is_transition[t, b]:
                continue
            following = float(values[t + 1, b])
            if t + 1 < T and is_transition[t + 1, b]:
                error = targets[t + 1, b] - float(q_taken[t + 1, b])
                following += float(traces[t + 1, b]) * error
            targets[t, b] = float(rewards[t, b]) + float(discounts[t, b]) * following
    return targets


def beta_leave_one_out(pi, q_values, returns, actions, mu_taken, mask, clip):
    """Equation 10: the loss [T, B] and its gradient with respect to `pi` [T, B, A]."""
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
    """TISLR as section 3.1 prints it: the loss and its gradient with respect to `pi`."""
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
