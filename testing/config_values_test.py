"""Nested configurations, and what is changed in them by flat keys."""

from absl.testing import absltest

from laser_tf import config_values


class ConfigValuesTest(absltest.TestCase):
    def test_changes_reach_any_depth_and_leave_the_original(self):
        config = {
            "run": {"seed": 1},
            "sweep": {"grid": {"learner": {"rate": (1, 2)}}, "samples": 1},
        }
        changed = config_values.override(config, {"sweep.grid.learner.rate": (3,), "run.seed": 2})
        self.assertEqual(
            changed,
            {"run": {"seed": 2}, "sweep": {"grid": {"learner": {"rate": (3,)}}, "samples": 1}},
        )
        self.assertEqual(
            config_values.flatten(config),
            {"run.seed": 1, "sweep.grid.learner.rate": (1, 2), "sweep.samples": 1},
        )

    def test_a_section_that_there_is_not_is_no_new_one(self):
        with self.assertRaises(KeyError):
            config_values.override({"run": {}}, {"rnu.seed": 2})

    def test_values_are_pythons_or_words(self):
        given = ("0.25", "true", "False", "none", "(1, 2)", "{'size': 9}", "asterix", "a=1", "")
        values = (0.25, True, False, "none", (1, 2), {"size": 9}, "asterix", "a=1", "")
        self.assertEqual(tuple(map(config_values.parse_value, given)), values)


if __name__ == "__main__":
    absltest.main()
