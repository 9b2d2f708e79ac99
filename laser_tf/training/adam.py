"""Adam as Keras has it (Kingma and Ba 2015), behind the interface of `rmsprop.RMSProp`.

Its epsilon is TensorFlow 1's, which DeepMind's papers assume: the "epsilon hat" of Kingma and Ba's
section 2, which is added before the bias correction. Read as that of their algorithm 1, the same
number would act like a smaller one in the first thousand steps: 32 times in the very first.
"""

from collections.abc import Sequence

import tensorflow as tf

from laser_tf.ops import joint_batch


class Adam(tf.Module):
    """Keras's rule, for each variable w with gradient g, in step t = 1, 2, ...

    m <- beta1 m + (1 - beta1) g
    v <- beta2 v + (1 - beta2) g^2
    w <- w - learning_rate sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)
    """

    def __init__(
        self,
        variables: Sequence[tf.Variable],
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-3,
    ):
        super().__init__()
        self._variables = tuple(variables)
        # The learner compiles its whole update; Keras would compile each variable's by itself.
        self._adam = tf.keras.optimizers.Adam(
            beta_1=beta1, beta_2=beta2, epsilon=epsilon, jit_compile=False
        )
        self._adam.build(self._variables)  # now, so that a checkpoint finds them all
        self._slots = tuple(self._adam.variables)  # t, m and v: no module would show Keras's

    def apply(self, gradients: Sequence[tf.Tensor], learning_rate: tf.Tensor) -> None:
        """Takes one step; `gradients` are in the order of the variables given at creation."""
        self._adam.learning_rate.assign(learning_rate)
        pairs = zip(gradients, self._variables, strict=True)
        if joint_batch.num_replicas() == 1:
            self._adam.apply_gradients(pairs)
            return
        # Keras would have the replicas meet here, which they cannot within a condition.
        for gradient, variable in pairs:
            self._adam.update_step(gradient, variable)
        self._adam.iterations.assign_add(1)
