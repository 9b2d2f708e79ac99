"""Tests of the configuration of a run: valid and invalid values."""

import dataclasses
import importlib
import itertools
import math
import pathlib
from collections.abc import Iterator

from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.agents import agent_config
from laser_tf.api import config_files
from laser_tf.networks import cores, torsos, trunk_config
from laser_tf.ops import reward_clipping
from laser_tf.replay.schemes import registry as schemes
from laser_tf.sweeps import sweep_config
from laser_tf.training import run_config
from testing import commands, fakes, messages

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A name that sys.modules holds as None cannot be imported.
_PARSE_ALL = """
import importlib, sys
for package in ("tensorflow", "reverb", "gymnasium", "ale_py", "minatar", "vizdoom"):
    sys.modules[package] = None
from laser_tf.environments import minigrid
# Its names are in its package's registry only.
minigrid.MiniGridConfig.check_task = lambda _, task: task
from laser_tf.replay.schemes import registry as schemes
from laser_tf.sweeps import sweep_config
from laser_tf.training import run_config
from laser_tf.api import config_files
for name in config_files.variants():
    file, _, variant = name.partition(":")
    values = importlib.import_module(f"configs.{file}").get_config(variant).to_dict()
    (sweep_config if "sweep" in values else run_config).parse(values)
    print(name)
"""


class LightnessTest(absltest.TestCase):
    def test_configs_are_checked_without_large_imports(self):
        result = commands.run_program(_PARSE_ALL, cwd=ROOT)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("laser:dmlab30", result.stdout)

    def test_names_in_configs_are_the_keys_of_registries(self):
        self.assertEqual(trunk_config.TORSOS, tuple(torsos.TORSOS))
        self.assertEqual(trunk_config.CORES, ("none", *cores.CORES))
        self.assertEqual(trunk_config.ACTIVATIONS, tuple(torsos.ACTIVATIONS))
        self.assertEqual(agent_config.REWARD_CLIPS, tuple(reward_clipping.REWARD_CLIPS))


class DefaultsTest(absltest.TestCase):
    def test_defaults_equal_a_parsed_empty_config(self):
        values = {"environment": {"suite": "catch"}}
        defaults = run_config.defaults(values)
        self.assertEqual(defaults, dataclasses.asdict(run_config.parse(values)))
        with_sweep = sweep_config.defaults(values | {"sweep": {}})
        self.assertEqual(with_sweep["sweep"], dataclasses.asdict(sweep_config.Config()))
        self.assertEqual(with_sweep["population"]["method"], "none")
        self.assertLessEqual(defaults.items(), with_sweep.items())


# Of no key's type, out of range, or too much for float32, int64 or any memory.
HOSTILE = (
    "x", -1, 1.5, 1e300, math.nan, math.inf, 10**23, 10**400, True, (), (None,), {1: 2}, None,
    object(),
)  # fmt: skip


def _values(name: str) -> dict:
    file, _, variant = name.partition(":")
    return importlib.import_module(f"configs.{file}").get_config(variant).to_dict()


def _distinct_keys() -> Iterator[tuple[str, str, list[str]]]:
    """Yields configuration, section and keys; each key of each class of a section once."""
    seen = set()
    for name in config_files.variants():
        if name == "laser:babyai":  # Its names are in its package's registry only.
            continue
        for section, keys in _values(name).items():
            kind = [keys[key] for key in ("name", "suite", "scheme") if key in keys]
            origins = {key: (name.startswith("sweep"), section, *kind, key) for key in keys}
            if new := [key for key, origin in origins.items() if origin not in seen]:
                seen.update(origins.values())
                yield name, section, new


class HostileValuesTest(parameterized.TestCase):
    @parameterized.parameters(*_distinct_keys())
    def test_hostile_values_raise_only_errors_that_name_the_key(self, name, section, keys):
        parse = (sweep_config if name.startswith("sweep") else run_config).parse
        values = _values(name)
        for key, value in itertools.product(keys, HOSTILE):
            try:
                parse(values | {section: values[section] | {key: value}})
            except errors.ConfigError as error:
                self.assertRegex(str(error), f"{key}|section.key, got 'x'")
                self.assertNotIn("\n", str(error))

    @parameterized.parameters(
        ("run", "seed", 2**31),
        ("run", "env_frames", 0),
        ("run", "replay_port", 99_999),
        ("run", "evaluate_every_env_frames", 79, 79, 80),  # 80: frames of an unroll
        ("run", "checkpoint_minutes", 0.0),
        ("run", "metrics_seconds", 1e20),
        ("learner", "learning_rate", 1e300),
        ("learner", "gradient_clip", math.inf),
        ("agent", "discout", 0.9, "discount"),
        ("agent", "kl_threshold", math.inf),
        ("agent", "popart", 1),
        ("environment", "reward_scales", (math.nan,), math.nan),
        ("environment", "max_frames_per_episode", 2**31),
        ("environment", "task", "pnog", "pnog", "pong"),
        ("replay", "replay_fraction", 1.0),
        ("replay", "capacity", 10**23),
        ("replay", "unroll_length", 10**9, 100_000_000),
        ("replay", "frame_stack", 2.5),
    )
    def test_invalid_value_is_rejected(self, section, key, value, *named):
        values = _values("laser:atari")
        values[section][key] = value
        with messages.raises(errors.ConfigError, key, *(named or (value,))) as caught:
            run_config.parse(values)
        self.assertStartsWith(str(caught.exception), "config")
        self.assertIn(section, str(caught.exception))

    @parameterized.parameters(
        ("replay", {"scheme": "mixed"}, "replay.scheme", "mixed", "replay.scheme=online"),
        ("cluster", {"actors": 2}, "cluster.actors", 2),
        ("replay", {"address": "host:1"}, "replay.address", "host:1"),
    )
    def test_serial_run_that_would_differ_is_rejected(self, section, changes, *named):
        sections = {"replay": {"scheme": "online"}, "run": {"serial": True}, "cluster": {}}
        fakes.catch_config(**sections)
        sections[section] |= changes
        with messages.raises(errors.ConfigError, "serial", *named):
            fakes.catch_config(**sections)

    def test_serial_run_of_sequences_is_offered_contextual_replay(self):
        with messages.raises(errors.ConfigError, "serial", "replay.scheme=contextual"):
            fakes.r2d2_catch_config(run={"serial": True})

    def test_unknown_section_is_named(self):
        with messages.raises(errors.ConfigError, "lerner", "learner"):
            run_config.parse({"lerner": {}})

    def test_missing_key_without_default_is_named(self):
        with messages.raises(errors.ConfigError, "config.environment", "task"):
            run_config.parse({"environment": {"suite": "dm_env"}})

    def test_integral_float_becomes_an_int(self):
        values = _values("laser:atari")
        values["run"]["env_frames"] = 1e5
        env_frames = run_config.parse(values).run.env_frames
        self.assertIs(type(env_frames), int)
        self.assertEqual(env_frames, 100_000)

    def test_capacity_below_the_longest_episode_is_rejected(self):
        values = _values("laser:vizdoom")
        longest, length = 525, values["replay"]["unroll_length"]
        self.assertEqual(run_config.parse(values).environment.max_steps_per_episode, longest)
        room = -(-longest // length) * length
        for capacity in (longest, room - 1):
            values["replay"]["capacity"] = capacity
            with messages.raises(ValueError, "replay.capacity", longest, room):
                run_config.parse(values)
        values["replay"]["capacity"] = room
        run_config.parse(values)

    @parameterized.parameters(
        ("arguments", 3),
        ("text_length", 0),
    )
    def test_invalid_value_of_a_python_environment_is_rejected(self, key, value):
        values = _values("laser:gymnasium")
        values["environment"][key] = value
        with messages.raises(errors.ConfigError, "config.environment", key, value):
            run_config.parse(values)

    @parameterized.parameters(("",), ("goal=3",), ({"goal": 3},))
    def test_arguments_are_text_or_a_mapping(self, arguments):
        values = _values("laser:gymnasium")
        values["environment"]["arguments"] = arguments
        self.assertEqual(run_config.parse(values).environment.arguments, arguments)

    @parameterized.parameters(
        (None, "None"),
        ([], "config"),
        ({"run": None}, "config.run"),
        ({"agent": [1]}, "config.agent", [1]),
        ({"run": {3: 4}}, "config.run", 3),
        ({"agent": {"name": []}}, "config.agent", "name", "laser", "r2d2"),
    )
    def test_values_without_sections_and_keys_are_rejected(self, values, *named):
        for parse in (run_config.parse, sweep_config.parse):
            with messages.raises(errors.ConfigError, *named):
                parse(values)


class SchemeTest(parameterized.TestCase):
    @parameterized.parameters(("entropy_on_replay", True), ("entropy_cost", 0.0))
    def test_replay_only_needs_entropy_on_replay_or_no_entropy(self, name, value):
        replay = {"scheme": "replay_only", "steps_per_update": 20}
        config = fakes.catch_config(replay=replay, agent={name: value})
        self.assertEqual(getattr(config.agent, name), value)
        with messages.raises(ValueError, "agent.entropy_on_replay", "replay_only"):
            fakes.catch_config(replay=replay)

    def test_burn_in_without_core_is_rejected(self):
        with messages.raises(ValueError, "replay.burn_in", "agent.core", "none"):
            fakes.r2d2_catch_config(agent={"core": "none"}, replay={"burn_in": 10})

    @parameterized.parameters(
        ({"replay_ratio": 4.0}, "replay_ratio", "mixed", "alternating"),
        ({"burn_in": 4}, "burn_in", "mixed", "sequences", "contextual"),
        ({"scheme": "alternatin"}, "scheme", "alternatin", "alternating"),
        ({"scheme": "sequences"}, "replay.scheme", "sequences", "mixed", "laser"),
        ({"capacitee": 4}, "capacitee", "capacity"),
    )
    def test_key_or_scheme_that_does_not_fit_is_rejected(self, replay, *named):
        values = fakes.config_values(fakes.catch_config())
        if replay.get("scheme") in schemes.names():
            values["replay"] = fakes.switched(values["replay"], replay["scheme"])
        values["replay"].update(replay)
        with messages.raises(ValueError, *named):
            run_config.parse(values)


if __name__ == "__main__":
    absltest.main()
