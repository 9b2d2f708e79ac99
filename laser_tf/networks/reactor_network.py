"""Reactor's network of policy and categorical critic (Gruslys et al. 2018, figure 7, table 3).

encoder -> LSTM -> distributions of action values
        -> (no gradient) LSTM -> policy
"""

from typing import Any, NamedTuple

import tensorflow as tf

from laser_tf import observations, types
from laser_tf.networks import cores, heads, trunk, trunk_config
from laser_tf.ops import action_mask


class ReactorState(NamedTuple):
    """States of the two cores, [B, ...] each; () without cores."""

    policy: Any
    critic: Any


class ReactorOutput(NamedTuple):
    """Policy and critic at T time steps."""

    policy: tf.Tensor  # probabilities pi(a|x), float32 [T, B, A]; 0 for forbidden actions
    critic: tf.Tensor  # logits of q_i(x, a), float32 [T, B, A, N]


class ReactorNetwork(trunk.EncoderNetwork):
    """Policy and critic with separate cores over a shared encoder.

    Only the critic trains the encoder. As in table 3, the cores read the features of the encoder
    but neither rewards nor actions. With a single bin the critic outputs Q-values (Reactor ND).
    `uniform_share`, epsilon, is the weight of the uniform policy in the policy. Both policies are
    policies over allowed actions.
    """

    def __init__(
        self,
        config: trunk_config.TrunkConfig,
        spec: types.EnvironmentSpec,
        dtype: str,
        *,
        bins: int,
        hidden_units: int,
        uniform_share: float,
    ):
        super().__init__(config, spec, dtype)
        self._policy_core, self._critic_core = (cores.make(config) for _ in range(2))
        num_actions = spec.action.num_values
        self._policy_head = heads.ConcatenatedReLUHead(hidden_units, num_actions)
        self._critic_head = heads.CategoricalDuelingHead(num_actions, bins, hidden_units)
        self._uniform_share = uniform_share

    def initial_state(self, batch_size: int | tf.Tensor) -> ReactorState:
        """Returns the states of both cores before an episode."""
        return ReactorState(
            *(
                core.initial_state(batch_size) if core else ()
                for core in (self._policy_core, self._critic_core)
            )
        )

    def __call__(
        self, env_output: types.EnvOutput, core_state: ReactorState
    ) -> tuple[ReactorOutput, ReactorState]:
        """Computes policy and critic of an unroll [T, B, ...] and the next core states.

        The gradient of the policy stops before the encoder (section 3.4.1), so that the policy
        does not change the features of the critic.
        """
        core_state = ReactorState(*core_state)
        features = tf.cast(self._encode(env_output), tf.float32)
        critic_features, critic_state = _apply_core(
            self._critic_core, features, env_output.is_first, core_state.critic
        )
        policy_features, policy_state = _apply_core(
            self._policy_core, tf.stop_gradient(features), env_output.is_first, core_state.policy
        )
        logits = self._policy_head(policy_features)
        mask = observations.action_mask(env_output.observation)
        policy, uniform = (
            tf.nn.softmax(action_mask.apply(values, mask))
            for values in (logits, tf.zeros_like(logits))
        )
        policy = (1.0 - self._uniform_share) * policy + self._uniform_share * uniform
        output = ReactorOutput(policy, self._critic_head(critic_features))
        return output, ReactorState(policy_state, critic_state)


def _apply_core(
    core: Any, features: tf.Tensor, is_first: tf.Tensor, state: Any
) -> tuple[tf.Tensor, Any]:
    return core(features, None, None, is_first, state) if core else (features, ())
