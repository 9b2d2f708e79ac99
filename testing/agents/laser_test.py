"""Tests LASER's loss and acting on unrolls with known results."""

import dataclasses
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf import types
from laser_tf.agents import base, laser, laser_config
from laser_tf.ops import categorical, trust_region
from testing import fakes, messages, numpy_reference

NUM_ACTIONS = 3
SHAPE = (10, 5, 1)


def _agent(
    num_tasks: int = 1, shape: tuple[int, ...] = SHAPE, frame_stack: int = 1, **overrides
) -> laser.Laser:
    tf.keras.utils.set_random_seed(1)
    config = laser_config.LaserConfig(**({"torso": "flat", "reward_clip": "none"} | overrides))
    spec = fakes.image_spec(shape, NUM_ACTIONS, num_tasks)
    return laser.Laser(config, base.Context(spec, frame_stack=frame_stack))


def _gradients(agent: laser.Laser, unroll) -> list[np.ndarray]:
    with tf.GradientTape() as tape:
        loss = agent.loss(unroll).loss
    return [g.numpy() for g in tape.gradient(loss, agent.trainable_variables)]


def _replace_env(unroll, **fields):
    return unroll._replace(env_output=unroll.env_output._replace(**fields))


def _entry(unroll: types.Unroll, index: int) -> types.Unroll:
    one = slice(index, index + 1)
    return types.Unroll(
        *(tf.nest.map_structure(lambda x: x[:, one], part) for part in unroll[:2]),
        core_state=(),
        task=unroll.task[one],
        is_online=unroll.is_online[one],
        is_own=unroll.is_own[one],
        importance_weight=unroll.importance_weight[one],
    )


def _reference_loss(config, unroll, logits, values) -> float:
    """Computes LASER's algorithm 1 in NumPy, with the trust region from probabilities."""
    pi = numpy_reference.softmax(logits[:-1])
    mu = numpy_reference.softmax(unroll.agent_output.policy[:-1])
    actions = unroll.agent_output.action.numpy()[:-1]
    flat = (-1, NUM_ACTIONS)
    other = {
        "none": pi,  # KL(pi || pi) = 0: all transitions are trusted.
        "behaviour": mu,
        "implied": numpy_reference.implied_policy(
            pi.reshape(flat), mu.reshape(flat), config.rho_bar
        ).reshape(pi.shape),
    }[config.relevance]
    relevance = numpy_reference.kl_divergence(pi.reshape(flat), other.reshape(flat))
    trusted = relevance.reshape(actions.shape) < config.kl_threshold
    trusted &= ~unroll.env_output.is_first.numpy()[1:]
    targets, advantages, rhos = numpy_reference.vtrace(
        numpy_reference.log_importance_ratios(
            logits[:-1], unroll.agent_output.policy.numpy()[:-1], actions
        ),
        config.discount * unroll.env_output.discount.numpy()[1:],
        unroll.env_output.reward.numpy()[1:],
        values,
        trusted,
        config.rho_bar,
        config.c_bar,
        config.lambda_,
    )
    online = trusted & unroll.is_online.numpy()
    return (
        numpy_reference.policy_gradient_loss(logits[:-1], actions, rhos * advantages, trusted)[0]
        + config.baseline_cost * numpy_reference.baseline_loss(values[:-1], targets, trusted)[0]
        + config.entropy_cost * numpy_reference.entropy_loss(logits[:-1], online)[0]
    )


class LossTest(parameterized.TestCase):
    @parameterized.parameters("none", "implied", "behaviour")
    def test_loss_equals_reference(self, relevance):
        config = laser_config.LaserConfig(
            torso="flat",
            reward_clip="none",
            relevance=relevance,
            kl_threshold=0.3,
            discount=0.9,
            rho_bar=1.3,
            c_bar=0.8,
            lambda_=0.95,
        )
        agent = _agent(**dataclasses.asdict(config))
        unroll = fakes.random_unroll(6, 8, NUM_ACTIONS, SHAPE)
        is_first = np.zeros((6, 8), bool)
        is_first[3, 2] = True
        unroll = _replace_env(unroll, is_first=tf.constant(is_first))
        features, _ = agent._trunk(unroll.env_output, ())
        logits = agent._outputs(features)
        values = agent._state_values(features, unroll.task)

        expected = _reference_loss(config, unroll, logits.numpy(), values.numpy())
        np.testing.assert_allclose(agent.loss(unroll).loss, expected, rtol=1e-4)

    @parameterized.parameters("none", "implied", "behaviour")
    def test_divergence_is_computed_once(self, relevance):
        agent = _agent(relevance=relevance)
        unroll = fakes.random_unroll(5, 4, NUM_ACTIONS, SHAPE)
        with mock.patch.object(
            agent._distribution, "kl_divergence", wraps=agent._distribution.kl_divergence
        ) as computing:
            agent.loss(unroll)
        computing.assert_called_once()

    def test_rejected_transitions_give_zero_loss_and_gradient(self):
        agent = _agent(kl_threshold=1e-6)
        unroll = fakes.random_unroll(5, 4, NUM_ACTIONS, SHAPE)
        output = agent.loss(unroll)
        self.assertEqual(output.metrics["trust_region/accepted_fraction"].value, 0.0)
        self.assertEqual(output.loss, 0.0)
        for gradient in _gradients(agent, unroll):
            self.assertFalse(np.any(gradient))

    def test_entropy_excludes_replayed_entries(self):
        agent = _agent(relevance="none", entropy_cost=1.0, baseline_cost=0.0)
        unroll = fakes.random_unroll(5, 4, NUM_ACTIONS, SHAPE)
        all_replayed = agent.loss(unroll._replace(is_online=tf.zeros([4], tf.bool)))
        online_only = agent.loss(unroll)
        logits = agent._outputs(agent._trunk(unroll.env_output, ())[0])
        entropy = tf.reduce_sum(categorical.entropy(logits[:-1, 0]))
        np.testing.assert_allclose(all_replayed.loss - online_only.loss, entropy, rtol=1e-5)

    def test_entropy_on_replay_includes_all_entries(self):
        agent = _agent(relevance="none", entropy_cost=1.0, entropy_on_replay=True)
        unroll = fakes.random_unroll(5, 4, NUM_ACTIONS, SHAPE)
        logits = agent._outputs(agent._trunk(unroll.env_output, ())[0])
        entropy = tf.reduce_sum(categorical.entropy(logits[:-1]))
        np.testing.assert_allclose(agent.loss(unroll).metrics["loss/entropy"], -entropy, rtol=1e-5)

    def test_metrics_distinguish_own_and_foreign_experience(self):
        agent = _agent()
        unroll = fakes.random_unroll(5, 4, NUM_ACTIONS, SHAPE)._replace(
            is_online=tf.constant([True, False, False, False]),
            is_own=tf.constant([True, True, False, False]),
        )
        features, _ = agent._trunk(unroll.env_output, ())
        logits = agent._outputs(features)[:-1]
        behaviour = unroll.agent_output.policy[:-1]
        kl = categorical.kl_divergence(logits, behaviour).numpy()
        trusted = (
            trust_region.implied_relevance(logits, behaviour) < agent._config.kl_threshold
        ).numpy()
        targets = agent._compute_targets(
            unroll,
            agent._outputs(features[:-1]),
            agent._state_values(features, unroll.task),
        )
        advantages = targets.vtrace_output.advantages.numpy()
        self.assertFalse(trusted[:, 1:].all())  # Rejected transitions have no advantage.
        metrics = agent.loss(unroll).metrics
        for name, value in (
            ("vtrace/advantage_own", advantages[:, 1][trusted[:, 1]].mean()),
            ("vtrace/advantage_foreign", advantages[:, 2:][trusted[:, 2:]].mean()),
            ("policy/kl_own", kl[:, 1].mean()),
            ("policy/kl_foreign", kl[:, 2:].mean()),
            ("trust_region/accepted_own_fraction", trusted[:, 1].mean()),
            ("trust_region/accepted_foreign_fraction", trusted[:, 2:].mean()),
            ("replay/foreign_fraction", 2 / 3),
        ):
            np.testing.assert_allclose(metrics[name].value, value, rtol=1e-5, err_msg=name)

    def test_assigned_entropy_cost_changes_loss(self):
        agent = _agent(relevance="none")
        unroll = fakes.random_unroll(5, 4, NUM_ACTIONS, SHAPE)
        before = agent.loss(unroll)
        agent.entropy_cost.assign(agent.entropy_cost + 1.0)
        after = agent.loss(unroll)
        np.testing.assert_allclose(
            after.loss - before.loss, before.metrics["loss/entropy"], rtol=1e-4
        )

    def test_step_between_episodes_is_masked(self):
        agent = _agent(relevance="none")
        unroll = fakes.random_unroll(5, 2, NUM_ACTIONS, SHAPE)
        is_first = np.zeros((5, 2), bool)
        is_first[3] = True  # Steps 2 and 3 belong to different episodes.
        unroll = _replace_env(unroll, is_first=tf.constant(is_first))
        actions = unroll.agent_output.action.numpy()
        rewards = unroll.env_output.reward.numpy()
        actions[2] = (actions[2] + 1) % NUM_ACTIONS
        rewards[3] = 1e6
        changed = _replace_env(unroll, reward=tf.constant(rewards))
        changed = changed._replace(
            agent_output=changed.agent_output._replace(action=tf.constant(actions))
        )
        np.testing.assert_allclose(agent.loss(changed).loss, agent.loss(unroll).loss)

    def test_unit_clip_limits_rewards(self):
        agent = _agent(relevance="none", reward_clip="unit")
        unroll = fakes.random_unroll(5, 2, NUM_ACTIONS, SHAPE)
        large = _replace_env(unroll, reward=tf.fill([5, 2], 7.0))
        one = _replace_env(unroll, reward=tf.fill([5, 2], 1.0))
        np.testing.assert_allclose(agent.loss(large).loss, agent.loss(one).loss)

    def test_action_of_last_step_is_ignored(self):
        agent = _agent(relevance="none")
        unroll = fakes.random_unroll(5, 2, NUM_ACTIONS, SHAPE)
        actions, logits = (array.numpy() for array in unroll.agent_output[:2])
        logits[-1], actions[-1] = np.nan, 0
        poisoned = unroll._replace(
            agent_output=unroll.agent_output._replace(
                action=tf.constant(actions), policy=tf.constant(logits)
            )
        )
        np.testing.assert_allclose(agent.loss(poisoned).loss, agent.loss(unroll).loss)


class PriorityTest(absltest.TestCase):
    def test_importance_weights_scale_losses(self):
        agent = _agent(
            relevance="none", pixel_control_cost=0.5, pixel_control_cell=5, entropy_on_replay=True
        )
        unroll = fakes.random_unroll(5, 3, NUM_ACTIONS, SHAPE)
        weights = [1.0, 0.25, 0.0]
        actual = agent.loss(unroll._replace(importance_weight=tf.constant(weights))).metrics
        entries = [agent.loss(_entry(unroll, index)).metrics for index in range(3)]
        for name in ("loss/policy", "loss/value", "loss/pixel_control", "loss/entropy"):
            expected = sum(w * entry[name] for w, entry in zip(weights, entries, strict=True))
            np.testing.assert_allclose(actual[name], expected, rtol=1e-4, err_msg=name)

    def test_priorities_are_mean_critic_losses(self):
        agent = _agent(relevance="none")
        unroll = fakes.random_unroll(5, 3, NUM_ACTIONS, SHAPE)
        is_first = np.zeros((5, 3), bool)
        is_first[2, 1] = is_first[1:, 2] = True  # 3 transitions, and none.
        unroll = _replace_env(unroll, is_first=tf.constant(is_first))
        values = [agent.loss(_entry(unroll, i)).metrics["loss/value"] for i in range(3)]
        expected = np.array(values) / [4, 3, 1] + 1e-3
        self.assertEqual(values[2], 0.0)
        np.testing.assert_allclose(agent.loss(unroll).priorities, expected, rtol=1e-4)


class ActTest(absltest.TestCase):
    def test_action_frequencies_match_logits(self):
        agent = _agent()
        env_output = fakes.random_unroll(1, 1, NUM_ACTIONS, SHAPE).env_output
        env_output = tf.nest.map_structure(lambda x: tf.repeat(x[0], 20_000, axis=0), env_output)
        output, _ = agent.act(env_output, agent.initial_state(20_000))
        frequencies = np.bincount(output.action, minlength=NUM_ACTIONS) / 20_000
        np.testing.assert_allclose(frequencies, tf.nn.softmax(output.policy[0]), atol=0.02)

    def test_centered_observations_ignore_brightness(self):
        output = fakes.random_unroll(1, 4, NUM_ACTIONS, SHAPE).env_output
        step = tf.nest.map_structure(lambda x: x[0], output)
        dark, bright = step.observation // 2, step.observation // 2 + 100
        for center in (False, True):
            agent = _agent(center_observation=center)
            logits = [agent.act(step._replace(observation=o), ())[0].policy for o in (dark, bright)]
            self.assertEqual(np.allclose(*logits, atol=1e-4), center)

    def test_successive_calls_sample_different_actions(self):
        agent = _agent()
        env_output = fakes.random_unroll(1, 64, NUM_ACTIONS, SHAPE).env_output
        env_output = tf.nest.map_structure(lambda x: x[0], env_output)
        first, second = (agent.act(env_output, ())[0].action.numpy() for _ in range(2))
        self.assertTrue(np.any(first != second))


def _moments(agent: laser.Laser) -> tuple[tf.Variable, tf.Variable]:
    return agent._state_values._mean, agent._state_values._variance


class PopArtTest(absltest.TestCase):
    def _unroll(self):
        unroll = fakes.random_unroll(6, 4, NUM_ACTIONS, SHAPE)
        return unroll._replace(task=tf.constant([0, 2, 2, 0]))

    def test_popart_update_keeps_values_and_absent_tasks(self):
        agent = _agent(popart=True, relevance="none", num_tasks=3)
        unroll = _replace_env(self._unroll(), reward=tf.fill([6, 4], 50.0))
        before = agent.loss(unroll).metrics["vtrace/value"].value
        mean, variance = (variable.numpy() for variable in _moments(agent))
        self.assertTrue((mean[[0, 2]] > 0).all() and (variance[[0, 2]] != 1).all())
        self.assertEqual((mean[1], variance[1]), (0.0, 1.0))
        after = agent.loss(unroll).metrics["vtrace/value"].value
        np.testing.assert_allclose(before, after, rtol=1e-5)

    def test_popart_loss_uses_normalised_values(self):
        agent = _agent(popart=True, relevance="none", entropy_cost=0.0, num_tasks=3)
        plain = _agent(relevance="none", entropy_cost=0.0)
        unroll = self._unroll()
        # Both agents start with equal weights; all tasks share the value layer of `plain`.
        for name in ("_trunk", "_policy_head", "_state_values"):
            for target, source in zip(
                getattr(agent, name).trainable_variables,
                getattr(plain, name).trainable_variables,
                strict=True,
            ):
                target.assign(tf.broadcast_to(source, target.shape))
        _moments(agent)[1].assign([1.0, 1.0, 4.0])
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

    def test_no_popart_ignores_task(self):
        agent = _agent(relevance="none", num_tasks=3)
        unroll = self._unroll()
        other = unroll._replace(task=tf.zeros([4], tf.int32))
        self.assertEqual(agent.loss(unroll).loss, agent.loss(other).loss)

    def test_rejected_transitions_keep_moments(self):
        agent = _agent(popart=True, kl_threshold=1e-6, num_tasks=3)
        agent.loss(self._unroll())
        np.testing.assert_array_equal(_moments(agent)[0], np.zeros(3))
        np.testing.assert_array_equal(_moments(agent)[1], np.ones(3))


class PixelControlTest(absltest.TestCase):
    def test_pixel_control_adds_term_to_loss(self):
        agent = _agent(pixel_control_cost=0.5, pixel_control_cell=2, relevance="none")
        metrics = agent.loss(fakes.random_unroll(5, 2, NUM_ACTIONS, SHAPE)).metrics
        others = (
            metrics["loss/policy"] + 0.5 * metrics["loss/value"] + 0.01 * metrics["loss/entropy"]
        )
        self.assertGreater(metrics["loss/pixel_control"], 0)
        np.testing.assert_allclose(
            metrics["loss/total"], others + 0.5 * metrics["loss/pixel_control"], rtol=1e-5
        )

    def test_pixel_control_reads_newest_frame_only(self):
        config = {"pixel_control_cost": 1.0, "pixel_control_cell": 5, "relevance": "none"}
        stack = (10, 5, 2)
        agent = _agent(shape=stack, frame_stack=2, **config)
        unroll = fakes.random_unroll(5, 2, NUM_ACTIONS, stack)
        still = unroll.env_output.observation.numpy()
        still[..., -1] = 7
        for variable in agent._auxiliary_tasks["pixel_control"].variables:
            variable.assign(tf.zeros_like(variable))
        moving = agent.loss(unroll).metrics["loss/pixel_control"]
        unroll = _replace_env(unroll, observation=tf.constant(still))
        self.assertGreater(moving, 0)
        self.assertEqual(agent.loss(unroll).metrics["loss/pixel_control"], 0)

    def test_rejected_transitions_give_zero_loss(self):
        agent = _agent(pixel_control_cost=1.0, pixel_control_cell=2, kl_threshold=1e-6)
        unroll = fakes.random_unroll(5, 4, NUM_ACTIONS, SHAPE)
        self.assertEqual(agent.loss(unroll).loss, 0.0)

    def test_cell_larger_than_frames_raises(self):
        with messages.raises(ValueError, "pixel_control_cell", 6, "10x5"):
            _agent(pixel_control_cost=1.0, pixel_control_cell=6)


class RecurrentTest(absltest.TestCase):
    def test_loss_starts_from_stored_core_state(self):
        agent = _agent(core="lstm", core_size=4, relevance="none")
        unroll = fakes.random_unroll(5, 2, NUM_ACTIONS, SHAPE)
        zero = agent.initial_state(2)
        other = tf.nest.map_structure(lambda state: state + 1.0, zero)
        start = agent.loss(unroll._replace(core_state=zero)).loss
        self.assertNotEqual(start, agent.loss(unroll._replace(core_state=other)).loss)
        is_first = np.zeros((5, 2), bool)
        is_first[0] = True
        first = _replace_env(unroll, is_first=tf.constant(is_first))
        self.assertEqual(
            agent.loss(first._replace(core_state=zero)).loss,
            agent.loss(first._replace(core_state=other)).loss,
        )

    def test_single_steps_equal_unroll(self):
        agent = _agent(core="preco_lstm", core_size=4)
        unroll = fakes.random_unroll(6, 3, NUM_ACTIONS, SHAPE)
        state = agent.initial_state(3)
        features, _ = agent._trunk(unroll.env_output, state)
        expected = agent._outputs(features)
        for step in range(6):
            env_output = tf.nest.map_structure(lambda x, step=step: x[step], unroll.env_output)
            output, state = agent.act(env_output, state)
            np.testing.assert_allclose(output.policy, expected[step], atol=1e-5)


class TextTest(absltest.TestCase):
    def test_text_changes_policy(self):
        tf.keras.utils.set_random_seed(1)
        spec = fakes.image_spec(SHAPE, NUM_ACTIONS)
        spec = spec._replace(observation={"image": spec.observation, "text": types.TextSpec(3)})
        agent = laser.Laser(laser_config.LaserConfig(torso="flat"), base.Context(spec))
        env_output = fakes.random_unroll(1, 2, NUM_ACTIONS, SHAPE).env_output
        step = tf.nest.map_structure(lambda x: x[0], env_output)
        one, other = (
            agent.act(
                step._replace(
                    observation={
                        "image": step.observation,
                        "text": tf.constant([[1, 2, 0], words], tf.int32),
                    }
                ),
                (),
            )[0].policy
            for words in ([1, 2, 0], [2, 1, 0])
        )
        np.testing.assert_array_equal(one[0], other[0])
        self.assertGreater(np.abs(one[1] - other[1]).max(), 1e-4)


class ConfigTest(parameterized.TestCase):
    @parameterized.parameters(
        ("discount", 1.5),
        ("kl_threshold", -1.0),
        ("rho_bar", 0.0),
        ("c_bar", 2.0),
        ("entropy_cost", float("nan")),
        ("torso", "deeep"),
        ("relevance", "maybe"),
        ("channel_multiplier", 0),
    )
    def test_invalid_value_raises(self, name, value):
        with messages.raises(ValueError, name, value):
            laser_config.LaserConfig(**{name: value})


if __name__ == "__main__":
    absltest.main()
