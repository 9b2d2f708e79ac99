"""Trains the members of a sweep at the same time, on one shared replay.

    python -m launch.sweep --config=configs/sweeps.py:minatar --workdir=runs/sweep
    python -m launch.sweep --config=configs/sweeps.py:atari --shared_replay=true
    python -m launch.sweep --grid=agent.entropy_cost=0.005,0.01 --population=pbt
    python -m launch.sweep --config.cluster.address=auto  # on all machines of a Ray cluster

The same command with the same --workdir resumes a sweep that was interrupted.
"""

import sys

from laser_tf.host import interruption, private_network
from laser_tf.workdir import versions

if __name__ == "__main__":
    interruption.before_imports()
    versions.check()
    _NETWORK_WARNING = private_network.enter(sys.argv)

import logging
import pathlib
import uuid
from typing import Any

from absl import flags

from laser_tf import config_values
from laser_tf.environments import factory
from laser_tf.sweeps import sweep_config
from laser_tf.workdir import run_directory
from launch import command_line

_CONFIG = command_line.define_config("configs/sweeps.py:minatar")
_WORKDIR = flags.DEFINE_string("workdir", None, "sweep directory [runs/<config>-<time>]")
_SHARED_REPLAY = flags.DEFINE_bool(
    "shared_replay", None, "one replay for all members [the config's]"
)
_POPULATION = flags.DEFINE_string("population", None, "pbt or none [the config's]")
_GRID = flags.DEFINE_multi_string(
    "grid", [], "SECTION.KEY=VALUE,VALUE...: added to the config's, or instead of a key's"
)
_EXTEND = flags.DEFINE_bool(
    "extend", False, "accept a higher run.env_frames with a learning rate schedule"
)


def main() -> None:
    """Trains the sweep until its members have spent their budget, or a signal stops it."""
    if _NETWORK_WARNING:
        logging.warning("%s", _NETWORK_WARNING)
    values = _values()
    config = sweep_config.parse(values)
    workdir = pathlib.Path(_WORKDIR.value or command_line.default_workdir(_CONFIG)).absolute()
    command_line.check_elsewhere("", config.cluster.address)
    stopped_by = _run(config, values, workdir)
    if stopped_by:
        interruption.end_by(stopped_by)


def _run(
    config: sweep_config.SweepConfig, values: dict[str, Any], workdir: pathlib.Path
) -> int | None:
    """Returns the signal that stopped the sweep, if any."""
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
    display = sweep_display.SweepDisplay(config.first.run.env_frames, title, sys.stdout)
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
    resumed = run_directory.open_sweep(
        workdir, values, extra, defaults=sweep_config.defaults(values), extend=_EXTEND.value
    )
    logging.info("%s %s", "Resuming" if resumed else "Starting a sweep in", workdir)
    is_finished = (workdir / run_directory.FINISHED).exists()
    if is_finished:
        logging.info("All members have finished")
    return not is_finished


def _values() -> dict[str, Any]:
    """Returns the configuration with the values of all flags."""
    values = _CONFIG.values()
    if "sweep" not in values:
        raise command_line.UsageError(
            f"{_CONFIG.file} has no section `sweep`. Use a variant of configs/sweeps.py."
        )
    if _SHARED_REPLAY.value is not None:
        values["sweep"]["shared_replay"] = _SHARED_REPLAY.value
    if _POPULATION.value is not None:
        values.setdefault("population", {})["method"] = _POPULATION.value
    form = "SECTION.KEY=VALUE,VALUE... with all the values of a key"
    for key, text in command_line.key_values(_GRID, form).items():
        section, dot, name = key.partition(".")
        if not dot or not text:
            raise command_line.UsageError(f"--grid must be {form}, got {key}={text}.")
        for other in set(sweep_config.PARTS) - {"grid"}:  # Replaced by the grid.
            values["sweep"].get(other, {}).get(section, {}).pop(name, None)
        grid = values["sweep"].setdefault("grid", {})
        grid.setdefault(section, {})[name] = tuple(
            config_values.parse_value(value) for value in text.split(",")
        )
    sweep_config.check_given(values, _CONFIG.given())
    return values


if __name__ == "__main__":
    command_line.run(main)
