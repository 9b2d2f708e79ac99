"""A command on some machine of a Ray cluster, handled like a process of this one."""

import logging
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Sequence

import ray

from laser_tf import errors, installed_commands
from laser_tf.cluster import roles
from laser_tf.host import kept_command
from laser_tf.workdir import lock

_POLL_SECONDS = 1.0
_RESTARTS = 10  # on other machines, where one fails; Ray does not count those taken from it
_MOST_SAID = 300  # characters, of an error of Ray's
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class CommandProcess:
    """What a machine of the cluster does for a command; made a Ray actor by `RemoteCommand`."""

    def __init__(self, arguments: Sequence[str], log: pathlib.Path, folder: pathlib.Path):
        """Starts the command, `python -m` with the arguments; see `RemoteCommand`."""
        log.parent.mkdir(parents=True, exist_ok=True)
        path = os.pathsep.join(
            filter(None, (str(installed_commands.FOLDER), os.environ.get("PYTHONPATH")))
        )
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                # For files that the command line names; those of `configs/` are found from any.
                cwd=folder if folder.is_dir() else None,
                # Where Ray's worker alone has died, the command of before is saving itself still.
                env=os.environ | {"PYTHONPATH": path, lock.FOLLOWS_VARIABLE: "1"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=_prepare,
            )

    def poll(self) -> int | None:
        """The exit code, for which it waits a little; None while the command runs."""
        try:
            return self._process.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, signal_number: int) -> None:
        """Forwards a signal to the command."""
        self._process.send_signal(signal_number)


def _prepare() -> None:
    """In the child, before it is its command: ends with the actor, and takes signals again."""
    kept_command.end_with_parent()
    # Ray's workers ignore or block some, which a child inherits.
    for number in _ENDING:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)


class RemoteCommand:
    """A command on a machine with room, which Ray chooses; with `poll` as `subprocess.Popen` has.

    Where that machine fails the command is started again on another one.
    """

    def __init__(self, arguments: Sequence[str], log: pathlib.Path, cpus: float, gpus: float):
        """Asks for a machine, in a `ray_session.session` with a cluster; does not wait for it.

        Args:
          arguments: of `python -m`, the module first.
          log: takes what the command prints; in a folder that all machines see.
          cpus: that Ray keeps for the command.
          gpus: the same.
        """
        self._log = log
        self._actor = roles.restarted(
            CommandProcess,
            max_restarts=_RESTARTS,
            num_cpus=cpus,
            num_gpus=gpus,
            max_task_retries=-1,
            scheduling_strategy="SPREAD",
        ).remote(tuple(arguments), log, pathlib.Path.cwd())
        self._answer = self._actor.poll.remote()
        self._has_started = self._is_withdrawn = False

    def poll(self) -> int | None:
        """The exit code; None while the command runs, or waits for a machine with room."""
        ready, _ = ray.wait([self._answer], timeout=0)
        if not ready:
            return None
        try:
            code = ray.get(self._answer)
        except ray.exceptions.RayError as error:
            if not self._is_withdrawn:
                said = errors.one_line(error, _MOST_SAID)
                logging.error(
                    "no machine of the cluster keeps the command of %s: %s", self._log, said
                )
            return 1
        self._has_started = True
        if code is None:
            self._answer = self._actor.poll.remote()
        return code

    def send_signal(self, signal_number: int) -> None:
        """Forwards a signal; a command that has no machine yet is withdrawn."""
        if self._has_started:
            self._actor.send_signal.remote(signal_number)
        else:
            self._is_withdrawn = True
            ray.kill(self._actor)
