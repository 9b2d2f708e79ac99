"""V-trace and the trust region in a short training loop that uses only `laser_tf.ops`.

A corridor of six places has reward 1 at its right end. A tabular actor-critic learns from one new
and seven old unrolls per update; older policies generated the old unrolls.

    python -m examples.vtrace_loop
"""

import collections

import numpy as np
import tensorflow as tf

from laser_tf.ops import categorical, policy_gradient, trust_region, vtrace

PLACES, STEPS, DISCOUNT = 6, 20, 0.95

logits = tf.Variable(tf.zeros([PLACES, 2]))  # [place, action]: left, right
values = tf.Variable(tf.zeros([PLACES]))
optimizer = tf.keras.optimizers.Adam(0.1)


def act(generator: np.random.Generator) -> dict[str, np.ndarray]:
    """Returns an unroll of T steps, [T + 1] or [T]; after the end, place 0 follows."""
    behaviour, places, actions, rewards = logits.numpy(), [0], [], []
    for _ in range(STEPS):
        place = places[-1]
        probabilities = np.exp(behaviour[place]) / np.exp(behaviour[place]).sum()
        actions.append(generator.choice(2, p=probabilities))
        place = max(0, place + 2 * actions[-1] - 1)
        rewards.append(float(place == PLACES - 1))
        places.append(0 if rewards[-1] else place)
    return {
        "places": np.array(places),
        "actions": np.array(actions),
        "rewards": np.array(rewards, np.float32),
        "behaviour": behaviour[places[:-1]],  # Logits of the behaviour policy.
    }


@tf.function
def update(batch: dict[str, tf.Tensor]) -> tf.Tensor:
    """Updates on a batch [T + 1, B] or [T, B]; returns the fraction of trusted steps."""
    with tf.GradientTape() as tape:
        target = tf.gather(logits, batch["places"][:-1])
        estimates = tf.gather(values, batch["places"])
        actions, rewards, behaviour = batch["actions"], batch["rewards"], batch["behaviour"]
        # Trust depends on the two policies at a state, not on the action (LASER, section 4.3).
        trusted = trust_region.implied_relevance(target, behaviour) < 0.1
        traced = vtrace.vtrace(
            categorical.log_importance_ratio(target, behaviour, actions),
            DISCOUNT * (1 - rewards),  # A reward ends the episode.
            rewards,
            estimates,
            trusted,
        )
        log_probs = categorical.log_probability(target, actions)
        loss = (
            policy_gradient.policy_gradient_loss(
                log_probs, traced.rhos * traced.advantages, trusted
            )
            + policy_gradient.baseline_loss(estimates[:-1], traced.values, trusted)
            + 0.01 * policy_gradient.entropy_loss(categorical.entropy(target), trusted)
        )
    variables = [logits, values]
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return tf.reduce_mean(tf.cast(trusted, tf.float32))


def main(updates: int = 300) -> float:
    """Trains and returns the mean probability of a step to the right over places."""
    generator = np.random.default_rng(1)
    replay = collections.deque([act(generator)], maxlen=200)
    for number in range(1, updates + 1):
        replay.append(act(generator))
        sampled = [replay[-1], *(replay[i] for i in generator.integers(len(replay), size=7))]
        trusted = update({key: tf.stack([u[key] for u in sampled], axis=1) for key in sampled[0]})
        if number % 100 == 0:
            mean_reward = np.mean([unroll["rewards"].sum() for unroll in replay])
            print(f"update {number}: {mean_reward:.2f} rewards, {float(trusted):.1%} trusted steps")
    return float(tf.reduce_mean(tf.nn.softmax(logits)[:-1, 1]))


if __name__ == "__main__":
    print(f"probability of a step to the right: {main():.2f}")
