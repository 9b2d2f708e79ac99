"""Tests LASER's loss against float64 NumPy for discrete and continuous actions, and acting."""

from typing import Any

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import observations, types
from laser_tf.agents import base, laser, laser_config, registry
from testing import fakes
from testing.agents import laser_reference, unrolls

T, B, V, A, D = 6, 4, 3, 3, 2
CONTINUOUS = specs.BoundedArray([D], np.float32, [-1.0, 0.0], [1.0, 4.0])
DISCRETE = specs.DiscreteArray(A)
VECTOR = specs.Array([V], np.float32)
NEST = {"image": observations.image_spec(6, 5, 1), "state": VECTOR, "text": types.TextSpec(3)}
SHAPE = (10, 5, 1)  # of images


def _spec(action: specs.BoundedArray, observation: Any = VECTOR, num_tasks: int = 1):
    return types.EnvironmentSpec(observation, action, num_tasks)


def _agent(spec=_spec(DISCRETE), frame_stack: int = 1, **overrides) -> laser.Laser:  # noqa: B008
    tf.keras.utils.set_random_seed(1)
    values = {"torso": "flat", "mlp_units": (6,), "reward_clip": "none", "discount": 0.9}
    values |= {"trust_region": "behaviour", "kl_threshold": 1.0, "normalise_vectors": False}
    values |= {"mlp_activation": "relu"}  # Increases the distance between policies.
    config = laser_config.LaserConfig(**values | overrides)
    return registry.make(config, base.AgentContext(spec, frame_stack=frame_stack, seed=3))


def _image_agent(num_tasks: int = 1, shape: tuple[int, ...] = SHAPE, **overrides) -> laser.Laser:
    overrides = {"trust_region": "none"} | overrides
    return _agent(fakes.image_spec(shape, A, num_tasks), **overrides)


def _unroll(agent: laser.Laser, spec=_spec(DISCRETE)):  # noqa: B008
    """Returns an unroll; entry 1 terminates, entry 2 reaches a time limit, entry 3 loses a life."""
    ends = {"terminations": [(2, 1)], "time_limits": [(3, 2)], "lost_lives": [(4, 3)]}
    return unrolls.make(agent, spec, T, B, **ends)


def _entry(unroll: types.Unroll, index: int) -> types.Unroll:
    one = slice(index, index + 1)
    return types.Unroll(
        *(tf.nest.map_structure(lambda x: x[:, one], part) for part in unroll[:2]),
        *(tf.nest.map_structure(lambda x: x[one], part) for part in unroll[2:]),
    )


class LossTest(parameterized.TestCase):
    @parameterized.parameters(
        (DISCRETE, {"trust_region": "implied"}),
        (DISCRETE, {"trust_region": "auto"}),
        (DISCRETE, {"trust_region": "behaviour"}),
        (DISCRETE, {"trust_region": "none", "entropy_on_replay": True}),
        (DISCRETE, {"trust_region": "none", "reward_clip": "unit", "baseline_cost": 2.0}),
        (CONTINUOUS, {"continuous_policy": "squashed", "trust_region": "auto"}),
        (CONTINUOUS, {"continuous_policy": "clipped"}),
        (CONTINUOUS, {"continuous_policy": "squashed", "trust_region": "none"}),
    )
    def test_loss_and_gradients_equal_reference(self, action, overrides):
        settings = {"rho_bar": 1.3, "c_bar": 0.8, "lambda_": 0.95, "entropy_cost": 0.1} | overrides
        for _ in range(2):  # The second time both decisions occur in the trust region.
            agent = _agent(_spec(action), **settings)
            unroll = _unroll(agent, _spec(action))
            features, _ = agent._trunk(unroll.env_output, unroll.core_state)
            outputs = agent._outputs(features[:-1], unroll.env_output).numpy().astype(np.float64)
            values = agent._state_values(features, unroll.task).numpy().astype(np.float64)
            reference = laser_reference.Reference(agent, unroll, outputs, values)
            settings["kl_threshold"] = float(np.nanmedian(reference.relevance))
        output = agent.loss(unroll)
        expected = reference.loss(outputs, values[:-1])
        np.testing.assert_allclose(output.loss, expected, rtol=1e-3)
        np.testing.assert_allclose(output.priorities, reference.priorities, rtol=1e-3)
        # A bias shifts the outputs of all steps, so central differences give its gradient.
        step, differences = 1e-5, []
        for move in step * np.eye(outputs.shape[-1] + 1):
            up, down = (
                reference.loss(outputs + sign * move[:-1], values[:-1] + sign * move[-1])
                for sign in (1, -1)
            )
            differences.append((up - down) / (2 * step))
        biases = [layer.bias for layer in (agent._policy_head, agent._state_values._layer)]
        actual = np.concatenate(unrolls.gradients(lambda: agent.loss(unroll).loss, biases))
        np.testing.assert_allclose(actual, differences, rtol=2e-3, atol=2e-3)

    @parameterized.product(popart=(False, True), action=(DISCRETE, CONTINUOUS))
    def test_rejected_transitions_give_zero_loss_and_gradient(self, popart, action):
        # NaN policies are outside of the trust region.
        agent = _agent(_spec(action), popart=popart)
        unroll = _unroll(agent, _spec(action))
        policy = tf.nest.map_structure(lambda leaf: leaf * np.nan, unroll.agent_output.policy)
        unroll = unroll._replace(agent_output=unroll.agent_output._replace(policy=policy))
        output = agent.loss(unroll)
        self.assertEqual(output.metrics["trust_region/accepted_fraction"].value, 0.0)
        self.assertEqual(output.loss, 0.0)
        for gradient in unrolls.gradients(
            lambda: agent.loss(unroll).loss, agent.trainable_variables
        ):
            np.testing.assert_array_equal(gradient, 0)
        if popart:
            np.testing.assert_array_equal(agent._state_values._mean, [0.0])

    def test_metrics_distinguish_own_and_foreign_experience(self):
        agent = _agent(trust_region="behaviour", kl_threshold=0.3, rho_bar=1.3)
        own = tf.constant([True, True, False, False])
        unroll = _unroll(agent)._replace(
            is_online=tf.constant([True, False, False, False]), is_own=own
        )
        features, _ = agent._trunk(unroll.env_output, ())
        targets = agent._compute_targets(
            unroll,
            agent._outputs(features[:-1], unroll.env_output),
            agent._state_values(features, unroll.task),
        )
        mask, trusted = targets.is_transition.numpy(), targets.is_trusted.numpy()
        self.assertFalse(trusted[mask].all())  # Rejected transitions have no advantage.
        advantages, kl = targets.vtrace_output.advantages.numpy(), targets.kl.numpy()
        entropy = agent._distribution.entropy(targets.policy).numpy()
        clipped = targets.log_rhos.numpy() > np.log(1.3)
        entries, metrics = np.arange(B)[None] + 0 * mask, agent.loss(unroll).metrics
        groups = {"online": entries == 0, "replay": entries > 0, "own": entries == 1}
        groups |= {"foreign": entries > 1, "all": entries >= 0}
        for name, values, group in (
            ("policy/entropy", entropy, groups["all"]),
            *((f"policy/kl_{g}", kl, groups[g]) for g in ("online", "replay", "own", "foreign")),
            *(
                (f"vtrace/advantage_{g}", advantages, groups[g] & trusted)
                for g in ("own", "foreign")
            ),
            ("vtrace/rho_clipped_fraction", clipped, groups["all"]),
            ("trust_region/accepted_fraction", trusted, groups["all"]),
            ("trust_region/accepted_replay_fraction", trusted, groups["replay"]),
            ("trust_region/accepted_own_fraction", trusted, groups["own"]),
            ("trust_region/accepted_foreign_fraction", trusted, groups["foreign"]),
            ("replay/foreign_fraction", groups["foreign"], groups["replay"]),
        ):
            expected = values[mask & group].mean()
            np.testing.assert_allclose(metrics[name].value, expected, rtol=1e-5, err_msg=name)

    @parameterized.parameters("lstm", "preco_lstm")
    def test_single_steps_equal_unroll_from_stored_state(self, core):
        agent = _agent(_spec(CONTINUOUS, NEST), core=core, core_size=4, trust_region="none")
        unroll = _unroll(agent, _spec(CONTINUOUS, NEST))
        features, _ = agent._trunk(unroll.env_output, unroll.core_state)
        mean, _ = agent._distribution.parameters(agent._outputs(features, unroll.env_output))
        state = unroll.core_state
        for step in range(T + 1):
            output, state = agent.act(unrolls.at(unroll.env_output, step), state)
            np.testing.assert_allclose(output.policy.mean, mean[step], atol=1e-5)
        before = agent.loss(unroll).loss
        other = tf.nest.map_structure(lambda leaf: leaf + 1.0, unroll.core_state)
        self.assertNotEqual(agent.loss(unroll._replace(core_state=other)).loss, before)
        for gradient in unrolls.gradients(
            lambda: agent.loss(unroll).loss, agent.trainable_variables
        ):
            self.assertGreater(np.abs(gradient).max(), 0)

    def test_assigned_entropy_cost_changes_loss(self):
        agent = _agent(trust_region="none")
        unroll = _unroll(agent)
        before = agent.loss(unroll)
        agent.hyperparameters["agent.entropy_cost"].assign_add(1.0)
        difference = agent.loss(unroll).loss - before.loss
        np.testing.assert_allclose(difference, before.metrics["loss/entropy"], rtol=1e-4)

    def test_only_observe_updates_moments(self):
        agent = _agent(normalise_vectors=True)
        moments = agent._trunk.moments
        unroll = _unroll(agent)  # Acts.
        np.testing.assert_array_equal(moments[0], np.zeros(V))
        is_first = np.zeros([T + 1, B], bool)
        is_first[:, 1] = True  # The blank entry is ignored.
        env_output = unroll.env_output._replace(is_first=tf.constant(is_first))
        agent.loss(unroll)
        np.testing.assert_array_equal(moments[0], np.zeros(V))
        agent.update_normalisers(env_output)
        seen = unroll.env_output.observation.numpy()[:-1, [0, 2, 3]].reshape(-1, V)
        np.testing.assert_allclose(moments[0], seen.mean(0), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(moments[1], seen.var(0), rtol=1e-3)
        acting = {variable.ref() for variable in agent.acting_variables}
        self.assertTrue({moment.ref() for moment in moments} <= acting)


class ActTest(parameterized.TestCase):
    def test_fresh_policy_is_similar_in_all_states(self):
        # Far from the middle of the range the squashing has no gradient.
        agent = _agent(_spec(CONTINUOUS))
        step = tf.nest.map_structure(
            tf.constant, observations.padding_steps(_spec(CONTINUOUS), (500,))
        )
        observation = tf.random.stateless_normal([500, V], [1, 2], stddev=3.0)
        output, _ = agent.act(step._replace(observation=observation), ())
        mean, std = output.policy
        np.testing.assert_allclose(mean, np.zeros([500, D]), atol=0.3)
        np.testing.assert_allclose(std, np.full([500, D], 0.5), atol=0.15)
        CONTINUOUS.validate(output.action.numpy()[0])
        expected = agent._distribution.mode(output.policy)
        np.testing.assert_allclose(agent.greedy_action(output), expected)
        again, _ = agent.act(step._replace(observation=observation), ())
        self.assertTrue(np.any(output.action != again.action))
        with self.assertRaises(ValueError):
            agent.action_preferences(output)

    @parameterized.parameters(
        ("laser", "none", DISCRETE), ("laser", "lstm", CONTINUOUS),
        ("r2d2", "lstm", DISCRETE), ("reactor", "lstm", DISCRETE),
    )  # fmt: skip
    def test_dynamic_batch_size_is_supported(self, kind, core, action):
        spec = _spec(action, NEST)
        trusted = {"trust_region": "behaviour"} if kind == "laser" else {}
        config = registry.config_class(kind)(torso="flat", core=core, core_size=4, **trusted)
        agent = registry.make(config, base.AgentContext(spec))

        def arguments(size):
            step = observations.padding_steps(spec, (size,))
            return tf.nest.map_structure(tf.constant, step), agent.initial_state(size)

        signature = tf.nest.map_structure(
            lambda leaf: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype), arguments(1)
        )
        act = tf.function(agent.act, input_signature=signature, autograph=False)
        for size in (1, 5):
            (output, state), (expected, expected_state) = (
                function(*arguments(size)) for function in (act, agent.act)
            )
            self.assertEqual(output.action.shape, expected.action.shape)
            tf.nest.map_structure(
                lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5),
                (output.policy, output.extras if kind == "r2d2" else (), state),
                (expected.policy, expected.extras if kind == "r2d2" else (), expected_state),
            )


class PopArtTest(absltest.TestCase):
    def test_popart_loss_uses_normalised_values(self):
        agent = _image_agent(3, popart=True, entropy_cost=0.0)
        plain = _image_agent(entropy_cost=0.0)
        unroll = fakes.random_unroll(6, 4, A, SHAPE)._replace(task=tf.constant([0, 2, 2, 0]))
        # Both agents start with equal weights; all tasks share the value layer of `plain`.
        for name in ("_trunk", "_policy_head", "_state_values"):
            pairs = (getattr(one, name).trainable_variables for one in (agent, plain))
            for target, source in zip(*pairs, strict=True):
                target.assign(tf.broadcast_to(source, target.shape))
        agent._state_values._variance.assign([1.0, 1.0, 4.0])
        layer = agent._state_values._layer
        layer.kernel.assign(layer.kernel / [1.0, 1.0, 2.0])
        layer.bias.assign(layer.bias / [1.0, 1.0, 2.0])
        expected, actual = plain.loss(unroll).metrics, agent.loss(unroll).metrics
        entries = [plain.loss(_entry(unroll, index)).metrics for index in range(4)]
        np.testing.assert_allclose(
            actual["vtrace/value"].value, expected["vtrace/value"].value, rtol=1e-4
        )
        # The tolerance covers the update of the moments by 3e-4 before the loss.
        for name, power in (("loss/policy", 1), ("loss/value", 2)):
            scaled = [c[name] / s**power for c, s in zip(entries, (1, 2, 2, 1), strict=True)]
            np.testing.assert_allclose(actual[name], sum(scaled), rtol=5e-3)


class PixelControlTest(absltest.TestCase):
    def test_pixel_control_adds_weighted_term_to_loss(self):
        agent = _image_agent(pixel_control_cost=0.5, pixel_control_cell=5, entropy_on_replay=True)
        unroll, weights = fakes.random_unroll(5, 3, A, SHAPE), [1.0, 0.25, 0.0]
        metrics = agent.loss(unroll._replace(importance_weight=tf.constant(weights))).metrics
        costs = {"policy": 1, "value": 0.5, "entropy": 0.01, "pixel_control": 0.5}
        total = sum(cost * metrics[f"loss/{name}"] for name, cost in costs.items())
        np.testing.assert_allclose(metrics["loss/total"], total, rtol=1e-5)
        entries = [agent.loss(_entry(unroll, index)).metrics for index in range(3)]
        for name in costs:
            terms = (w * entry[f"loss/{name}"] for w, entry in zip(weights, entries, strict=True))
            np.testing.assert_allclose(metrics[f"loss/{name}"], sum(terms), rtol=1e-4)

    def test_pixel_control_reads_newest_frame_only(self):
        stack = (10, 5, 2)
        agent = _image_agent(1, stack, frame_stack=2, pixel_control_cost=1.0, pixel_control_cell=5)
        unroll = fakes.random_unroll(5, 2, A, stack)
        for variable in agent._pixel_control.variables:
            variable.assign(tf.zeros_like(variable))
        self.assertGreater(agent.loss(unroll).metrics["loss/pixel_control"], 0)
        still = unroll.env_output.observation.numpy()
        still[..., -1] = 7
        env_output = unroll.env_output._replace(observation=tf.constant(still))
        unroll = unroll._replace(env_output=env_output)
        self.assertEqual(agent.loss(unroll).metrics["loss/pixel_control"], 0)

    def test_rejected_transitions_give_zero_loss(self):
        settings = {"trust_region": "behaviour", "kl_threshold": 1e-6}
        agent = _image_agent(pixel_control_cost=1.0, pixel_control_cell=2, **settings)
        self.assertEqual(agent.loss(fakes.random_unroll(5, 4, A, SHAPE)).loss, 0.0)


if __name__ == "__main__":
    absltest.main()
