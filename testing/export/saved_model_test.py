"""Exported policies act as the agents they were made of, without this package."""

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import scipy.stats
import tensorflow as tf
import tree
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import errors
from laser_tf.export import portable_policy
from laser_tf.replay import frame_stacking
from testing import messages
from testing.export import policies

ALONE = pathlib.Path(__file__).with_name("play_alone.py")


def _flat(observation) -> dict[str, np.ndarray]:
    """As signatures name what is in it, with a point in the place of each level's underscore."""
    leaves = tree.flatten_with_path(observation)
    return {".".join(("observation", *path)): leaf for path, leaf in leaves}


class SavedModelTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.examples, cls.steps, cls.actions, cls.folders = {}, {}, {}, {}
        for kind in policies.KINDS:
            cls.folders[kind] = pathlib.Path(folder.name) / kind
            cls.examples[kind] = policies.make(kind)
            cls.steps[kind], cls.actions[kind] = policies.play_greedily(cls.examples[kind])
            policies.save(cls.examples[kind], cls.folders[kind] / "policy")
        cls.loaded = {k: tf.saved_model.load(str(f / "policy")) for k, f in cls.folders.items()}

    def test_with_tensorflow_alone_they_take_the_greedy_actions(self):
        for kind, folder in self.folders.items():
            rows = [
                {
                    **_flat(step.observation),
                    **{name: getattr(step, name) for name in ("reward", "discount", "is_first")},
                }
                for step in self.steps[kind]
            ]
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
                self.assertGreater(starts[1:].sum(), policies.GAMES)
                self.assertGreater(len(np.unique(expected)), 1)
                for actions in np.load(folder / "actions.npz").values():
                    self.assertEqual(actions.dtype, expected.dtype)
                    np.testing.assert_allclose(actions, expected, rtol=1e-5, atol=1e-5)

    @parameterized.parameters(*policies.KINDS)
    def test_draws_are_the_agents_and_follow_seed_and_state(self, kind):
        example, loaded = self.examples[kind], self.loaded[kind]
        step = tf.nest.map_structure(tf.constant, self.steps[kind][-1])
        state = loaded.initial_state(policies.GAMES)
        row = (step.observation, step.reward, step.discount, tf.zeros_like(step.is_first))
        seed = tf.constant([5, 9])
        action, _ = loaded.sample(*row, state, seed)
        expected, _ = example.policy.sample(
            portable_policy.Step(*row), example.policy.initial_state(policies.GAMES), seed
        )
        np.testing.assert_allclose(action, expected, rtol=1e-5, atol=1e-5)
        again, _ = loaded.sample(*row, state, seed)
        np.testing.assert_array_equal(action, again)

    @parameterized.parameters("feed_forward", "lstm")
    def test_draws_have_the_policys_distribution_in_any_state(self, kind):
        loaded, probabilities = self.loaded[kind], []
        one = tf.nest.map_structure(lambda leaf: tf.constant(leaf[:1]), self.steps[kind][3])
        row = (one.observation, one.reward, one.discount, tf.constant([False]))
        state = loaded.initial_state(1)
        for _ in range(2):
            probabilities.append(self._probabilities(kind, row, state))
            actions = self._draw(kind, row, state, seed=2)
            counts = np.bincount(actions, minlength=len(probabilities[-1]))
            p_value = scipy.stats.chisquare(counts, probabilities[-1] * counts.sum()).pvalue
            self.assertGreater(p_value, 1e-4)
            self.assertGreater(np.mean(actions != self._draw(kind, row, state, seed=3)), 0.05)
            _, state = loaded.greedy(*row, state)
        self.assertGreater(np.abs(probabilities[1] - probabilities[0]).max(), 0.01)

    def _draw(self, kind: str, row: tuple, state: dict, seed: int) -> np.ndarray:
        many = tf.nest.map_structure(lambda leaf: tf.repeat(leaf, 20_000, 0), (row, state))
        return self.loaded[kind].sample(*many[0], many[1], tf.constant([1, seed]))[0].numpy()

    def _probabilities(self, kind: str, row: tuple, state: dict) -> np.ndarray:
        policy = self.examples[kind].policy
        output, _ = policy._act(portable_policy.Step(*row), state, tf.constant([0, 0]))
        return tf.nn.softmax(tf.cast(output.policy, tf.float64))[0].numpy()

    def test_a_batch_of_any_size_gives_each_environment_its_own_action(self):
        loaded, step = self.loaded["feed_forward"], self.steps["feed_forward"][0]
        together, _ = loaded.greedy(
            step.observation, step.reward, step.discount, step.is_first,
            loaded.initial_state(policies.GAMES),
        )  # fmt: skip
        for game in range(policies.GAMES):
            rows = slice(game, game + 1)
            alone, _ = loaded.greedy(
                step.observation[rows], step.reward[rows], step.discount[rows],
                step.is_first[rows], loaded.initial_state(1),
            )  # fmt: skip
            self.assertEqual(alone[0], together[game])

    def test_only_what_acting_reads_is_saved(self):
        for kind, loaded in self.loaded.items():
            saved = sum(int(tf.size(variable)) for variable in loaded.model_variables)
            acting = sum(int(tf.size(v)) for v in self.examples[kind].agent.acting_variables)
            self.assertBetween(saved, 1, acting)
            self.assertEqual(int(loaded.get_train_step()), 12)

    @parameterized.parameters(
        ({"a-b": 0, "a_b": 0}, r"observation\['a-b'\] and observation\['a_b'\]"),
        ({"a": {"b": 0}, "a_b": 0}, r"observation\['a'\]\['b'\] and observation\['a_b'\]"),
        ({"A": (0, 0), "a": (0,)}, r"observation\['A'\]\[0\] and observation\['a'\]\[0\]"),
    )
    def test_parts_that_a_saved_model_cannot_name_are_refused(self, keys, named):
        example = self.examples["lstm"]
        spec = example.environment.spec()
        leaf = specs.Array([2], np.float32)
        spec = spec._replace(observation=tree.map_structure(lambda _: leaf, keys))
        with self.assertRaisesRegex(errors.UserError, named):
            portable_policy.PortablePolicy(example.agent, spec, example.frame_stack)

    @parameterized.parameters("b x", "a:b", "a[0]", "\u00e9")
    def test_a_key_that_no_signature_can_have_is_named(self, key):
        example = self.examples["lstm"]
        spec = example.environment.spec()._replace(observation={key: specs.Array([2], np.float32)})
        with messages.raises(errors.UserError, f"observation[{key!r}]"):
            portable_policy.PortablePolicy(example.agent, spec, example.frame_stack)

    def test_frames_pushed_one_by_one_are_those_of_actors(self):
        generator = np.random.default_rng(0)
        spec = self.examples["feed_forward"].environment.observation_spec()
        numpy_stacker = frame_stacking.FrameStacker(3, spec, 4)
        stack = tf.zeros([3, *spec.shape[:-1], 3], tf.uint8)
        for _ in range(12):
            frames = generator.integers(0, 256, (3, *spec.shape), np.uint8)
            is_first = generator.random(3) < 0.3
            stacked = frame_stacking.push_frame(stack, tf.constant(frames), tf.constant(is_first))
            np.testing.assert_array_equal(stacked, numpy_stacker.push(frames, is_first))
            stack = stacked[..., 1:]

    def test_tf_agents_loads_and_plays_them(self):
        # Not at the top: importing it takes seconds and has a banner.
        from tf_agents.drivers import py_driver
        from tf_agents.policies import py_tf_eager_policy

        from testing.export import py_environment

        for kind in policies.KINDS:
            policy = py_tf_eager_policy.SavedModelPyTFEagerPolicy(
                str(self.folders[kind] / "policy"), load_specs_from_pbtxt=True
            )
            environment = py_environment.SingleEnvironment(self.examples[kind])
            played = []
            driver = py_driver.PyDriver(
                environment, policy, [played.append], max_episodes=3, max_steps=100
            )
            driver.run(environment.reset(), policy.get_initial_state(batch_size=1))
            loaded = self.loaded[kind]
            state = loaded.initial_state(1)
            for row in environment.rows[: len(played)]:
                numbers = (row.reward, row.discount, row.is_first)
                action, state = loaded.greedy(row.observation, *numbers, state)
                environment.expected.append(action.numpy()[0])
            np.testing.assert_array_equal(
                np.stack([trajectory.action for trajectory in played]), environment.expected
            )
            self.assertGreaterEqual(sum(trajectory.is_first() for trajectory in played), 3)


class QuietTest(absltest.TestCase):
    def test_saving_says_nothing_and_training_does_not_import_tf_agents(self):
        script = (
            "import pathlib, sys, tempfile\n"
            "from laser_tf.evaluation import evaluator\n"
            "from laser_tf.training import training\n"
            "from launch import train\n"
            "from laser_tf.export import exporter\n"
            "assert 'tf_agents' not in sys.modules and 'gym' not in sys.modules\n"
            "from testing.export import policies\n"
            "example = policies.make('feed_forward')\n"
            "with tempfile.TemporaryDirectory() as folder:\n"
            "    policies.save(example, pathlib.Path(folder) / 'policy')\n"
            "assert 'tf_agents' in sys.modules\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=400,
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        )  # fmt: skip
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


if __name__ == "__main__":
    absltest.main()
