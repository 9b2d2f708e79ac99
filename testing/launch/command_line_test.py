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
        ("train", "--config.agent.kl_threshold=-1", "kl_threshold must be above 0, got -1.0"),
        ("train", "--config.learner.gradient_clip=inf", "config.learner: gradient_clip"),
        ("train", "--config.run.seed=-1", "config.run: seed"),
        ("train", "--config.foo=1", "unknown config key: 'foo'"),
        ("train", "--config.learner.lr=1", "learner.learning_rate"),
        ("train", "--config.env.task=pong", "environment.task"),
        ("train", "--learning_rate=1", "--config.learner.learning_rate"),
        ("train", "--config=configs/laser_gym.py", "laser:gymnasium"),
        ("train", "--config.run.env_frames=1.5", "env_frames=1.5"),
        ("train", "--confg=x", "Unknown command line flag 'confg'. Did you mean: config"),
        ("train", "--config.environment.task=pnog", "'pnog': did you mean pong"),
        ("sweep", "--config.population.method=pbd", "got 'pbd'"),
        ("sweep", "--grid=agent.entropy_cost=nan", "got 'nan'"),
        ("sweep", "--config.population.copy_margin=-1", "config.population: copy_margin"),
        ("benchmark", "--seconds=nan", "--seconds is nan: use a number above 0, at most 86400"),
        ("benchmark", "--part_seconds=0", "--part_seconds is 0.0: use a number above 0"),
        ("benchmark", "--config.replay.batch_size=0", "config.replay: batch_size"),
        ("evaluate", "--workdir=x", "--episodes is 0: use 1 or more", "--episodes=0"),
        ("evaluate", "--random=laser:ctch", "Use catch"),
        ("plot", "--title=x", "--curve"),
    )
    def test_bad_flags_need_no_tensorflow_to_be_refused(self, module, flag, message, *others):
        result = _run(module, flag, *others)
        self.assertNotEqual(result.returncode, 0)
        lines = [
            line for line in result.stderr.splitlines() if not line.startswith("no private network")
        ]
        self.assertLen(lines, 1, result.stderr)
        self.assertRegex(lines[0], f"^error: .*{re.escape(message)}")

    def test_an_evaluation_that_could_not_be_written_is_not_begun(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "evaluation.json").mkdir()
            for workdir, message in (
                (folder, f"cannot write {folder}/evaluation.json: Is a directory; make"),
                ("/proc", "cannot write /proc/evaluation.json: "),  # nobody can, not even root
            ):
                result = _run("evaluate", f"--workdir={workdir}")
                self.assertEqual(result.returncode, 1)
                self.assertStartsWith(result.stderr, f"error: {message}")
                self.assertLen(result.stderr.splitlines(), 1)

    @parameterized.parameters(
        ("no Python", "line 1: SyntaxError: invalid syntax"),
        ("x = 1\ny = x / 0", "line 2: ZeroDivisionError: division by zero"),
        ("import nothing_such", "line 1: ModuleNotFoundError: No module named 'nothing_such'"),
        ("def get_config():\n  return int('x')", "line 2: ValueError: invalid literal for int"),
        ("def get_config():\n  raise KeyError", "line 2: KeyError: KeyError"),
        ("raise SystemExit(0)", "line 1: SystemExit: 0"),
        ("def get_config():\n  pass", "get_config() returns NoneType, not an ml_coll"),
        ("def get_config():\n  return {}", "get_config() returns dict, not an ml_collections"),
        ("config = 1", "it defines no get_config()"),
    )
    def test_a_config_file_that_cannot_be_used_is_refused_with_its_line(self, content, message):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "mine.py"
            path.write_text(content)
            for override in ((), ("--config.run.seed=2",)):
                result = _run("train", f"--config={path}", *override)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(f"error: cannot load --config={path}: {message}", result.stderr)
                self.assertNotIn("Traceback", result.stderr)


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
        self.assertIn("\n  --episodes=200\n      episodes to play", result.stdout)
        self.assertIn("\n  --[no]video", result.stdout)
        self.assertNotIn("--config", result.stdout)


if __name__ == "__main__":
    absltest.main()
