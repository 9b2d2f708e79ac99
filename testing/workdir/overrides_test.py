"""Tests of settings that change during a run."""

from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.training import run_config
from laser_tf.workdir import overrides
from testing import fakes, messages

RATE, COST, LENGTH = "learner.learning_rate", "agent.entropy_cost", "run.env_frames"


def _config(rate: float, cost: float = 0.01, env_frames: int = 100) -> dict:
    return {
        "learner": {"learning_rate": rate},
        "agent": {"entropy_cost": cost, "discount": 0.9},
        "run": {"env_frames": env_frames},
    }


def _changed(*rates: float) -> dict:
    """Returns the content of a config.json whose run had these learning rates."""
    content = {"config": _config(rates[0])}
    for rate in rates[1:]:
        before, now = content["config"], _config(rate)
        content, _ = overrides.record(content, before, now, [RATE])
        content["config"] = now
    return content


class OverridesTest(parameterized.TestCase):
    def test_keys_exist_in_their_sections(self):
        classes = run_config.section_classes({})
        for key in overrides.KEYS:
            section, name = key.split(".")
            self.assertIn(name, classes[section].__dataclass_fields__)

    @parameterized.parameters(RATE, COST, LENGTH, "run.metrics_seconds", "cluster.actors")
    def test_key_may_change(self, key):
        overrides.check([key], fakes.config_values(fakes.catch_config()))

    @parameterized.parameters("agent.discount", "run.seed", "environment.task", "agent", "x.y")
    def test_other_key_is_rejected(self, key):
        config = fakes.config_values(fakes.catch_config())
        with messages.raises(errors.ConfigError, "--override", key, RATE):
            overrides.check([RATE, key], config)

    def test_key_of_another_agent_is_rejected(self):
        config = fakes.config_values(fakes.r2d2_catch_config())
        with messages.raises(errors.ConfigError, COST):
            overrides.check([COST], config)

    def test_only_given_keys_may_differ(self):
        before, now = _config(0.1), _config(0.2, cost=0.3, env_frames=200)
        content, accepted = overrides.record({}, before, now, [RATE, LENGTH])
        (entry,) = content[overrides.RECORD]
        self.assertEqual(
            entry["changes"],
            {RATE: {"before": 0.1, "now": 0.2}, LENGTH: {"before": 100, "now": 200}},
        )
        self.assertEqual(accepted, _config(0.2))  # The length and the cost are still checked.
        self.assertEqual(overrides.record({}, now, now, [RATE]), ({}, now))

    @parameterized.parameters((0.1, {RATE: 0.3}), (0.2, {}), (0.3, {}), (0.4, {}))
    def test_original_value_becomes_the_newest(self, rate, expected):
        self.assertEqual(overrides.in_effect(_changed(0.1, 0.2, 0.3), _config(rate)), expected)

    def test_restored_value_is_not_replaced(self):
        self.assertEqual(overrides.in_effect(_changed(0.1, 0.2, 0.1), _config(0.1)), {})

    def test_new_changes_get_their_frames_once(self):
        content = _changed(0.1, 0.2)
        self.assertLen(overrides.complete(content, 500), 1)
        self.assertEmpty(overrides.complete(content, 900))
        self.assertEqual(content[overrides.RECORD][0]["env_frames"], 500)

    @parameterized.parameters(
        (_config(0.2, cost=0.5), f"--override={COST}=0.5 --override={RATE}=0.2"),
        (_config(0.2, env_frames=50), ""),
        (_config(0.2) | {"agent": {"entropy_cost": 0.01, "discount": 0.8}}, ""),
    )
    def test_flags_are_shown_if_they_suffice(self, now, expected):
        self.assertEqual(overrides.flags(_config(0.1), now), expected)


if __name__ == "__main__":
    absltest.main()
