"""Tests R2D2's loss, priorities and exploration on unrolls with known results."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf import types
from laser_tf.agents import base, r2d2, r2d2_config
from testing import fakes, numpy_reference
from testing.agents import unrolls

A, SHAPE, T, B, BURN_IN = 3, (4, 3, 1), 9, 5, 3


def _agent(
    *,
    burn_in: int = 0,
    num_tasks: int = 1,
    is_evaluating: bool = False,
    actor: int = 0,
    actors: int = 1,
    **overrides,
):
    tf.keras.utils.set_random_seed(1)
    values = {"torso": "flat", "core": "lstm", "core_size": 6, "hidden_units": 8}
    context = base.AgentContext(
        fakes.image_spec(SHAPE, A, num_tasks),
        burn_in=burn_in,
        is_evaluating=is_evaluating,
        actor_index=actor,
        num_actors=actors,
    )
    return r2d2.R2D2(r2d2_config.R2D2Config(**values | overrides), context)


def _unroll(agent: r2d2.R2D2) -> types.Unroll:
    """Returns an unroll; entry 1 terminates at step 6, entry 2 reaches a time limit."""
    ends = {"terminations": [(6, 1)], "time_limits": [(6, 2)]}
    spec = fakes.image_spec(SHAPE, A)
    unroll = unrolls.make(agent, spec, T, B, **ends)
    is_first = unroll.env_output.is_first.numpy()
    is_first[7:, 1:3] = True  # Padding.
    return unroll._replace(env_output=unroll.env_output._replace(is_first=tf.constant(is_first)))


def _q_values(network, unroll: types.Unroll) -> np.ndarray:
    """Computes Q-values [T + 1, B, A] step by step."""
    state, q_values = unroll.core_state, []
    for step in range(T + 1):
        output, state = network(unrolls.at(unroll.env_output, slice(step, step + 1)), state)
        q_values.append(output[0].numpy())
    return np.stack(q_values)


class LossTest(parameterized.TestCase):
    @parameterized.parameters(
        {},
        {"burn_in": BURN_IN},
        {"rescaling_epsilon": 0.0, "reward_clip": "unit"},
        {"n_steps": 1, "discount": 0.9, "priority_eta": 0.3},
        {"core": "none", "burn_in": BURN_IN},
    )
    def test_loss_and_priorities_equal_reference(self, burn_in=0, **overrides):
        agent = _agent(burn_in=burn_in, **overrides)
        unroll, config = _unroll(agent), agent._config
        env_output, actions = unrolls.at(
            (unroll.env_output, unroll.agent_output.action), slice(burn_in, None)
        )
        q_online = _q_values(agent._online, unroll)[burn_in:]
        reward, mask = env_output.reward.numpy()[1:], ~env_output.is_first.numpy()[1:]
        targets = numpy_reference.double_q_targets(
            q_online,
            _q_values(agent._target, unroll)[burn_in:],
            np.clip(reward, -1, 1) if config.reward_clip == "unit" else reward,
            config.discount * env_output.discount.numpy()[1:],
            mask,
            config.n_steps,
            config.rescaling_epsilon or None,
        )
        taken = np.take_along_axis(q_online[:-1], actions.numpy()[:-1, :, None], axis=-1)[..., 0]
        errors, output = targets - taken, agent.loss(unroll)
        squares = np.where(mask, 0.5 * errors**2, 0.0)
        expected = np.mean(unroll.importance_weight.numpy() * squares.sum(axis=0))
        np.testing.assert_allclose(output.loss, expected, rtol=1e-4)
        priorities = numpy_reference.sequence_priorities(errors, mask, config.priority_eta, 1e-6)
        np.testing.assert_allclose(output.priorities, priorities, rtol=1e-4)

        def linearised() -> tf.Tensor:
            """Computes a scalar with the gradient of the loss for constant targets."""
            state = agent._state_after_burn_in(agent._online, unroll)
            q = agent._online(env_output, state)[0][:-1]
            weights = unroll.importance_weight.numpy() * np.where(mask, errors, 0) / B
            q_taken = tf.gather(q, actions[:-1], axis=-1, batch_dims=2)
            return -tf.reduce_sum(tf.constant(weights, tf.float32) * q_taken)

        variables = agent.trainable_variables
        unrolls.assert_gradients_equal(lambda: agent.loss(unroll).loss, linearised, variables)

    def test_equal_weights_give_equal_initial_priorities(self):
        agent = _agent(burn_in=BURN_IN)
        unroll = _unroll(agent)
        agent._copy_to_target()
        q_values = tf.constant(_q_values(agent._online, unroll))
        acted = unroll._replace(
            env_output=unroll.env_output._replace(observation=()),
            agent_output=unroll.agent_output._replace(extras=q_values),
            core_state=(),
        )
        np.testing.assert_allclose(
            agent.initial_priorities(acted), agent.loss(unroll).priorities, rtol=1e-4
        )


class ActingTest(parameterized.TestCase):
    def _exploration(self, agent: r2d2.R2D2, num_envs: int, draws: int = 2_000) -> np.ndarray:
        """Returns the fraction of non-greedy actions of each environment, [num_envs]."""
        step = unrolls.at(fakes.random_unroll(1, num_envs, A, SHAPE).env_output, 0)
        state = agent.initial_state(num_envs)
        act, different = tf.function(agent.act), np.zeros(num_envs)
        for _ in range(draws):
            output, _ = act(step, state)
            greedy = output.extras.numpy().argmax(axis=-1)
            different += output.action.numpy() != greedy
        np.testing.assert_array_equal(agent.greedy_action(output), greedy)
        np.testing.assert_array_equal(agent.action_preferences(output), output.extras)
        return different / draws

    def test_epsilons_of_all_actors_form_ladder(self):
        num_tasks, num_envs = 100, 2
        rates = []
        for actor in range(2):
            agent = _agent(epsilon_base=0.8, actor=actor, actors=2, num_tasks=num_tasks)
            explored = self._exploration(agent, num_tasks * num_envs, draws=20)
            rates.extend(np.mean(explored.reshape(num_tasks, num_envs), axis=0))
        expected = 0.8 ** (1 + 7 * np.arange(4) / 3) * (A - 1) / A
        np.testing.assert_allclose(sorted(rates, reverse=True), expected, atol=0.04)

    def test_evaluation_uses_evaluation_epsilon(self):
        agent = _agent(is_evaluating=True, evaluation_epsilon=0.3)
        np.testing.assert_allclose(self._exploration(agent, 3), 0.2, atol=0.04)

    @parameterized.parameters(False, True)
    def test_life_loss_resets_core_if_configured(self, resets):
        agent = _agent(reset_at_life_loss=resets)
        unroll = _unroll(agent)
        step = unrolls.at(unroll.env_output, 5)._replace(discount=tf.zeros([B]))
        states = (unroll.core_state, agent.initial_state(B))
        kept, fresh = (agent.act(step, state)[0].extras for state in states)
        self.assertEqual(np.allclose(kept, fresh, rtol=1e-5), resets)


class StalenessTest(absltest.TestCase):
    def test_discrepancy_is_distance_over_max_q_value(self):
        agent = _agent(burn_in=BURN_IN)
        unroll = _unroll(agent)
        states, state = [], unroll.core_state  # Before steps 0, 3, 6 and 9.
        for start in range(0, T + 1, 3):
            states.append(state)
            state = agent.next_state(unrolls.at(unroll.env_output, slice(start, start + 3)), state)
        q_values = _q_values(agent._online, unroll)
        scale = np.abs(q_values[BURN_IN:].max(axis=(0, 2)))
        for change in (0.0, 0.5):
            stored = tf.nest.map_structure(lambda *x, c=change: tf.stack(x) + c, *states)
            metrics = agent.loss(unroll._replace(stored_states=stored)).metrics
            for name, step, part, entries in (
                ("first", 3, 1, [0, 1, 2, 3, 4]),
                ("last", 9, 3, [0, 3, 4]),  # The last step of other entries is a first step.
            ):
                output, _ = agent.act(unrolls.at(unroll.env_output, step), unrolls.at(stored, part))
                distances = np.linalg.norm(q_values[step] - output.extras, axis=-1) / scale
                expected = distances[entries].mean()
                self.assertEqual(expected > 1e-3, change > 0)
                actual = metrics[f"staleness/delta_q_{name}"].value
                np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-5)


if __name__ == "__main__":
    absltest.main()
