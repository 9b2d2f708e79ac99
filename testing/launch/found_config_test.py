"""Which keys of a configuration are flags, and what is then said of those that nobody named."""

import dataclasses
import json
import pathlib
import tempfile

import ml_collections
from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.sweeps import population, sweep_config
from laser_tf.training import run_config
from launch import found_config
from testing import messages

OF_SWEEPS = {"sweep": sweep_config.Config, "population": population.Config}


class IntegerParserTest(parameterized.TestCase):
    @parameterized.parameters(("100", 100), ("1e5", 100_000), ("2.0", 2))
    def test_whole_number_is_an_int(self, text, expected):
        value = found_config.IntegerParser().parse(text)
        self.assertIs(type(value), int)
        self.assertEqual(value, expected)

    @parameterized.parameters("1.5", "inf", "nan", "many")
    def test_other_text_is_rejected(self, text):
        with self.assertRaises(ValueError):
            found_config.IntegerParser().parse(text)


class CloseVariantsTest(parameterized.TestCase):
    @parameterized.parameters(
        ("configs/laser_atari.py", ["laser:atari"]),  # as files were named before
        ("sweep_laser_vizdoom", ["sweeps:vizdoom"]),
        ("r2d2_minatr", ["r2d2:minatar"]),
        ("configs/lazer.py:catch", ["laser:catch"]),
        ("nothing_like_it", []),
    )
    def test_unknown_file_gets_close_variants(self, given, expected):
        self.assertEqual(found_config.close_variants(given)[: len(expected)], expected)


class ParserTest(parameterized.TestCase):
    def _parser(self, chosen=None) -> found_config.Parser:
        return found_config.Parser("config", chosen or {})

    def _parse(self, body: str, parser: found_config.Parser) -> ml_collections.ConfigDict:
        """What a file says, `config` being `sweeps:catch` at first."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "mine.py"
            path.write_text(
                "from configs import sweeps\n"
                "def get_config():\n"
                "    config = sweeps.get_config('catch')\n"
                f"    {body}\n"
                "    return config\n"
            )
            return parser.parse(str(path))

    @parameterized.parameters(*found_config.variants())
    def test_each_key_of_each_section_is_a_flag(self, name):
        config = self._parser().parse(name)
        values = config.to_dict()
        classes = run_config.section_classes(values) | (OF_SWEEPS if "sweep" in values else {})
        for section, known in classes.items():
            self.assertSameElements(
                config[section], [field.name for field in dataclasses.fields(known)], section
            )
        self.assertTrue(config.is_locked)  # another key is none

    def test_keys_are_those_of_the_suite_and_the_agent_that_flags_choose(self):
        parser = self._parser({"environment.suite": "tmaze", "agent.kind": "reactor"})
        config = self._parse("config.agent = {}; config.environment = {}", parser)
        self.assertIn("corridor_length", config.environment)
        self.assertNotIn("wait_seconds", config.environment)
        self.assertIn("v_min", config.agent)

    def test_only_what_a_file_or_a_flag_names_is_said(self):
        parser = self._parser()
        config = self._parse("del config.run.seed, config.cluster, config.population", parser)
        self.assertEqual(config.run.seed, 1)
        values = parser.named(config.to_dict(), ["run.seed", "population.tuned"])
        self.assertEqual(values["run"]["seed"], 1)
        # Whose absence has a meaning of its own.
        self.assertSameElements(values["population"], ["tuned"])
        self.assertEmpty(values["cluster"])
        self.assertNotIn("seed", parser.named(config.to_dict(), [])["run"])

    def test_a_section_that_a_flag_gives_is_said_as_it_is(self):
        parser = self._parser()
        values = self._parse("del config.population", parser).to_dict()
        values["population"] = {"method": "pbt", "seed": 2}
        named = parser.named(values, ["population"])
        self.assertEqual(named["population"], {"method": "pbt", "seed": 2})

    @parameterized.parameters(
        "config.agent.kind = 'foo'", "del config.run; config.run = 3", "config.unknown = 3"
    )
    def test_what_cannot_be_parsed_is_left_to_those_who_say_why(self, body):
        parser = self._parser()
        values = self._parse(body, parser).to_dict()
        self.assertEqual(parser.named(values, []), values)

    def test_run_directory_gives_its_configuration(self):
        config = run_config.parse(self._parser().parse("laser:minatar_multitask").to_dict())
        values = dataclasses.asdict(config)
        run = self._make_run(json.dumps({"config": values}))
        parser = found_config.Parser("config", {}, run)
        read = parser.parse(str(run / "config.json"))
        self.assertEqual(parser.named(read.to_dict(), []), values)
        self.assertTrue(read.is_locked)

    @parameterized.parameters("{", "{}", '{"config": {"run": {"a.b": 1}}}')
    def test_damaged_configuration_of_a_run_is_rejected(self, content):
        run = self._make_run(content)
        with messages.raises(errors.UserError, run / "config.json"):
            found_config.Parser("config", {}, run).parse(str(run / "config.json"))

    def _make_run(self, content: str) -> pathlib.Path:
        run = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        (run / "config.json").write_text(content)
        return run


if __name__ == "__main__":
    absltest.main()
