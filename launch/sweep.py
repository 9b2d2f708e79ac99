"""Trains the agents of a sweep beside each other, on one common replay.

    python -m launch.sweep --config=configs/sweep_laser_minatar.py --workdir=runs/sweep
    python -m launch.sweep --config=configs/sweep_laser_atari.py --shared_replay=true
    python -m launch.sweep --grid=agent.entropy_cost=0.005,0.01 --population=pbt

The same command with the same --workdir resumes a sweep that was interrupted.
"""

from laser_tf.host import interruption, private_network, versions

if __name__ == "__main__":
    import sys

    interruption.before_imports()
    versions.check()
    # Agents on other machines have to reach this one.
    _IS_OPEN = any(argument.startswith(("--port", "-port")) for argument in sys.argv)
    _NETWORK_WARNING = None if _IS_OPEN else private_network.enter(sys.argv)

import ast
import logging
import pathlib
import uuid
from typing import Any

from absl import flags

from laser_tf.environments import factory
from laser_tf.sweeps import sweep_config
from launch import command_line

_CONFIG = command_line.define_config("configs/sweep_laser_minatar.py")
_WORKDIR = flags.DEFINE_string("workdir", None, "the sweep's folder [runs/<config>-<time>]")
_SHARED_REPLAY = flags.DEFINE_bool("shared_replay", None, "one replay for all [the config's]")
_POPULATION = flags.DEFINE_string("population", None, "pbt or none [the config's]")
_GRID = flags.DEFINE_multi_string(
    "grid", [], "SECTION.KEY=VALUE,VALUE...: beside, or instead of, the config's"
)
_PRIVATE_NETWORK = command_line.define_private_network()
_EXTEND = flags.DEFINE_bool(
    "extend", False, "take a higher run.env_frames, and a learning-rate schedule to there"
)
_LOCAL = flags.DEFINE_list("local", None, "agents to run on this machine, e.g. agent_00 [all]")
_PORT = flags.DEFINE_integer(
    "port", None, "where agents on other machines join [none can]", lower_bound=1, upper_bound=65535
)


def main() -> None:
    """Starts the server and the agents, keeps them alive, and ends them in order."""
    command_line.check_private_network(_PRIVATE_NETWORK)
    if not _PORT.value and _NETWORK_WARNING:
        logging.warning("%s", _NETWORK_WARNING)
    values = _values()
    config = sweep_config.parse(values)
    local = _local_agents(config)
    factory.environment_spec(config.first.environment)  # refused here if it cannot be made
    # TensorFlow and Reverb take seconds to load: not before all is checked that can be.
    from laser_tf.host import run_folder
    from laser_tf.monitoring import tensorboard
    from laser_tf.replay import server_addresses
    from laser_tf.sweeps import sweep_processes

    if _PORT.value:
        server_addresses.check_port(_PORT.value)
    workdir = pathlib.Path(_WORKDIR.value or command_line.default_workdir("config")).absolute()
    extra = {
        "id": uuid.uuid4().hex,
        "label": config.sweep.label or workdir.name,
        "replica": config.sweep.replica,
        "agents": {name: dict(given) for name, given in config.hyperparameters.items()},
        "versions": versions.recorded(),
    }
    resumed = run_folder.open_sweep(workdir, values, extra, extend=_EXTEND.value)
    logging.info("%s %s", "resuming" if resumed else "a new sweep in", workdir)
    if (workdir / run_folder.FINISHED).exists():
        logging.info("all agents are trained already")
        return
    tensorboard.write_sweep_columns(workdir / "tensorboard", config.hyperparameters)
    interrupted = interruption.Interruption()
    sweep_processes.SweepProcesses(config, local, workdir, _PORT.value).run(interrupted)
    if interrupted.stop:
        interruption.end_by(interrupted.signal_number)


def _values() -> dict[str, Any]:
    """The configuration with what other flags say of it."""
    values = command_line.config_values(_CONFIG)
    if "sweep" not in values:
        raise command_line.UsageError(
            f"{command_line.config_file(_CONFIG.name)} has no section `sweep`: use a "
            "configs/sweep_*.py"
        )
    if _SHARED_REPLAY.value is not None:
        values["sweep"]["shared_replay"] = _SHARED_REPLAY.value
    if _POPULATION.value is not None:
        values.setdefault("population", {})["method"] = _POPULATION.value
    for entry in _GRID.value:
        key, separator, text = entry.partition("=")
        section, dot, name = key.partition(".")
        if not (separator and dot and text):
            raise command_line.UsageError(f"--grid={entry}: use SECTION.KEY=VALUE,VALUE...")
        choices = tuple(_literal(value) for value in text.split(","))
        grid = values["sweep"].setdefault("grid", {})
        grid.setdefault(section, {})[name] = choices
    return values


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _local_agents(config: sweep_config.SweepConfig) -> list[str]:
    if _LOCAL.value is None:
        return list(config.agents)
    for name in _LOCAL.value:
        if name not in config.agents:
            raise command_line.UsageError(
                f"--local={name}: the sweep's agents are {', '.join(config.agents)}"
            )
    if _LOCAL.value != list(config.agents) and not _PORT.value:
        raise command_line.UsageError(
            "--local leaves agents to other machines: give --port, where they join"
        )
    return _LOCAL.value


if __name__ == "__main__":
    command_line.run(main, (ValueError, ImportError))
