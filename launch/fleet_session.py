"""A fleet from the start of Ray to its end: for runs on several processes, and for sweeps."""

import contextlib
import logging
import pathlib
from collections.abc import Callable

from laser_tf.cluster import fleet, ray_session
from laser_tf.host import interruption, native_messages
from laser_tf.training import cluster_config


def run(
    job: fleet.Work,
    cluster: cluster_config.ClusterConfig,
    workdir: pathlib.Path,
    open_workdir: Callable[[], bool],
) -> int | None:
    """Runs a fleet until its job is finished or a signal stops it.

    `open_workdir` opens the directory of the run or sweep once Ray has started, and returns whether
    work is left.

    Returns:
      The signal that stopped the fleet, which has saved itself; None if the job is finished.
    """
    signals = interruption.Interruption()
    try:
        with (
            contextlib.ExitStack() as diverted,  # Until Ray has ended, which logs, too.
            ray_session.session(cluster, *job.requested_resources, signals),
        ):
            # After a signal nothing is written.
            if signals.stop_requested or not open_workdir():
                return signals.signal_number
            native_log = workdir / native_messages.FILE
            diverted.enter_context(native_messages.diverted(native_log))
            # Ray prints to standard output when a process dies; the fleet logs such events.
            with job.display, native_log.open("a") as log, contextlib.redirect_stdout(log):
                running = fleet.Fleet(job, workdir, cluster)
                running.run(signals)
    except interruption.Stopped as stopped:
        return stopped.signal_number
    if signals.stop_requested:  # Even if the job has finished in the meantime.
        logging.info("%s", running.outcome(signals))
    else:
        job.finish()
    return signals.signal_number
