"""Vector environments take the same steps as their environments one by one."""

import contextlib

import gymnasium
import numpy as np
from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.environments import (
    factory,
    faults,
    gymnasium_suite,
    user_functions,
    vector_suite,
)
from testing import messages
from testing.environments import rollouts, small_vectors

SMALL = "testing.environments.small_environments"
VECTORS = "testing.environments.small_vectors"


def make(name, **options):
    return rollouts.make("gymnasium_vector", f"{VECTORS}:{name}", **options)


def _run_alone(index, actions, limit):
    """Steps environment `index` of `make_timed` by the time convention of this package."""
    environment = small_vectors.Dated(**small_vectors.LENGTHS[index])
    steps, is_over = [], True
    for action in (0, *actions):
        if is_over:
            observation, _ = environment.reset()
            reward, discount, length, is_first = 0, 1, 0, True
        else:
            observation, reward, terminated, truncated, _ = environment.step(action - 1)
            discount, length, is_first = not terminated, length + 1, False
        is_over = not is_first and (terminated or truncated or length == limit)
        steps.append((*observation["steps"], observation["kind"] - 4, reward, discount, is_first))
    return np.array(steps, float)


class VectorTest(parameterized.TestCase):
    @parameterized.parameters("NextStep", "SameStep")
    def test_steps_are_those_of_single_environments(self, mode):
        options = {"arguments": f"mode={mode}", "max_frames_per_episode": 5}
        with make("make_timed", num_envs=4, **options) as environment:
            actions = rollouts.random_actions(environment, 30)
            steps = rollouts.run(environment, actions)
        for index in range(4):
            # The ends are a termination, two truncations (one with a termination), the time limit.
            alone = _run_alone(index, actions[:, index], limit=5)
            scalars = steps.observation["kind"], steps.reward, steps.discount, steps.is_first
            together = np.stack([column[:, index] for column in scalars], axis=1)
            np.testing.assert_array_equal(together, alone[:, 2:])
            np.testing.assert_array_equal(steps.observation["steps"][:, index], alone[:, :2])

    @parameterized.parameters(
        ("make_corridors", "Corridor-v0", {"num_workers": 2}, {"arguments": "max_steps=6"}),
        ("make_doors", None, {}, {}),
        ("make_breaking", "Breaking-v0", {"arguments": "fault=nan"},
         {"arguments": "fault=nan, bad_seed=8"}),
    )  # fmt: skip
    def test_random_streams_are_those_of_single_environments(self, name, task, options, others):
        task = f"{SMALL}:{task}" if task else "testing.environments.masked_doors:Doors-v0"
        played = []
        for environment in (
            make(name, num_envs=3, seed=7, **options),
            rollouts.make("gymnasium", task, num_envs=3, seed=7, num_workers=1, **others),
        ):
            with environment as made:
                steps, generator = [made.reset()], np.random.default_rng(0)
                for _ in range(40):
                    steps.append(made.step(made.random_actions(generator)))
                steps.append(made.reset())
            played.append(rollouts.map_columns(lambda *column: np.stack(column), *steps))
        rollouts.assert_same(*played)
        self.assertGreater(played[0].is_first.sum(), 6)

    def test_exception_restarts_all_environments_of_the_worker(self):
        with make("make_breaking", num_envs=4, arguments="fault=raise", num_workers=2, seed=10
                  ) as environment:  # fmt: skip
            with self.assertLogs(level="WARNING") as logs:
                steps = rollouts.run(environment, np.zeros([4, 4], np.int32))
            self.assertEqual(environment.fault_counts(), {faults.RESTARTS: 4})
        messages.assert_names(logs.records[0].getMessage(), "make_breaking", "KeyError")
        np.testing.assert_array_equal(steps.is_first.any(1), [True, False, False, True, False])
        np.testing.assert_array_equal(steps.reward[2], 0)
        np.testing.assert_array_equal(steps.discount[2], 1)
        np.testing.assert_array_equal(steps.observation[2], steps.observation[1])

    def test_exception_restarts_episodes_that_start_in_its_step(self):
        actions = np.array([[0, 0], [0, 1]] * 3, np.int32)  # Environment 0 leaves in step 3.
        with make("make_breaking", num_envs=2, arguments="fault=raise, at=4") as environment:
            steps = rollouts.run(environment, actions)
            self.assertEqual(environment.fault_counts(), {faults.RESTARTS: 2})
        starts = [np.flatnonzero(column).tolist() for column in steps.is_first.T]
        self.assertEqual(starts, [[0, 4], [0, 5]])
        np.testing.assert_array_equal(steps.discount[:, 0], [1, 1, 1, 0, 1, 1, 1])
        np.testing.assert_array_equal(steps.discount[:, 1], 1)
        np.testing.assert_allclose(steps.observation[4:, 0, 0], [0, -1 / 3, -2 / 3], atol=1e-6)

    def test_reset_that_ignores_its_mask_ends_the_run(self):
        config = vector_suite.VectorConfig(
            task="gymnasium:make_vec", arguments="id=CartPole-v1", num_envs=4,
            max_frames_per_episode=12,
        )  # fmt: skip
        with contextlib.closing(factory.make_environment(config, seed=1)) as environment:
            actions = np.random.default_rng(0).integers(2, size=[60, 4], dtype=np.int32)
            named = "make_vec", "reset_mask"
            with messages.raises(faults.EnvironmentFailedError, *named) as caught:
                rollouts.run(environment, actions)
        self.assertNotIn("worker", str(caught.exception))

    @parameterized.parameters(
        ("make_pair", {}, 1, ("num_envs=3", 2)),
        ("make_other_spaces", {}, 1, ("observation_space", "(3, 3)", "(3, 2)")),
        ("make_timed", {"mode": "Disabled"}, 1, ("autoreset_mode", "NEXT_STEP")),
        ("make_doors", {"mode": "SameStep"}, 1, ("autoreset_mode", "action_mask")),
        ("make_corridors", {}, 4, ("action_repeat", 4)),
        ("make_single", {}, 1, ("VectorEnv", "Corridor")),
        ("make_nothing", {}, 1, ("make_nothing",)),
    )
    def test_other_results_are_rejected(self, name, arguments, action_repeat, named):
        with messages.raises(errors.ConfigError, *named):
            vector_suite.create(f"{VECTORS}:{name}", "", arguments, action_repeat, 3, 0)

    @parameterized.parameters(("make_always_one", 3, 1), ("make_sized", "[3]", "[1]"))
    def test_batch_unlike_one_environment_is_rejected_before_a_run(self, name, *named):
        config = vector_suite.VectorConfig(task=f"{VECTORS}:{name}", num_envs=3)
        with messages.raises(errors.ConfigError, name, "num_envs=3", *named):
            factory.environment_spec(config)

    def test_function_in_memory_is_recognised_by_its_parameter(self):
        def make_carts(num_envs, action_repeat, length):
            assert action_repeat == 2
            return gymnasium.make_vec("CartPole-v1", num_envs, max_episode_steps=length)

        config = gymnasium_suite.GymnasiumConfig(num_envs=3, action_repeat=2,
                                                 arguments={"length": 2})  # fmt: skip
        config = user_functions.configure(config, make_carts)
        self.assertEqual((config.suite, config.num_envs, config.num_workers),
                         ("gymnasium_vector", 3, 0))  # fmt: skip
        with contextlib.closing(factory.make_environment(config, seed=1)) as environment:
            steps = rollouts.run(environment, np.zeros([3, 3], np.int32))
        np.testing.assert_array_equal(steps.is_first[:, 0], [True, False, False, True])
        np.testing.assert_array_equal(steps.discount, 1)
        config = user_functions.configure(gymnasium_suite.GymnasiumConfig(), small_vectors.make)
        with messages.raises(faults.UnsupportedSpaceError, "num_envs", "make"):
            user_functions.call(config.pickled_function, config.task, {}, config.suite, 0)


if __name__ == "__main__":
    absltest.main()
