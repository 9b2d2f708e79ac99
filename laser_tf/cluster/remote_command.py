"""Commands on machines of a Ray cluster, as Ray jobs."""

import logging
import os
import pathlib
import shlex
import sys
from collections.abc import Sequence
from typing import Any

import ray
from ray import job_submission

from laser_tf import errors, installed_commands
from laser_tf.workdir import lock, versions

_MAX_RESTARTS = 10  # On other machines, after the machine of a command has failed.
_MAX_ERROR_LENGTH = 300
# Time for a job to end after `stop_job`. Ray's default, 3 s, is too short for a run to save itself.
_STOP_VARIABLE, _STOP_SECONDS = "RAY_JOB_STOP_WAIT_TIME_S", 900
_HEAD = {"node:__internal_head__": 0.001}  # Resource that only the head has.


class RemoteCommand:
    """A Ray job with `poll` and `send_signal` like `subprocess.Popen`.

    Ray chooses a machine with free resources. If the machine fails, `poll` restarts the command on
    another machine. The job continues if the calling process is killed.
    """

    def __init__(self, arguments: Sequence[str], log: pathlib.Path, cpus: float, gpus: float):
        """Submits the job. Call in a `ray_session.session` that has joined a cluster.

        Args:
          arguments: Arguments of `python -m`, the module first.
          log: File for the output, in a directory that all machines share.
          cpus: CPUs of the command.
          gpus: GPUs of the command.

        Raises:
          UserError: If the cluster has no job server.
        """
        self._log = log
        self._options = {
            "entrypoint": entrypoint(arguments, log),
            "entrypoint_num_cpus": cpus,
            "entrypoint_num_gpus": gpus,
            "runtime_env": {"env_vars": {_STOP_VARIABLE: str(_STOP_SECONDS)}},
        }
        self._restarts = 0
        # On the head, because the job server usually listens on its loopback only.
        client = ray.remote(num_cpus=0, resources=_HEAD)(job_submission.JobSubmissionClient)
        self._client = client.remote(ray.get_runtime_context().gcs_address)
        self._job = self._submit()

    def _submit(self) -> str:
        try:
            return self._call("submit_job", **self._options)
        except ray.exceptions.RayError as error:
            raise errors.UserError(
                f"Cannot submit {self._log.stem} as a Ray job: "
                f"{errors.one_line(error, _MAX_ERROR_LENGTH)}. Start Ray's head with its dashboard "
                "(pip install 'ray[default]')."
            ) from None

    def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        return ray.get(getattr(self._client, method).remote(*arguments, **options))

    def poll(self) -> int | None:
        """Returns the exit code; None while the command runs or waits for resources."""
        try:
            job = self._call("get_job_info", self._job)
        except ray.exceptions.RayError as error:
            logging.warning("No status of %s: %s", self._log.stem, type(error).__name__)
            return None
        if not job.status.is_terminal():
            return None
        if job.status is job_submission.JobStatus.STOPPED:
            return 1
        if job.driver_exit_code is None and self._restarts < _MAX_RESTARTS:
            logging.warning(
                "Restarting %s: %s", self._log.stem, (job.message or "")[:_MAX_ERROR_LENGTH]
            )
            self._restarts += 1
            self._job = self._submit()
            return None
        return 1 if job.driver_exit_code is None else job.driver_exit_code

    def send_signal(self, signal_number: int) -> None:
        """Stops the job with SIGTERM, for any `signal_number`; the command then saves its state."""
        del signal_number
        self._call("stop_job", self._job)


def entrypoint(arguments: Sequence[str], log: pathlib.Path) -> str:
    """Returns a shell command that ends in `exec python -m`, so that signals reach Python directly.

    The command fails on a machine with other versions or sources than this machine.
    """
    paths = filter(None, (str(installed_commands.IMPORT_FOLDER), os.environ.get("PYTHONPATH")))
    variables = {
        "PYTHONPATH": os.pathsep.join(paths),
        lock.WAIT_VARIABLE: "1",  # The process on a lost machine may still save its run.
    }
    settings = (f"{name}={shlex.quote(value)}" for name, value in variables.items())
    check = (
        "import sys; from laser_tf.workdir import versions; "
        f"sys.exit(versions.differing({versions.of_machine()!r}) or None)"
    )
    # The command line may name files relative to this directory.
    return (
        f"mkdir -p {shlex.quote(str(log.parent))}; cd {shlex.quote(str(pathlib.Path.cwd()))}; "
        f"exec </dev/null >>{shlex.quote(str(log))} 2>&1; export {' '.join(settings)}; "
        f"{shlex.join([sys.executable, '-c', check])} && "
        f"exec {shlex.join([sys.executable, '-m', *arguments])}"
    )
