r"""Trains the members of a sweep at the same time, or the trials of a search.

    python -m launch.sweep --config=sweeps:minatar --workdir=runs/sweep
    python -m launch.sweep --search_space='agent.entropy_cost=grid(0.005, 0.01)' --population=pbt
    python -m launch.sweep --config.cluster.address=auto  # on all machines of a Ray cluster
    python -m launch.sweep --config=laser:gymnasium --search=optuna --trials=20 \
      --search_space='learner.learning_rate=log_uniform(1e-4, 1e-2)'

The same command with the same --workdir resumes a sweep that was interrupted.
"""

import sys

from laser_tf.host import interruption, private_network
from laser_tf.workdir import versions

if __name__ == "__main__":
    interruption.before_imports()
    versions.check()
    # Each trial of a search is a command, which enters a separate private network.
    _IS_SEARCH = private_network.has_flag("search", sys.argv)
    _NETWORK_WARNING = None if _IS_SEARCH else private_network.enter(sys.argv)

import logging
import pathlib
import uuid
from typing import Any

from absl import flags

from laser_tf.environments import factory
from laser_tf.sweeps import search_space, sweep_config
from laser_tf.workdir import run_directory
from launch import command_line, search

_CONFIG = command_line.define_config("configs/sweeps.py:minatar")
_WORKDIR = command_line.define_path("workdir", "sweep directory [runs/<config>-<time>]")
_SHARED_REPLAY = flags.DEFINE_bool(
    "shared_replay", None, "one replay for all members [the config's]"
)
_POPULATION = flags.DEFINE_string("population", None, "pbt or none [the config's]")
_SEARCH_SPACE = flags.DEFINE_multi_string(
    "search_space", [], f"{search_space.FORM}; adds a key, or replaces its distribution"
)
_SEARCH = flags.DEFINE_enum(
    "search", None, search.METHODS, "search with independent trials instead of a sweep"
)
_TRIALS = flags.DEFINE_integer("trials", 20, "number of trials of a search", lower_bound=1)
_PARALLEL_TRIALS = flags.DEFINE_integer(
    "parallel_trials", 1, "max number of trials at the same time", lower_bound=1
)
_EXTEND = flags.DEFINE_bool(
    "extend", False, "accept a higher run.env_frames with a learning rate schedule"
)


def main() -> None:
    """Trains the sweep until its members have spent their budget, or a signal stops it."""
    if _NETWORK_WARNING:
        logging.warning("%s", _NETWORK_WARNING)
    values = _values()
    workdir = pathlib.Path(_WORKDIR.value or command_line.default_workdir(_CONFIG)).absolute()
    if _SEARCH.value:
        search.run(_CONFIG, values, _SEARCH.value, _PARALLEL_TRIALS.value, workdir)
        return
    config = sweep_config.parse(values)
    command_line.check_reachable("", config.cluster.address)
    stopped_by = _run(config, values, workdir)
    if stopped_by:
        interruption.end_by(stopped_by)


def _run(
    config: sweep_config.SweepConfig, values: dict[str, Any], workdir: pathlib.Path
) -> int | None:
    """Runs the sweep; returns the signal that stopped it, or None."""
    is_new = not (workdir / run_directory.SWEEP_FILE).exists()
    # A new directory, or a longer budget, is written once Ray has started.
    is_open = not is_new and not _EXTEND.value
    if is_open and not _open(config, values, workdir):
        return None
    spec = factory.environment_spec(config.first.environment)
    if is_new:  # The keys of an existing sweep cannot change.
        for member in config.members.values():
            if member.environment == config.first.environment:
                member.agent.check_actions(spec.action)
                member.replay.check_observation(spec.observation)
    from laser_tf.cluster import sweep_work
    from laser_tf.sweeps import sweep_display
    from launch import fleet_session

    title = f"{config.first.environment.task}, {len(config.members)} members"
    display = sweep_display.SweepDisplay(config.first.run.env_frames, title)
    job = sweep_work.SweepWork(config, spec, workdir, display)
    stopped_by = fleet_session.run(
        job, config.cluster, workdir, lambda: is_open or _open(config, values, workdir)
    )
    if stopped_by is None and (workdir / run_directory.FINISHED).exists():
        logging.info("Finished. python -m launch.plot --report=%s shows the results", workdir)
    return stopped_by


def _open(config: sweep_config.SweepConfig, values: dict[str, Any], workdir: pathlib.Path) -> bool:
    """Opens the sweep's directory; returns whether work is left."""
    extra = {
        "id": uuid.uuid4().hex,
        "label": config.sweep.label or workdir.name,
        "seed_index": config.sweep.seed_index,
        "members": {name: dict(given) for name, given in config.hyperparameters.items()},
        "versions": versions.recorded(),
        run_directory.COMMAND: command_line.given_command("sweep", workdir),
    }
    resumed = run_directory.open_directory(
        workdir / run_directory.SWEEP_FILE,
        values,
        extra,
        defaults=sweep_config.defaults(values),
        extend=_EXTEND.value,
    )
    logging.info("%s %s", "Resuming" if resumed else "Starting a sweep in", workdir)
    if (workdir / run_directory.FINISHED).exists():
        logging.info("All members have finished")
        return False
    return True


def _values() -> dict[str, Any]:
    """Returns the configuration with the values of all flags."""
    values = _CONFIG.values()
    space = command_line.key_values(_SEARCH_SPACE, search_space.FORM)
    _check_flags("sweep" in _CONFIG.file_values())
    if not ("sweep" in values or space or _SEARCH.value):
        raise command_line.UsageError(
            f"{_CONFIG.file} has no section `sweep`. Use --search_space, or a variant of "
            "configs/sweeps.py."
        )
    sweep = values.setdefault("sweep", {})
    if _SEARCH.value:
        sweep["samples"] = _TRIALS.value
    if _SHARED_REPLAY.value is not None:
        sweep["shared_replay"] = _SHARED_REPLAY.value
    if _POPULATION.value is not None:
        values.setdefault("population", {})["method"] = _POPULATION.value
    search_space.add(sweep, space)
    sweep_config.check_flags_have_effect(values, _CONFIG.given())
    return values


def _check_flags(is_sweep: bool) -> None:
    """Raises UsageError for flags that have no effect on a search, or only on a search."""
    if _SEARCH.value and is_sweep:
        raise command_line.UsageError(
            f"--config must be the configuration of a run with --search={_SEARCH.value}, got "
            f"{_CONFIG.file}, a sweep. Use e.g. --config=laser:minatar."
        )
    if _SEARCH.value:
        command_line.check_unused((_SHARED_REPLAY, _POPULATION, _EXTEND), "with --search")
    else:
        remedy = f"Use --search={search.METHODS[0]}."
        command_line.check_unused((_TRIALS, _PARALLEL_TRIALS), "without --search", remedy)


if __name__ == "__main__":
    command_line.run(main, (OSError,))
