"""Tries an environment before anything is trained on it: the first thing to run with an own one.

    python -m launch.check_environment --suite=gymnasium --task=CartPole-v1
    python -m launch.check_environment --suite=dm_env --task=my_module:make --arguments="size=5"

Random actions step it. The command says what an agent will see, and ends with 1 where something is
wrong. TensorFlow is not loaded.
"""

from laser_tf.host import interruption

if __name__ == "__main__":
    interruption.before_imports()

import dataclasses
import logging

from absl import flags

from laser_tf.environments import environment_check, environment_config, faults, suites
from launch import command_line

_SUITE = flags.DEFINE_string("suite", "gymnasium", "gymnasium, dm_env, tf_agents, atari, ...")
_TASK = flags.DEFINE_string("task", None, "e.g. CartPole-v1 or my_module:make")
_STEPS = flags.DEFINE_integer("steps", 1_000, "that are played in each environment at most")
_SEED = flags.DEFINE_integer("seed", 1, "of environments and actions")
# Keys of the configuration's section `environment`, as far as the suite has them.
_KEYS = (
    flags.DEFINE_string("arguments", None, "keyword arguments, name=value, ..."),
    flags.DEFINE_integer("num_envs", None, "environments that step together"),
    flags.DEFINE_integer("num_workers", None, "processes for them"),
    flags.DEFINE_integer("action_repeat", None, "env frames of an agent step"),
    flags.DEFINE_integer("max_frames_per_episode", None, "then an episode is cut"),
    flags.DEFINE_integer("text_length", None, "words of the longest text"),
    flags.DEFINE_float("reply_seconds", None, "that a step may take"),
)


def main() -> None:
    """Checks the environment and prints the verdict."""
    if not _TASK.value:
        raise command_line.UsageError("--task is missing: use e.g. --task=CartPole-v1")
    if _STEPS.value < 1:
        raise command_line.UsageError(f"--steps is {_STEPS.value}: use 1 or more")
    logging.getLogger().setLevel(logging.ERROR)  # faults are told in the verdict
    verdict = environment_check.check(_configuration(), steps=_STEPS.value, seed=_SEED.value)
    for line in verdict.lines:
        print(line)
    if verdict.fault:
        raise command_line.UsageError(f"{_TASK.value}: {verdict.fault}")
    print("fit to train on")


def _configuration() -> environment_config.EnvironmentConfig:
    config_class = suites.config_class(_SUITE.value)
    known = [field.name for field in dataclasses.fields(config_class)]
    values = {flag.name: flag.value for flag in _KEYS if flag.value is not None}
    for name in values:
        if name not in known:
            raise command_line.UsageError(f"--{name} is given, but {_SUITE.value} has no such key")
    return config_class(suite=_SUITE.value, task=_TASK.value, **values)


if __name__ == "__main__":
    command_line.run(main, (ValueError, ImportError, faults.EnvironmentFailedError))
