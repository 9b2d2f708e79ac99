"""Nested configurations and changes by flat keys."""

from absl.testing import absltest

from laser_tf import config_values


class ConfigValuesTest(absltest.TestCase):
    def test_changes_apply_to_a_copy_at_any_depth(self):
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

    def test_unknown_section_is_rejected(self):
        with self.assertRaises(KeyError):
            config_values.override({"run": {}}, {"rnu.seed": 2})

    def test_text_is_parsed_as_literal_or_kept(self):
        given = (
            "0.25",
            "true",
            "False",
            "none",
            "(1, 2)",
            "{'size': 9}",
            "asterix",
            "a=1",
            "",
            "{[]: 1}",
        )
        values = (0.25, True, False, "none", (1, 2), {"size": 9}, "asterix", "a=1", "", "{[]: 1}")
        self.assertEqual(tuple(map(config_values.parse_value, given)), values)


if __name__ == "__main__":
    absltest.main()
