"""Nested configurations and changes by flat keys."""

from absl.testing import absltest

from laser_tf import config_values, errors
from testing import messages


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

    def test_missing_section_is_added(self):
        changed = config_values.override({"run": {}}, {"rnu.seed": 2, "run.seed": 3})
        self.assertEqual(changed, {"run": {"seed": 3}, "rnu": {"seed": 2}})

    def test_key_below_a_value_is_rejected(self):
        with messages.raises(errors.ConfigError, "run.seed.x", 2):
            config_values.override({"run": {"seed": 2}}, {"run.seed.x": 1})

    def test_text_is_parsed_as_literal_or_kept(self):
        literals = {"0.25": 0.25, "true": True, "False": False, "(1, 2)": (1, 2)}
        literals |= {"{'size': 9}": {"size": 9}}
        texts = ("none", "asterix", "a=1", "", "{[]: 1}")
        for text, value in (literals | dict(zip(texts, texts, strict=True))).items():
            self.assertEqual(config_values.parse_value(text), value)


if __name__ == "__main__":
    absltest.main()
