"""Ray actors of a run: placement and restarts, the shared state, and roles."""

import contextlib
import logging
import os
import pathlib
import signal
import time
from collections.abc import Mapping
from typing import Any

import ray
from ray.util import scheduling_strategies

from laser_tf.cluster import run_state
from laser_tf.workdir import lock

NAMESPACE = "laser_tf"  # Ray would otherwise give each driver its own names.


def on_this_node(*, soft: bool = False) -> scheduling_strategies.NodeAffinitySchedulingStrategy:
    """Returns a scheduling strategy for this machine.

    Args:
      soft: Whether Ray may use another machine if this one lacks resources. Ray ignores a soft
        strategy for actors without CPUs.
    """
    return scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=soft
    )


def restarted(class_: type, **options: Any) -> Any:
    """Returns a Ray actor class whose processes Ray restarts without limit.

    Args:
      class_: Class of the actor.
      **options: Options of `ray.remote`, e.g. `num_cpus`.
    """
    # Ray's control store would keep 3 KB of each call: 4 MB a minute because of heartbeats.
    return ray.remote(max_restarts=-1, enable_task_events=False, **options)(class_)


class RoleActor:
    """The Ray actor of a role: a `role_process.RoleProcess`."""

    def __init__(self, handle: Any, versions: Mapping[str, str]):
        """Creates the view.

        Args:
          handle: Ray's handle.
          versions: Versions of this machine, see `role_process.RoleProcess.run`.
        """
        self._handle = handle
        self._versions = dict(versions)
        self._work: Any = None
        self._exit: Any = None

    def start(self) -> None:
        """Starts the role's work."""
        self._exit = None
        self._work = self._handle.run.remote(self._versions)

    @property
    def is_working(self) -> bool:
        """Whether the work has neither returned nor failed."""
        return not ray.wait([self._work], timeout=0)[0]

    def result(self) -> run_state.Status:
        """Returns the status that ended the work.

        Raises:
          RayError: If the work or its process failed.
          GetTimeoutError: If the work has not ended.
        """
        return ray.get(self._work, timeout=0)

    def exit(self) -> None:
        """Ends what remains of the process; Ray starts a new one."""
        self._exit = self._handle.exit.remote()

    @property
    def has_exited(self) -> bool:
        """Whether the process has ended since `exit`, or `exit` was not called."""
        return self._exit is None or bool(ray.wait([self._exit], timeout=0)[0])

    def stop(self) -> None:
        """Tells the role to save its state and stop."""
        self._handle.stop.remote()

    def release(self) -> None:
        """Ends the process without a restart, which frees its resources."""
        with contextlib.suppress(ray.exceptions.RayError):  # Ray itself may have ended.
            ray.kill(self._handle, no_restart=True)

    def kill(self, heartbeat: run_state.Heartbeat) -> None:
        """Kills the process, even if it is stopped by a signal."""
        node = scheduling_strategies.NodeAffinitySchedulingStrategy(heartbeat.node, soft=False)
        kill = ray.remote(num_cpus=0, max_retries=0)(os.kill).options(scheduling_strategy=node)
        kill.remote(heartbeat.process, signal.SIGKILL)


def start_state(workdir: pathlib.Path) -> Any:
    """Starts the `run_state.RunState` on this machine; its name rejects a second driver."""
    make = restarted(
        run_state.RunState,
        num_cpus=0,
        name=f"state of {workdir}",
        namespace=NAMESPACE,
        scheduling_strategy=on_this_node(),
    )
    deadline = time.monotonic() + lock.EXIT_TIMEOUT_SECONDS
    is_logged = False
    while True:
        try:
            return make.remote()
        except ValueError:  # The name is in use.
            if time.monotonic() >= deadline:
                raise lock.InUseError(
                    f"--workdir must not be in use, got {workdir}, which another run of this "
                    "cluster uses. Wait for its end, stop it, or use another --workdir."
                ) from None
        if not is_logged:
            logging.info("Waiting until another run of this cluster has left %s", workdir)
            is_logged = True
        time.sleep(1.0)


def heartbeats(state: Any) -> dict[str, run_state.Heartbeat]:
    """Returns the heartbeats of all roles; {} while the run's state is restarted."""
    try:
        return ray.get(state.heartbeats.remote(), timeout=10.0)
    except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
        return {}
