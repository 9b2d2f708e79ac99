"""The configuration of a run: what it loads, what it refuses."""

import dataclasses
import importlib
import math
import pathlib
import subprocess
import sys

from absl.testing import absltest, parameterized

from laser_tf.agents import agent_config
from laser_tf.networks import cores, torsos, trunk_config
from laser_tf.ops import reward_clipping
from laser_tf.sweeps import sweep_config
from laser_tf.training import run_config
from launch import found_config
from testing import messages

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A name that sys.modules holds as None cannot be imported.
_PARSE_ALL = """
import importlib, sys
for package in ("tensorflow", "reverb", "gymnasium", "ale_py", "minatar", "vizdoom"):
    sys.modules[package] = None
from laser_tf.environments import minigrid
# Its names are in its package's registry only.
minigrid.MiniGridConfig.check_task = lambda _, task: task
from laser_tf.sweeps import sweep_config
from laser_tf.training import run_config
from launch import found_config
for name in found_config.variants():
    file, _, variant = name.partition(":")
    values = importlib.import_module(f"configs.{file}").get_config(variant).to_dict()
    (sweep_config if "sweep" in values else run_config).parse(values)
    print(name)
"""


class LightnessTest(absltest.TestCase):
    def test_every_config_is_checked_without_tensorflow_reverb_or_an_emulator(self):
        result = subprocess.run(
            [sys.executable, "-c", _PARSE_ALL],
            capture_output=True, text=True, check=False, cwd=ROOT,
        )  # fmt: skip
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("laser:dmlab30", result.stdout)

    def test_the_names_that_need_no_tensorflow_are_the_registries_keys(self):
        self.assertEqual(trunk_config.TORSOS, tuple(torsos.TORSOS))
        self.assertEqual(trunk_config.CORES, ("none", *cores.CORES))
        self.assertEqual(agent_config.REWARD_CLIPS, tuple(reward_clipping.REWARD_CLIPS))


class DefaultsTest(absltest.TestCase):
    def test_defaults_are_what_a_configuration_that_names_no_key_is_parsed_to(self):
        values = {"environment": {"suite": "catch"}}
        defaults = run_config.defaults(values)
        self.assertEqual(defaults, dataclasses.asdict(run_config.parse(values)))
        with_sweep = sweep_config.defaults(values | {"sweep": {}})
        self.assertEqual(with_sweep["sweep"], dataclasses.asdict(sweep_config.Config()))
        self.assertEqual(with_sweep["population"]["method"], "none")
        self.assertLessEqual(defaults.items(), with_sweep.items())


# Of no key's type, out of range, or too much for float32, int64 or any memory.
HOSTILE = (
    "", "x", -1, 0, 1.5, 1e300, -1e-300, math.nan, math.inf, -math.inf, 10**12, 10**23, 10**400,
    True, [], (), (math.nan,), (None,), {}, {"x": 1}, {1: 2}, {"x": (1, "y")}, None, object(),
)  # fmt: skip


def _values(name: str) -> dict:
    file, _, variant = name.partition(":")
    return importlib.import_module(f"configs.{file}").get_config(variant).to_dict()


class HostileValuesTest(parameterized.TestCase):
    @parameterized.parameters(
        name
        for name in found_config.variants()
        if name != "laser:babyai"  # its names are in its package's registry only
    )
    def test_each_value_of_each_key_is_taken_or_refused_in_a_line_that_names_the_key(self, name):
        parse = (sweep_config if name.startswith("sweep") else run_config).parse
        values = _values(name)
        for section, keys in values.items():
            for key in keys:
                for value in HOSTILE:
                    try:
                        parse(values | {section: keys | {key: value}})
                    except ValueError as error:
                        self.assertRegex(str(error), f"{key}|section 'x'")
                        self.assertNotIn("\n", str(error))

    @parameterized.parameters(
        ("run", "seed", -1, "seed .* got -1"),
        ("run", "seed", 2**31, "seed .* got 2147483648"),
        ("run", "seed", True, "seed .* got True"),
        ("run", "evaluate_every_env_frames", -1, "evaluate_every_env_frames .* got -1"),
        ("run", "evaluation_episodes_beside", 0, "evaluation_episodes_beside .* got 0"),
        (
            "run",
            "evaluate_every_env_frames",
            79,
            "evaluate_every_env_frames is 79, but weights change after an unroll of 80 at the",
        ),
        ("learner", "learning_rate", 1e300, "learning_rate .* got 1e.300"),
        ("learner", "learning_rate", 1e-300, "learning_rate .* got 1e-300"),
        ("learner", "gradient_clip", math.inf, "gradient_clip .* got inf"),
        ("agent", "kl_threshold", math.inf, "kl_threshold .* got inf"),
        ("agent", "discount", math.nan, "discount .* got nan"),
        ("agent", "channel_multiplier", 10**9, "channel_multiplier .* got 1000000000"),
        ("environment", "num_envs", 10**12, "num_envs .* got 1000000000000"),
        ("environment", "reward_scales", (math.nan,), "reward_scales .* got nan"),
        (
            "environment",
            "max_frames_per_episode",
            2**31,
            "max_frames_per_episode .* got 2147483648",
        ),
        ("environment", "task", 3, "task .* got 3"),
        ("replay", "capacity", 10**23, "capacity .* got 10{23}"),
        ("replay", "capacity", 10**13, "capacity .* got 10{13}"),
        ("replay", "unroll_length", 10**9, "unroll_length must be 100000000 frames or less"),
        ("run", "checkpoint_minutes", 1e20, "checkpoint_minutes is 1e"),
        ("run", "replay_checkpoint_minutes", 1e20, "replay_checkpoint_minutes is 1e"),
        ("run", "metrics_seconds", 1e20, "metrics_seconds is 1e"),
        ("replay", "frame_stack", 2.5, "frame_stack .* got 2.5"),
        ("agent", "popart", 1, "popart .* got 1"),
    )
    def test_what_would_fail_later_is_refused_at_once(self, section, key, value, message):
        values = _values("laser:atari")
        values[section][key] = value
        with self.assertRaisesRegex(ValueError, f"config.{section}: .*{message}"):
            run_config.parse(values)

    def test_integral_float_becomes_an_int(self):
        values = _values("laser:atari")
        values["run"]["env_frames"] = 1e5
        env_frames = run_config.parse(values).run.env_frames
        self.assertIs(type(env_frames), int)
        self.assertEqual(env_frames, 100_000)

    def test_replay_has_room_for_the_last_unroll_of_the_longest_episode(self):
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
        ("arguments", 3, "arguments .* got 3"),
        ("num_workers", -1, "num_workers .* got -1"),
        ("max_frames_per_episode", -1, "max_frames_per_episode .* got -1"),
        ("text_length", 0, "text_length .* got 0"),
    )
    def test_keys_of_python_environments_are_held_to_their_ranges(self, key, value, message):
        values = _values("laser:gymnasium")
        values["environment"][key] = value
        with self.assertRaisesRegex(ValueError, f"config.environment: {message}"):
            run_config.parse(values)

    @parameterized.parameters(("",), ("goal=3",), ({"goal": 3},))
    def test_arguments_are_text_or_names_with_their_values(self, arguments):
        values = _values("laser:gymnasium")
        values["environment"]["arguments"] = arguments
        self.assertEqual(run_config.parse(values).environment.arguments, arguments)

    @parameterized.parameters(
        (None, "the config is None: it must have sections"),
        ([], "the config is"),
        ({"run": None}, "config.run is None: it must have keys"),
        ({"agent": [1]}, "config.agent is .1.: it must have keys"),
        ({"run": {3: 4}}, "config.run has the key 3: keys are texts"),
        ({"agent": {"kind": []}}, "config.agent: kind must be one of .*'laser', 'r2d2'"),
    )
    def test_what_has_no_sections_is_refused(self, values, message):
        for parse in (run_config.parse, sweep_config.parse):
            with self.assertRaisesRegex(ValueError, message):
                parse(values)


if __name__ == "__main__":
    absltest.main()
