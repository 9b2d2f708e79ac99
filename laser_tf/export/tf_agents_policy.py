"""A portable policy as a TF-Agents policy. Importing this module imports TF-Agents."""

from typing import Any

import tensorflow as tf
import tree
from dm_env import specs
from tf_agents.policies import policy_saver, tf_policy
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import policy_step
from tf_agents.trajectories import time_step as ts

from laser_tf.export import portable_policy


class TFAgentsPolicy(tf_policy.TFPolicy):
    """The greedy policy, whose state resets itself at the first step of an episode."""

    # TensorFlow 2.15 wraps dictionaries that become an attribute of a `tf.Module`, and cannot trace
    # a wrapped one under typing_extensions 4.6 or later ("this __dict__ descriptor does not support
    # '_DictWrapper' objects"). The specs are such dictionaries.
    @tf.__internal__.tracking.no_automatic_dependency_tracking
    def __init__(self, policy: portable_policy.PortablePolicy):
        """Wraps a policy."""
        self._policy = policy
        # TF-Agents saves the variables of attributes, and no other attribute has the agent's.
        self._weights = policy.variables
        super().__init__(
            ts.time_step_spec(tree.map_structure(_tensor_spec, policy.spec.observation)),
            _tensor_spec(policy.spec.action),
            policy_state_spec={
                name: tf.TensorSpec(signature.shape[1:], signature.dtype, name)
                for name, signature in policy.state_signature().items()
            },
            clip=False,  # Actions are within their bounds.
            automatic_state_reset=False,  # The policy resets its state, as in training.
        )
        # The saver makes attributes of this spec's parts, which other specs must not share.
        self._trajectory_spec = tf.nest.map_structure(lambda spec: spec, self.trajectory_spec)

    def _get_initial_state(self, batch_size: tf.Tensor) -> portable_policy.State:
        return self._policy.initial_state(batch_size)

    def _action(
        self, time_step: ts.TimeStep, policy_state: portable_policy.State, seed: Any
    ) -> policy_step.PolicyStep:
        numbers = time_step.reward, time_step.discount, time_step.is_first()
        action, state = self._policy.greedy(time_step.observation, *numbers, policy_state)
        return policy_step.PolicyStep(action, state)


def make_saver(policy: portable_policy.PortablePolicy, train_step: int) -> policy_saver.PolicySaver:
    """Creates the writer of a SavedModel of a policy after `train_step` learner updates."""
    learner_updates = tf.Variable(train_step, dtype=tf.int64, trainable=False)
    return policy_saver.PolicySaver(
        TFAgentsPolicy(policy),
        train_step=learner_updates,
        metadata=_UnwrappedDict(learner_updates=learner_updates),
    )


class _UnwrappedDict(dict):
    """A dictionary that TensorFlow does not wrap, see `TFAgentsPolicy`."""


def _tensor_spec(spec: specs.Array) -> tf.TensorSpec:
    if isinstance(spec, specs.BoundedArray):
        return tensor_spec.BoundedTensorSpec(
            spec.shape, spec.dtype, spec.minimum, spec.maximum, spec.name
        )
    return tf.TensorSpec(spec.shape, spec.dtype, spec.name)
