"""Policies of runs and exported policies act on native observations and return native actions."""

import contextlib
import dataclasses
import json
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf
import tree
from absl.testing import absltest, parameterized

import laser_tf
from laser_tf import errors
from laser_tf.environments import catch, factory, gymnasium_suite
from laser_tf.evaluation import episode_runner
from laser_tf.export import act, description, portable_policy, saved_model
from laser_tf.training import assembly
from testing import fakes, folders, messages
from testing.environments import small_environments

SMALL = "testing.environments.small_environments"


class TrainedPolicyTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = folders.of_class(cls)
        cls._run, cls._exported = folder / "run", folder / "policy"
        config = fakes.catch_config(
            run={"evaluation_episodes": 0}, replay={"frame_stack": 2},
            agent={"core": "lstm", "core_size": 16},
        )  # fmt: skip
        laser_tf.train(config, cls._run, progress=False)
        laser_tf.export_policy(cls._run, cls._exported)

    def test_batches_get_the_returns_of_a_greedy_evaluation(self):
        numbers = {"episodes": np.int64(40), "seed": np.int64(5)}
        summary = laser_tf.evaluate(self._run, greedy=True, progress=False, **numbers).summary
        for path in (self._run, self._exported):
            policy = laser_tf.load_policy(path)
            state = policy.initial_state(np.int64(32))

            def act_on(step):
                nonlocal state
                action, state = policy.act(  # noqa: B023
                    step.observation, state, reward=step.reward, discount=step.discount,
                    is_first=step.is_first,
                )  # fmt: skip
                return action

            environment = factory.make_environment(catch.CatchConfig(), seed=5, num_envs=32)
            episodes, _ = episode_runner.run_episodes(environment, act_on, 40)
            returns = [episode.episode_return for episode in episodes]
            self.assertEqual(returns, summary["tasks"]["catch"]["returns"])

    def test_single_steps_are_those_of_a_batch(self):
        policy = laser_tf.load_policy(self._run)
        images = np.random.default_rng(1).integers(0, 256, [4, 3, 10, 5, 1], np.uint8)
        batch_state, batch_actions = policy.initial_state(3), []
        for observation in images:
            actions, batch_state = policy.act(observation, batch_state, reward=[1.0, 2.0, 3.0])
            batch_actions.append(actions)
        hidden = np.concatenate(
            [leaf for name, leaf in batch_state.tensors.items() if name.startswith("core")], axis=1
        )
        self.assertGreater(np.abs(hidden[0] - hidden[1]).max(), 1e-3)
        for index in range(3):
            state = policy.initial_state()
            for observation, expected in zip(images[:, index], batch_actions, strict=True):
                action, state = policy.act(observation, state, reward=1.0 + index)
                self.assertEqual(action, expected[index])
                self.assertEqual(np.shape(action), ())
            for name, leaf in state.tensors.items():
                expected = batch_state.tensors[name][index]
                np.testing.assert_allclose(leaf[0], expected, atol=1e-5, err_msg=name)
            # A new episode forgets the last one.
            _, renewed = policy.act(images[0, index], state, is_first=True)
            _, fresh = policy.act(images[0, index], policy.initial_state())
            tree.map_structure(np.testing.assert_allclose, renewed.tensors, fresh.tensors)

    def test_samples_follow_the_seed(self):
        image = np.zeros([500, 10, 5, 1], np.uint8)

        def sample(seed):
            policy = laser_tf.load_policy(self._exported, seed=seed)
            return policy.act(image, policy.initial_state(500), greedy=False)[0]

        np.testing.assert_array_equal(sample(1), sample(1))
        self.assertGreater(np.mean(sample(1) != sample(2)), 0.01)

    def test_other_observations_and_tasks_are_named(self):
        with messages.raises(ValueError, "pong", "catch"):
            laser_tf.load_policy(self._exported, task="pong")
        with messages.raises(errors.ConfigError, "best", self._exported):
            laser_tf.load_policy(self._exported, best=True)
        converted = self._exported.with_name("converted")
        converted.mkdir()
        (converted / "policy.json").write_text('{"format": "onnx"}')
        with messages.raises(errors.UserError, "saved_model", "onnx"):
            laser_tf.load_policy(converted)
        with messages.raises(ValueError, "seed", -1):
            laser_tf.load_policy(self._exported, seed=-1)
        policy = laser_tf.load_policy(self._exported)
        with messages.raises(ValueError, "observation", "info"):
            policy.act((np.zeros([10, 5, 1], np.uint8), {}), policy.initial_state())
        with messages.raises(ValueError, "observation", "[10, 5, 1]"):
            policy.act(np.zeros([10, 4, 1], np.uint8), policy.initial_state())
        with messages.raises(ValueError, "observation", "3"):
            policy.act(np.zeros([2, 10, 5, 1], np.uint8), policy.initial_state(3))


def _policy(task: str, functions: Any = None, **options) -> tuple[act.Policy, Any]:
    """Returns a policy with random weights, and the first observation of its environment."""
    config = gymnasium_suite.GymnasiumConfig(task=f"{SMALL}:{task}", num_workers=1, **options)
    with contextlib.closing(factory.make_environment(config, seed=3, num_envs=1)) as environment:
        spec, native = environment.spec(), environment.native_specs()
        observation = environment.reset().observation
    run = dataclasses.replace(fakes.catch_config(), environment=config)
    agent = assembly.build_agent(run, spec, "float32", 1, is_evaluating=True)
    policy = portable_policy.PortablePolicy(agent, spec, frame_stack=1)
    native_by_task = dict(zip(config.tasks, native, strict=True))
    about = description.describe(policy, run, 0, native_by_task)
    about = json.loads(json.dumps(about))
    return act.Policy(functions or saved_model.compiled(policy), about), observation


def _entry(dtype, shape):
    """Returns an entry of `inputs` in `policy.json`."""
    return {"name": "view", "dtype": dtype, "shape": ["batch", *shape[1:]]}


class _Recording:
    """Functions of a policy that keep the observations that they receive."""

    def __init__(self):
        self.observations: list[Any] = []

    def initial_state(self, batch_size):
        return {}

    def greedy(self, observation, reward, discount, is_first, state):
        self.observations.append(tree.map_structure(lambda tensor: tensor.numpy(), observation))
        return tf.zeros([len(reward)], tf.int32), {}


class NativeTest(parameterized.TestCase):
    def test_observations_are_converted_as_in_training(self):
        functions = _Recording()
        policy, expected = _policy("Started-v0", functions, text_length=3)
        observation = small_environments.Started().reset(seed=3)[0]
        policy.act(observation, policy.initial_state())
        texts = {"word": (observation["word"],) * 2}
        arrays = {k: np.stack([v, v]) for k, v in observation.items() if k != "word"}
        policy.act(arrays | texts, policy.initial_state(2))
        single, batch = functions.observations
        tree.map_structure(np.testing.assert_array_equal, single, expected)
        for entry in range(2):
            one = tree.map_structure(lambda leaf: leaf[entry : entry + 1], batch)  # noqa: B023
            tree.map_structure(np.testing.assert_array_equal, one, expected)
        tree.map_structure(lambda a, b: self.assertEqual(a.dtype, b.dtype), single, expected)
        with messages.raises(ValueError, "word", "kind"):
            policy.act({"board": observation["board"]}, policy.initial_state())
        with messages.raises(ValueError, "3"):
            policy.act(observation | {"word": "a b c d"}, policy.initial_state())

    @parameterized.parameters(
        ("uint8", [2, 6, 5, 3], "uint8", [6, 5, 3]),
        ("uint8", [2, 6, 5, 1], "bool", [6, 5]),
        ("float32", [2, 6, 5, 1], "float64", [6, 5, 1]),
    )
    def test_image_of_the_environment_is_accepted(self, dtype, shape, native, native_shape):
        image = np.ones([2, *native_shape], native)
        converted = act.to_policy(image, _entry(dtype, shape), 0)
        self.assertEqual((converted.dtype, list(converted.shape)), (dtype, shape))
        np.testing.assert_array_equal(converted, 255 if native == "bool" else 1)

    @parameterized.parameters(
        ("uint8", [2, 6, 5, 3], "uint8", [3, 6, 5]),
        ("uint8", [2, 6, 5, 1], "uint8", [5, 6]),
        ("uint8", [2, 6, 5, 1], "uint8", [30]),
        ("uint8", [2, 6, 5, 3], "float32", [6, 5, 3]),
        ("uint8", [2, 6, 5, 3], "int64", [6, 5, 3]),
        ("float32", [2, 6, 5, 3], "float32", [3, 6, 5]),
    )
    def test_image_of_another_form_raises(self, dtype, shape, native, native_shape):
        image = np.ones([2, *native_shape], native)
        with messages.raises(ValueError, "view", dtype, shape[1:], native, native_shape):
            act.to_policy(image, _entry(dtype, shape), 0)

    @parameterized.parameters(
        ("float32", [1, 4], "left", "<U4"),
        ("float32", [1, 4], None, "object"),
        ("int32", [1], "left", "<U4"),
        ("int32", [1, 4], {"word": "left"}, "object"),
        ("float32", [1], 1j, "complex128"),
    )
    def test_value_of_another_kind_raises(self, dtype, shape, value, got):
        with messages.raises(ValueError, "view", dtype, got):
            act.to_policy(np.asarray(value)[None], _entry(dtype, shape), 0)

    def test_mask_that_is_missing_is_named_in_one_line(self):
        about = {
            "tasks": {"doors": {"observation_offsets": [0, 0], "reward_scale": 1.0}},
            "observation": {"action_mask": "mask", "observation": "view"},
            "inputs": [_entry("bool", [1, 3]) | {"name": "mask"}, _entry("float32", [1, 40, 40])],
        }
        policy = act.Policy(_Recording(), about)
        with messages.raises(ValueError, "action_mask", "ndarray") as caught:
            policy.act(np.zeros([40, 40]), policy.initial_state())
        self.assertLen(str(caught.exception).splitlines(), 1)

    def test_episode_repeats_actions_and_ends_at_the_limit(self):
        functions = _Recording()
        policy, _ = _policy("Timed-v0", functions)
        environment = gymnasium.make(f"{SMALL}:Timed-v0", ends=5)
        self.assertEqual(act.run(policy, environment, 1, action_repeat=2), [5.0])
        shown = [observation[0, 1] for observation in functions.observations]
        self.assertEqual(shown, [0, 2, 4])
        self.assertEqual(act.run(policy, environment, 1, action_repeat=2, max_frames=3), [4.0])

    def test_actions_have_the_environments_numbers(self):
        policy, _ = _policy("Timed-v0")
        space = gymnasium.spaces.Discrete(3, start=-1)
        sampled, _ = policy.act(np.ones([50, 3]), policy.initial_state(50), greedy=False)
        self.assertEqual({*sampled.tolist()}, {-1, 0, 1})
        action, _ = policy.act(np.ones(3), policy.initial_state())
        self.assertTrue(space.contains(action))


if __name__ == "__main__":
    absltest.main()
