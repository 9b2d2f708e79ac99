"""Naive NumPy implementations of the ops in float64, with one loop for each index.

They follow the formulas of the papers, independently of the ops, and favour clarity over speed.
Masked entries are skipped, not multiplied by zero, so that a NaN in a masked entry has no effect.
"""

import numpy as np


def log_softmax(logits):
    """Returns log-probabilities float64 [..., A] of logits float [..., A]."""
    logits = np.asarray(logits, np.float64)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def softmax(logits):
    """Returns probabilities float64 [..., A] of logits float [..., A]."""
    return np.exp(log_softmax(logits))


def vtrace(log_rhos, discounts, rewards, values, trusted, rho_bar=1.0, c_bar=1.0, lambda_=1.0):
    """Computes trust-region V-trace as a double sum (LASER, equation 8), not as a recursion.

        v_t = V(x_t)
              + sum_k gamma^k (prod_{i<k} lambda_{t+i} c_{t+i}) lambda_{t+k} rho_{t+k} delta_{t+k}

    See `laser_tf.ops.vtrace.vtrace` for the arguments.

    Returns:
      Targets v_t, advantages r_t + gamma_t v_{t+1} - V(x_t) (IMPALA, section 4.2) and ratios rho_t,
      [T, B] each. Advantages and ratios are NaN where `trusted` is false.
    """
    T, B = trusted.shape
    log_rhos, discounts, rewards, values = (
        np.asarray(x, np.float64) for x in (log_rhos, discounts, rewards, values)
    )
    targets = np.zeros([T + 1, B])
    targets[T] = values[T]
    for b in range(B):
        for t in range(T):
            targets[t, b] = values[t, b]
            for k in range(T - t):
                if not trusted[t + k, b]:
                    break  # lambda_{t+k} = 0 is a factor of this term and of all later terms
                weight = 1.0
                for i in range(t, t + k):
                    weight *= discounts[i, b] * lambda_ * min(c_bar, np.exp(log_rhos[i, b]))
                delta = (
                    rewards[t + k, b]
                    + discounts[t + k, b] * values[t + k + 1, b]
                    - values[t + k, b]
                )
                targets[t, b] += weight * min(rho_bar, np.exp(log_rhos[t + k, b])) * delta

    advantages, rhos = np.full([T, B], np.nan), np.full([T, B], np.nan)
    for t, b in np.ndindex(T, B):
        if trusted[t, b]:
            advantages[t, b] = rewards[t, b] + discounts[t, b] * targets[t + 1, b] - values[t, b]
            rhos[t, b] = min(rho_bar, np.exp(log_rhos[t, b]))
    return targets[:T], advantages, rhos


def implied_policy(pi, mu, rho_bar=1.0):
    """Returns the implied policy [N, A] of probabilities [N, A] (LASER, equation 3)."""
    implied = np.zeros(pi.shape)
    for n in range(pi.shape[0]):
        clipped = [min(rho_bar * mu[n, a], pi[n, a]) for a in range(pi.shape[1])]
        for a in range(pi.shape[1]):
            implied[n, a] = clipped[a] / sum(clipped)
    return implied


def kl_divergence(p, q):
    """Returns KL(p || q), [N], of probabilities [N, A]; q is positive where p is."""
    return np.array(
        [
            sum(p[n, a] * np.log(p[n, a] / q[n, a]) for a in np.flatnonzero(p[n]))
            for n in range(len(p))
        ]
    )


def baseline_loss(values, targets, mask):
    """Returns 1/2 sum (v_t - V(x_t))^2 and its gradient with respect to `values`."""
    loss, gradient = 0.0, np.zeros(values.shape)
    for t, b in np.ndindex(*values.shape):
        if mask[t, b]:
            loss += 0.5 * (targets[t, b] - values[t, b]) ** 2
            gradient[t, b] = values[t, b] - targets[t, b]
    return loss, gradient


def stack_frames(frames, is_first, depth):
    """Stacks frames uint8 [depth - 1 + R, B, H, W, C] to [R, B, H, W, depth * C].

    A stack has the newest frame last and zeros before the first step of the episode.
    """
    rows, channels = frames.shape[0] - depth + 1, frames.shape[-1]
    stacked = np.zeros([rows, *frames.shape[1:-1], depth * channels], np.uint8)
    for r in range(rows):
        for b in range(frames.shape[1]):
            for age in range(depth):
                row, plane = depth - 1 + r - age, (depth - 1 - age) * channels
                stacked[r, b, ..., plane : plane + channels] = frames[row, b]
                if is_first[row, b]:
                    break
    return stacked


def popart_update(first, second, targets, mask, tasks, step):
    """Returns the updated moving averages of G and G^2 of each task, [K] each."""
    first, second = (np.array(moment, np.float64) for moment in (first, second))
    for k in range(len(first)):
        own = [
            float(targets[t, b]) for t, b in np.ndindex(*mask.shape) if mask[t, b] and tasks[b] == k
        ]
        if own:
            first[k] = (1 - step) * first[k] + step * sum(own) / len(own)
            second[k] = (1 - step) * second[k] + step * sum(g * g for g in own) / len(own)
    return first, second


def pixel_rewards(observations, cell):
    """Returns mean absolute changes [T, B, H // cell, W // cell] of uint8 [T + 1, B, H, W, C]."""
    rows, B, H, W, C = observations.shape
    top, left = (H - H // cell * cell) // 2, (W - W // cell * cell) // 2
    rewards = np.zeros([rows - 1, B, H // cell, W // cell])
    for t, b, i, j in np.ndindex(*rewards.shape):
        for y, x, c in np.ndindex(cell, cell, C):
            pixel = (b, top + i * cell + y, left + j * cell + x, c)
            change = int(observations[t + 1][pixel]) - int(observations[t][pixel])
            rewards[t, b, i, j] += abs(change) / 255 / (cell * cell * C)
    return rewards


def pixel_control_loss(q, actions, rewards, is_transition, mask, discount):
    """Sums each return separately; returns the loss and its gradient in `q`."""
    loss, gradient = 0.0, np.zeros(q.shape)
    T = len(actions)
    for t, b, i, j in np.ndindex(*rewards.shape):
        if not (is_transition[t, b] and mask[t, b]):
            continue
        target = 0.0
        for k in range(t, T):
            if not is_transition[k, b]:
                break  # x_k is the last observation of its episode
            target += discount ** (k - t) * rewards[k, b, i, j]
        else:
            target += discount ** (T - t) * max(q[T, b, i, j])
        error = q[t, b, i, j, actions[t, b]] - target
        loss += 0.5 * error**2
        gradient[t, b, i, j, actions[t, b]] = error
    return loss, gradient


def rescale(x, epsilon):
    """Returns h(x) by the formula of R2D2, section 2.3."""
    x = np.asarray(x, np.float64)
    return np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1) + epsilon * x


def unrescale(y, epsilon):
    """Returns h^-1(y) by the formula of Pohlen et al. 2018, proposition A.2."""
    y = np.asarray(y, np.float64)
    root = (np.sqrt(1 + 4 * epsilon * (np.abs(y) + 1 + epsilon)) - 1) / (2 * epsilon)
    return np.sign(y) * (root**2 - 1)


def n_step_returns(rewards, discounts, bootstrap_values, is_transition, n):
    """Sums each return forward in time, up to a discount of 0."""
    T, B = is_transition.shape
    returns = np.zeros([T, B])
    for t, b in np.ndindex(T, B):
        weight, k = 1.0, t
        while weight and k < min(t + n, T) and is_transition[k, b]:
            returns[t, b] += weight * float(rewards[k, b])
            weight *= float(discounts[k, b])
            k += 1
        if weight:
            returns[t, b] += weight * float(bootstrap_values[k, b])
    return returns


def double_q_targets(q_online, q_target, rewards, discounts, is_transition, n, rescaling_epsilon):
    """Returns double Q-learning targets [T, B] (R2D2, section 2.3)."""
    values = np.zeros(q_target.shape[:2])
    for t, b in np.ndindex(*values.shape):
        best = 0
        for a in range(q_online.shape[-1]):
            if q_online[t, b, a] > q_online[t, b, best]:
                best = a
        values[t, b] = q_target[t, b, best]
    if rescaling_epsilon is not None:
        values = unrescale(values, rescaling_epsilon)
    targets = n_step_returns(rewards, discounts, values, is_transition, n)
    return targets if rescaling_epsilon is None else rescale(targets, rescaling_epsilon)


def sequence_priorities(td_errors, mask, eta, smallest):
    """Returns eta max |delta| + (1 - eta) mean |delta| over the mask, [B], at least `smallest`."""
    T, B = mask.shape
    priorities = np.full([B], smallest, np.float64)
    for b in range(B):
        errors = [abs(float(td_errors[t, b])) for t in range(T) if mask[t, b]]
        if errors:
            mixture = eta * max(errors) + (1 - eta) * sum(errors) / len(errors)
            priorities[b] = max(mixture, smallest)
    return priorities


def retrace(rewards, discounts, q_taken, values, traces, is_transition):
    """Computes Retrace as a sum over the rest of the episode (Munos et al. 2016, equation 4).

        Q^ret_t = Q_t + sum_k (prod_{i=1..k} gamma_{t+i-1} c_{t+i})
                        (r_{t+k} + gamma_{t+k} V(x_{t+k+1}) - Q_{t+k})

    See `laser_tf.ops.retrace.retrace` for the arguments. The result is NaN between episodes.
    """
    T, B = is_transition.shape
    targets = np.full([T, B], np.nan)
    for t, b in np.ndindex(T, B):
        if not is_transition[t, b]:
            continue
        total = float(q_taken[t, b])
        weight = 1.0
        for k in range(t, T):
            if not is_transition[k, b]:
                break
            if k > t:
                weight *= float(discounts[k - 1, b]) * float(traces[k, b])
            bootstrap = float(discounts[k, b]) * float(values[k + 1, b])
            total += weight * (float(rewards[k, b]) + bootstrap - float(q_taken[k, b]))
        targets[t, b] = total
    return targets


def constrain(gradient, divergence_gradient, delta):
    """Projects g onto the half-space k . z <= delta, float [S] each, without equation 12."""
    g, k = np.asarray(gradient, np.float64), np.asarray(divergence_gradient, np.float64)
    if k @ g <= delta:
        return g
    unit = k / np.sqrt(k @ k)
    # Move g along k onto the plane k . z = delta.
    return g - unit * (unit @ g - delta / np.sqrt(k @ k))


def truncated_products(log_rhos, discounts, is_transition, c):
    """Returns min(c, rho_t rho_{t+1} ...) up to a discount of 0 or an end; NaN between episodes."""
    T, B = is_transition.shape
    products = np.full([T, B], np.nan)
    for t, b in np.ndindex(T, B):
        if is_transition[t, b]:
            product, k = 1.0, t
            while k < T and is_transition[k, b]:
                product *= np.exp(float(log_rhos[k, b]))
                k = k + 1 if discounts[k, b] else T
            products[t, b] = min(c, product)
    return products


def gaussian_log_density(latent, mean, std):
    """Returns log-densities [...] of independent normals, [..., D]."""
    latent, mean, std = (np.asarray(x, np.float64) for x in (latent, mean, std))
    return (-0.5 * ((latent - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)).sum(-1)


def gaussian_entropy(mean, std, squashed):
    """Returns entropies [...], with E log |d tanh(u) / du| as a sum over a fine grid."""
    mean, std = (np.asarray(x, np.float64) for x in (mean, std))
    entropy = 0.5 * np.log(2 * np.pi * np.e * std**2)
    if squashed:
        z = np.linspace(-8, 8, 4_001)
        density = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
        latents = mean[..., None] + std[..., None] * z
        entropy = entropy - (density * 2 * np.log(np.cosh(latents))).sum(-1)
    return entropy.sum(-1)


def gaussian_kl_divergence(p, q):
    """Returns KL(p || q), [...], of pairs of means and standard deviations, [..., D] each."""
    mean_p, std_p, mean_q, std_q = (np.asarray(x, np.float64) for x in (*p, *q))
    squares = (std_p**2 + (mean_p - mean_q) ** 2) / (2 * std_q**2)
    return (np.log(std_q / std_p) + squares - 0.5).sum(-1)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_step(cell, inputs, output, memory):
    """Advances an `LSTMCell` by one step; all arrays have any leading axes."""
    gates = inputs @ cell._input.kernel.numpy() + cell._input.bias.numpy()
    gates = gates + output @ cell._recurrent.kernel.numpy()
    enter, forget, candidate, leave = np.split(gates, 4, -1)
    memory = sigmoid(forget + 1) * memory + sigmoid(enter) * np.tanh(candidate)
    return sigmoid(leave) * np.tanh(memory), memory
