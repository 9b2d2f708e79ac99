"""RMSProp as TensorFlow 1 had it, which the papers' numbers assume.

Keras's differs twice: it starts the mean square at zero (here ONE) and, in some versions, adds
epsilon outside the square root (here inside). Both matter at epsilon 0.01 or 0.1.
"""

from collections.abc import Sequence

import tensorflow as tf


class RMSProp(tf.Module):
    """TensorFlow 1's rule, for each variable w with gradient g.

    ms  <- decay ms + (1 - decay) g^2
    mom <- momentum mom + learning_rate g / sqrt(ms + epsilon)
    w   <- w - mom
    """

    def __init__(
        self,
        variables: Sequence[tf.Variable],
        *,
        decay: float = 0.99,
        momentum: float = 0.0,
        epsilon: float = 0.01,
    ):
        super().__init__()
        # A variable, since a population's trainer changes it while the run goes on.
        self.epsilon = tf.Variable(epsilon, trainable=False, dtype=tf.float32)
        self._variables = tuple(variables)
        self._mean_squares = [tf.Variable(tf.ones_like(v), trainable=False) for v in variables]
        self._momenta = [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]
        self._decay = decay
        self._momentum = momentum

    def apply(self, gradients: Sequence[tf.Tensor], learning_rate: tf.Tensor) -> None:
        """Takes one step; `gradients` are in the order of the variables given at creation."""
        for variable, gradient, mean_square, momentum in zip(
            self._variables, gradients, self._mean_squares, self._momenta, strict=True
        ):
            tf.raw_ops.ResourceApplyRMSProp(
                var=variable.handle,
                ms=mean_square.handle,
                mom=momentum.handle,
                lr=learning_rate,
                rho=self._decay,
                momentum=self._momentum,
                epsilon=self.epsilon,
                grad=gradient,
            )
