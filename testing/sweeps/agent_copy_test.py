"""Copies of an agent: what is copied, what stays, and what is rejected."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.environments import factory
from laser_tf.replay import stored_unroll
from laser_tf.sweeps import sweep_client
from laser_tf.training import assembly, learner, named_variables
from testing import fakes, messages

# Everything an agent may have: a core, PopArt's moments, an auxiliary head.
_ALL = {
    "core": "lstm",
    "core_size": 8,
    "popart": True,
    "pixel_control_cost": 0.1,
    "pixel_control_cell": 5,
}


class AgentCopyTest(parameterized.TestCase):
    def _learner(
        self, seed: int, agent: dict | None = None, optimizer: str = "rmsprop"
    ) -> learner.Learner:
        config = fakes.catch_config(
            agent=agent or {},
            run={"seed": seed},
            learner={"rmsprop_momentum": 0.5, "optimizer": optimizer},
        )
        spec = factory.environment_spec(config.environment)
        made = assembly.build_learner(config, spec, "float32", jit=False)
        self._signature = assembly.unroll_signature(config, spec, made.agent)
        return made

    def _update(self, made: learner.Learner, seed: int) -> None:
        generator = np.random.default_rng(seed)
        batch = fakes.random_stored_unrolls(self._signature, 4, generator)
        is_online = np.array([True, True, False, False])
        made.update(stored_unroll.unweighted(batch, is_online, 10))

    def _state(self, made: learner.Learner) -> list[np.ndarray]:
        return [variable.numpy() for variable in tf.nest.flatten(made.variables)]

    def _weights(self, made: learner.Learner) -> list[np.ndarray]:
        hyper = {variable.ref() for variable in made.hyperparameter_variables.values()}
        return [v.numpy() for v in made.agent.variables if v.ref() not in hyper]

    @parameterized.parameters((_ALL, "rmsprop"), ({}, "adam"))
    def test_next_updates_of_a_copy_are_identical(self, agent, optimizer):
        source, target = self._learner(1, agent, optimizer), self._learner(2, agent, optimizer)
        for seed in range(3):
            self._update(source, seed)
        self._update(target, 9)
        sweep_client.set_state(target, sweep_client.get_state(source))
        self.assertEqual(target.counters.agent_steps, 10)
        self.assertEqual(target.counters.learner_updates, 1)
        # The linear schedule reads them: for the comparison they must agree.
        target.counters.agent_steps.assign(source.counters.agent_steps)
        for seed in (10, 11):
            self._update(source, seed)
            self._update(target, seed)
        for ours, theirs in zip(self._weights(source), self._weights(target), strict=True):
            np.testing.assert_array_equal(ours, theirs)

    @parameterized.parameters("rmsprop", "adam")
    def test_all_learned_variables_are_copied_and_no_others(self, optimizer):
        source, target = (self._learner(seed, _ALL, optimizer) for seed in (1, 2))
        for variable in (*source.variables, *target.variables):
            if variable.dtype.is_floating:
                variable.assign(tf.ones_like(variable) * (2.0 if variable.shape.rank else 1e-3))
        for variable in source.variables:
            variable.assign(variable + tf.ones_like(variable))
        before = {id(v): v.numpy() for v in target.variables}
        generator = target.agent._random.state.numpy()
        sweep_client.set_state(target, sweep_client.get_state(source))
        moved = [v for v in target.variables if np.any(before[id(v)] != v.numpy())]
        stay = (*target.hyperparameter_variables.values(), *target.counters.variables)
        self.assertEmpty({v.ref() for v in moved} & {v.ref() for v in stay})
        self.assertLen(moved, len(target.variables) - len(stay))
        np.testing.assert_array_equal(target.agent._random.state, generator)

    @parameterized.parameters(
        (
            {"core_size": 9},
            "rmsprop",
            ("agent/_pixel_control/_head/_dense/kernel", "float32[9, 32]", "float32[8, 32]"),
        ),
        ({"pixel_control_cost": 0.0}, "rmsprop", ("agent/_pixel_control",)),
        ({}, "adam", ("optimizer",)),
    )
    def test_other_architecture_names_the_first_difference(self, agent, optimizer, names):
        source, target = self._learner(1, {**_ALL, **agent}, optimizer), self._learner(2, _ALL)
        before = self._state(target)
        with messages.raises(ValueError, *names):
            sweep_client.set_state(target, sweep_client.get_state(source))
        for old, new in zip(before, self._state(target), strict=True):
            np.testing.assert_array_equal(old, new)

    def test_other_dtype_is_rejected(self):
        target = self._learner(1)
        arrays = sweep_client.get_state(target)
        name = "agent/_policy_head/bias"
        with messages.raises(ValueError, name, "float64[3]", "float32[3]"):
            sweep_client.set_state(target, arrays | {name: arrays[name].astype(np.float64)})

    @parameterized.parameters((np.nan, "agent"), (np.inf, "optimizer"))
    def test_weights_that_are_not_finite_are_rejected(self, value, part):
        source = self._learner(1)
        variables = sweep_client._variables(source)
        name = next(n for n in variables if n.startswith(part))
        variables[name].assign(
            tf.fill(variables[name].shape, tf.cast(value, variables[name].dtype))
        )
        with messages.raises(named_variables.NonFiniteWeightsError, name):
            sweep_client.get_state(source)


if __name__ == "__main__":
    absltest.main()
