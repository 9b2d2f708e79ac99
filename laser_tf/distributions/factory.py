"""Creation of the distribution for an action spec."""

from dm_env import specs

from laser_tf import types
from laser_tf.distributions import base, categorical, policy_statistics, product


def make(
    action: specs.BoundedArray, continuous_policy: str, initial_std: float
) -> base.Distribution:
    """Creates a categorical distribution for discrete or a Gaussian for continuous actions.

    Args:
      action: Action spec: a `DiscreteArray`, float32 [D] with finite bounds, or a `ProductSpec`,
        whose distribution is the product of those of its parts.
      continuous_policy: Type of the Gaussian, "squashed" or "clipped". See `gaussian.Gaussian`.
      initial_std: Initial standard deviation of the Gaussian. See `gaussian.Gaussian`.
    """
    if isinstance(action, specs.DiscreteArray):
        return categorical.Categorical(action.num_values)
    if isinstance(action, types.ProductSpec):
        parts = [make(part, continuous_policy, initial_std) for part in action.parts]
        return product.Product(action, parts)
    # Imported here, because TensorFlow Probability takes seconds to import.
    from laser_tf.distributions import gaussian

    return gaussian.Gaussian(
        action, squashed=continuous_policy == "squashed", initial_std=initial_std
    )


def make_with_statistics(
    action: specs.BoundedArray, statistics: str, std: float
) -> tuple[base.Distribution, policy_statistics.PolicyStatistics]:
    """Creates a distribution and the policy statistics that the trust region of ACER constrains.

    Args:
      action: Action spec, as in `make`.
      statistics: Statistics for discrete actions, "probabilities" or "logits".
      std: Standard deviation for continuous actions. See `fixed_gaussian.FixedGaussian`.
    """
    if isinstance(action, specs.DiscreteArray):
        classes = {
            "probabilities": policy_statistics.Probabilities,
            "logits": policy_statistics.Logits,
        }
        return categorical.Categorical(action.num_values), classes[statistics]()
    if isinstance(action, types.ProductSpec):
        made = [make_with_statistics(part, statistics, std) for part in action.parts]
        families, phis = zip(*made, strict=True)
        return product.Product(action, families), product.ProductStatistics(action, phis)
    from laser_tf.distributions import fixed_gaussian  # imported here for the reason in `make`

    return fixed_gaussian.FixedGaussian(action, std), fixed_gaussian.Means()
