"""LASER: off-policy actor-critic with shared experience replay (Schmitt et al. 2020).

With `relevance="none"` and no replay this is IMPALA (Espeholt et al. 2018), LASER's on-policy
baseline. Feed-forward.
"""

import dataclasses
import math
from collections.abc import Iterable

import tensorflow as tf

from laser_tf import types
from laser_tf.networks import heads, torsos
from laser_tf.ops import policy_gradient, trust_region, vtrace

RELEVANCES = ("none", "implied", "behaviour")
REWARD_CLIPS = ("none", "unit")


@dataclasses.dataclass(frozen=True)
class Config:
    """Hyper-parameters of LASER's acting and loss.

    Raises:
      ValueError: for a value out of range; the message names it, the reason and the remedy.
    """

    torso: str = "shallow"  # a key of networks.torsos.TORSOS
    channel_multiplier: int = 1
    center_observation: bool = False  # subtract each observation's mean, see networks.torsos
    discount: float = 0.995  # gamma, per agent step
    reward_clip: str = "unit"  # "unit": rewards clipped to [-1, 1]; "none"
    baseline_cost: float = 0.5
    entropy_cost: float = 0.01  # initial value; a runtime variable of the agent
    rho_bar: float = 1.0
    c_bar: float = 1.0
    lambda_: float = 1.0
    relevance: str = "implied"  # trust region; "none" switches it off
    kl_threshold: float = 0.3  # b: transitions with relevance below it are trusted

    def __post_init__(self):
        _check_choice("torso", self.torso, torsos.TORSOS)
        _check_choice("reward_clip", self.reward_clip, REWARD_CLIPS)
        _check_choice("relevance", self.relevance, RELEVANCES)
        if self.channel_multiplier < 1:
            raise ValueError(f"channel_multiplier is {self.channel_multiplier}: use 1 or more")
        if not 0 <= self.discount <= 1:
            raise ValueError(f"discount is {self.discount}: use a value from 0 to 1, e.g. 0.995")
        if not 0 <= self.lambda_ <= 1:
            raise ValueError(f"lambda_ is {self.lambda_}: use a value from 0 to 1")
        for name in ("baseline_cost", "entropy_cost"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise ValueError(f"{name} is {getattr(self, name)}: use a finite value, 0 or more")
        for name in ("rho_bar", "c_bar", "kl_threshold"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}: use a value above 0")
        if self.rho_bar < self.c_bar:
            raise ValueError(
                f"rho_bar is {self.rho_bar}, below c_bar, {self.c_bar}: V-trace's fixed point "
                "needs rho_bar >= c_bar; raise the one or lower the other"
            )


def _check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}: choose one of {', '.join(map(repr, choices))}")


class Laser(tf.Module):
    """The agent; `laser_tf.types` holds the time convention of everything it reads."""

    def __init__(self, config: Config, num_actions: int, dtype: str = "float32", seed: int = 0):
        """Creates the agent; its weights appear at the first call of `act` or `loss`.

        Args:
          config: hyper-parameters.
          num_actions: A.
          dtype: compute dtype of the torso, "float32" or "bfloat16".
          seed: of the actions that `act` draws.
        """
        super().__init__()
        self._config = config
        self._torso = torsos.TORSOS[config.torso](
            config.channel_multiplier, config.center_observation, dtype
        )
        self._head = heads.PolicyValueHead(num_actions)
        self._random = tf.random.Generator.from_seed(seed)
        # A variable, since a population's trainer changes it while the run goes on.
        self.entropy_cost = tf.Variable(config.entropy_cost, trainable=False, dtype=tf.float32)

    def initial_state(self, batch_size: int) -> tuple[()]:
        """The core state before an episode: none, the agent is feed-forward."""
        del batch_size
        return ()

    def act(
        self, env_output: types.EnvOutput, core_state: tuple[()]
    ) -> tuple[types.AgentOutput, tuple[()]]:
        """Samples actions from the policy.

        Args:
          env_output: [B, ...], with stacked observations.
          core_state: from `initial_state` or the last call.

        Returns:
          The actions int32 [B] with the logits float32 [B, A] they were drawn from, and the next
          core state.
        """
        logits, _ = self._head(self._torso(env_output.observation))
        seed = self._random.make_seeds(1)[:, 0]
        action = tf.random.stateless_categorical(logits, 1, seed, dtype=tf.int32)[:, 0]
        return types.AgentOutput(action, logits), core_state

    def loss(self, unroll: types.Unroll) -> types.LossOutput:
        """Trust-region V-trace actor-critic loss (LASER, algorithm 1), summed over T and B.

        A transition outside the trust region, and the step between two episodes, takes part in none
        of the terms. The entropy term reads online rows only (section 5.1).

        Args:
          unroll: [T + 1, B, ...].

        Returns:
          The loss with its metrics; no priorities, replay is uniform.
        """
        config = self._config
        env_output, behaviour = unroll.env_output, unroll.agent_output
        logits, values = self._unroll_network(env_output.observation)
        logits, behaviour_logits = logits[:-1], behaviour.logits[:-1]
        actions = behaviour.action[:-1]

        is_transition = tf.logical_not(env_output.is_first[1:])
        trusted = tf.logical_and(is_transition, self._in_trust_region(logits, behaviour_logits))
        log_rhos = vtrace.log_importance_ratios(logits, behaviour_logits, actions)
        targets = vtrace.vtrace(
            log_rhos,
            config.discount * env_output.discount[1:],
            self._clip_rewards(env_output.reward[1:]),
            values,
            trusted,
            rho_bar=config.rho_bar,
            c_bar=config.c_bar,
            lambda_=config.lambda_,
        )

        online_trusted = tf.logical_and(trusted, unroll.is_online)
        policy_loss = policy_gradient.policy_gradient_loss(
            logits, actions, targets.rhos * targets.advantages, trusted
        )
        value_loss = policy_gradient.baseline_loss(values[:-1], targets.values, trusted)
        entropy_loss = policy_gradient.entropy_loss(logits, online_trusted)
        loss = policy_loss + config.baseline_cost * value_loss + self.entropy_cost * entropy_loss
        metrics = {
            "loss/total": loss,
            "loss/policy": policy_loss,
            "loss/value": value_loss,
            "loss/entropy": entropy_loss,
            "vtrace/value": _masked_mean(values[:-1], is_transition),
            **self._off_policy_metrics(
                logits, behaviour_logits, log_rhos, trusted, is_transition, unroll.is_online
            ),
        }
        return types.LossOutput(loss, metrics, None)

    def after_update(self) -> None:
        """Nothing follows an update: there is no target network and no average policy."""

    def _unroll_network(self, observation: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Observations [T + 1, B, ...] -> logits [T + 1, B, A], values [T + 1, B]."""
        rows, batch = observation.shape[:2]
        features = self._torso(tf.reshape(observation, [rows * batch, *observation.shape[2:]]))
        logits, values = self._head(features)
        return tf.reshape(logits, [rows, batch, -1]), tf.reshape(values, [rows, batch])

    def _in_trust_region(self, logits: tf.Tensor, behaviour_logits: tf.Tensor) -> tf.Tensor:
        """[T, B, A] twice -> bool [T, B]."""
        config = self._config
        if config.relevance == "none":
            return tf.ones(logits.shape[:-1], tf.bool)
        relevance = trust_region.behaviour_relevance(
            logits, behaviour_logits, relevance=config.relevance, rho_bar=config.rho_bar
        )
        return relevance < config.kl_threshold

    def _off_policy_metrics(
        self,
        logits: tf.Tensor,
        behaviour_logits: tf.Tensor,
        log_rhos: tf.Tensor,
        trusted: tf.Tensor,
        is_transition: tf.Tensor,
        is_online: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """How far pi is from mu, and what V-trace and the trust region make of it."""
        online, replayed = is_transition & is_online, is_transition & ~is_online
        kl = trust_region.kl_divergence(logits, behaviour_logits)
        clipped = tf.cast(log_rhos > math.log(self._config.rho_bar), tf.float32)
        accepted = tf.cast(trusted, tf.float32)
        return {
            "policy/entropy": _masked_mean(policy_gradient.entropy(logits), is_transition),
            "policy/kl_online": _masked_mean(kl, online),
            "policy/kl_replay": _masked_mean(kl, replayed),
            "vtrace/rho_clipped_fraction": _masked_mean(clipped, is_transition),
            "trust_region/accepted_fraction": _masked_mean(accepted, is_transition),
            "trust_region/accepted_replay_fraction": _masked_mean(accepted, replayed),
        }

    def _clip_rewards(self, rewards: tf.Tensor) -> tf.Tensor:
        return (
            tf.clip_by_value(rewards, -1.0, 1.0) if self._config.reward_clip == "unit" else rewards
        )


def _masked_mean(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Mean where `mask` holds; NaN where it holds nowhere, so that no such value is logged."""
    weights = tf.cast(mask, tf.float32)
    return tf.reduce_sum(values * weights) / tf.reduce_sum(weights)
