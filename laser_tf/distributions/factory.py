"""Creation of the distribution for an action spec."""

import numpy as np
from dm_env import specs

from laser_tf import types
from laser_tf.distributions import (
    base,
    categorical,
    multi_categorical,
    policy_statistics,
    product,
)


def make(
    action: specs.BoundedArray, continuous_policy: str = "squashed", initial_std: float = 0.5
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
        integers = multi_categorical.MultiCategorical(action.num_values)
        if not action.floats.size:
            return integers
        floats = make(_floats(action), continuous_policy, initial_std)
        return product.Product(action, integers, floats)
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
    classes = {
        "probabilities": policy_statistics.Probabilities,
        "logits": policy_statistics.Logits,
    }
    if isinstance(action, specs.DiscreteArray):
        return categorical.Categorical(action.num_values), classes[statistics]()
    if isinstance(action, types.ProductSpec):
        integers = multi_categorical.MultiCategorical(action.num_values)
        phis = multi_categorical.MultiStatistics(integers, classes[statistics]())
        if not action.floats.size:
            return integers, phis
        floats, means = make_with_statistics(_floats(action), statistics, std)
        family = product.Product(action, integers, floats)
        return family, product.ProductStatistics(action, phis, means)
    from laser_tf.distributions import fixed_gaussian  # imported here for the reason in `make`

    return fixed_gaussian.FixedGaussian(action, std), fixed_gaussian.Means()


def _floats(action: types.ProductSpec) -> specs.BoundedArray:
    """Returns the spec of the floats of an action, float32 [D - K]."""
    low, high = (bounds[action.floats] for bounds in (action.minimum, action.maximum))
    return specs.BoundedArray(low.shape, np.float32, low, high, "action")
