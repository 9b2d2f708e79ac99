"""DeepMind's control suite, which `make test-extras` installs; `make test` has a stand-in."""

import itertools

import numpy as np
import tree
from absl.testing import absltest, parameterized

from laser_tf.environments import dm_control_suite
from testing.environments import rollouts

# Tasks of section 5 of ACER, and dense variants of two.
TASKS = (
    "cartpole/swingup_sparse",
    "cartpole/swingup",
    "reacher/hard",
    "reacher/easy",
    "cheetah/run",
    "fish/swim",
    "walker/walk",
    "humanoid/stand",
)


def make(task, **options):
    return rollouts.make("dm_control", task, num_workers=1, **options)


class ControlExtra(parameterized.TestCase):
    def test_tasks_and_time_steps_are_those_of_the_package(self):
        from dm_control import suite

        known = {f"{domain}/{task}" for domain, task in suite.ALL_TASKS if domain != "lqr"}
        self.assertEqual(set(dm_control_suite.TASKS), known)
        for domain, tasks in itertools.groupby(dm_control_suite.TASKS, lambda t: t.split("/")[0]):
            task = next(tasks)
            environment = suite.load(domain, task.split("/")[1])
            timestep = environment.control_timestep()
            self.assertAlmostEqual(timestep, dm_control_suite.TASKS[task])
            self.assertEqual(environment._step_limit, 1_000)

    @parameterized.parameters(*TASKS)
    def test_task_repeats_with_its_seed(self, task):
        with make(task, arguments="time_limit=1", action_repeat=2) as environment:
            actions = rollouts.random_actions(environment, 60)
            rows = rollouts.run(environment, actions)
        with make(task, arguments="time_limit=1", action_repeat=2, seed=1,
                  num_envs=1) as environment:  # fmt: skip
            alone = rollouts.run(environment, actions[:, 1:])
        self.assertGreater(rows.is_first[1:].sum(), 0)
        np.testing.assert_array_equal(rows.discount, 1)  # Episodes end by time alone.
        self.assertBetween(rows.reward.min(), 0.0, 2.0)
        self.assertBetween(rows.reward.max(), 0.0, 2.0)
        np.testing.assert_array_equal(rows.reward[:, 1:], alone.reward)
        for leaf, same in zip(
            tree.flatten(rows.observation), tree.flatten(alone.observation), strict=True
        ):
            self.assertEqual(leaf.dtype, np.float32)
            self.assertGreater(leaf.std(), 0)
            np.testing.assert_array_equal(leaf[:, 1:], same)

    def test_images_show_what_moves(self):
        with make(
            "cartpole/swingup", arguments="pixels=84", action_repeat=4, rendering=True
        ) as environment:
            rows = rollouts.run(environment, rollouts.random_actions(environment, 20))
            image = environment.render(0)
        self.assertEqual(rows.observation.shape, (21, 2, 84, 84, 3))
        self.assertGreater(rows.observation[0].astype(int).std(), 1)
        self.assertGreater(np.ptp(rows.observation[:, 0].astype(int), axis=0).max(), 50)
        self.assertEqual((image.dtype, image.shape), (np.uint8, (240, 320, 3)))
        self.assertGreater(image.std(), 1)

    @parameterized.parameters("Ant-v5", "Humanoid-v5", "HalfCheetah-v4")
    def test_mujoco_ids_of_gymnasium_step(self, task):
        with rollouts.make("gymnasium", task, num_workers=1) as environment:
            rows = rollouts.run(environment, rollouts.random_actions(environment, 20))
        self.assertTrue(np.isfinite(rows.observation).all())
        self.assertTrue(rows.reward.any())


if __name__ == "__main__":
    absltest.main()
