"""Tests R2D2's loss, priorities and exploration on unrolls with known results."""

import dataclasses

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf import types
from laser_tf.agents import base, r2d2, r2d2_config
from testing import fakes, messages, numpy_reference

A, SHAPE, T, B, BURN_IN = 3, (4, 3, 1), 9, 5, 3


def _agent(
    *,
    burn_in: int = 0,
    num_tasks: int = 1,
    evaluating: bool = False,
    actor: int = 0,
    actors: int = 1,
    **overrides,
):
    tf.keras.utils.set_random_seed(1)
    values = {"torso": "flat", "core": "lstm", "core_size": 6, "hidden_units": 8}
    context = base.Context(
        fakes.image_spec(SHAPE, A, num_tasks),
        burn_in=burn_in,
        evaluating=evaluating,
        actor_index=actor,
        num_actors=actors,
    )
    return r2d2.R2D2(r2d2_config.R2D2Config(**values | overrides), context)


def _shake(agent: r2d2.R2D2, seed: int = 2) -> None:
    """Moves the online network away from the target network."""
    generator = np.random.default_rng(seed)
    for variable in agent.trainable_variables:
        variable.assign_add(generator.normal(0, 0.3, variable.shape).astype(np.float32))


def _unroll(agent: r2d2.R2D2, seed: int = 0) -> types.Unroll:
    """Returns a random unroll; entry 1 terminates at step 6, entry 2 reaches a time limit."""
    unroll = fakes.random_unroll(T + 1, B, A, SHAPE, seed)
    generator = np.random.default_rng(seed)
    discount, is_first = np.ones((T + 1, B), np.float32), np.zeros((T + 1, B), bool)
    discount[6, 1] = 0.0
    is_first[7:, 1:3] = True
    state = tf.nest.map_structure(
        lambda zeros: tf.constant(generator.normal(size=zeros.shape), tf.float32),
        agent.initial_state(B),
    )
    env_output = unroll.env_output._replace(
        discount=tf.constant(discount), is_first=tf.constant(is_first)
    )
    weight = tf.constant(generator.uniform(0.2, 1.0, B), tf.float32)
    return unroll._replace(env_output=env_output, core_state=state, importance_weight=weight)


def _steps(unroll: types.Unroll, start: int, stop: int | None = None) -> types.EnvOutput:
    return tf.nest.map_structure(lambda entry: entry[start:stop], unroll.env_output)


def _stepped(agent: r2d2.R2D2, unroll: types.Unroll) -> np.ndarray:
    """Computes Q-values [T + 1, B, A] by acting step by step."""
    state, q_values = unroll.core_state, []
    for step in range(T + 1):
        output, state = agent.act(
            tf.nest.map_structure(lambda x, step=step: x[step], unroll.env_output), state
        )
        q_values.append(output.extras.numpy())
    return np.stack(q_values)


def _expected(agent, unroll, q_online, q_target, burn_in):
    """Computes errors and mask [T - l, B] with NumPy loops."""
    config = agent._config
    env_output = unroll.env_output
    is_transition = ~env_output.is_first.numpy()[burn_in + 1 :]
    targets = numpy_reference.double_q_targets(
        q_online[burn_in:],
        q_target[burn_in:],
        env_output.reward.numpy()[burn_in + 1 :],
        config.discount * env_output.discount.numpy()[burn_in + 1 :],
        is_transition,
        config.n_steps,
        config.rescaling_epsilon or None,
    )
    actions = unroll.agent_output.action.numpy()[burn_in:-1]
    taken = np.take_along_axis(q_online[burn_in:-1], actions[..., None], axis=-1)[..., 0]
    return targets - taken, is_transition


def _gradients(agent: r2d2.R2D2, unroll: types.Unroll) -> list[np.ndarray]:
    with tf.GradientTape() as tape:
        loss = agent.loss(unroll).loss
    return [g.numpy() for g in tape.gradient(loss, agent.trainable_variables)]


class LossTest(parameterized.TestCase):
    @parameterized.parameters(
        {},
        {"burn_in": BURN_IN},
        {"rescaling_epsilon": 0.0, "reward_clip": "unit"},
        {"n_steps": 1, "discount": 0.9},
        {"core": "none", "burn_in": BURN_IN},
    )
    def test_loss_and_priorities_equal_reference(self, burn_in=0, **overrides):
        agent, before = (_agent(burn_in=burn_in, **overrides) for _ in range(2))
        _shake(agent)
        unroll = _unroll(agent)
        clip = np.clip if overrides.get("reward_clip") == "unit" else lambda x, *_: x
        reference = unroll._replace(
            env_output=unroll.env_output._replace(
                reward=tf.constant(clip(unroll.env_output.reward.numpy(), -1, 1))
            )
        )
        errors, mask = _expected(
            agent, reference, _stepped(agent, unroll), _stepped(before, unroll), burn_in
        )
        output = agent.loss(unroll)
        squares = np.where(mask, 0.5 * errors**2, 0.0)
        expected = np.mean(unroll.importance_weight.numpy() * squares.sum(axis=0))
        np.testing.assert_allclose(output.loss, expected, rtol=1e-4)
        absolute = [np.abs(errors[mask[:, b], b]) for b in range(B)]
        priorities = [0.9 * entry.max() + 0.1 * entry.mean() for entry in absolute]
        np.testing.assert_allclose(output.priorities, priorities, rtol=1e-4)

    def test_burn_in_equals_start_from_its_final_state(self):
        agent, later = _agent(burn_in=BURN_IN), _agent()
        _shake(agent)
        _shake(later)
        agent._copy_to_target()
        later._copy_to_target()
        unroll = _unroll(agent)
        reached = agent.next_state(_steps(unroll, 0, BURN_IN), unroll.core_state)
        cut = unroll._replace(
            env_output=_steps(unroll, BURN_IN),
            agent_output=tf.nest.map_structure(lambda x: x[BURN_IN:], unroll.agent_output),
            core_state=reached,
        )
        np.testing.assert_allclose(agent.loss(unroll).loss, later.loss(cut).loss, rtol=1e-5)
        for ours, theirs in zip(_gradients(agent, unroll), _gradients(later, cut), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-6)

    def test_step_between_episodes_is_ignored(self):
        agent = _agent()
        unroll = _unroll(agent)
        reward = unroll.env_output.reward.numpy()
        reward[7:, 1:3] = 1e6
        action = unroll.agent_output.action.numpy()
        action[6:, 1:3] = 0
        poisoned = unroll._replace(
            env_output=unroll.env_output._replace(reward=tf.constant(reward)),
            agent_output=unroll.agent_output._replace(action=tf.constant(action)),
        )
        np.testing.assert_allclose(agent.loss(poisoned).loss, agent.loss(unroll).loss, rtol=1e-6)
        self.assertTrue(all(np.isfinite(g).all() for g in _gradients(agent, poisoned)))

    def test_no_transitions_give_zero_loss_and_gradient(self):
        agent = _agent(burn_in=BURN_IN)
        unroll = _unroll(agent)
        blank = unroll._replace(
            env_output=unroll.env_output._replace(is_first=tf.ones([T + 1, B], tf.bool))
        )
        self.assertEqual(agent.loss(blank).loss, 0.0)
        self.assertTrue(np.all(agent.loss(blank).priorities.numpy() > 0))
        for gradient in _gradients(agent, blank):
            np.testing.assert_array_equal(gradient, 0)

    def test_equal_weights_give_equal_initial_priorities(self):
        agent = _agent(burn_in=BURN_IN)
        unroll = _unroll(agent)
        acted = unroll._replace(
            env_output=unroll.env_output._replace(observation=()),
            agent_output=unroll.agent_output._replace(extras=tf.constant(_stepped(agent, unroll))),
            core_state=(),
        )
        np.testing.assert_allclose(
            agent.initial_priorities(acted), agent.loss(unroll).priorities, rtol=1e-4
        )


class ActingTest(absltest.TestCase):
    def _explored(self, agent: r2d2.R2D2, games: int, draws: int = 2_000) -> np.ndarray:
        """Returns the fraction of non-greedy actions of each environment, [num_envs]."""
        unroll = fakes.random_unroll(1, games, A, SHAPE)
        step = tf.nest.map_structure(lambda x: x[0], unroll.env_output)
        state = agent.initial_state(games)
        act = tf.function(agent.act)
        different = np.zeros(games)
        for _ in range(draws):
            output, _ = act(step, state)
            different += output.action.numpy() != output.extras.numpy().argmax(axis=-1)
        return different / draws

    def test_environments_explore_by_ladder(self):
        agent = _agent(num_tasks=2)
        ladder = 0.4 ** (1 + 7 * np.arange(4) / 3)
        expected = np.tile(ladder, 2) * (A - 1) / A
        np.testing.assert_allclose(self._explored(agent, 8), expected, atol=0.04)

    def test_epsilons_of_all_actors_form_ladder(self):
        tasks, of_an_actor = 100, 2
        explored = []
        for actor in range(2):
            agent = _agent(epsilon_base=0.8, actor=actor, actors=2, num_tasks=tasks)
            rates = self._explored(agent, tasks * of_an_actor, draws=20)
            explored.extend(np.mean(rates.reshape(tasks, of_an_actor), axis=0))
        ladder = 0.8 ** (1 + 7 * np.arange(4) / 3)
        expected = ladder * (A - 1) / A
        np.testing.assert_allclose(sorted(explored, reverse=True), expected, atol=0.04)

    def test_evaluation_uses_evaluation_epsilon(self):
        agent = _agent(evaluating=True, evaluation_epsilon=0.3)
        np.testing.assert_allclose(self._explored(agent, 3), 0.2, atol=0.04)
        config = r2d2_config.R2D2Config()
        self.assertEqual(config.evaluation_epsilon, 1e-3)
        self.assertEqual(config.acting_in_evaluation, "epsilon-greedy, epsilon 0.001")

    def test_life_loss_resets_core_if_configured(self):
        for resets in (False, True):
            agent = _agent(reset_at_life_loss=resets)
            unroll = _unroll(agent)
            fresh = agent.initial_state(B)
            step = tf.nest.map_structure(lambda x: x[5], unroll.env_output)
            step = step._replace(discount=tf.zeros([B]))
            kept, _ = agent.act(step, unroll.core_state)
            expected, _ = agent.act(step, fresh)
            same = np.allclose(kept.extras, expected.extras, rtol=1e-5)
            self.assertEqual(same, resets)


class StalenessTest(absltest.TestCase):
    def _with_states(self, agent, unroll, change=0.0):
        """Adds stored states before steps 0, 3, 6 and 9, shifted by `change`."""
        states, state = [], unroll.core_state
        for start in range(0, T + 1, 3):
            states.append(state)
            state = agent.next_state(_steps(unroll, start, start + 3), state)
        stacked = tf.nest.map_structure(lambda *parts: tf.stack(parts) + change, *states)
        return unroll._replace(stored_states=stacked)

    def test_exact_states_have_zero_discrepancy(self):
        agent = _agent(burn_in=BURN_IN)
        metrics = agent.loss(self._with_states(agent, _unroll(agent))).metrics
        self.assertLess(metrics["staleness/delta_q_first"].value, 1e-5)
        self.assertLess(metrics["staleness/delta_q_last"].value, 1e-5)

    def test_discrepancy_is_distance_over_max_q_value(self):
        agent = _agent(burn_in=BURN_IN)
        unroll = self._with_states(agent, _unroll(agent), change=0.5)
        q_values = _stepped(agent, unroll)
        scale = np.abs(q_values[BURN_IN:].max(axis=(0, 2)))
        metrics = agent.loss(unroll).metrics
        for name, step, part, entries in (
            ("first", 3, 1, range(B)),
            ("last", 9, 3, (0, 3, 4)),  # The last step of other entries is a first step.
        ):
            state = tf.nest.map_structure(lambda x, part=part: x[part], unroll.stored_states)
            step_ = tf.nest.map_structure(lambda x, step=step: x[step], unroll.env_output)
            stored = agent.act(step_, state)[0].extras.numpy()
            distances = np.linalg.norm(q_values[step] - stored, axis=-1) / scale
            self.assertGreater(distances[list(entries)].min(), 1e-3)
            np.testing.assert_allclose(
                metrics[f"staleness/delta_q_{name}"].value,
                distances[list(entries)].mean(),
                rtol=1e-3,
            )


class ConfigTest(parameterized.TestCase):
    @parameterized.parameters(
        ("torso", "mlp"),
        ("kind", "laser"),
        ("n_steps", 0),
        ("target_period", 0),
        ("discount", 1.5),
        ("priority_eta", -0.1),
        ("epsilon_base", 2.0),
        ("rescaling_epsilon", float("nan")),
        ("core_memory_span", 2),
    )
    def test_invalid_value_raises(self, name, value):
        with messages.raises(ValueError, name, value):
            r2d2_config.R2D2Config(**{name: value})

    def test_defaults_equal_table_2(self):
        config = dataclasses.asdict(r2d2_config.R2D2Config())
        expected = {"discount": 0.997, "n_steps": 5, "rescaling_epsilon": 1e-3, "core_size": 512}
        expected |= {"target_period": 2_500, "priority_eta": 0.9, "hidden_units": 512}
        self.assertEqual({name: config[name] for name in expected}, expected)


if __name__ == "__main__":
    absltest.main()
