"""Checks an environment before training: run it first with your own environment.

    python -m launch.check_environment --suite=gymnasium --task=CartPole-v1
    python -m launch.check_environment --suite=dm_env --task=my_module:make --arguments="size=5"
    python -m launch.check_environment --suite=my_module:MySuite --task=short --environment=slip=0.1

Random actions step the environment. The command prints what an agent sees, and exits with code 1 if
it finds a fault. TensorFlow is not loaded.
"""

from laser_tf.host import interruption

if __name__ == "__main__":
    interruption.before_imports()

import dataclasses
import logging

import tree
from absl import flags
from rich import console

from laser_tf import config_values, errors, observations
from laser_tf.environments import environment_check, environment_config, suites
from laser_tf.networks import trunk_config
from launch import command_line

_MAX_TASKS = 3  # in a message

_SUITE = flags.DEFINE_string(
    "suite", "gymnasium", "gymnasium, dm_env, atari, ... or my_module:MySuite"
)
_TASK = flags.DEFINE_string("task", None, "task of the suite, e.g. CartPole-v1 or my_module:make")
_STEPS = flags.DEFINE_integer("steps", 1_000, "max agent steps of each environment", lower_bound=1)
_SECONDS = flags.DEFINE_float(
    "seconds", 60.0, "time limit of one environment's random steps, which are taken twice"
)
_SEED = flags.DEFINE_integer("seed", 1, "seed of environments and actions")
# Keys of the configuration's section `environment`, as far as the suite has them.
_KEYS = (
    flags.DEFINE_string("arguments", None, "keyword arguments, name=value, ..."),
    flags.DEFINE_integer("num_envs", None, "environments that step together"),
    flags.DEFINE_integer("num_workers", None, "worker processes of the environments"),
    flags.DEFINE_integer("action_repeat", None, "env frames per agent step"),
    flags.DEFINE_integer("max_frames_per_episode", None, "env frames that truncate an episode"),
    flags.DEFINE_integer("text_length", None, "max words of a text"),
    flags.DEFINE_float("reply_seconds", None, "max seconds of a step"),
)
_ENVIRONMENT = flags.DEFINE_multi_string("environment", [], "KEY=VALUE: another key of the suite")


def main() -> None:
    """Checks the environment and prints the report."""
    if not _TASK.value:
        suite = suites.config_class(_SUITE.value)
        tasks = list(suite.known_tasks)[:_MAX_TASKS] or [suite.example_task or "CartPole-v1"]
        raise command_line.UsageError(
            f"--task must be given for --suite={_SUITE.value}. Use e.g. --task={' or '.join(tasks)}"
        )
    if not _SECONDS.value > 0:
        raise command_line.UsageError(f"--seconds must be above 0, got {_SECONDS.value}.")
    logging.getLogger().setLevel(logging.ERROR)  # The report names faults.
    with console.Console(stderr=True).status("starting") as status:
        report = environment_check.check(
            _configuration(),
            steps=_STEPS.value,
            seed=_SEED.value,
            seconds=_SECONDS.value,
            on_progress=status.update,
        )
    _add_torso_warnings(report)
    print("\n".join(report.lines))
    if report.fault:
        raise command_line.UsageError(f"{_TASK.value}: {report.fault}")
    print("OK")


def _add_torso_warnings(report: environment_check.CheckReport) -> None:
    """Adds a warning for each image that the default torso cannot read."""
    for leaf in tree.flatten(report.spec.observation) if report.spec else ():
        if observations.is_image(leaf):
            try:
                trunk_config.check_image(trunk_config.TrunkConfig().torso, leaf.shape)
            except errors.ConfigError as error:
                report.add("warning", str(error))


def _configuration() -> environment_config.EnvironmentConfig:
    config_class = suites.config_class(_SUITE.value)
    known = {field.name: field.type for field in dataclasses.fields(config_class)}
    values = {flag.name: flag.value for flag in _KEYS if flag.value is not None}
    for name in values:
        if name not in known:
            raise command_line.UsageError(
                f"--{name} must be left out: {_SUITE.value} has no such key."
            )
    others = known.keys() - {"suite", "task", *values}  # Those without another flag.
    for name, text in command_line.key_values(_ENVIRONMENT, "KEY=VALUE").items():
        if name not in others:
            raise command_line.UsageError(
                f"--environment must have another key of {_SUITE.value}, got {name}. Use one of "
                f"{', '.join(sorted(others))}."
            )
        values[name] = config_values.parse_text(text, known[name])
    return config_class(suite=_SUITE.value, task=_TASK.value, **values)


if __name__ == "__main__":
    command_line.run(main)
