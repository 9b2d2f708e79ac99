"""What the commands refuse before TensorFlow is loaded, and their help."""

import dataclasses
import importlib
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

from absl.testing import absltest, parameterized

from laser_tf.agents import agent_config, laser_config, r2d2_config, reactor_config
from laser_tf.environments import suites
from laser_tf.networks import trunk_config
from laser_tf.replay.schemes import registry as schemes
from laser_tf.replay.schemes import table_replay
from laser_tf.sweeps import population, sweep_config
from laser_tf.training import learner_config, run_config
from launch import config_help
from testing import messages

# Runs a command where neither TensorFlow nor Reverb can be imported.
_WITHOUT_TENSORFLOW = """
import runpy, sys
for package in ("tensorflow", "reverb", "ale_py", "matplotlib", "tensorboard"):
    sys.modules[package] = None
module, *sys.argv[1:] = sys.argv[1:]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""

UNITS = {
    "agent steps", "members", "cells", "devices", "environments", "half ranges",
    "processes", "env frames", "episodes", "exponent", "factor", "factors",
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
    return subprocess.run(
        [sys.executable, "-c", _WITHOUT_TENSORFLOW, f"launch.{module}", *arguments],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


class RefusalTest(parameterized.TestCase):
    @parameterized.parameters(
        ("train", ["--config.agent.kl_threshold=-1"], "kl_threshold", -1.0),
        ("train", ["--config.foo=1"], "--config.foo"),
        ("train", ["--config.agent.discout=0.9"], "discout", "discount"),
        ("train", ["--learning_rate=1"], "--config.learner.learning_rate"),
        ("train", ["--config=configs/laser_gym.py"], "laser:gymnasium"),
        ("train", ["--confg=x"], "confg", "config"),
        ("train", ["seed"], "seed"),
        ("sweep", ["--config.population.method=pbd"], "pbd"),
        ("sweep", ["--grid=agent.entropy_cost=nan"], "nan"),
        ("sweep", ["--config.population.copy_margin=-1"], "config.population", "copy_margin"),
        ("benchmark", ["--seconds=nan"], "--seconds", "nan", 86400),
        ("benchmark", ["--part_seconds=0"], "--part_seconds", 0),
        ("benchmark", ["--config.replay.batch_size=0"], "config.replay", "batch_size", 0),
        ("benchmark", ["--config.cluster.actors=2"], "--config.cluster.actors"),
        ("benchmark", ["--config.replay.address=localhost:1"], "--config.replay.address"),
        ("evaluate", ["--workdir=x", "--episodes=0"], "--episodes", 0),
        ("evaluate", ["--random=laser:ctch"], "catch"),
        ("evaluate", ["--config.run.seed=1"], "config.run.seed"),
        ("plot", ["--title=x"], "--curve"),
    )
    def test_bad_flags_need_no_tensorflow_to_be_rejected(self, module, arguments, *named):
        result = _run(module, *arguments)
        self.assertNotEqual(result.returncode, 0)
        lines = [
            line for line in result.stderr.splitlines() if not line.startswith("no private network")
        ]
        self.assertLen(lines, 1, result.stderr)
        self.assertStartsWith(lines[0], "error: ")
        messages.assert_names(lines[0], *named)

    def test_an_evaluation_that_could_not_be_written_is_not_begun(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "evaluation.json").mkdir()
            for workdir in (folder, "/proc"):  # Not even root can write in /proc.
                result = _run("evaluate", f"--workdir={workdir}")
                self.assertEqual(result.returncode, 1)
                messages.assert_names(result.stderr, f"{workdir}/evaluation.json")
                self.assertLen(result.stderr.splitlines(), 1)


class HelpTest(parameterized.TestCase):
    @parameterized.parameters(*SECTIONS)
    def test_each_key_has_a_meaning_and_each_quantity_its_unit(self, section):
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
        (laser_config.LaserConfig, "relevance", laser_config.RELEVANCES),
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
    def test_the_meaning_of_a_choice_names_all_there_are(self, section, key, names):
        words = re.findall(r"\w+", config_help.comments(section)[key])
        self.assertContainsSubset(names, words)

    @parameterized.parameters("laser:atari", "r2d2:atari_paper", "sweeps:minatar")
    def test_all_keys_of_a_configuration_fit_the_width(self, name):
        file, _, variant = name.partition(":")
        values = importlib.import_module(f"configs.{file}").get_config(variant).to_dict()
        text = config_help.describe_keys(values, width=80)
        for section, keys in values.items():
            for key in keys:
                self.assertIn(f"  --config.{section}.{key}=", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    @parameterized.parameters("train", "sweep", "benchmark")
    def test_help_shows_flags_first_and_then_the_keys_as_they_are_overridden(self, module):
        result = _run(module, "--config.run.seed=77", "--help")
        self.assertEqual(result.returncode, 0, result.stderr)
        order = [
            result.stdout.index(text)
            for text in (
                f"python -m launch.{module}",
                "\n  --config=configs/",
                "\n  --config.agent.kind=",
                "\n  --config.run.seed=77\n      seed; of weights",
                "--helpfull",
            )
        ]
        self.assertEqual(order, sorted(order))
        self.assertNotIn("absl", result.stdout)

    def test_the_check_of_an_environment_has_help_and_asks_for_a_task(self):
        result = _run("check_environment", "--help")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("--task", result.stdout)
        result = _run("check_environment")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "error: --task is missing: use e.g. --task=CartPole-v1\n")

    def test_help_may_be_cut_by_its_reader(self):
        command = subprocess.Popen(
            [sys.executable, "-c", _WITHOUT_TENSORFLOW, "launch.train", "--help"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        command.stdout.close()
        _, said = command.communicate(timeout=120)
        self.assertEqual((command.returncode, said), (128 + signal.SIGPIPE, ""))

    def test_help_of_a_command_without_a_configuration(self):
        result = _run("evaluate", "--help")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("\n  --episodes=200\n", result.stdout)
        self.assertIn("\n  --[no]video", result.stdout)
        self.assertNotIn("--config", result.stdout)


if __name__ == "__main__":
    absltest.main()
