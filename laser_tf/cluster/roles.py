"""What the drivers of a run and of a sweep do with their roles."""

import logging
import pathlib
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ray
from ray.util import scheduling_strategies

from laser_tf.cluster import hub, role_metrics, role_process, supervision
from laser_tf.host import interruption
from laser_tf.workdir import atomic, lock

ROLES = "roles.csv"  # in the folder of a run or a sweep, written anew all the time: a line a role
_HEADER = "role,state,host,process,memory_mebibytes,silent_seconds,restarts"
_END_SECONDS = 180.0  # for roles to end
_SAVING_SECONDS = 120.0  # more, since a role was last heard to save: the hub may be restarted
_LOOK_SECONDS = 2.0
_NAMESPACE = "laser_tf"  # else Ray would give each driver names of its own


def here(*, soft: bool = False) -> scheduling_strategies.NodeAffinitySchedulingStrategy:
    """Has Ray place something on this machine.

    Args:
      soft: whether another one will do where this one has never room for it. Not for what asks for
        no CPUs: that Ray then places anywhere.
    """
    return scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=soft
    )


def restarted(class_: type, *, max_restarts: int = -1, **options: Any) -> Any:
    """A class whose instances are Ray actors, which are started again where they die.

    Args:
      class_: of the actor.
      max_restarts: how often; -1: each time.
      **options: of Ray's, e.g. `num_cpus`.
    """
    # Of every call Ray's control store would keep 3 KB for a page of its dashboard: 4 MB a minute,
    # roles being heard of once a second.
    return ray.remote(max_restarts=max_restarts, enable_task_events=False, **options)(class_)


def make_hub(workdir: pathlib.Path) -> Any:
    """The hub, on this machine; its name is what tells a second driver on the same folder.

    Raises:
      InUseError: if there is one of this cluster already.
    """
    make = restarted(
        hub.Hub,
        num_cpus=0,
        max_task_retries=0,
        name=f"hub of {workdir}",
        namespace=_NAMESPACE,
        scheduling_strategy=here(),
    )
    deadline = time.monotonic() + lock.EXIT_TIMEOUT_SECONDS
    is_told = False
    while True:
        try:
            return make.remote()
        except ValueError:  # the name is taken
            if time.monotonic() >= deadline:
                raise lock.InUseError(
                    f"another run of this cluster works in {workdir}: wait for its end or end it, "
                    "or use another --workdir"
                ) from None
            if not is_told:
                logging.info("waiting until another run of this cluster has left %s", workdir)
                is_told = True
            time.sleep(1.0)


def make_role(
    name: str,
    place: str,
    arguments: Mapping[str, Any],
    workdir: pathlib.Path,
    hub_: Any,
    versions: Mapping[str, str],
    *,
    variables: Mapping[str, str] | None = None,
    is_vital: bool = False,
    reply_seconds: float = 0.0,
    **options: Any,
) -> supervision.Supervised:
    """Begins a role's work in a process of its own.

    Args:
      name: of the role.
      place: "module:class" of it in this package.
      arguments: of the class, after the context.
      workdir: folder of the run or the sweep.
      hub_: its hub.
      versions: of this machine, see `versions.of_machine`.
      variables: of the process's environment.
      is_vital: see `supervision.Supervised`.
      reply_seconds: see `supervision.Supervised`.
      **options: of Ray's, e.g. `num_cpus`.
    """
    process = restarted(
        role_process.RoleProcess,
        concurrency_groups={role_process.CONTROL: 2},
        name=name,
        **options,
    )
    actor = process.remote(
        name, f"laser_tf.cluster.{place}", arguments, workdir, hub_, variables or {}
    )
    return supervision.Supervised(
        name, actor, versions, is_vital=is_vital, reply_seconds=reply_seconds
    )


def healths(hub_: Any) -> dict[str, hub.Health]:
    """How each role was when it last reported; none where the hub is being restarted."""
    try:
        return ray.get(hub_.healths.remote(), timeout=10.0)
    except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
        return {}


def write_states(
    workdir: pathlib.Path,
    of: Iterable[supervision.Supervised],
    healths_: Mapping[str, hub.Health],
) -> None:
    """Writes `ROLES`: how each role is and where."""
    lines = [_HEADER, *(_health_line(role, healths_.get(role.name)) for role in of)]
    atomic.try_write(workdir / ROLES, "\n".join(lines) + "\n")


def _health_line(role: supervision.Supervised, said: hub.Health | None) -> str:
    state = "failed" if role.has_failed else "done" if role.is_done else role_process.STARTS
    if said is None:
        return f"{role.name},{state},,,,,{role.restarts}"
    if state == role_process.STARTS and role.is_there:
        state = said.state.replace(",", ";")
    memory = said.metrics.get(role_metrics.MEMORY, 0.0)
    place = f"{said.host},{said.process},{memory:.0f},{said.seconds:.1f}"
    return f"{role.name},{state},{place},{role.restarts}"


def end(
    groups: Iterable[Sequence[supervision.Supervised]],
    interrupted: interruption.Interruption,
    hub_: Any,
    seconds: float = _END_SECONDS,
) -> list[str]:
    """Asks one group of roles after the other to save themselves and end, and waits for each.

    Args:
      groups: of roles.
      interrupted: a second Ctrl-C ends the waiting.
      hub_: that they report to.
      seconds: that each group has; those that save replay get as long as that takes.

    Returns:
      Names of those that had not ended, or in an error, and so may not have saved what they had.
    """
    unsaved = []
    for roles in groups:
        asked = [role for role in roles if role.stop()]
        _wait_for(asked, interrupted, hub_, seconds)
        unsaved += [role.name for role in asked if not role.has_ended_well()]
    return unsaved


def _wait_for(
    roles: Sequence[supervision.Supervised],
    interrupted: interruption.Interruption,
    hub_: Any,
    seconds: float,
) -> None:
    """Waits until all have ended, however long a large replay takes."""
    start, is_told = time.monotonic(), False
    look, deadline = start + _LOOK_SECONDS, start + seconds
    while working := [role.name for role in roles if role.is_working]:
        now = time.monotonic()
        if interrupted.hurry or now >= deadline:
            return
        if now >= look:
            look = now + _LOOK_SECONDS
            if saving := sorted(_saving(hub_).intersection(working)):
                deadline = max(deadline, now + _SAVING_SECONDS)
            if saving and now >= start + seconds and not is_told:
                logging.info("waiting for %s to save; a second Ctrl-C kills", ", ".join(saving))
                is_told = True
        time.sleep(0.1)


def _saving(hub_: Any) -> set[str]:
    return {
        name
        for name, said in healths(hub_).items()
        if said.state == role_process.SAVES and said.seconds < _SAVING_SECONDS
    }


def outcome(interrupted: interruption.Interruption, unsaved: Sequence[str]) -> str:
    """What to tell whoever has stopped a run or a sweep.

    Args:
      interrupted: how.
      unsaved: from `end`.
    """
    if not unsaved:
        return "stopped and saved; the same command resumes"
    how = "killed" if interrupted.hurry else f"stopped, but not all is saved: {', '.join(unsaved)}"
    return f"{how}; the same command resumes from the last checkpoints"
