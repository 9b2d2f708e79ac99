"""Tests that configurations reject invalid values, environments and replay schemes."""

import numpy as np
from absl.testing import absltest, parameterized
from dm_env import specs

from configs import acer
from laser_tf import errors, observations, types
from laser_tf.agents import base, registry
from laser_tf.training import run_config
from testing import fakes, messages

NAN = float("nan")
# Invalid values by agent and key.
INVALID = {
    "laser": {
        "discount": 1.5, "popart_step": 0.0, "c_bar": 2.0, "entropy_cost": NAN, "torso": "deeep",
        "trust_region": "maybe", "channel_multiplier": 0, "core_memory_span": 2,
    },
    "acer": {
        "truncation": 0.0, "average_decay": 2.0, "dueling_samples": -1, "advantage_units": (0,),
    },
    "a3c": {"importance": "some"},
    "r2d2": {
        "n_steps": 0, "target_period": 0, "priority_eta": -0.1, "epsilon_base": 2.0,
        "rescaling_epsilon": NAN,
    },
    "reactor": {
        "core": "preco_lstm", "policy_gradient": "a2c", "bins": 1, "v_min": 10.0, "truncation": 0.5,
        "uniform_share": 0.0,
    },
}  # fmt: skip
CONTINUOUS = specs.BoundedArray([2], np.float32, [-1.0, 0.0], [1.0, 4.0])
PRODUCT = types.ProductSpec([specs.DiscreteArray(7), CONTINUOUS])
VECTOR = specs.Array([3], np.float32)
NEST = {"image": observations.image_spec(6, 5, 1), "state": VECTOR, "text": types.TextSpec(3)}


class ConfigTest(parameterized.TestCase):
    @parameterized.parameters(
        (kind, name, value) for kind, values in INVALID.items() for name, value in values.items()
    )
    def test_invalid_value_raises(self, kind, name, value):
        with messages.raises(ValueError, name, value):
            registry.config_class(kind)(**{name: value})

    @parameterized.parameters(
        ("laser", VECTOR, {"trust_region": "implied"}, ("trust_region", "implied")),
        ("laser", VECTOR, {"pixel_control_cost": 1.0}, ("pixel_control_cost",)),
        ("laser", NEST, {"pixel_control_cost": 1.0}, ("pixel_control_cost",)),
        ("acer", VECTOR, {"entropy_cost": 0.01}, ("entropy_cost", 0.01, "agent.entropy_cost=0")),
        ("r2d2", VECTOR, {}, (2, "agent.name=laser")),
        ("reactor", VECTOR, {}, (2, "agent.name=laser")),
    )
    def test_unsupported_environment_raises(self, kind, observation, overrides, named):
        if kind == "laser":
            overrides = {"torso": "flat", "trust_region": "none"} | overrides
        config = registry.config_class(kind)(**overrides)
        with messages.raises(ValueError, *named):
            registry.make(config, base.AgentContext(types.EnvironmentSpec(observation, CONTINUOUS)))

    @parameterized.parameters(
        ("laser", {"trust_region": "implied"}, ("trust_region", "implied", "behaviour")),
        ("acer", {}, ("acer", "7 actions", "agent.name=laser")),
        ("r2d2", {}, ("r2d2", "7 actions", "agent.name=laser")),
        ("reactor", {}, ("reactor", "7 actions", "agent.name=laser")),
    )
    def test_actions_of_several_parts_raise(self, kind, overrides, named):
        config = registry.config_class(kind)(**overrides)
        with messages.raises(errors.ConfigError, *named):
            registry.make(config, base.AgentContext(types.EnvironmentSpec(VECTOR, PRODUCT)))

    def test_cell_larger_than_image_raises(self):
        spec = fakes.image_spec((10, 5, 1), 3)
        config = {"torso": "flat", "pixel_control_cost": 1.0, "pixel_control_cell": 6}
        with messages.raises(ValueError, "pixel_control_cell", 6, "10x5"):
            registry.make(registry.config_class("laser")(**config), base.AgentContext(spec))

    @parameterized.parameters(
        ("auto", specs.DiscreteArray(2), "implied"),
        ("auto", CONTINUOUS, "behaviour"),
        ("none", CONTINUOUS, "none"),
        ("behaviour", specs.DiscreteArray(2), "behaviour"),
    )
    def test_trust_region_fits_the_actions(self, given, action, expected):
        config = registry.config_class("laser")(trust_region=given)
        config.check_actions(action)
        self.assertEqual(config.for_actions(action).trust_region, expected)
        self.assertEqual(config.trust_region, given)

    @parameterized.parameters("replay_only", "mixed", "alternating")
    def test_replay_without_importance_weights_raises(self, scheme):
        values = acer.get_config("control_a3c").to_dict()
        run_config.parse(values)
        values["replay"] = fakes.switched(values["replay"], scheme)
        with messages.raises(ValueError, "config.agent", "agent.importance=truncated"):
            run_config.parse(values)
        values["agent"]["importance"] = "truncated"
        run_config.parse(values)

    def test_unsupported_replay_scheme_raises(self):
        with messages.raises(ValueError, "replay.scheme", "sequences", "alternating"):
            fakes.acer_catch_config(replay={"scheme": "sequences"})


if __name__ == "__main__":
    absltest.main()
