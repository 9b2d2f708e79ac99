"""LASER: off-policy actor-critic with shared experience replay (Schmitt et al. 2020).

With `relevance="none"` and no replay this is IMPALA (Espeholt et al. 2018), LASER's on-policy
baseline. Feed-forward or, with a core, recurrent.
"""

import dataclasses
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import tensorflow as tf

from laser_tf import types
from laser_tf.agents import pixel_control_task
from laser_tf.networks import cores, heads, torsos, trunk
from laser_tf.ops import (
    diagnostics,
    policy_gradient,
    popart,
    reward_clipping,
    trust_region,
    vtrace,
)

KIND = "laser"
RELEVANCES = ("none", "implied", "behaviour")


@dataclasses.dataclass(frozen=True)
class Config:
    """Hyper-parameters of LASER's acting and loss.

    Raises:
      ValueError: for a value out of range; the message names it, the reason and the remedy.
    """

    kind: str = KIND
    torso: str = "shallow"  # a key of networks.torsos.TORSOS
    channel_multiplier: int = 1
    center_observation: bool = False  # subtract each observation's mean, see networks.torsos
    core: str = "none"  # a key of networks.cores.CORES; "none": feed-forward
    core_size: int = 256  # units of the core
    core_memory_span: int = 0  # steps that a fresh core remembers, see networks.lstm_cell; 0: few
    discount: float = 0.995  # gamma, per agent step
    reward_clip: str = "unit"  # a key of ops.reward_clipping.REWARD_CLIPS
    baseline_cost: float = 0.5
    entropy_cost: float = 0.01  # initial value; a runtime variable of the agent
    entropy_on_replay: bool = False  # whether replayed rows, too, are in the entropy term
    rho_bar: float = 1.0
    c_bar: float = 1.0
    lambda_: float = 1.0
    relevance: str = "implied"  # trust region; "none" switches it off
    kl_threshold: float = 0.1  # b: transitions with relevance below it are trusted, in nats
    popart: bool = False  # whether each task's values are learnt at unit scale
    popart_step: float = 3e-4  # of the moving averages, an update; Hessel et al. 2019
    pixel_control_cost: float = 0.0  # of the auxiliary loss; 0: none
    pixel_control_cell: int = 4  # pixels, height and width

    def __post_init__(self):
        _check_choice("kind", self.kind, (KIND,))
        _check_choice("torso", self.torso, torsos.TORSOS)
        _check_choice("core", self.core, ("none", *cores.CORES))
        _check_choice("reward_clip", self.reward_clip, reward_clipping.REWARD_CLIPS)
        _check_choice("relevance", self.relevance, RELEVANCES)
        for name in ("channel_multiplier", "core_size", "pixel_control_cell"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: use 1 or more")
        if self.core_memory_span != 0 and self.core_memory_span < 3:
            raise ValueError(
                f"core_memory_span is {self.core_memory_span}: use 3 steps or more, or 0"
            )
        if not 0 <= self.discount <= 1:
            raise ValueError(f"discount is {self.discount}: use a value from 0 to 1, e.g. 0.995")
        if not 0 < self.popart_step <= 1:
            raise ValueError(f"popart_step is {self.popart_step}: use a value above 0, at most 1")
        if not 0 <= self.lambda_ <= 1:
            raise ValueError(f"lambda_ is {self.lambda_}: use a value from 0 to 1")
        for name in ("baseline_cost", "entropy_cost", "pixel_control_cost"):
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


class _Learned(NamedTuple):
    """What a batch teaches, [T, B] each."""

    targets: vtrace.VTraceOutput
    values: tf.Tensor  # float32, in units of reward
    log_rhos: tf.Tensor  # float32
    is_transition: tf.Tensor  # bool, false for the step between two episodes
    trusted: tf.Tensor  # bool, the transitions that count


class Laser(tf.Module):
    """The agent; `laser_tf.types` holds the time convention of everything it reads."""

    def __init__(
        self, config: Config, spec: types.EnvironmentSpec, dtype: str = "float32", seed: int = 0
    ):
        """Creates the agent; all its weights exist after the first call of `loss`.

        Args:
          config: hyper-parameters.
          spec: of the environment.
          dtype: compute dtype of the torso, "float32" or "bfloat16".
          seed: of the actions that `act` draws.

        Raises:
          ValueError: if a cell of pixel control is larger than the frames.
        """
        super().__init__()
        self._config = config
        self._trunk = trunk.Trunk(
            config.torso,
            config.core,
            spec=spec,
            core_size=config.core_size,
            core_memory_span=config.core_memory_span,
            channel_multiplier=config.channel_multiplier,
            center_observation=config.center_observation,
            dtype=dtype,
        )
        # No network sees the task; PopArt alone keeps apart what is learnt of each.
        self._head = heads.PolicyValueHead(spec.num_actions, spec.num_tasks if config.popart else 1)
        self._pixel_control = (
            pixel_control_task.PixelControlTask(spec, config.pixel_control_cell, dtype)
            if config.pixel_control_cost
            else None
        )
        self._random = tf.random.Generator.from_seed(seed)
        # A variable, since a population's trainer changes it while the run goes on.
        self.entropy_cost = tf.Variable(config.entropy_cost, trainable=False, dtype=tf.float32)

    def initial_state(self, batch_size: int) -> Any:
        """The core state before an episode, float32 [B, ...]; () where the agent has no core."""
        return self._trunk.initial_state(batch_size)

    def act(self, env_output: types.EnvOutput, core_state: Any) -> tuple[types.AgentOutput, Any]:
        """Samples actions from the policy.

        Args:
          env_output: [B, ...], with stacked observations.
          core_state: from `initial_state` or the last call.

        Returns:
          The actions int32 [B] with the logits float32 [B, A] they were drawn from, and the next
          core state.
        """
        row = tf.nest.map_structure(lambda tensor: tensor[None], env_output)
        features, core_state = self._trunk(row, core_state)
        logits = self._head.logits(features[0])
        seed = self._random.make_seeds(1)[:, 0]
        action = tf.random.stateless_categorical(logits, 1, seed, dtype=tf.int32)[:, 0]
        return types.AgentOutput(action, logits), core_state

    def next_state(self, env_output: types.EnvOutput, core_state: Any) -> Any:
        """The core state after rows that are not acted upon.

        Args:
          env_output: [R, B, ...].
          core_state: before row 0.
        """
        return self._trunk(env_output, core_state)[1]

    def loss(self, unroll: types.Unroll) -> types.LossOutput:
        """Trust-region V-trace actor-critic loss (LASER, algorithm 1), summed over T and B.

        A transition outside the trust region, and the step between two episodes, takes part in none
        of the terms. The entropy term reads online rows only (section 5.1), or all. With PopArt,
        the call moves the values' moments and rescales the value layer, before any gradient.

        Args:
          unroll: [T + 1, B, ...].

        Returns:
          The loss with its metrics, and the critic's losses as priorities.
        """
        config = self._config
        tasks = unroll.task if config.popart else tf.zeros_like(unroll.task)
        features, _ = self._trunk(unroll.env_output, unroll.core_state)
        logits = self._head.logits(features)[:-1]
        learned = self._what_to_learn(unroll, logits, features, tasks)
        if config.popart:
            self._rescale_values(learned.targets.values, learned.trusted, tasks)

        statistics = popart.Statistics(*self._head.moments)
        values = self._head.normalised_values(features[:-1], tasks)
        value_targets = popart.normalise(statistics, learned.targets.values, tasks)
        advantages = learned.targets.advantages / tf.gather(popart.sigma(statistics), tasks)
        actions = unroll.agent_output.action[:-1]
        trusted, root_weight = learned.trusted, tf.sqrt(unroll.weight)
        terms = {
            "policy": policy_gradient.policy_gradient_loss(
                logits, actions, unroll.weight * learned.targets.rhos * advantages, trusted
            ),
            "value": policy_gradient.baseline_loss(
                root_weight * values, root_weight * value_targets, trusted
            ),
            "entropy": policy_gradient.entropy_loss(
                logits, trusted & (unroll.is_online | config.entropy_on_replay)
            ),
        }
        costs = {"policy": 1.0, "value": config.baseline_cost, "entropy": self.entropy_cost}
        if self._pixel_control:
            terms["pixel_control"] = self._pixel_control.loss(
                unroll.env_output.observation,
                features,
                actions,
                learned.is_transition,
                trusted,
                unroll.weight,
            )
            costs["pixel_control"] = config.pixel_control_cost
        loss = tf.add_n([costs[name] * term for name, term in terms.items()])
        metrics = {
            "loss/total": loss,
            **{f"loss/{name}": term for name, term in terms.items()},
            **self._metrics(unroll, logits, learned),
        }
        return types.LossOutput(
            loss, metrics, diagnostics.critic_priorities(values, value_targets, trusted)
        )

    def after_update(self) -> None:
        """Nothing follows an update: there is no target network and no average policy."""

    def _what_to_learn(
        self, unroll: types.Unroll, logits: tf.Tensor, features: tf.Tensor, tasks: tf.Tensor
    ) -> _Learned:
        """V-trace's targets, in units of reward, and which transitions they hold for."""
        config = self._config
        env_output, behaviour = unroll.env_output, unroll.agent_output
        behaviour_logits = behaviour.logits[:-1]
        values = popart.unnormalise(
            popart.Statistics(*self._head.moments),
            self._head.normalised_values(features, tasks),
            tasks,
        )
        is_transition = tf.logical_not(env_output.is_first[1:])
        trusted = is_transition & self._in_trust_region(logits, behaviour_logits)
        log_rhos = vtrace.log_importance_ratios(logits, behaviour_logits, behaviour.action[:-1])
        targets = vtrace.vtrace(
            log_rhos,
            config.discount * env_output.discount[1:],
            reward_clipping.REWARD_CLIPS[config.reward_clip](env_output.reward[1:]),
            values,
            trusted,
            rho_bar=config.rho_bar,
            c_bar=config.c_bar,
            lambda_=config.lambda_,
        )
        return _Learned(targets, values[:-1], log_rhos, is_transition, trusted)

    def _in_trust_region(self, logits: tf.Tensor, behaviour_logits: tf.Tensor) -> tf.Tensor:
        """[T, B, A] twice -> bool [T, B]."""
        config = self._config
        if config.relevance == "none":
            return tf.ones(logits.shape[:-1], tf.bool)
        relevance = trust_region.behaviour_relevance(
            logits, behaviour_logits, relevance=config.relevance, rho_bar=config.rho_bar
        )
        return relevance < config.kl_threshold

    def _rescale_values(self, targets: tf.Tensor, trusted: tf.Tensor, tasks: tf.Tensor) -> None:
        """PopArt: moves the moments toward the targets' and keeps the values what they were."""
        old = popart.Statistics(*self._head.moments)
        new = popart.update(old, targets, trusted, tasks, self._config.popart_step)
        self._head.assign(new, popart.preserve_outputs(old, new, *self._head.value_layer))

    def _metrics(
        self, unroll: types.Unroll, logits: tf.Tensor, learned: _Learned
    ) -> dict[str, tf.Tensor]:
        """What the run shows beside the loss's terms."""
        return {
            "vtrace/value": diagnostics.masked_mean(learned.values, learned.is_transition),
            **diagnostics.off_policy(
                logits,
                unroll.agent_output.logits[:-1],
                learned.log_rhos,
                is_transition=learned.is_transition,
                trusted=learned.trusted,
                is_online=unroll.is_online,
                is_own=unroll.is_own,
                rho_bar=self._config.rho_bar,
            ),
        }
