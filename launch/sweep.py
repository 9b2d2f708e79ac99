"""Trains the agents of a sweep beside each other, on one common replay.

    python -m launch.sweep --config=configs/sweep_laser_minatar.py --workdir=runs/sweep
    python -m launch.sweep --config=configs/sweep_laser_atari.py --shared_replay=true
    python -m launch.sweep --grid=agent.entropy_cost=0.005,0.01 --population=pbt

The same command with the same --workdir resumes a sweep that was interrupted.
"""

from laser_tf.runtime import private_network, versions

if __name__ == "__main__":
    versions.check()
    # Agents on other machines have to reach this one.
    import sys

    _IS_OPEN = any(argument.startswith("--port") for argument in sys.argv)
    _NETWORK_WARNING = None if _IS_OPEN else private_network.enter()

import ast
import logging
import os
import pathlib
import signal
import socket
import threading
from typing import Any

from absl import flags
from ml_collections import config_flags

from laser_tf.environments import factory
from laser_tf.runtime import (
    checkpointing,
    metrics,
    rpc,
    supervisor,
    sweep_config,
    sweep_display,
)
from launch import command_line

_CONFIG = config_flags.DEFINE_config_file(
    "config", "configs/sweep_laser_minatar.py", "a file of configs/ with a section `sweep`"
)
_WORKDIR = flags.DEFINE_string("workdir", None, "the sweep's folder [runs/<config>-<time>]")
_SHARED_REPLAY = flags.DEFINE_bool("shared_replay", None, "one replay for all [the config's]")
_POPULATION = flags.DEFINE_string("population", None, "pbt or none [the config's]")
_GRID = flags.DEFINE_multi_string(
    "grid", [], "SECTION.KEY=VALUE,VALUE...: beside, or instead of, the config's"
)
_LOCAL = flags.DEFINE_list("local", None, "agents to run on this machine, e.g. agent_00 [all]")
_PORT = flags.DEFINE_integer("port", None, "where agents on other machines join [none can]")

_FINISHED = "finished"  # a file that says so
_END_SECONDS = 180.0  # for an agent or a replay to save itself


def main() -> None:
    """Starts the server and the agents, keeps them alive, and ends them in order."""
    if not _PORT.value and _NETWORK_WARNING:
        logging.warning("%s", _NETWORK_WARNING)
    values = _values()
    config = sweep_config.parse(values)
    local = _local_agents(config)
    factory.make_environment(config.first.environment, seed=0, num_envs=1).close()
    workdir = pathlib.Path(_WORKDIR.value or command_line.default_workdir("config")).absolute()
    extra = {
        "label": config.sweep.label or workdir.name,
        "replica": config.sweep.replica,
        "agents": {name: dict(given) for name, given in config.hyperparameters.items()},
        "versions": versions.recorded(),
    }
    resumed = checkpointing.open_sweep(workdir, values, extra)
    logging.info("%s %s", "resuming" if resumed else "a new sweep in", workdir)
    if (workdir / _FINISHED).exists():
        logging.info("all agents are trained already")
        return
    metrics.write_sweep_columns(workdir / "tensorboard", config.hyperparameters)
    stop = threading.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, lambda *_: stop.set())
    _Sweep(config, local, workdir).run(stop)


class _Sweep:
    """The processes of a sweep."""

    def __init__(self, config: sweep_config.SweepConfig, local: list[str], workdir: pathlib.Path):
        self._config = config
        self._workdir = workdir
        port = _PORT.value or _free_port()
        self._address = f"localhost:{port}"
        self._client = rpc.Client(self._address)
        # Each process would take all cores for itself.
        threads = str(max(1, len(os.sched_getaffinity(0)) // len(local)) if local else 1)
        environment = {
            "TF_NUM_INTRAOP_THREADS": threads,
            "TF_NUM_INTEROP_THREADS": threads,
        }
        self._server = supervisor.Process(
            "the server",
            "launch.replay_server",
            [f"--workdir={workdir}", f"--port={port}"],
            workdir / "server.log",
            {},
        )
        self._agents = {
            name: supervisor.Process(
                name,
                "launch.sweep_agent",
                [f"--server={self._address}", f"--name={name}", f"--workdir={workdir / name}"],
                workdir / f"{name}.log",
                environment,
            )
            for name in local
        }

    def run(self, stop: threading.Event) -> None:
        """Watches the processes until all agents are done or `stop` is set."""
        env_frames = self._config.first.run.env_frames
        title = f"{self._config.first.environment.task}, {len(self._config.agents)} agents"
        with sweep_display.SweepDisplay(env_frames, title) as display:
            while not stop.wait(1.0) and not self._is_over():
                self._server.watch()
                for name, agent in self._agents.items():
                    if agent.watch():
                        self._call("leave", {"name": name})
                reports = self._call("status", {})
                display.update(reports, self._states(reports))
        self._end(stop.is_set())

    def _is_over(self) -> bool:
        if self._server.has_failed:
            return True
        return bool(self._agents) and all(agent.is_over for agent in self._agents.values())

    def _states(self, reports: dict[str, Any]) -> dict[str, str]:
        states = {}
        for name in self._config.agents:
            agent = self._agents.get(name)
            if agent is None:
                running = reports.get(name, {}).get("running")
                states[name] = "elsewhere" if running else "elsewhere, not here yet"
            elif agent.has_failed:
                states[name] = "failed"
            elif agent.is_over:
                states[name] = "done"
            else:
                restarts = f", restarted {agent.restarts} times" if agent.restarts else ""
                states[name] = f"running{restarts}"
        return states

    def _call(self, method: str, values: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._client.call(method, values, seconds=2.0).values
        except rpc.UnreachableError:
            return {}  # the server is starting

    def _end(self, interrupted: bool) -> None:
        self._client.close()
        for agent in self._agents.values():
            agent.stop(signal.SIGINT)
        for agent in self._agents.values():
            agent.wait(_END_SECONDS)
        self._server.stop(signal.SIGTERM)
        self._server.wait(_END_SECONDS)
        failed = [name for name, agent in self._agents.items() if agent.has_failed]
        if self._server.has_failed:
            raise command_line.UsageError(
                f"the sweep's server does not stay alive: see {self._workdir / 'server.log'}; the "
                "same command tries again"
            )
        if interrupted:
            logging.info("stopped and saved; the same command resumes")
        elif failed:
            raise command_line.UsageError(
                f"failed: {', '.join(failed)}; see their logs in {self._workdir}. The same command "
                "tries them again"
            )
        else:
            (self._workdir / _FINISHED).touch()
            logging.info("done; python -m launch.report --workdir=%s shows it", self._workdir)


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
        values["population"]["method"] = _POPULATION.value
    for entry in _GRID.value:
        key, separator, text = entry.partition("=")
        section, dot, name = key.partition(".")
        if not (separator and dot and text):
            raise command_line.UsageError(f"--grid={entry}: use SECTION.KEY=VALUE,VALUE...")
        choices = tuple(_literal(value) for value in text.split(","))
        values["sweep"]["grid"].setdefault(section, {})[name] = choices
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


def _free_port() -> int:
    with socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    command_line.run(main, (ValueError, ImportError, checkpointing.WorkdirError))
