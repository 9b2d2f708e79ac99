"""The process of a role: set-up, stop requests, and a heartbeat every second."""

import importlib
import logging
import os
import pathlib
import re
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any

import psutil
import ray
from ray.util import metrics as ray_metrics

from laser_tf import errors
from laser_tf.cluster import role, run_state
from laser_tf.host import hardware, log_messages
from laser_tf.workdir import versions

MEMORY = "memory_mebibytes"  # Metric of every role.
CONTROL = "control"  # Ray concurrency group: its threads take calls while `run` is in progress.
LOGS = "logs"  # Directory in a run's directory with one file for each role.
_HEARTBEAT_PERIOD_SECONDS = 1.0


class MachineDiffersError(errors.UserError):
    """A machine has other versions or sources than the driver's machine."""


class RoleProcess:
    """A process with a role; `fleet.Fleet._start` makes it a Ray actor."""

    def __init__(
        self,
        spec: role.RoleSpec,
        workdir: pathlib.Path,
        shared_state: Any,
        driver_versions: Mapping[str, str],
        num_threads: int,
    ):
        if num_threads:
            os.environ["TF_NUM_INTRAOP_THREADS"] = str(num_threads)
            os.environ["TF_NUM_INTEROP_THREADS"] = str(num_threads)
        if not spec.num_gpus:
            hardware.hide_gpus()
        hardware.keep_freed_memory()
        self._spec = spec
        self._versions = driver_versions
        self._context = role.RoleContext(spec.name, workdir, shared_state)
        self._context.metrics = self._metrics
        self._role: role.Role | None = None
        self._gauges: dict[str, ray_metrics.Gauge] = {}
        log_to(workdir / LOGS / f"{spec.name}.log")
        logging.getLogger().addFilter(self._keep_announcement)
        threading.Thread(target=self._send_heartbeats, name="heartbeat", daemon=True).start()

    def _keep_announcement(self, record: logging.LogRecord) -> bool:
        """Keeps the text of a record with `is_announced` for heartbeats; filters nothing out."""
        if getattr(record, "is_announced", False):
            self._context.announcements.append(record.getMessage())
        return True

    def run(self) -> bool:
        """Runs the role, see `role.Role.run`; MachineDiffersError if versions differ here."""
        logging.info("Started process %d on %s", os.getpid(), socket.gethostname())
        try:
            if differing := versions.differing(self._versions):
                raise MachineDiffersError(
                    f"{socket.gethostname()}, where {self._spec.name} is to run, has {differing}. "
                    "Install the same requirements.lock and the same laser_tf on all machines."
                )
            module, name = self._spec.role_class.split(":")
            self._context.detail = "loading TensorFlow"
            role_class = getattr(importlib.import_module(module), name)
            self._context.detail = ""
            self._role = role_class(self._context, **self._spec.arguments)
            return self._role.run()
        except errors.StoppedError:
            return False
        except (errors.UserError, role.RestartError):
            raise
        except Exception:  # A bug: the driver logs only its message.
            logging.exception("%s failed", self._spec.name)
            raise
        finally:
            self._context.announce(run_state.Status.STOPPED)  # Also sends the last episodes.

    @ray.method(concurrency_group=CONTROL)
    def stop(self) -> None:
        """Requests that `run` saves its state and returns."""
        self._context.stop_requested.set()

    def _send_heartbeats(self) -> None:
        while True:
            self._context.report()
            time.sleep(_HEARTBEAT_PERIOD_SECONDS)

    def _metrics(self) -> dict[str, float]:
        """Returns metrics, which are also exported as `ray_laser_tf_<name>{role="actor_00"}`."""
        metrics = {MEMORY: psutil.Process().memory_info().rss / 2**20}
        try:
            metrics |= self._role.metrics() if self._role else {}
        except Exception as error:  # E.g. because replay has stopped; heartbeats must continue.
            logging.debug("No metrics: %s", errors.one_line(error))
        for name, value in metrics.items():
            if name not in self._gauges:
                exported = "laser_tf_" + re.sub(r"\W", "_", name)
                self._gauges[name] = ray_metrics.Gauge(exported, tag_keys=("role",))
            self._gauges[name].set(value, tags={"role": self._spec.name})
        return metrics


def log_to(path: pathlib.Path) -> None:
    """Sends the output of this process to a file; to Ray's logs if its directory is missing."""
    if path.parent.is_dir():
        with path.open("ab") as log:
            for descriptor in (1, 2):
                os.dup2(log.fileno(), descriptor)
    log_messages.show("%(asctime)s %(message)s")
