"""MiniGrid itself, which `make test-extras` installs; `make test` has a stand-in."""

import tree
from absl.testing import absltest

from testing.environments import rollouts


class MiniGridExtra(absltest.TestCase):
    def test_task_with_a_text_steps(self):
        with rollouts.make("minigrid", "BabyAI-GoToRedBlueBall-v0", num_envs=2,
                           instruction_length=16) as environment:  # fmt: skip
            rows = rollouts.run(environment, rollouts.random_actions(environment, 150))
        self.assertGreater(rows.is_first[1:].sum(), 0)
        for leaf in tree.flatten(rows.observation):
            self.assertEqual(leaf.shape[:2], (151, 2))
            self.assertGreater(leaf.std(), 0)


if __name__ == "__main__":
    absltest.main()
