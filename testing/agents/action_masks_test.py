"""Tests that forbidden actions affect neither the losses of agents nor their actions."""

from typing import Any

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import observations, types
from laser_tf.agents import base, registry
from laser_tf.ops import action_mask
from testing.agents import laser_reference, unrolls

T, B, A = 5, 4, 5
REACTOR = {"bins": 3, "hidden_units": 4, "core": "none"}
# Agent, overrides, and its layers with an output for each action.
CASES = (
    ("laser", {"trust_region": "implied", "rho_bar": 1.3}, ["_policy_head"]),
    ("laser", {"trust_region": "behaviour", "kl_threshold": 9.0}, ["_policy_head"]),
    ("laser", {"trust_region": "none", "core": "lstm", "core_size": 4}, ["_policy_head"]),
    (
        "laser",
        {"trust_region": "none", "pixel_control_cost": 0.1, "pixel_control_cell": 2},
        ["_pixel_control._head"],
    ),
    *(
        ("acer", overrides, ["_policy._head", "_average._head", "_critic._head"])
        for overrides in (
            # A truncation below 1 corrects all ratios. A small delta constrains the gradient.
            {"truncation": 0.5, "entropy_cost": 0.1, "delta": 0.01},
            {"truncation": 0.5, "entropy_cost": 0.1, "delta": 0.01, "statistics": "logits"},
        )
    ),
    (
        "a3c",
        {"importance": "truncated", "trust_region": True, "delta": 0.01, "entropy_cost": 0.1},
        ["_policy._head", "_average._head"],
    ),
    ("r2d2", {"hidden_units": 4, "core": "none", "n_steps": 2}, ["_online._head", "_target._head"]),
    *(
        (
            "reactor",
            REACTOR | {"policy_gradient": name, "distributional": name == "tislr"},
            [
                "_online._policy_head",
                "_online._critic_head",
                "_target._policy_head",
                "_target._critic_head",
            ],
        )
        for name in ("beta_loo", "tislr")
    ),
)


def _spec() -> types.EnvironmentSpec:
    observation = {
        observations.ACTION_MASK: specs.Array([A], bool),
        "image": observations.image_spec(6, 4, 1),
        "state": specs.Array([3], np.float32),
    }
    return types.EnvironmentSpec(observation, specs.DiscreteArray(A))


def _agent(kind: str, overrides: dict[str, Any], **context) -> Any:
    tf.keras.utils.set_random_seed(1)
    values = {"torso": "flat", "mlp_units": (6,), "reward_clip": "none"}
    values |= {"normalise_vectors": False} | overrides
    config = registry.config_class(kind)(**values)
    return registry.make(config, base.AgentContext(_spec(), seed=3, **context))


def _unroll(agent: base.Agent) -> tuple[types.Unroll, np.ndarray]:
    """Returns an unroll and the allowed actions, bool [T + 1, B, A].

    The mask after the end of an episode forbids every action.
    """
    ends = {"terminations": [(2, 1)], "time_limits": [(3, 2)], "lost_lives": [(4, 3)]}
    unroll = unrolls.make(agent, _spec(), T, B, **ends)
    observation = unroll.env_output.observation
    mask = observation[observations.ACTION_MASK].numpy()
    # The two unread steps and the lost life are steps with an action that other masks allow.
    mask[2, 1] = False
    observation = observation | {observations.ACTION_MASK: tf.constant(mask)}
    env_output = unroll.env_output._replace(observation=observation)
    return unroll._replace(env_output=env_output), action_mask.allowed_actions(mask).numpy()


class _NoisyLayer(tf.Module):
    """Adds noise [T + 1, B, A] to the outputs of a layer."""

    def __init__(self, layer: Any, noise: tf.Variable):
        super().__init__()
        self._layer, self._noise = layer, noise

    def __call__(self, features: tf.Tensor) -> tf.Tensor:
        outputs = self._layer(features)
        if outputs.shape[-1] == A and outputs.shape.rank == 3:
            return outputs + self._noise[: outputs.shape[0]]
        if outputs.shape[-1] == A:  # Of pixel control: [(T + 1) B, H, W, A].
            return outputs + tf.reshape(self._noise, [-1, 1, 1, A])
        bins = tf.range(1.0, 1.0 + outputs.shape[-1])  # Of Reactor's critic: [T, B, A, N].
        return outputs + self._noise[: outputs.shape[0], ..., None] * bins


def _add_noise(agent: base.Agent, path: str, noise: tf.Variable) -> None:
    """Replaces the layer of an agent at a path such as `_policy._head`."""
    *parents, name = path.split(".")
    owner: Any = agent
    for parent in parents:
        owner = getattr(owner, parent)
    setattr(owner, name, _NoisyLayer(getattr(owner, name), noise))


class LossTest(parameterized.TestCase):
    @parameterized.parameters(*CASES)
    def test_forbidden_outputs_change_neither_loss_nor_gradients(self, kind, overrides, layers):
        agent = _agent(kind, overrides)
        unroll, allowed = _unroll(agent)
        variables = [v for v in agent.variables if v.dtype.is_floating]
        noises = [tf.Variable(tf.zeros([T + 1, B, A])) for _ in layers]
        for layer, noise in zip(layers, noises, strict=True):
            _add_noise(agent, layer, noise)

        def results() -> list[tf.Tensor]:
            with tf.GradientTape() as tape:
                output = agent.loss(unroll)
            gradients = tape.gradient(
                output.loss, [*variables, *noises], unconnected_gradients="zero"
            )
            return [*tf.nest.flatten(output), *gradients]

        before = results()
        generator = np.random.default_rng(5)
        for noise in noises:
            noise.assign(np.where(allowed, 0, 8 * generator.normal(size=allowed.shape)))
        after = results()
        for one, other in zip(before, after, strict=True):
            self.assertTrue(np.isfinite(other).all())
            np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)
        gradients = after[-len(noises) :]
        for gradient in gradients:
            np.testing.assert_array_equal(gradient.numpy()[~allowed], 0)
        self.assertGreater(np.abs(gradients[0]).max(), 0)

    def test_loss_of_laser_equals_reference(self):
        agent = _agent("laser", {"trust_region": "implied", "kl_threshold": 2.0})
        unroll, allowed = _unroll(agent)
        features, _ = agent._trunk(unroll.env_output, ())
        logits = agent._policy_head(features[:-1]).numpy().astype(np.float64)
        outputs = np.where(allowed[:-1], logits, -1e9)
        values = agent._state_values(features, unroll.task).numpy().astype(np.float64)
        reference = laser_reference.Reference(agent, unroll, outputs, values)
        output = agent.loss(unroll)
        np.testing.assert_allclose(output.loss, reference.loss(outputs, values[:-1]), rtol=1e-3)
        np.testing.assert_allclose(output.priorities, reference.priorities, rtol=1e-3)

    def test_target_of_r2d2_is_the_best_allowed_action(self):
        agent = _agent("r2d2", {"hidden_units": 4, "core": "none", "rescaling_epsilon": 0.0})
        unroll, allowed = _unroll(agent)
        steps = unroll.env_output, unroll.core_state
        online, target = (net(*steps)[0].numpy() for net in (agent._online, agent._target))
        best = np.where(allowed, online, -np.inf).argmax(-1)
        values = np.take_along_axis(target, best[..., None], axis=-1)[..., 0]
        self.assertGreater(values.min(), -1e3)
        errors, _ = agent._td_errors(unroll, tf.constant(online), tf.constant(target))
        # The last transition bootstraps from the last step.
        expected = unroll.env_output.reward[-1] + agent._config.discount * values[-1]
        actions = unroll.agent_output.action.numpy()[-2]
        expected -= online[-2, np.arange(B), actions]
        np.testing.assert_allclose(errors[-1], expected, rtol=1e-4)


class ActingTest(parameterized.TestCase):
    def _act(
        self, agent: base.Agent, size: int = 400, share: float = 0.4
    ) -> tuple[types.AgentOutput, np.ndarray]:
        """Returns the agent's output for random masks, and the masks [B, A].

        Each action is allowed with probability `share`, and at least one is.
        """
        generator = np.random.default_rng(0)
        mask = generator.random([size, A]) < share
        mask[np.arange(size), generator.integers(A, size=size)] = True
        step = tf.nest.map_structure(tf.constant, observations.padding_steps(_spec(), (size,)))
        state = tf.constant(generator.normal(size=[size, 3]), tf.float32)
        parts = {observations.ACTION_MASK: tf.constant(mask), "state": state}
        step = step._replace(observation=step.observation | parts)
        return agent.act(step, agent.initial_state(size))[0], mask

    @parameterized.parameters(("laser", {}), ("acer", {}), ("a3c", {}), ("reactor", REACTOR))
    def test_policy_takes_allowed_actions_only(self, kind, overrides):
        agent = _agent(kind, overrides)
        unrolls.shake(agent.trainable_variables, scale=1.0)
        output, mask = self._act(agent)
        for action in (output.action, agent.greedy_action(output)):
            self.assertTrue(np.take_along_axis(mask, action.numpy()[:, None], axis=1).all())
        probabilities = tf.nn.softmax(output.policy).numpy()
        np.testing.assert_array_equal(probabilities[~mask], 0)
        if kind == "reactor":  # A share of the policy is uniform over the allowed actions.
            share = agent._config.uniform_share / mask.sum(axis=1, keepdims=True)
            self.assertTrue((probabilities >= np.where(mask, 0.99 * share, 0)).all())

    def test_networks_do_not_read_the_mask(self):
        agent = _agent("laser", {"normalise_vectors": True})
        unrolls.shake(agent.trainable_variables, scale=1.0)
        (masked, mask), (free, _) = (self._act(agent, share=share) for share in (0.4, 1.0))
        np.testing.assert_allclose(masked.policy.numpy()[mask], free.policy.numpy()[mask], 1e-5)
        agent._trunk.update_normalisers(
            _unroll(agent)[0].env_output
        )  # Moments have no entry for it.

    @parameterized.parameters(0.0, 1.0)
    def test_epsilon_greedy_takes_allowed_actions_only(self, epsilon):
        overrides = {"hidden_units": 4, "core": "none", "evaluation_epsilon": epsilon}
        agent = _agent("r2d2", overrides, is_evaluating=True)
        unrolls.shake(agent.trainable_variables, scale=1.0)
        output, mask = self._act(agent, 5_000)
        actions, greedy = output.action.numpy(), agent.greedy_action(output).numpy()
        for action in (actions, greedy):
            self.assertTrue(np.take_along_axis(mask, action[:, None], axis=1).all())
        if epsilon:
            counts = np.bincount(actions, minlength=A)
            expected = (mask / mask.sum(axis=1, keepdims=True)).sum(axis=0)
            np.testing.assert_allclose(counts, expected, rtol=0.15)
        else:
            np.testing.assert_array_equal(actions, greedy)


if __name__ == "__main__":
    absltest.main()
