"""The process of a role: set-up, signals, and a heartbeat every second."""

import importlib
import logging
import os
import pathlib
import re
import signal
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any

import ray
from ray.util import metrics as ray_metrics

from laser_tf import errors
from laser_tf.cluster import role, run_state
from laser_tf.host import allocator, failure_notice, log_messages
from laser_tf.workdir import versions

MEMORY = "memory_mebibytes"  # Metric of every role.
CONTROL = "control"  # Ray's threads for calls while `run` is in progress.
LOGS = "logs"  # Directory in a run's directory with one file for each role.
_HEARTBEAT_PERIOD_SECONDS = 1.0


class MachineDiffersError(errors.UserError):
    """A machine has other versions or sources than the driver's machine."""


class RoleProcess:
    """A process with a role; `fleet.Fleet` makes it a Ray actor."""

    def __init__(
        self,
        name: str,
        role_class: str,
        arguments: Mapping[str, Any],
        workdir: pathlib.Path,
        state: Any,
        variables: Mapping[str, str],
    ):
        """Prepares the process.

        Args:
          name: Name of the role.
          role_class: "module:class" of a `role.Role`; only this process imports the module.
          arguments: Keyword arguments of the class, after the context.
          workdir: Directory of the run or the sweep.
          state: Handle of the `run_state.RunState`.
          variables: Environment variables, e.g. for TensorFlow's threads.
        """
        os.environ.update(variables)
        allocator.keep_freed_memory()
        self._context = role.Context(name, workdir, state)
        self._role_class, self._arguments = role_class, arguments
        self._role: role.Role | None = None
        self._notice = failure_notice.FailureNotice("The run's state answers again.")
        log_to(workdir / LOGS / f"{name}.log")
        self._stop_on_sigterm()
        self._gauges: dict[str, ray_metrics.Gauge] = {}
        threading.Thread(target=self._send_heartbeats, name="heartbeat", daemon=True).start()

    def run(self, driver_versions: Mapping[str, str]) -> run_state.Status:
        """Runs the role; returns FINISHED or STOPPED.

        Args:
          driver_versions: Versions of the driver's machine, which must be the same here.

        Raises:
          MachineDiffersError: If this machine has other versions.
          RestartError, UserError: See `role.Role.run`.
        """
        _check_versions(driver_versions, self._context.name)
        module, name = self._role_class.split(":")
        logging.info("Started process %d on %s", os.getpid(), socket.gethostname())
        try:
            role_class = getattr(importlib.import_module(module), name)
            self._role = role_class(self._context, **self._arguments)
            return self._role.run()
        except errors.StoppedError:
            return run_state.Status.STOPPED
        except (errors.UserError, role.RestartError):
            raise
        except Exception:  # A bug: the driver logs only its message.
            logging.exception("%s failed", self._context.name)
            raise
        finally:
            self._context.status = run_state.Status.STOPPED
            self._send_heartbeat()  # With the last episodes.

    @ray.method(concurrency_group=CONTROL)
    def stop(self) -> None:
        """Tells `run` to save its state and return."""
        self._context.stop.set()

    @ray.method(concurrency_group=CONTROL)
    def exit(self) -> None:
        """Ends the process; Ray then starts a new one."""
        os._exit(1)

    def _stop_on_sigterm(self) -> None:
        # Python's handlers run in the main thread, which stays in Ray's C++ code.
        receiver, sender = socket.socketpair()
        sender.setblocking(False)
        signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda *_: None)

        def wait_for_signals() -> None:
            while received := receiver.recv(1):
                if received[0] == signal.SIGTERM:
                    logging.info("Received SIGTERM")
                    self._context.stop.set()

        self._sockets = receiver, sender
        threading.Thread(target=wait_for_signals, name="signals", daemon=True).start()

    def _send_heartbeats(self) -> None:
        while True:
            self._send_heartbeat()
            time.sleep(_HEARTBEAT_PERIOD_SECONDS)

    def _send_heartbeat(self) -> None:
        context = self._context
        metrics = _process_metrics() | self._role_metrics()
        self._export(metrics)
        heartbeat = run_state.Heartbeat(
            socket.gethostname(), ray.get_runtime_context().get_node_id(), os.getpid(),
            context.status, context.detail, context.may_hang, metrics,
        )  # fmt: skip
        sent = context.state.report.remote(
            context.name, heartbeat, context.take_episodes(), context.served_replay
        )
        try:
            ray.get(sent, timeout=role.REPORT_TIMEOUT_SECONDS)
            context.reported = heartbeat.status
            self._notice.succeeded()
        except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError) as error:
            self._notice.failed(f"The run's state does not answer ({type(error).__name__})")

    def _role_metrics(self) -> dict[str, float]:
        """Returns the role's metrics; {} if they fail, e.g. because replay has stopped."""
        try:
            return dict(self._role.metrics()) if self._role else {}
        except Exception as error:  # The thread of heartbeats must continue.
            logging.debug("No metrics: %s", errors.one_line(error))
            return {}

    def _export(self, metrics: Mapping[str, float]) -> None:
        """Exports metrics to Prometheus as `ray_laser_tf_<name>{role="actor_00"}`."""
        for name, value in metrics.items():
            if name not in self._gauges:
                exported = "laser_tf_" + re.sub(r"\W", "_", name)
                self._gauges[name] = ray_metrics.Gauge(exported, tag_keys=("role",))
            self._gauges[name].set(value, tags={"role": self._context.name})


def _check_versions(expected: Mapping[str, str], name: str) -> None:
    if differing := versions.differing(expected):
        raise MachineDiffersError(
            f"{socket.gethostname()}, where {name} is to run, has {differing}: "
            "install the same requirements.lock and the same laser_tf on all machines"
        )


def _process_metrics() -> dict[str, float]:
    status = pathlib.Path("/proc/self/status").read_text()
    kibibytes = re.search(r"^VmRSS:\s+(\d+) kB", status, re.M)
    return {MEMORY: int(kibibytes[1]) / 1024} if kibibytes else {}


def log_to(path: pathlib.Path) -> None:
    """Sends the output of this process and of C++ libraries to a file.

    If this machine does not see the file's directory, the output stays in Ray's own logs.
    """
    if path.parent.is_dir():
        with path.open("ab") as log:
            for descriptor in (1, 2):
                os.dup2(log.fileno(), descriptor)
    log_messages.show("%(asctime)s %(message)s")
