"""ViZDoom itself, which `make test-extras` installs; `make test` has a stand-in."""

from absl.testing import absltest

from testing.environments import rollouts


class VizDoomExtra(absltest.TestCase):
    def test_engine_steps(self):
        with rollouts.make("vizdoom", "basic", num_envs=1) as environment:
            rows = rollouts.run(environment, rollouts.random_actions(environment, 100))
        self.assertEqual(rows.observation.shape[:2], (101, 1))
        self.assertGreater(rows.observation.std(), 1)
        self.assertLess(rows.reward[1:].min(), 0)  # Each step has a penalty.


if __name__ == "__main__":
    absltest.main()
