"""Tests of the learner: schedule, counters, non-finite updates, hyper-parameters, XLA."""

import dataclasses
import pathlib
import tempfile
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.environments import factory
from laser_tf.host import hardware
from laser_tf.networks import torsos
from laser_tf.replay import stored_unroll
from laser_tf.sweeps import sweep_client
from laser_tf.training import assembly, learner, learner_checkpoints, learner_config, run_config
from laser_tf.workdir import run_directory
from testing import fakes, messages


class UnusedVariableTorso(torsos.Torso):
    """Features are the pixels."""

    def __init__(self, channel_multiplier, center, dtype):
        del channel_multiplier
        super().__init__(units=0, center=center, dtype=dtype)
        self._unused = tf.Variable(1.0, name="unused")

    def _features(self, scaled):
        return scaled


def _replace_env(batch: stored_unroll.StoredUnroll, **fields) -> stored_unroll.StoredUnroll:
    return batch._replace(env_output=batch.env_output._replace(**fields))


def _learner(
    jit: bool = False, agent: dict | None = None, **overrides
) -> tuple[learner.Learner, stored_unroll.StoredUnroll]:
    return _learner_of(fakes.catch_config(agent=agent or {}, learner=overrides), jit)


def _learner_of(
    config: run_config.RunConfig, jit: bool = False
) -> tuple[learner.Learner, stored_unroll.StoredUnroll]:
    spec = factory.environment_spec(config.environment)
    made = assembly.build_learner(config, spec, "float32", jit=jit)
    signature = assembly.unroll_signature(config, spec, made.agent)
    generator = np.random.default_rng(1)
    batch = fakes.random_stored_unrolls(signature, 4, generator)
    # Bytes of the whole range: with zeros and ones, the steps hardly differ for an update.
    observation = generator.integers(0, 256, batch.env_output.observation.shape).astype(np.uint8)
    return made, _replace_env(batch, observation=observation)


def _weights(made: learner.Learner) -> list[np.ndarray]:
    return [variable.numpy() for variable in made.agent.trainable_variables]


def _update(made: learner.Learner, unrolls: stored_unroll.StoredUnroll, steps: int) -> dict:
    is_online = np.array([True, False, False, False])
    new_steps, priorities = made.update(stored_unroll.unweighted(unrolls, is_online, steps))
    assert new_steps == steps, new_steps
    assert priorities is None or priorities.shape == (4,), priorities
    return made.metrics()


class LearnerTest(parameterized.TestCase):
    @parameterized.parameters("rmsprop", "adam")
    def test_repeated_batch_lowers_the_loss(self, optimizer):
        made, batch = _learner(
            optimizer=optimizer, learning_rate=1e-2, learning_rate_schedule="constant"
        )
        losses = [float(_update(made, batch, 10)["loss/value"]) for _ in range(60)]
        self.assertLess(losses[-1], 0.5 * losses[0])

    @parameterized.named_parameters(
        ("r2d2_target", fakes.r2d2_catch_config(agent={"target_period": 1}, replay={"burn_in": 0})),
        ("acer_average_policy", fakes.acer_catch_config()),
    )
    def test_update_changes_the_second_network_of(self, config):
        made, batch = _learner_of(config)
        learned = {variable.ref() for variable in made.agent.trainable_variables}
        weights = [
            variable
            for variable in made.agent.variables
            if variable.ref() not in learned and variable.shape.rank == 2
        ]
        self.assertNotEmpty(weights)
        before = [variable.numpy() for variable in weights]
        _update(made, batch, 10)
        for old, variable in zip(before, weights, strict=True):
            self.assertTrue(np.any(old != variable.numpy()), variable.name)

    def test_variable_without_effect_on_the_loss_does_not_change(self):
        made, batch = _learner(agent={"torso": f"{__name__}:UnusedVariableTorso"})
        _update(made, batch, 10)
        (unused,) = (v for v in made.agent.trainable_variables if v.name == "unused:0")
        self.assertEqual(unused.numpy(), 1.0)

    def test_linear_schedule_follows_agent_steps(self):
        made, batch = _learner(learning_rate=0.5)  # the run has 2,000 agent steps
        rates = [float(_update(made, batch, 500)["learner/learning_rate"]) for _ in range(5)]
        np.testing.assert_allclose(rates, [0.5, 0.375, 0.25, 0.125, 0.0], rtol=1e-6)
        self.assertEqual(made.counters.learner_updates, 5)
        self.assertEqual(made.counters.agent_steps, 2_500)

    @parameterized.parameters("rmsprop", "adam")
    def test_non_finite_updates_are_skipped_up_to_a_limit(self, optimizer):
        made, batch = _learner(non_finite_limit=3, optimizer=optimizer)
        _update(made, batch, 1)
        variables = (*made.agent.trainable_variables, *made.optimizer.variables)
        before = [variable.numpy() for variable in variables]
        answer = batch.agent_output
        poisoned = batch._replace(
            agent_output=answer._replace(policy=np.full_like(answer.policy, np.nan))
        )
        poisoned_reward = _replace_env(batch, reward=np.full_like(batch.env_output.reward, np.nan))
        _update(made, poisoned_reward, 1)
        _update(made, poisoned_reward, 1)
        for old, new in zip(before, variables, strict=True):
            np.testing.assert_array_equal(old, new)
        with messages.raises(learner.NonFiniteLossError, 3):
            _update(made, poisoned_reward, 1)
        self.assertEqual(made.counters.non_finite_updates, 3)
        # NaN behaviour logits are outside any trust region: rejected, not fatal.
        self.assertTrue(np.isfinite(_update(made, poisoned, 1)["loss/total"]))

    def test_huge_rewards_raise_an_error_with_remedies(self):
        made, batch = _learner(agent={"reward_clip": "none"}, non_finite_limit=1)
        huge = _replace_env(batch, reward=np.full_like(batch.env_output.reward, -1e25))
        with messages.raises(
            learner.NonFiniteLossError, "1e+25", "agent.reward_clip=unit", "learner.learning_rate"
        ):
            _update(made, huge, 1)

    def test_finite_update_resets_the_limit(self):
        made, batch = _learner(non_finite_limit=2)
        poisoned = _replace_env(batch, reward=np.full_like(batch.env_output.reward, np.nan))
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

    @parameterized.parameters("rmsprop", "adam")
    def test_xla_computes_an_equal_update(self, optimizer):
        metrics = []
        for jit in (False, True):
            made, batch = _learner(jit=jit, optimizer=optimizer)
            _update(made, batch, 0)
            metrics.append({k: float(v) for k, v in _update(made, batch, 0).items()})
        for name, value in metrics[0].items():
            np.testing.assert_allclose(metrics[1][name], value, rtol=1e-3, atol=1e-5, err_msg=name)


class AdamTest(absltest.TestCase):
    def test_adam_uses_its_configuration_and_the_schedule(self):
        numbers = {"adam_beta1": 0.8, "adam_beta2": 0.75, "adam_epsilon": 1e4}
        made, batch = _learner(optimizer="adam", learning_rate=1e3, **numbers)
        made.counters.agent_steps.assign(1_000)  # of 2,000: half the learning rate
        before = _weights(made)
        norm = _update(made, batch, 0)["learner/gradient_norm"]
        moved = [old - new for old, new in zip(before, _weights(made), strict=True)]
        moved_norm = np.sqrt(sum(np.sum(np.square(array)) for array in moved))
        # A first step, with an epsilon far above all gradients: m = 0.2 g, corrected by 0.5 / 0.2.
        momentum_norm = tf.linalg.global_norm(made.optimizer._adam._momentums)
        np.testing.assert_allclose(momentum_norm, 0.2 * norm, rtol=1e-4)
        np.testing.assert_allclose(moved_norm, 5e2 * 0.5 / 0.2 * momentum_norm / 1e4, rtol=1e-2)

    def test_resumed_learner_takes_equal_steps(self):
        made, batch = _learner(optimizer="adam")
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(3):
                _update(made, batch, 10)
            learner_checkpoints.LearnerCheckpoints(pathlib.Path(folder), made).save(1)
            resumed, _ = _learner(optimizer="adam", learning_rate=0.5)
            learner_checkpoints.LearnerCheckpoints(pathlib.Path(folder), resumed).restore()
        for _ in range(2):
            for ours, theirs in zip(made.variables, resumed.variables, strict=True):
                np.testing.assert_array_equal(ours, theirs)
            _update(made, batch, 10)
            _update(resumed, batch, 10)
        for ours, theirs in zip(_weights(made), _weights(resumed), strict=True):
            np.testing.assert_array_equal(ours, theirs)

    def test_checkpoint_of_another_optimizer_raises(self):
        with tempfile.TemporaryDirectory() as folder:
            learner_checkpoints.LearnerCheckpoints(pathlib.Path(folder), _learner()[0]).save(1)
            other, _ = _learner(optimizer="adam")
            with self.assertRaises(run_directory.WorkdirError):
                learner_checkpoints.LearnerCheckpoints(pathlib.Path(folder), other).restore()


_OTHERS = {
    "learner.learning_rate": 2e-3,
    "learner.rmsprop_epsilon": 0.1,
    "agent.entropy_cost": 0.3,
}


class HyperparametersTest(parameterized.TestCase):
    def test_hyperparameters_start_as_configured(self):
        made, _ = _learner(learning_rate=6e-4, rmsprop_epsilon=0.01)
        expected = {
            "learner.learning_rate": 6e-4,
            "learner.rmsprop_epsilon": 0.01,
            "agent.entropy_cost": fakes.catch_config().agent.entropy_cost,
        }
        self.assertEqual(made.hyperparameters(), expected)
        made.set_hyperparameters({"agent.entropy_cost": 0.0})
        self.assertEqual(made.hyperparameters(), expected | {"agent.entropy_cost": 0.0})

    def test_changed_values_act_like_configured_values(self):
        made, batch = _learner()
        loss, traces = made.agent.loss, []
        made.agent.loss = lambda unroll: traces.append(unroll) or loss(unroll)
        _update(made, batch, 10)
        sections = {"agent": {}, "learner": {}}
        for name, value in _OTHERS.items():
            section, key = name.split(".")
            sections[section][key] = value
        configured, _ = _learner(agent=sections["agent"], **sections["learner"])
        _update(unchanged := _learner()[0], batch, 10)
        for other in (configured, unchanged):
            sweep_client.set_state(other, sweep_client.get_state(made))
            other.counters.agent_steps.assign(made.counters.agent_steps)

        made.set_hyperparameters(_OTHERS)
        for each in (made, configured, unchanged):
            _update(each, batch, 10)
        self.assertLen(traces, 1)
        self.assertEqual(made.hyperparameters(), configured.hyperparameters())
        for ours, theirs in zip(_weights(made), _weights(configured), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        self.assertFalse(np.array_equal(_weights(made)[0], _weights(unchanged)[0]))

    @parameterized.parameters(
        ("rmsprop", ["learner.learning_rate", "learner.rmsprop_epsilon"]),
        ("adam", ["learner.learning_rate"]),
    )
    def test_agent_without_entropy_has_no_entropy_cost(self, optimizer, expected):
        run = fakes.r2d2_catch_config()
        spec = factory.environment_spec(run.environment)
        agent = assembly.build_agent(run, spec, "float32", seed=1)
        config = learner_config.LearnerConfig(optimizer=optimizer)
        made = learner.Learner(agent, config, total_agent_steps=1, jit=False)
        self.assertCountEqual(made.hyperparameters(), expected)
        with messages.raises(ValueError, "agent.entropy_cost", "R2D2", "learner.learning_rate"):
            made.set_hyperparameters({"agent.entropy_cost": 0.1})

    @parameterized.parameters(
        ("learner.learning_rate", 0.0),
        ("learner.learning_rate", 1e-60),  # zero as a float32
        ("agent.entropy_cost", -0.1),
        ("learner.gradient_clip", 1.0),
    )
    def test_invalid_value_is_named_and_changes_nothing(self, name, value):
        made, _ = _learner()
        before = made.hyperparameters()
        with messages.raises(ValueError, name):
            made.set_hyperparameters({"learner.learning_rate": 0.5, name: value})
        self.assertEqual(made.hyperparameters(), before)


class ConfigTest(parameterized.TestCase):
    @parameterized.parameters(
        ("learning_rate", -1.0),
        ("learning_rate_schedule", "cosine"),
        ("optimizer", "sgd"),
        ("adam_beta1", 1.0),
        ("adam_epsilon", 0.0),
        ("rmsprop_decay", 1.0),
        ("gradient_clip", -1.0),
        ("jit_compile", "yes"),
        ("compute_dtype", "float16"),
        ("non_finite_limit", 0),
    )
    def test_invalid_value_is_rejected(self, name, value):
        with messages.raises(ValueError, name, value):
            dataclasses.replace(learner_config.LearnerConfig(), **{name: value})


class StagingTest(parameterized.TestCase):
    def test_updates_from_staged_batches_are_those_without_staging(self):
        results = []
        for kind in (None, "GPU"):
            with mock.patch.object(hardware, "accelerator", return_value=kind):
                made, unrolls = _learner()
            is_online = np.array([True, False, False, False])
            batches = [
                stored_unroll.unweighted(
                    _replace_env(unrolls, reward=unrolls.env_output.reward * number), is_online, 1
                )
                for number in range(4)
            ]
            for batch in batches[:3]:
                self.assertIs(made.stage(batch), batch)
            losses = []
            for batch in batches:  # The last one is copied by its update.
                made.update(batch)
                losses.append(made.metrics()["loss/total"])
            results.append((losses, _weights(made)))
        self.assertLen(set(results[0][0]), 4)
        self.assertEqual(results[0][0], results[1][0])
        for plain, staged in zip(results[0][1], results[1][1], strict=True):
            np.testing.assert_array_equal(plain, staged)

    def test_discarded_batches_are_not_used(self):
        with mock.patch.object(hardware, "accelerator", return_value="GPU"):
            made, unrolls = _learner()
        is_online = np.array([True, False, False, False])
        old, new = (stored_unroll.unweighted(unrolls, is_online, steps) for steps in (10, 20))
        made.stage(old)
        made.discard_staged()
        made.update(new)
        self.assertEqual(made.counters.agent_steps, 20)


if __name__ == "__main__":
    absltest.main()
