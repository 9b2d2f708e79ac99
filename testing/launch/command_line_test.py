"""Errors of the commands before TensorFlow is loaded, and their help."""

import dataclasses
import pathlib
import re
import signal
import subprocess
import sys

from absl.testing import absltest, parameterized

from laser_tf.agents import agent_config, laser_config, r2d2_config, reactor_config
from laser_tf.api import config_files
from laser_tf.environments import suites
from laser_tf.networks import trunk_config
from laser_tf.replay.schemes import registry as schemes
from laser_tf.replay.schemes import table_replay
from laser_tf.sweeps import population, sweep_config
from laser_tf.training import learner_config, run_config
from launch import config_help
from testing import commands

# Runs a command where neither TensorFlow nor Reverb can be imported.
_WITHOUT_TENSORFLOW = """
import runpy, sys
for package in ("tensorflow", "reverb", "ale_py", "matplotlib", "tensorboard"):
    sys.modules[package] = None
module, *sys.argv[1:] = sys.argv[1:]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""

_LONG = "a" * 300  # Longer than the name of a file may be.

UNITS = {
    "agent steps", "members", "cells", "cores", "devices", "environments", "half ranges",
    "processes", "entries", "env frames", "episodes", "exponent", "factor", "factors",
    "fitness", "fraction", "frames", "games", "gradient", "learner updates", "minutes", "nats",
    "number", "pixels", "port", "probability", "ratio", "reward", "seconds", "seed",
    "squared gradient", "step size", "threads", "units", "unrolls", "weight", "words",
}  # fmt: skip

SECTIONS = (
    laser_config.LaserConfig,
    r2d2_config.R2D2Config,
    reactor_config.ReactorConfig,
    *map(suites.config_class, suites.SUITES),
    *map(schemes.config_class, schemes.names()),
    learner_config.LearnerConfig,
    run_config.Config,
    sweep_config.Config,
    population.Config,
)


def _run(module: str, *arguments: str) -> subprocess.CompletedProcess:
    return commands.run_program(_WITHOUT_TENSORFLOW, f"launch.{module}", *arguments)


class RejectionTest(commands.CommandTest):
    @parameterized.parameters(
        ("train", ["--config.agent.kl_threshold=-1"], "kl_threshold", -1.0),
        ("train", ["--learning_rate=1"], "--config.learner.learning_rate"),
        ("train", ["seed"], "seed"),
        ("sweep", ["--config.population.method=pbd"], "pbd"),
        ("sweep", ["--search_space=agent.entropy_cost=grid(nan)"], "nan"),
        ("sweep", ["--config.population.copy_margin=-1"], "config.population", "copy_margin"),
        ("benchmark", ["--seconds=nan"], "--seconds", "nan", 86400),
        ("benchmark", ["--config.cluster.actors=2"], "--config.cluster.actors"),
        ("benchmark", ["--output=/proc/costs.csv"], "--output", "/proc/costs.csv"),
        ("benchmark", ["--config=reactor:minatar"], "replay.scheme", "sequence_store_benchmark"),
        ("check_environment", [], "--task"),
        ("check_environment", ["--task=a", "--steps=0"], "--steps", 0),
        ("evaluate", ["--workdir=x", "--episodes=0"], "--episodes", 0),
        ("evaluate", ["--policy=x", "--best"], "--best", "--policy"),
        ("evaluate", ["--random=laser:catch", "--video"], "--video", "--random"),
        ("evaluate", ["--random=laser:catch", "--greedy"], "--greedy", "--random"),
        ("evaluate", ["--random=laser:catch", "--best"], "--best", "--random"),
        ("evaluate", ["--random=laser:catch", "--history_length=3"], "--history_length", 3),
        ("evaluate", [f"--workdir={_LONG}"], _LONG),
        ("evaluate", ["--workdir=~/missing"], pathlib.Path.home() / "missing"),
        ("evaluate", [f"--random={_LONG}"], _LONG),
        ("train", [f"--config={_LONG}"], _LONG),
        ("train", [f"--config={_LONG}", "--help"], _LONG),
        ("train", [f"--config={_LONG}", "--seed=1"], "seed"),
        ("train", [f"--workdir={_LONG}"], _LONG),
        ("train", [f"--workdir=a:{_LONG}"], f"a:{_LONG}"),
        ("train", ["--workdir="], "--workdir"),
        ("sweep", ["--config=sweeps:minatar", f"--workdir={_LONG}"], _LONG),
        ("plot", ["--csv=/nonexistent.csv"], "/nonexistent.csv"),
        ("replay_server", [f"--checkpoint_folder={__file__}"], __file__),
    )
    def test_bad_flag_is_rejected_without_tensorflow(self, module, arguments, *named):
        result = _run(module, *arguments)
        self.assertNotEqual(result.returncode, 0)
        self.assert_is_error(result.stderr, *named)

    @parameterized.parameters(
        ("task=brakout", "brakout", "breakout"),
        ("frames.most=3", "frames"),
        ("suite.name=atari", "suite"),
    )
    def test_bad_environment_of_a_short_configuration_is_rejected(self, given, *named):
        path = self.workdir.with_name("own.py")
        path.write_text(
            "import ml_collections\n"
            "def get_config():\n"
            "    return ml_collections.ConfigDict({'agent': {'name': 'laser'}})\n"
        )
        result = _run("evaluate", f"--random={path}", f"--environment={given}")
        self.assertEqual(result.returncode, 1)
        self.assert_is_error(result.stderr, *named)


class HelpTest(parameterized.TestCase):
    @parameterized.parameters(*SECTIONS)
    def test_every_key_has_a_meaning_and_every_number_a_unit(self, section):
        comments = config_help.comments(section)
        for field in dataclasses.fields(section):
            unit, separator, meaning = comments[field.name].partition("; ")
            if field.type in (int, float, tuple[float, ...], tuple[int, ...]):
                self.assertIn(unit, UNITS, field.name)
                self.assertTrue(separator and meaning, field.name)
            self.assertGreater(len(comments[field.name]), 5, field.name)

    @parameterized.parameters(
        (laser_config.LaserConfig, "torso", trunk_config.TORSOS),
        (laser_config.LaserConfig, "core", trunk_config.CORES),
        (laser_config.LaserConfig, "reward_clip", agent_config.REWARD_CLIPS),
        (laser_config.LaserConfig, "trust_region", laser_config.TRUST_REGIONS),
        (r2d2_config.R2D2Config, "torso", trunk_config.TORSOS),
        (r2d2_config.R2D2Config, "core", trunk_config.CORES),
        (r2d2_config.R2D2Config, "reward_clip", agent_config.REWARD_CLIPS),
        (reactor_config.ReactorConfig, "policy_gradient", reactor_config.POLICY_GRADIENTS),
        (table_replay.TableReplay, "core_state", table_replay.CORE_STATES),
        (learner_config.LearnerConfig, "learning_rate_schedule", learner_config.SCHEDULES),
        (learner_config.LearnerConfig, "optimizer", learner_config.OPTIMIZERS),
        (learner_config.LearnerConfig, "jit_compile", learner_config.JIT_COMPILE),
        (learner_config.LearnerConfig, "compute_dtype", learner_config.COMPUTE_DTYPES),
        (population.Config, "method", population.METHODS),
    )
    def test_meaning_of_a_choice_names_all_choices(self, section, key, names):
        words = re.findall(r"\w+", config_help.comments(section)[key])
        self.assertContainsSubset(names, words)

    @parameterized.parameters("laser:atari", "r2d2:atari_paper", "sweeps:minatar")
    def test_keys_of_a_configuration_fit_the_width(self, name):
        values = config_files.load(name).to_dict()
        text = config_help.describe_keys(values, width=80)
        for section, keys in values.items():
            for key in keys:
                self.assertIn(f"  --config.{section}.{key}=", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    @parameterized.parameters("train", "sweep", "benchmark")
    def test_help_shows_flags_then_overridden_keys(self, module):
        result = _run(module, "--config.run.seed=77", "--help")
        self.assertEqual(result.returncode, 0, result.stderr)
        order = [
            result.stdout.index(text)
            for text in (
                f"python -m launch.{module}",
                "\n  --config=configs/",
                "\n  --config.agent.name=",
                "\n  --config.run.seed=77\n      seed; of weights",
                "--helpfull",
            )
        ]
        self.assertEqual(order, sorted(order))
        self.assertNotIn("absl", result.stdout)

    def test_closed_pipe_ends_help_silently(self):
        command = subprocess.Popen(
            [sys.executable, "-c", _WITHOUT_TENSORFLOW, "launch.train", "--help"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        command.stdout.close()
        _, errors = command.communicate(timeout=120)
        self.assertEqual((command.returncode, errors), (128 + signal.SIGPIPE, ""))

    def test_help_without_configuration_has_flags_only(self):
        result = _run("evaluate", "--help")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("\n  --episodes=200\n", result.stdout)
        self.assertIn("\n  --[no]video", result.stdout)
        self.assertNotIn("--config", result.stdout)


if __name__ == "__main__":
    absltest.main()
