"""Evaluates the newest weights of a run, or an exported policy, by the papers' protocol.

python -m launch.evaluate --workdir=runs/pong --episodes=200 --video
python -m launch.evaluate --workdir=runs/pong --greedy
python -m launch.evaluate --workdir=runs/tmaze --history_length=10
python -m launch.evaluate --workdir=runs/pong --environment=sticky_actions=0.25
python -m launch.evaluate --workdir=runs/corridor --trust_config  # custom environments
python -m launch.evaluate --policy=results/policies/pong --episodes=5 --video
python -m launch.evaluate --random=laser:vizdoom --environment=task=my_way_home

With --policy, only prints the result, and writes videos to `videos/` in the current directory. With
--random, prints the returns of uniformly random actions, the zero of normalised scores.
"""

from laser_tf.host import interruption
from laser_tf.workdir import versions

if __name__ == "__main__":
    interruption.before_imports()
    versions.check()  # a wrong TensorFlow fails while Reverb is imported

import json
import logging
import pathlib

from absl import flags

from laser_tf import config_values
from laser_tf.api import config_files
from laser_tf.evaluation import evaluation_files
from laser_tf.export import exported
from laser_tf.host import native_messages
from laser_tf.training import config_choices, run_config
from laser_tf.workdir import run_directory
from launch import command_line

_WORKDIR = command_line.define_path("workdir", "run directory")
_EPISODES = flags.DEFINE_integer("episodes", 200, "number of episodes of each task", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 12345, "seed of environments and actions")
_VIDEO = flags.DEFINE_bool("video", False, "write a video of the episode of median return")
_GREEDY = flags.DEFINE_bool("greedy", False, "take the best action instead of a sampled one")
_BEST = flags.DEFINE_bool(
    "best", False, "evaluate the weights that laser_tf.callbacks:KeepBest has kept, not the newest"
)
_HISTORY_LENGTH = flags.DEFINE_integer(
    "history_length", 0, "agent steps that a recurrent agent sees, with the current one; 0: all", 0
)
_ENVIRONMENT = flags.DEFINE_multi_string(
    "environment", [], "KEY=VALUE of the section `environment` instead of the run's value"
)
_RANDOM = flags.DEFINE_string(
    "random", None, "take random actions in the environment of this configuration (name or file)"
)
_POLICY = command_line.define_path(
    "policy", "directory of an exported policy (SavedModel), to evaluate instead of a run"
)
_TRUST_CONFIG = command_line.define_trust_config()


def main() -> None:
    """Evaluates and prints the result; writes the result of a run."""
    if sum(bool(flag.value) for flag in (_WORKDIR, _POLICY, _RANDOM)) != 1:
        raise command_line.UsageError(
            "exactly one of --workdir, --policy and --random must be given. Use e.g. "
            "--workdir=runs/pong."
        )
    given = command_line.key_values(_ENVIRONMENT, "KEY=VALUE, e.g. sticky_actions=0.25")
    changes = {key: config_values.parse_value(text) for key, text in given.items()}
    if _RANDOM.value or _POLICY.value:
        evaluate = _evaluate_random_actions if _RANDOM.value else _evaluate_policy
        print(json.dumps(evaluate(changes), indent=2))
        return
    workdir = pathlib.Path(_WORKDIR.value)
    run_directory.read_config(workdir)  # Before TensorFlow loads.
    from laser_tf.evaluation import run_evaluation

    with native_messages.diverted(workdir / native_messages.FILE):  # Also of environments.
        summary = run_evaluation.evaluate(
            workdir,
            episodes=_EPISODES.value,
            seed=_SEED.value,
            video=_VIDEO.value,
            history_length=_HISTORY_LENGTH.value,
            greedy=_GREEDY.value,
            environment_changes=changes,
            trust_config=_TRUST_CONFIG.value,
            best=_BEST.value,
        )
    print(json.dumps(summary, indent=2))
    logging.info("Wrote %s", evaluation_files.result_file(workdir, _HISTORY_LENGTH.value))


def _evaluate_policy(changes: dict[str, object]) -> dict:
    folder = pathlib.Path(_POLICY.value)
    command_line.check_unused((_BEST, _HISTORY_LENGTH), "with --policy")
    exported.read_description(folder)  # Before TensorFlow loads.
    from laser_tf.export import policy_evaluation

    return policy_evaluation.evaluate(
        folder,
        episodes=_EPISODES.value,
        seed=_SEED.value,
        videos=pathlib.Path("videos") if _VIDEO.value else None,
        greedy=_GREEDY.value,
        environment_changes=changes,
        trust_config=_TRUST_CONFIG.value,
    )


def _evaluate_random_actions(changes: dict[str, object]) -> dict:
    command_line.check_unused((_VIDEO, _GREEDY, _BEST, _HISTORY_LENGTH), "with --random")
    values = config_files.load(_RANDOM.value, "--random").to_dict()
    run_config.check_nesting(values)
    environment = {f"environment.{key}": value for key, value in changes.items()}
    parsed = run_config.parse(config_choices.override(values, environment))
    from laser_tf.evaluation import run_evaluation

    return run_evaluation.evaluate_random_actions(parsed.environment, _EPISODES.value, _SEED.value)


if __name__ == "__main__":
    command_line.run(main)
