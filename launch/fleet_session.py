"""A fleet from the start of Ray to its end: for runs on several processes, and for sweeps."""

import contextlib
import logging
import pathlib
from collections.abc import Callable, Sequence

from laser_tf.cluster import fleet, machines, ray_session, role_spec
from laser_tf.host import interruption
from laser_tf.training import cluster_config
from launch import command_line

MakeJob = Callable[[], contextlib.AbstractContextManager[fleet.Job]]


def run(
    specs: Sequence[role_spec.RoleSpec],
    cluster: cluster_config.ClusterConfig,
    workdir: pathlib.Path,
    open_workdir: Callable[[], bool],
    make_job: MakeJob,
) -> int | None:
    """Runs a fleet until its job is finished or a signal stops it.

    Args:
      specs: The roles.
      cluster: Configuration of the cluster.
      workdir: Directory of the run or the sweep.
      open_workdir: Opens the directory once Ray has started; returns whether work is left.
      make_job: Creates the job; its context ends with the job.

    Returns:
      The signal that stopped the fleet, which has saved itself; None if the job is finished.

    Raises:
      UserError: If Ray cannot be used, the directory is rejected, or a role has failed for good.
    """
    interrupted = interruption.Interruption()
    try:
        return _run(specs, cluster, workdir, open_workdir, make_job, interrupted)
    except interruption.Stopped as stopped:
        return stopped.signal_number


def _run(
    specs: Sequence[role_spec.RoleSpec],
    cluster: cluster_config.ClusterConfig,
    workdir: pathlib.Path,
    open_workdir: Callable[[], bool],
    make_job: MakeJob,
    interrupted: interruption.Interruption,
) -> int | None:
    requested = role_spec.requested_resources(specs)
    with ray_session.session(cluster, *requested, interrupted):
        machines.check_versions()
        if interrupted.stop or not open_workdir():  # After a signal nothing is written.
            return interrupted.signal_number
        command_line.divert_native_messages(workdir / "native.log")
        # Ray prints to standard output when a process dies; the fleet logs such events.
        with (
            make_job() as job,
            (workdir / "native.log").open("a") as log,
            contextlib.redirect_stdout(log),
        ):
            running = fleet.Fleet(job, specs, workdir, cluster)
            running.run(interrupted)
    if interrupted.stop:  # Even if the job has finished in the meantime.
        logging.info("%s", running.outcome(interrupted))
    else:
        job.finish()
    return interrupted.signal_number
