"""The machines of a Ray cluster: their cores, and Ray processes of the driver's machine."""

import os
import socket
from typing import Any

import ray
from ray.util import scheduling_strategies

from laser_tf import errors
from laser_tf.host import log_messages

_CONNECT_TIMEOUT_SECONDS = 10.0


class RayLostError(errors.UserError):
    """Ray has ended; the same command resumes the run."""


def total_cores() -> int:
    """Returns the cores of all machines; on one machine, those that this process may use."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    if len(nodes) == 1:
        return len(os.sched_getaffinity(0))
    return int(sum(node["Resources"].get("CPU", 0) for node in nodes))


def on_this_machine(*, soft: bool = False) -> scheduling_strategies.NodeAffinitySchedulingStrategy:
    """Returns a scheduling strategy; `soft` allows another machine if this one lacks resources."""
    return scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=soft
    )


def start_service(class_: type, *arguments: Any, name: str | None = None) -> Any:
    """Starts a class as a Ray actor on this machine. After a crash Ray repeats lost calls.

    Returns the handle, as `ray.get_actor(name)` does.
    """
    make = ray.remote(
        num_cpus=0,
        max_restarts=-1,
        max_task_retries=-1,
        # Ray's control store would keep 3 KB of each call: 4 MB a minute because of heartbeats.
        enable_task_events=False,
        # Not soft: Ray ignores a soft strategy for actors without CPUs.
        scheduling_strategy=on_this_machine(),
    )(class_)
    return make.options(name=name).remote(*arguments)


class RayMonitor:
    """Checks that Ray's processes on which this process depends have not ended."""

    def __init__(self):
        host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
        self._head = host.strip("[]"), int(port)
        self._node = ray.get_runtime_context().get_node_id()
        self._notice = log_messages.FailureNotice(on_recovery="Ray's head answers again.")

    def check(self) -> None:
        """Logs once if Ray's head does not answer, because Ray then soon ends this process.

        Raises:
          RayLostError: If Ray has ended on this machine.
        """
        try:
            socket.create_connection(self._head, _CONNECT_TIMEOUT_SECONDS).close()
        except OSError:
            self._notice.failed(
                "Ray's head has ended, which ends this command. The same command resumes from the "
                "last checkpoints."
            )
            return
        self._notice.succeeded()
        if not any(node["Alive"] for node in ray.nodes() if node["NodeID"] == self._node):
            raise RayLostError(
                "Ray has ended on this machine. Run the same command again: it resumes from the "
                "last checkpoints."
            )
