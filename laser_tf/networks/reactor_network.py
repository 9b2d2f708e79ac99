"""Reactor's network (Gruslys et al. 2018, figure 7 and table 3): a policy and a categorical critic.

encoder -> LSTM -> action values' distributions
        -> (no gradient) LSTM -> policy
"""

from typing import Any, NamedTuple

import tensorflow as tf

from laser_tf import errors, types
from laser_tf.networks import cores, heads, observation_encoder, trunk, trunk_config


class ReactorState(NamedTuple):
    """Of the two cores, [B, ...] each; () without cores."""

    policy: Any
    critic: Any


class ReactorOutput(NamedTuple):
    """Of time steps [R, B]."""

    policy: tf.Tensor  # float32 [R, B, A], probabilities pi(a|x)
    critic: tf.Tensor  # float32 [R, B, A, N], logits of q_i(x, a)


class ReactorNetwork(tf.Module):
    """Policy and critic have cores of their own, over one encoder that learns from the critic.

    As in table 3 a core reads the encoder's features alone, neither rewards nor actions.
    """

    def __init__(
        self,
        config: trunk_config.TrunkConfig,
        spec: types.EnvironmentSpec,
        dtype: str,
        *,
        bins: int,
        hidden_units: int = 32,
        uniform_share: float = 0.01,
    ):
        """Creates the network; its weights appear at the first call.

        Args:
          config: of encoder and cores.
          spec: of the environment, images as they are after stacking; with discrete actions.
          dtype: compute dtype of the encoder, "float32" or "bfloat16".
          bins: N, of a return's distribution; 1: the logits are Q-values (Reactor ND).
          hidden_units: of each head's hidden layer, before its concatenated ReLU.
          uniform_share: epsilon, of the uniform policy in the policy.

        Raises:
          ValueError: for a core that has to be told the last action.
        """
        super().__init__()
        if config.core == "preco_lstm":
            raise errors.ConfigError(
                "core is 'preco_lstm': it is told the last action, Reactor's cores are not; use "
                "'lstm' or 'none'"
            )
        self._encoder = observation_encoder.ObservationEncoder(spec.observation, config, dtype)
        self._policy_core, self._critic_core = (
            cores.CORES[config.core](config.core_size, config.core_memory_span)
            if config.core != "none"
            else None
            for _ in range(2)
        )
        num_actions = spec.action.num_values
        self._policy_head = heads.ConcatenatedReLUHead(hidden_units, num_actions)
        self._critic_head = heads.CategoricalDuelingHead(num_actions, bins, hidden_units)
        self._uniform_share = uniform_share

    @property
    def moments(self) -> tuple[tf.Variable, ...]:
        """What acting reads beside the weights."""
        return self._encoder.moments

    def initial_state(self, batch_size: int | tf.Tensor) -> ReactorState:
        """The cores' states before an episode."""
        return ReactorState(
            *(
                core.initial_state(batch_size) if core else ()
                for core in (self._policy_core, self._critic_core)
            )
        )

    def observe(self, env_output: types.EnvOutput) -> None:
        """See `trunk.observe`."""
        trunk.observe(self._encoder, env_output)

    def __call__(
        self, env_output: types.EnvOutput, core_state: ReactorState
    ) -> tuple[ReactorOutput, ReactorState]:
        """Policy and critic of an unroll.

        The policy's gradient stops before the encoder (section 3.4.1): what the critic's features
        are must not follow what the policy makes of them.

        Args:
          env_output: [R, B, ...]; B need not be static.
          core_state: before step 0, [B, ...].

        Returns:
          Outputs [R, B, ...] and the state after the last step.
        """
        core_state = ReactorState(*core_state)
        features = tf.cast(trunk.encode(self._encoder, env_output), tf.float32)
        for_critic, critic_state = _remember(
            self._critic_core, features, env_output.is_first, core_state.critic
        )
        for_policy, policy_state = _remember(
            self._policy_core, tf.stop_gradient(features), env_output.is_first, core_state.policy
        )
        policy = tf.nn.softmax(self._policy_head(for_policy))
        num_actions = policy.shape[-1]
        policy = (1.0 - self._uniform_share) * policy + self._uniform_share / num_actions
        output = ReactorOutput(policy, self._critic_head(for_critic))
        return output, ReactorState(policy_state, critic_state)


def _remember(
    core: Any, features: tf.Tensor, is_first: tf.Tensor, state: Any
) -> tuple[tf.Tensor, Any]:
    return core(features, None, None, is_first, state) if core else (features, ())
