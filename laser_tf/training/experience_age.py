"""How old the experience in a batch is."""

import numpy as np

from laser_tf.replay import stored_unroll


def metrics(batch: stored_unroll.Batch, learner_updates: int, member: int) -> dict[str, float]:
    """How many of its updates ago an agent's weights acted as they did; means over unrolls.

    Other agents count updates of their own, so that their unrolls have no age here; nor has one
    without transitions. Where none counts, a mean is left out.

    Args:
      batch: of arrays.
      learner_updates: the agent's, so far.
      member: index of the agent in its sweep.
    """
    unrolls = batch.unrolls
    counts = (unrolls.member == member) & ~np.all(unrolls.env_output.is_first, axis=1)
    ages = learner_updates - unrolls.learner_update
    parts = {
        "replay/policy_lag_updates": ages[counts & batch.is_online],
        "replay/age_updates": ages[counts & ~batch.is_online],
    }
    return {name: float(ages.mean()) for name, ages in parts.items() if ages.size}
