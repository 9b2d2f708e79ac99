"""The learner's step: schedule, counters, non-finite updates, XLA."""

import dataclasses

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.environments import factory
from laser_tf.replay import stored_unroll
from laser_tf.runtime import assembly, learner
from testing import fakes


def _learner(jit: bool = False, **overrides) -> tuple[learner.Learner, stored_unroll.StoredUnroll]:
    config = fakes.catch_config(learner=overrides)
    environment = factory.make_environment(config.environment, seed=1, num_envs=1)
    made = assembly.build_learner(config, environment, "float32", jit=jit)
    signature = assembly.unroll_signature(config, environment, made.agent)
    generator = np.random.default_rng(1)
    batch = tf.nest.map_structure(
        lambda spec: generator.integers(0, 2, (4, *spec.shape)).astype(spec.dtype.as_numpy_dtype),
        signature,
    )
    return made, batch._replace(is_first=np.zeros_like(batch.is_first))


def _weights(made: learner.Learner) -> list[np.ndarray]:
    return [variable.numpy() for variable in made.agent.trainable_variables]


def _update(made: learner.Learner, unrolls: stored_unroll.StoredUnroll, steps: int) -> dict:
    is_online = np.array([True, False, False, False])
    metrics, priorities = made.update(stored_unroll.unweighted(unrolls, is_online), steps)
    assert priorities.shape == (4,), priorities
    return metrics


class LearnerTest(parameterized.TestCase):
    def test_learns_one_batch_by_heart(self):
        made, batch = _learner(learning_rate=1e-2, learning_rate_schedule="constant")
        losses = [float(_update(made, batch, 10)["loss/value"]) for _ in range(60)]
        self.assertLess(losses[-1], 0.5 * losses[0])

    def test_counts_updates_and_agent_steps(self):
        made, batch = _learner()
        for _ in range(3):
            _update(made, batch, 40)
        self.assertEqual(made.counters.learner_updates, 3)
        self.assertEqual(made.counters.agent_steps, 120)

    def test_linear_schedule_follows_the_agent_steps(self):
        made, batch = _learner(learning_rate=0.5)  # the run has 2,000 agent steps
        rates = [float(_update(made, batch, 500)["learner/learning_rate"]) for _ in range(5)]
        np.testing.assert_allclose(rates, [0.5, 0.375, 0.25, 0.125, 0.0], rtol=1e-6)

    def test_learning_rate_is_a_runtime_variable(self):
        made, batch = _learner(learning_rate_schedule="constant")
        _update(made, batch, 1)
        made.learning_rate.assign(0.0)
        before = _weights(made)
        _update(made, batch, 1)
        for old, new in zip(before, _weights(made), strict=True):
            np.testing.assert_array_equal(old, new)

    def test_non_finite_updates_are_skipped_counted_and_end_the_run(self):
        made, batch = _learner(non_finite_limit=3)
        _update(made, batch, 1)
        before = _weights(made)
        poisoned = batch._replace(logits=np.full_like(batch.logits, np.nan))
        poisoned_reward = batch._replace(reward=np.full_like(batch.reward, np.nan))
        _update(made, poisoned_reward, 1)
        _update(made, poisoned_reward, 1)
        for old, new in zip(before, _weights(made), strict=True):
            np.testing.assert_array_equal(old, new)
        with self.assertRaisesRegex(learner.NonFiniteLossError, "3 updates in a row"):
            _update(made, poisoned_reward, 1)
        self.assertEqual(made.counters.non_finite_updates, 3)
        # NaN behaviour logits are outside any trust region: rejected, not fatal.
        self.assertTrue(np.isfinite(_update(made, poisoned, 1)["loss/total"]))

    def test_a_good_update_ends_a_row_of_bad_ones(self):
        made, batch = _learner(non_finite_limit=2)
        poisoned = batch._replace(reward=np.full_like(batch.reward, np.nan))
        for _ in range(3):
            _update(made, poisoned, 1)
            _update(made, batch, 1)
        self.assertEqual(made.counters.non_finite_updates, 3)

    def test_gradient_clip_bounds_the_step(self):
        made, batch = _learner(gradient_clip=1e-3, rmsprop_epsilon=0.1)
        before = _weights(made)
        _update(made, batch, 0)
        rate = made.learning_rate.numpy() / np.sqrt(0.99 + 0.1)
        moved = np.sqrt(
            sum(np.sum((a - b) ** 2) for a, b in zip(before, _weights(made), strict=True))
        )
        np.testing.assert_allclose(moved, 1e-3 * rate, rtol=1e-2)

    def test_xla_computes_the_same_update(self):
        metrics = []
        for jit in (False, True):
            made, batch = _learner(jit=jit)
            metrics.append({k: float(v) for k, v in _update(made, batch, 0).items()})
        for name, value in metrics[0].items():
            np.testing.assert_allclose(metrics[1][name], value, rtol=1e-3, atol=1e-5, err_msg=name)


class ConfigTest(parameterized.TestCase):
    @parameterized.parameters(
        ("learning_rate", -1.0),
        ("learning_rate_schedule", "cosine"),
        ("rmsprop_decay", 1.0),
        ("rmsprop_epsilon", 0.0),
        ("gradient_clip", -1.0),
        ("jit_compile", "yes"),
        ("compute_dtype", "float16"),
        ("non_finite_limit", 0),
    )
    def test_refuses_a_value_and_names_it(self, name, value):
        with self.assertRaisesRegex(ValueError, f"{name}.*{value}"):
            dataclasses.replace(learner.Config(), **{name: value})


if __name__ == "__main__":
    absltest.main()
