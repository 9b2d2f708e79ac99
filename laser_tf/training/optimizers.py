"""RMSProp and Adam with the details that the papers' numbers assume."""

from collections.abc import Sequence

import tensorflow as tf

from laser_tf.ops import joint_batch
from laser_tf.training import learner_config


class RMSProp(tf.Module):
    """RMSProp of TensorFlow 1, for each variable w with gradient g.

    ms  <- decay ms + (1 - decay) g^2
    mom <- momentum mom + learning_rate g / sqrt(ms + epsilon)
    w   <- w - mom

    The mean square ms starts at 1, and epsilon is inside the square root. Keras starts at 0 and, in
    some versions, adds epsilon outside. Both matter at epsilon 0.01 or 0.1.
    """

    def __init__(self, config: learner_config.LearnerConfig, variables: Sequence[tf.Variable]):
        super().__init__()
        # A variable, since population-based training changes it during the run.
        self.epsilon = tf.Variable(config.rmsprop_epsilon, trainable=False, dtype=tf.float32)
        # A function, since checkpoints would restore variables of an attribute by their position.
        # Names are compared instead, see `learner_checkpoints`.
        self._variables = lambda: variables
        self._mean_squares = [tf.Variable(tf.ones_like(v), trainable=False) for v in variables]
        self._momenta = [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]
        self._decay = config.rmsprop_decay
        self._momentum = config.rmsprop_momentum

    def apply(self, gradients: Sequence[tf.Tensor], learning_rate: tf.Tensor) -> None:
        """Takes one step; `gradients` are in the order of the variables."""
        for variable, gradient, mean_square, momentum in zip(
            self._variables(), gradients, self._mean_squares, self._momenta, strict=True
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


class Adam(tf.Module):
    """Adam of Keras (Kingma and Ba 2015), for each variable w with gradient g, in step t from 1.

    m <- beta1 m + (1 - beta1) g
    v <- beta2 v + (1 - beta2) g^2
    w <- w - learning_rate sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)

    Epsilon is that of TensorFlow 1, which DeepMind's papers assume: the "epsilon hat" of section 2,
    added before the bias correction. In algorithm 1 of the paper the same number would act like a
    smaller one in the first thousand steps: 32 times smaller in the first step.
    """

    def __init__(self, config: learner_config.LearnerConfig, variables: Sequence[tf.Variable]):
        super().__init__()
        self._variables = lambda: variables  # see `RMSProp`
        # The learner compiles its whole update; Keras would compile each variable's separately.
        self._adam = tf.keras.optimizers.Adam(
            beta_1=config.adam_beta1,
            beta_2=config.adam_beta2,
            epsilon=config.adam_epsilon,
            jit_compile=False,
        )
        self._adam.build(variables)  # Checkpoints contain only variables that exist.
        self._slots = tuple(self._adam.variables)  # t, m and v: tf.Module does not find Keras's.

    def apply(self, gradients: Sequence[tf.Tensor], learning_rate: tf.Tensor) -> None:
        """Takes one step; `gradients` are in the order of the variables."""
        self._adam.learning_rate.assign(learning_rate)
        pairs = zip(gradients, self._variables(), strict=True)
        if joint_batch.num_replicas() == 1:
            self._adam.apply_gradients(pairs)
            return
        # Keras would merge the replicas here, which is impossible within a condition.
        for gradient, variable in pairs:
            self._adam.update_step(gradient, variable)
        self._adam.iterations.assign_add(1)


def make(config: learner_config.LearnerConfig, variables: Sequence[tf.Variable]) -> RMSProp | Adam:
    """Creates the optimiser of a configuration for these variables."""
    optimizer = Adam if config.optimizer == learner_config.ADAM else RMSProp
    return optimizer(config, variables)
