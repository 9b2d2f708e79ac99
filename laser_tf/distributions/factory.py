"""The distribution that fits an action spec."""

from dm_env import specs

from laser_tf.distributions import base, categorical, policy_statistics


def make(
    action: specs.BoundedArray, continuous_policy: str, initial_std: float
) -> base.Distribution:
    """Makes a categorical distribution for discrete actions, a Gaussian for continuous ones.

    Args:
      action: a `DiscreteArray`, or float32 [D] with finite bounds.
      continuous_policy: "squashed" or "clipped", see `gaussian.Gaussian`; for continuous actions.
      initial_std: of a fresh Gaussian, see `gaussian.Gaussian`.
    """
    if isinstance(action, specs.DiscreteArray):
        return categorical.Categorical(action.num_values)
    # Not at the top: TensorFlow Probability takes seconds to import.
    from laser_tf.distributions import gaussian

    return gaussian.Gaussian(
        action, squashed=continuous_policy == "squashed", initial_std=initial_std
    )


def make_with_statistics(
    action: specs.BoundedArray, statistics: str, std: float
) -> tuple[base.Distribution, policy_statistics.PolicyStatistics]:
    """Makes a distribution whose statistics a trust region can look at, and the view on them.

    Args:
      action: a `DiscreteArray`, or float32 [D] with finite bounds.
      statistics: "probabilities" or "logits", of discrete actions.
      std: of a Gaussian for continuous actions, see `fixed_gaussian.FixedGaussian`.
    """
    if isinstance(action, specs.DiscreteArray):
        kinds = {
            "probabilities": policy_statistics.Probabilities,
            "logits": policy_statistics.Logits,
        }
        return categorical.Categorical(action.num_values), kinds[statistics]()
    from laser_tf.distributions import fixed_gaussian  # see `make`

    return fixed_gaussian.FixedGaussian(action, std), fixed_gaussian.Means()
