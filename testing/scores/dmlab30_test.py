"""Human-normalised scores against numbers worked out by hand."""

from absl.testing import absltest

from laser_tf.scores import dmlab30, reference


class DMLab30Test(absltest.TestCase):
    def test_all_levels_are_there(self):
        self.assertLen(dmlab30.test_levels(), 30)
        self.assertLen(set(dmlab30.test_levels().values()), 30)
        self.assertLen(dmlab30.reference_scores(), 32)  # two have a name more, for testing

    def test_two_levels_have_a_version_for_testing(self):
        different = {
            level: test_level
            for level, test_level in dmlab30.test_levels().items()
            if level != test_level
        }
        self.assertEqual(
            different,
            {
                "rooms_collect_good_objects_train": "rooms_collect_good_objects_test",
                "rooms_exploit_deferred_effects_train": "rooms_exploit_deferred_effects_test",
            },
        )

    def test_zero_is_random_play_and_one_the_human(self):
        for level, (random_score, human_score) in dmlab30.reference_scores().items():
            self.assertAlmostEqual(reference.normalised("dmlab", level, random_score), 0.0)
            self.assertAlmostEqual(reference.normalised("dmlab", level, human_score), 1.0)

    def test_both_versions_are_normalised_alike_by_hand(self):
        # random 0.073, human 10: (5 - 0.073) / 9.927
        for level in ("rooms_collect_good_objects_train", "rooms_collect_good_objects_test"):
            self.assertAlmostEqual(reference.normalised("dmlab", level, 5.0), 4.927 / 9.927)

    def test_a_level_below_zero_by_hand(self):
        # random -5.913, human 254.05: (100 + 5.913) / 259.963
        score = reference.normalised("dmlab", "language_execute_random_task", 100.0)
        self.assertAlmostEqual(score, 105.913 / 259.963)

    def test_an_unknown_level_has_none(self):
        self.assertIsNone(reference.normalised("dmlab", "seekavoid_arena_01", 100.0))


if __name__ == "__main__":
    absltest.main()
