"""ViZDoom itself, which `make test-extras` installs; `make test` has a stand-in."""

from absl.testing import absltest

from testing.environments import rollouts


class VizDoomExtra(absltest.TestCase):
    def test_an_episode_of_the_engine(self):
        with rollouts.make("vizdoom", "basic", num_envs=1) as environment:
            played = rollouts.play(environment, rollouts.random_actions(environment, 100))
        self.assertEqual(played.observation.shape[:2], (101, 1))
        self.assertGreater(played.observation.std(), 1)
        self.assertLess(played.reward[1:].min(), 0)  # basic takes something for each step


if __name__ == "__main__":
    absltest.main()
