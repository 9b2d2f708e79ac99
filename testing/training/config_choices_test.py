"""Tests of another agent, suite or replay scheme in a configuration."""

from absl.testing import absltest, parameterized

from configs import laser, r2d2
from laser_tf import errors
from laser_tf.training import config_choices, run_config
from testing import messages

_CARTPOLE = {"environment.suite": "gymnasium", "environment.task": "CartPole-v1"}


def _values(variant: str) -> dict:
    return laser.get_config(variant).to_dict()


class ConfigChoicesTest(parameterized.TestCase):
    @parameterized.parameters("atari", "catch", "minatar_multitask", "vizdoom", "dmlab30")
    def test_another_suite_is_accepted(self, variant):
        values = _values(variant)
        before = run_config.parse(values)
        config = run_config.parse(config_choices.override(values, _CARTPOLE))
        self.assertEqual(config.environment.suite, "gymnasium")
        self.assertEqual(config.environment.num_envs, before.environment.num_envs)
        self.assertEqual(config.environment.action_repeat, 1)
        self.assertEqual(config.replay.frame_stack, 1)
        self.assertEqual(config.agent, before.agent)
        self.assertEqual(values, _values(variant))

    def test_dropped_keys_are_named_in_one_line(self):
        with self.assertLogs(level="INFO") as logs:
            config_choices.override(_values("atari"), _CARTPOLE)
        (line,) = logs.output
        dropped = "environment.no_op_max", "environment.action_repeat", "replay.frame_stack"
        messages.assert_names(line, "environment.suite=gymnasium", *dropped)
        self.assertNotIn("num_envs", line)

    def test_given_values_stay(self):
        given = {"environment.action_repeat": 2, "replay.frame_stack": 3}
        with self.assertLogs(level="INFO") as logs:
            values = config_choices.override(_values("atari"), _CARTPOLE | given)
        self.assertEqual(values["environment"]["action_repeat"], 2)
        self.assertEqual(values["replay"]["frame_stack"], 3)
        self.assertNotIn("frame_stack", logs.output[0])

    def test_given_key_of_the_old_suite_is_rejected(self):
        values = config_choices.override(_values("atari"), _CARTPOLE | {"environment.no_op_max": 3})
        with messages.raises(errors.ConfigError, "no_op_max", "gymnasium"):
            run_config.parse(values)

    def test_equal_choice_drops_nothing(self):
        values = _values("atari")
        changes = {"environment.suite": "atari", "agent.name": "laser", "replay.scheme": "mixed"}
        with self.assertNoLogs(level="INFO"):
            self.assertEqual(config_choices.override(values, changes), values)

    def test_key_of_another_type_has_its_default(self):
        values = config_choices.override(_values("minatar"), {"agent.name": "acer"})
        agent = run_config.parse(values).agent
        self.assertIs(agent.trust_region, True)  # LASER's is a text
        self.assertEqual(agent.discount, values["agent"]["discount"])

    def test_another_agent_and_scheme_are_accepted_together(self):
        values = r2d2.get_config("minatar").to_dict()
        changes = {"agent.name": "laser", "replay.scheme": "mixed"}
        config = run_config.parse(config_choices.override(values, changes))
        self.assertEqual((config.agent.name, config.replay.scheme), ("laser", "mixed"))

    @parameterized.parameters(
        ("environment.suite", "gymnasum", "gymnasium"),
        ("agent.name", "lazer", "laser"),
        ("replay.scheme", "mixd", "mixed"),
    )
    def test_unknown_choice_is_named(self, key, name, close):
        section = key.partition(".")[0]
        with messages.raises(errors.ConfigError, f"config.{section}", name, close):
            config_choices.override(_values("catch"), {key: name})


if __name__ == "__main__":
    absltest.main()
