"""Tests of the suite minigrid with a stand-in for the package."""

import gymnasium
import numpy as np
from absl.testing import absltest

from laser_tf import types
from laser_tf.environments import canonical_observations, faults, minigrid
from testing import messages
from testing.environments import fake_packages, rollouts

LOCAL = "BabyAI-GoToLocal-v0"
FORWARD = 2  # Action of the stand-in.


def make(task=LOCAL, **options):
    return rollouts.make("minigrid", task, num_workers=1, **options)


class MiniGridTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self.enter_context(fake_packages.installed())

    def test_environments_have_own_seeds(self):
        with make(seed=3, num_envs=2) as environment:
            actions = rollouts.random_actions(environment, 200)
            outputs = rollouts.run(environment, actions)
            self.assertEqual(environment.observation_spec()["text"], types.TextSpec(16))
        own = gymnasium.make(LOCAL, disable_env_checker=True).unwrapped
        seen, _ = own.reset(seed=4)  # The seed of the second environment.
        was_over, is_over, reward, terminated = True, False, 0, False
        for step in range(201):
            if step and is_over:
                seen, _ = own.reset()
                was_over, is_over, reward, terminated = True, False, 0, False
            elif step:
                seen, reward, terminated, truncated, _ = own.step(actions[step - 1, 1])
                was_over, is_over = False, terminated or truncated
            self.assertEqual(outputs.is_first[step, 1], was_over)
            self.assertEqual(outputs.reward[step, 1], np.float32(reward))
            self.assertEqual(outputs.discount[step, 1], 1 - terminated)
            codes = seen["image"].astype(int) * [20, 40, 80]
            np.testing.assert_array_equal(outputs.observation["image"][step, 1], codes)
            text = canonical_observations.encode_text(seen["mission"], 16)
            np.testing.assert_array_equal(outputs.observation["text"][step, 1], text)

    def test_scaled_codes_fit_a_byte(self):
        # The real package's largest: object 10, colour 5, state 3 (an agent's direction).
        self.assertLessEqual(max(np.multiply(minigrid.CODE_SCALES, (10, 5, 3))), 255)

    def test_mission_that_is_too_long_ends_the_run(self):
        with make("BabyAI-GoToSeq-v0", instruction_length=9) as environment:
            with messages.raises(faults.EnvironmentFailedError, 10, "instruction_length=10"):
                environment.reset()

    def test_render_returns_the_image_of_the_environment(self):
        with make(rendering=True) as environment:
            environment.reset()
            environment.step(np.array([0, FORWARD]))
            images = [environment.render(index) for index in range(2)]
        np.testing.assert_array_equal(images[0], np.zeros([160, 160, 3], np.uint8))
        np.testing.assert_array_equal(images[1], 50)


if __name__ == "__main__":
    absltest.main()
