"""The machines of a Ray cluster: their cores, versions and free resources, and Ray's head."""

import logging
import os
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import ray
from ray.util import scheduling_strategies

from laser_tf import errors
from laser_tf.cluster import ray_session, supervision
from laser_tf.workdir import versions

_CONNECT_TIMEOUT_SECONDS = 10.0
_MAX_ERROR_LENGTH = 300
_REPORT_WAITING_MINUTES = 2.0  # Ray may need this long to place and start a process.
_MIN_WAIT_MINUTES = 5.0


def num_cores() -> int:
    """Returns the cores of all machines; on one machine, those that this process may use."""
    nodes = _living()
    if len(nodes) == 1:
        return len(os.sched_getaffinity(0))
    return int(sum(node["Resources"].get("CPU", 0) for node in nodes))


class HeadMonitor:
    """Logs that Ray's head has ended, which makes Ray end this process without a message."""

    def __init__(self):
        """Creates the monitor of the head that this process is connected to."""
        host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
        self._address = host.strip("[]"), int(port)
        self._is_logged = False

    def check(self) -> None:
        """Logs once if the head does not accept connections."""
        try:
            socket.create_connection(self._address, _CONNECT_TIMEOUT_SECONDS).close()
            self._is_logged = False
        except OSError:
            if not self._is_logged:
                logging.error(
                    "Ray's head has ended, which ends this command. The same command resumes "
                    "from the last checkpoints."
                )
            self._is_logged = True


def check_versions() -> None:
    """Checks that all machines of the cluster have this one's versions and sources.

    Raises:
      ClusterError: For the first that has not.
    """
    here = versions.of_machine()
    look = ray.remote(num_cpus=0)(versions.differing)
    asked = []
    for node in _living():
        place = scheduling_strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        asked.append((node, look.options(scheduling_strategy=place).remote(here)))
    for node, answer in asked:
        try:
            differing = ray.get(answer)
        except ray.exceptions.RayError as error:
            differing = f"no such project to import ({errors.one_line(error, _MAX_ERROR_LENGTH)})"
        # A machine that has died meanwhile has no differing versions: nothing will run there.
        if differing and any(living["NodeID"] == node["NodeID"] for living in _living()):
            raise ray_session.ClusterError(
                f"{node['NodeManagerHostname']} has {differing}: install the same "
                "requirements.lock and the same laser_tf on all machines"
            )


def _living() -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


class Placement:
    """Detects roles that wait for a machine of a cluster with enough resources."""

    def __init__(self, wait_minutes: float, clock: Callable[[], float] = time.monotonic):
        """Starts to wait.

        Args:
          wait_minutes: Time for machines to join.
          clock: Returns seconds.
        """
        self._clock = clock
        self._started = clock()
        self._minutes = max(_MIN_WAIT_MINUTES, wait_minutes)
        self._placed: set[str] = set()  # The run's state has no heartbeats after a restart.
        self._is_logged = False

    def check(
        self,
        roles: Sequence[supervision.SupervisedRole],
        placed: Iterable[str],
        groups: Sequence[Sequence[supervision.SupervisedRole]],
    ) -> None:
        """Logs once which roles wait.

        Args:
          roles: All roles.
          placed: Names of roles with a heartbeat.
          groups: Groups of roles, of each of which one role is required.

        Raises:
          RoleFailedError: If a required role, or all roles of a group, have waited too long.
        """
        self._placed.update(placed)
        waiting = [role for role in roles if role.name not in self._placed]
        minutes = (self._clock() - self._started) / 60
        if not waiting or minutes < _REPORT_WAITING_MINUTES:
            return
        names = ", ".join(role.name for role in waiting[:4]) + " and others" * (len(waiting) > 4)
        is_required = any(role.required for role in waiting) or any(
            all(role in waiting for role in group) for group in groups
        )
        if is_required and minutes > self._minutes:
            raise supervision.RoleFailedError(
                f"After {minutes:.0f} minutes no machine of the cluster has room for {names}. Add "
                "machines, lower cluster.learner_gpus, cluster.learner_cpus or cluster.actor_cpus, "
                "or raise cluster.wait_minutes."
            )
        if not self._is_logged:
            logging.info("Waiting for a machine with room for %s", names)
            self._is_logged = True
