"""The levels of DMLab-30 against those with reference scores."""

from absl.testing import absltest

from laser_tf.environments import dmlab_levels
from laser_tf.scores import reference


class LevelsTest(absltest.TestCase):
    def test_the_levels_are_those_with_reference_scores(self):
        self.assertEqual(dmlab_levels.LEVELS, tuple(reference.dmlab_test_levels()))

    def test_all_levels_map_to_what_is_held_out(self):
        for task, test_level in reference.dmlab_test_levels().items():
            self.assertEqual(dmlab_levels.level_to_play(task, hold_out=True), test_level)
            self.assertEqual(dmlab_levels.level_to_play(task, hold_out=False), task)


if __name__ == "__main__":
    absltest.main()
