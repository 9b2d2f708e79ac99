"""Exported policies act as the agents that they were made of, without this package."""

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf
import tree
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import errors
from laser_tf.export import portable_policy
from testing import commands, folders, messages
from testing.export import policies

ALONE = pathlib.Path(__file__).with_name("act_alone.py")


def _arguments(step) -> tuple:
    """Returns the arguments of a policy's functions before the state."""
    return step.observation, step.reward, step.discount, step.is_first


def _flat(step) -> dict[str, np.ndarray]:
    """Returns arrays by their names in a signature, with a point for each level's underscore."""
    leaves = tree.flatten_with_path(step.observation)
    named = {".".join(("observation", *path)): leaf for path, leaf in leaves}
    return named | {name: getattr(step, name) for name in ("reward", "discount", "is_first")}


class SavedModelTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = folders.of_class(cls)
        cls.examples, cls.steps, cls.actions, cls.folders = {}, {}, {}, {}
        for kind in policies.KINDS:
            cls.folders[kind] = folder / kind
            cls.examples[kind] = policies.make(kind)
            cls.steps[kind], cls.actions[kind] = policies.act_greedily(cls.examples[kind])
            policies.save(cls.examples[kind], cls.folders[kind] / "policy")
        cls.loaded = {k: tf.saved_model.load(str(f / "policy")) for k, f in cls.folders.items()}

    def test_tensorflow_alone_takes_the_greedy_actions(self):
        for kind, folder in self.folders.items():
            rows = [_flat(step) for step in self.steps[kind]]
            arrays = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
            np.savez(folder / "steps.npz", **arrays)
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        subprocess.run(
            [sys.executable, str(ALONE), *map(str, self.folders.values())],
            cwd=tempfile.gettempdir(), env=environment, check=True, timeout=400,
        )  # fmt: skip
        for kind, folder in self.folders.items():
            with self.subTest(kind):
                expected = np.stack(self.actions[kind])
                starts = np.stack([step.is_first for step in self.steps[kind]])
                self.assertGreater(starts[1:].sum(), policies.NUM_ENVS)
                self.assertGreater(len(np.unique(expected)), 1)
                for actions in np.load(folder / "actions.npz").values():
                    self.assertEqual(actions.dtype, expected.dtype)
                    np.testing.assert_allclose(actions, expected, rtol=1e-5, atol=1e-5)

    @parameterized.parameters(*policies.KINDS)
    def test_samples_are_the_agents_and_follow_the_seed(self, kind):
        example, loaded = self.examples[kind], self.loaded[kind]
        step = tf.nest.map_structure(tf.constant, self.steps[kind][-1])
        step = step._replace(is_first=tf.zeros_like(step.is_first))
        state, seed = loaded.initial_state(policies.NUM_ENVS), tf.constant([5, 9])
        action, _ = loaded.sample(*_arguments(step), state, seed)
        expected, _ = example.policy.sample(
            *_arguments(step), example.policy.initial_state(policies.NUM_ENVS), seed
        )
        np.testing.assert_allclose(action, expected, rtol=1e-5, atol=1e-5)
        again, _ = loaded.sample(*_arguments(step), state, seed)
        np.testing.assert_array_equal(action, again)

    @parameterized.parameters("feed_forward", "lstm")
    def test_samples_have_the_policys_distribution(self, kind):
        loaded, probabilities = self.loaded[kind], []
        step = tf.nest.map_structure(lambda leaf: tf.constant(leaf[:1]), self.steps[kind][3])
        arguments = _arguments(step._replace(is_first=tf.constant([False])))
        state = loaded.initial_state(1)

        def sample(seed: int) -> np.ndarray:
            many = tf.nest.map_structure(lambda leaf: tf.repeat(leaf, 20_000, 0), arguments)
            states = tf.nest.map_structure(lambda leaf: tf.repeat(leaf, 20_000, 0), state)
            return loaded.sample(*many, states, tf.constant([1, seed]))[0].numpy()

        for _ in range(2):
            policy = self.examples[kind].policy
            output, _ = policy._act(arguments, state, tf.constant([0, 0]))
            probabilities.append(tf.nn.softmax(tf.cast(output.policy, tf.float64))[0].numpy())
            actions = sample(seed=2)
            counts = np.bincount(actions, minlength=len(probabilities[-1]))
            p_value = scipy.stats.chisquare(counts, probabilities[-1] * counts.sum()).pvalue
            self.assertGreater(p_value, 1e-4)
            self.assertGreater(np.mean(actions != sample(seed=3)), 0.05)
            _, state = loaded.greedy(*arguments, state)
        self.assertGreater(np.abs(probabilities[1] - probabilities[0]).max(), 0.01)

    def test_action_is_independent_of_the_batch_size(self):
        loaded, step = self.loaded["feed_forward"], self.steps["feed_forward"][0]
        together, _ = loaded.greedy(*_arguments(step), loaded.initial_state(policies.NUM_ENVS))
        for index in range(policies.NUM_ENVS):
            one = [argument[index : index + 1] for argument in _arguments(step)]
            alone, _ = loaded.greedy(*one, loaded.initial_state(1))
            self.assertEqual(alone[0], together[index])

    def test_only_variables_that_acting_reads_are_saved(self):
        for kind, loaded in self.loaded.items():
            saved = sum(int(tf.size(variable)) for variable in loaded.model_variables)
            acting = sum(int(tf.size(v)) for v in self.examples[kind].agent.acting_variables)
            self.assertBetween(saved, 1, acting)
            self.assertEqual(int(loaded.get_train_step()), 12)

    @parameterized.parameters(
        ({"a-b": 0, "a_b": 0}, "observation['a-b']", "observation['a_b']"),
        ({"a": {"b": 0}, "a_b": 0}, "observation['a']['b']", "observation['a_b']"),
        ({"A": (0, 0), "a": (0,)}, "observation['A'][0]", "observation['a'][0]"),
        ({"b x": 0}, "observation['b x']"),
        ({"\u00e9": 0}, "observation['\u00e9']"),
    )
    def test_observation_that_cannot_be_named_raises(self, keys, *named):
        example = self.examples["lstm"]
        leaf = specs.Array([2], np.float32)
        spec = example.environment.spec()
        spec = spec._replace(observation=tree.map_structure(lambda _: leaf, keys))
        with messages.raises(errors.UserError, *named):
            portable_policy.PortablePolicy(example.agent, spec, example.frame_stack)

    def test_tf_agents_loads_and_runs_policies(self):
        # Imported here because TF-Agents takes seconds to load and prints a banner.
        from tf_agents.drivers import py_driver
        from tf_agents.environments import random_py_environment
        from tf_agents.policies import py_tf_eager_policy
        from tf_agents.specs import array_spec

        for kind in policies.KINDS:
            policy = py_tf_eager_policy.SavedModelPyTFEagerPolicy(
                str(self.folders[kind] / "policy"), load_specs_from_pbtxt=True
            )
            specification = tree.map_structure(
                lambda spec: array_spec.BoundedArraySpec(
                    spec.shape,
                    spec.dtype,
                    getattr(spec, "minimum", -5),
                    getattr(spec, "maximum", 5),
                ),
                policy.time_step_spec.observation,
            )
            environment = random_py_environment.RandomPyEnvironment(
                specification, policy.action_spec,
                episode_end_probability=0.2, reward_fn=lambda *_: np.float32(0.5), seed=4,
            )  # fmt: skip
            transitions: list[tuple] = []
            driver = py_driver.PyDriver(
                environment, policy, [], transition_observers=[transitions.append], max_episodes=3
            )
            driver.run(environment.reset(), policy.get_initial_state(batch_size=1))
            state = self.loaded[kind].initial_state(1)
            for time_step, action_step, _ in transitions:
                step = time_step.observation, time_step.reward, time_step.discount
                arguments = tree.map_structure(lambda leaf: np.asarray(leaf)[None], step)
                is_first = np.array([time_step.is_first()])
                action, state = self.loaded[kind].greedy(*arguments, is_first, state)
                np.testing.assert_array_equal(action_step.action, action.numpy()[0])
            self.assertGreaterEqual(sum(t.is_first() for t, *_ in transitions), 3)


class ImportTest(absltest.TestCase):
    @pytest.mark.long
    def test_saving_needs_no_tf_agents_and_prints_nothing(self):
        script = (
            "import pathlib, sys, tempfile\n"
            "sys.modules |= dict.fromkeys(('tf_agents', 'gym', 'tf2onnx'))  # not importable\n"
            "from laser_tf.evaluation import run_evaluation\n"
            "from laser_tf.training import training\n"
            "from launch import train\n"
            "from testing.export import policies\n"
            "with tempfile.TemporaryDirectory() as folder:\n"
            "    policies.save(policies.make('feed_forward'), pathlib.Path(folder) / 'policy')\n"
        )
        done = commands.run_program(script, env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


if __name__ == "__main__":
    absltest.main()
