"""Newest weights for actors."""

import tensorflow as tf

from laser_tf import array_function
from laser_tf.agents import base


class WeightCopier:
    """Copies the weights of the learner's agent into an actor's, within one process."""

    def __init__(self, source: base.Agent, target: base.Agent, learner_updates: tf.Variable):
        """Pairs the variables of two agents of the same configuration."""
        self._pairs = list(zip(source.acting_variables, target.acting_variables, strict=True))
        self._learner_updates = learner_updates
        self._copy = array_function.ArrayFunction(self._assign)

    def refresh(self) -> int:
        """Copies and returns how many learner updates are behind the weights.

        The learner goes on meanwhile, so two variables may differ by an update. That is harmless:
        each unroll stores the policy it was really drawn from.
        """
        return int(self._copy())

    def _assign(self) -> tf.Tensor:
        updates = self._learner_updates.read_value()
        with tf.control_dependencies([updates]):
            for source, target in self._pairs:
                target.assign(source)
        return updates
