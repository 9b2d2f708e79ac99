"""The processes of a sweep on one machine: kept alive, watched, and ended in order."""

import logging
import os
import pathlib
import signal
import socket
import time
from collections.abc import Sequence
from typing import Any

from laser_tf import errors
from laser_tf.host import interruption, run_folder, supervisor
from laser_tf.sweeps import rpc, sweep_config, sweep_display

_END_SECONDS = 180.0  # for the agents, then for the server, to save themselves


class SweepProcesses:
    """The server, and the agents of this machine."""

    def __init__(
        self,
        config: sweep_config.SweepConfig,
        local: Sequence[str],
        workdir: pathlib.Path,
        port: int | None,
    ):
        """Starts them.

        Args:
          config: of the sweep.
          local: the agents that run on this machine.
          workdir: the sweep's folder, opened.
          port: where agents on other machines join; None where there are none.
        """
        self._config = config
        self._workdir = workdir
        self._id = run_folder.read_sweep_id(workdir)
        self._finished: set[str] = set()  # agents, here or elsewhere, that spent their budget
        port = port or _free_port()
        self._address = f"localhost:{port}"
        self._client = rpc.Client(self._address, rpc.own_secret(workdir))
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
                [
                    f"--server={self._address}",
                    f"--name={name}",
                    f"--workdir={workdir / name}",
                    f"--sweep_id={self._id}",
                    f"--secret_file={workdir / rpc.SECRET_FILE}",
                ],
                workdir / f"{name}.log",
                environment,
            )
            for name in local
        }

    def run(self, interrupted: interruption.Interruption) -> None:
        """Watches the processes until all agents are done, or ends them when it is told to.

        Raises:
          UserError: if the server or an agent has failed for good.
        """
        env_frames = self._config.first.run.env_frames
        title = f"{self._config.first.environment.task}, {len(self._config.agents)} agents"
        with sweep_display.SweepDisplay(env_frames, title) as display:
            while not interrupted.stop and not self._is_over():
                self._server.watch()
                for name, agent in self._agents.items():
                    if agent.watch():
                        self._call("leave", {"name": name})
                reports = self._call("status", {})
                self._finished.update(name for name in reports if reports[name]["finished"])
                display.update(reports, self._states(reports))
                time.sleep(1.0)
        self._end(interrupted)

    def _is_over(self) -> bool:
        return self._server.has_failed or all(map(self._has_ended, self._config.agents))

    def _has_ended(self, name: str) -> bool:
        # One of this machine has more to do when it has trained: its evaluation.
        return self._agents[name].is_over if name in self._agents else name in self._finished

    def _states(self, reports: dict[str, Any]) -> dict[str, str]:
        states = {}
        for name in self._config.agents:
            agent = self._agents.get(name)
            if agent is None:
                running = reports.get(name, {}).get("running")
                states[name] = "elsewhere" if running else "elsewhere, not here yet"
                if name in self._finished:
                    states[name] = "elsewhere, finished"
            elif agent.has_failed:
                states[name] = "failed"
            elif agent.is_over:
                states[name] = "finished"
            elif name in self._finished:
                evaluates = self._config.agents[name].run.evaluation_episodes
                states[name] = "finished, evaluating" if evaluates else "finished"
            else:
                restarts = f", restarted {agent.restarts} times" if agent.restarts else ""
                states[name] = f"running{restarts}"
        return states

    def _call(self, method: str, values: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._client.call(method, values | {"sweep_id": self._id}, seconds=2.0).values
        except (rpc.UnreachableError, rpc.RefusedError):
            return {}  # the server is starting, or lost its port to another sweep's

    def _end(self, interrupted: interruption.Interruption) -> None:
        self._client.close()
        is_done = not interrupted.stop
        if not is_done:
            logging.info("agents and replay save themselves; another Ctrl-C kills them")
        for processes, signal_number in (
            (self._agents.values(), signal.SIGINT),
            ([self._server], signal.SIGTERM),
        ):
            supervisor.end(processes, signal_number, _END_SECONDS, lambda: interrupted.hurry)
        failed = [name for name, agent in self._agents.items() if agent.has_failed]
        if self._server.has_failed:
            raise errors.UserError(
                f"the sweep's server does not stay alive: see {self._workdir / 'server.log'}; the "
                "same command tries again"
            )
        if interrupted.hurry:
            logging.info("killed; the same command resumes from the last checkpoints")
        elif not is_done:
            logging.info("stopped and saved; the same command resumes")
        elif failed:
            raise errors.UserError(
                f"failed: {', '.join(failed)}; see their logs in {self._workdir}. The same command "
                "tries them again"
            )
        else:
            (self._workdir / run_folder.FINISHED).touch()
            logging.info("done; python -m launch.report --workdir=%s shows it", self._workdir)


def _free_port() -> int:
    with socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::", 0))
        return probe.getsockname()[1]
