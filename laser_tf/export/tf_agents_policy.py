"""A portable policy as a TF-Agents policy. Importing this file imports TF-Agents."""

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
    """The greedy policy; where an episode begins, its state starts again by itself."""

    # TensorFlow 2.15 wraps dictionaries that become an attribute of a `tf.Module`, and cannot trace
    # a wrapped one under typing_extensions 4.6 or later ("this __dict__ descriptor does not support
    # '_DictWrapper' objects"). The specs are such dictionaries.
    @tf.__internal__.tracking.no_automatic_dependency_tracking
    def __init__(self, policy: portable_policy.PortablePolicy):
        """Wraps a policy."""
        self._policy = policy
        # What of the agent acting reads: TF-Agents saves a policy's variables, and nothing refers
        # from here to the rest of them.
        self._weights = policy.variables
        super().__init__(
            ts.time_step_spec(tree.map_structure(_tensor_spec, policy.spec.observation)),
            _tensor_spec(policy.spec.action),
            policy_state_spec={
                name: tf.TensorSpec(signature.shape[1:], signature.dtype, name)
                for name, signature in policy.state_signature().items()
            },
            clip=False,  # actions are within their bounds
            automatic_state_reset=False,  # the policy does it, as in training
        )
        # TF-Agents' saver makes an attribute of it, and with it of whatever it shares with others.
        self._trajectory_spec = tf.nest.map_structure(lambda spec: spec, self.trajectory_spec)

    def _get_initial_state(self, batch_size: tf.Tensor) -> portable_policy.State:
        return self._policy.initial_state(batch_size)

    def _action(
        self, time_step: ts.TimeStep, policy_state: portable_policy.State, seed: Any
    ) -> policy_step.PolicyStep:
        step = portable_policy.Step(
            time_step.observation, time_step.reward, time_step.discount, time_step.is_first()
        )
        return policy_step.PolicyStep(*self._policy.greedy(step, policy_state))


def make_saver(policy: portable_policy.PortablePolicy, train_step: int) -> policy_saver.PolicySaver:
    """What writes a SavedModel with TF-Agents' functions.

    Args:
      policy: to be saved.
      train_step: learner updates behind it.
    """
    learner_updates = tf.Variable(train_step, dtype=tf.int64, trainable=False)
    return policy_saver.PolicySaver(
        TFAgentsPolicy(policy),
        train_step=learner_updates,
        metadata=_UnwrappedDict(learner_updates=learner_updates),
    )


class _UnwrappedDict(dict):
    """A dictionary that TensorFlow leaves as it is, see `TFAgentsPolicy`."""


def _tensor_spec(spec: specs.Array) -> tf.TensorSpec:
    if isinstance(spec, specs.BoundedArray):
        return tensor_spec.BoundedTensorSpec(
            spec.shape, spec.dtype, spec.minimum, spec.maximum, spec.name
        )
    return tf.TensorSpec(spec.shape, spec.dtype, spec.name)
