"""The papers' ways to play Atari, and which of them a configuration is."""

import dataclasses
import json

from absl.testing import absltest, parameterized

from configs import laser_atari
from laser_tf.environments import atari, atari_protocols
from laser_tf.training import run_config
from testing import messages

KEYS = (
    "sticky_actions", "life_loss_is_end", "no_op_max", "full_action_space", "max_frames_per_episode"
)  # fmt: skip


class AtariProtocolsTest(parameterized.TestCase):
    @parameterized.parameters(
        ("impala", 0.0, True, 30, False, 108_000),
        ("dopamine", 0.25, False, 0, False, 108_000),
        ("revisiting", 0.25, False, 0, True, 18_000),
    )
    def test_a_variant_of_the_configuration_sets_all_five_values(self, name, *expected):
        values = laser_atari.get_config(name).to_dict()
        environment = run_config.parse(values).environment
        self.assertEqual(tuple(getattr(environment, key) for key in KEYS), expected)
        self.assertEqual(environment.protocol()["protocol"], name)
        for key in KEYS:  # nothing else differs
            values["environment"][key] = laser_atari.get_config().environment[key]
        self.assertEqual(values, laser_atari.get_config().to_dict())

    def test_without_a_name_it_is_impalas_and_so_are_the_suites_defaults(self):
        self.assertEqual(laser_atari.get_config(), laser_atari.get_config("impala"))
        self.assertEqual(atari.AtariConfig().protocol()["protocol"], "impala")

    def test_a_value_of_ones_own_shows(self):
        for key, value in (("sticky_actions", 0.1), ("life_loss_is_end", True)):
            values = atari_protocols.values("dopamine") | {key: value}
            self.assertEqual(atari.AtariConfig(**values).protocol()["protocol"], "own", key)

    def test_runs_of_before_are_recognised_by_their_values(self):
        recorded = json.loads(json.dumps(dataclasses.asdict(atari.AtariConfig(num_envs=3))))
        self.assertEqual(atari_protocols.name_of(recorded), "impala")
        self.assertEqual(atari_protocols.name_of({"suite": "minatar"}), "own")

    def test_an_unknown_name_is_refused_with_the_known_ones(self):
        with messages.raises(ValueError, "dopamin", "dopamine"):
            laser_atari.get_config("dopamin")
        with messages.raises(ValueError, "x", "impala", "dopamine", "revisiting"):
            laser_atari.get_config("x")


if __name__ == "__main__":
    absltest.main()
