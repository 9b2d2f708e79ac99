"""The process of a role: prepared, told to stop, and heard of once a second."""

import abc
import contextlib
import importlib
import logging
import os
import pathlib
import signal
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import ray

from laser_tf import errors
from laser_tf.cluster import hub, role_metrics
from laser_tf.environments import episode_statistics
from laser_tf.host import allocator, failure_notice, log_messages
from laser_tf.workdir import versions

TIME_STEPS = "time_steps"  # metric of a role that acts: how often its environments have returned
# States.
STARTS, ENDED = "starts", "has ended"
FOLLOWS = "waits until another process has left the folder"
RESTORES = "restores replay"  # in silence: Reverb keeps Python's lock while it loads
LEARNS, SAVES = "learns", "saves"
CONTROL = "control"  # Ray's threads of a role for what is called beside its work
LOGS = "logs"  # folder of a run's, of a file a role
_REPORT_SECONDS = 1.0
_REPORT_TIMEOUT_SECONDS = 10.0


class MachineDiffersError(errors.UserError):
    """A machine has other versions or sources than the driver's."""


class Context:
    """What a role knows of the run that it is part of."""

    def __init__(self, name: str, workdir: pathlib.Path, hub_: Any):
        """Begins without anything to report.

        Args:
          name: of the role.
          workdir: the run's folder.
          hub_: handle of the `hub.Hub`.
        """
        self.name = name
        self.workdir = workdir
        self.hub = hub_
        self.stop = threading.Event()  # set: save what is to be saved, and end
        self.state = STARTS  # in words
        self.reported = ""  # the state that the hub has heard of
        self.is_at_risk = False  # see `hub.Health`
        self.replay: tuple[int, str] | None = None  # where it serves replay, see `hub.Hub.report`
        self._replay_address = ""  # before `find_replay`
        self._lock = threading.Lock()
        self._episodes: list[episode_statistics.Episode] = []

    def add_episode(self, episode: episode_statistics.Episode) -> None:
        """Takes a finished episode, for the next report."""
        with self._lock:
            self._episodes.append(episode)

    def take_episodes(self) -> list[episode_statistics.Episode]:
        """What was added since the last call."""
        with self._lock:
            episodes, self._episodes = self._episodes, []
        return episodes

    def announce(self, state: str) -> None:
        """Takes a state and waits until it is reported: before what will not let anything be."""
        self.state = state
        deadline = time.monotonic() + _REPORT_TIMEOUT_SECONDS
        while self.reported != state and time.monotonic() < deadline:
            time.sleep(0.1)

    @contextlib.contextmanager
    def saving(self) -> Iterator[None]:
        """Tells that replay is being saved, which is waited for however long it takes."""
        before, self.state = self.state, SAVES
        try:
            yield
        finally:
            self.state = before

    def ask(self, method: str, *arguments: Any, seconds: float = 10.0) -> Any:
        """What the hub answers; None where it does not, being restarted."""
        try:
            return ray.get(getattr(self.hub, method).remote(*arguments), timeout=seconds)
        except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
            return None

    def find_replay(self) -> str | None:
        """Where replay listens, "host:port"; waits until it does; None once the role is to stop."""
        address = self.wait_for("replay_address", 0, what="replay")
        self._replay_address = address or self._replay_address
        return address

    def newest_replay_address(self) -> str:
        """Where replay listens by now, as far as the hub says; as `find_replay` has found it."""
        self._replay_address = self.ask("replay_address", 0) or self._replay_address
        return self._replay_address

    def wait_for(self, method: str, *arguments: Any, what: str) -> Any:
        """What the hub answers once that is not None; None once the role is to stop.

        Args:
          method: of the hub.
          *arguments: of the method.
          what: that is waited for, in words, for the role's state.
        """
        self.state = f"waits for {what}"
        while not self.stop.is_set():
            answer = self.ask(method, *arguments)
            if answer is not None:
                return answer
            self.stop.wait(0.2)
        return None


TOLD = "was told to end"  # why most roles end


class Role(abc.ABC):
    """What a process does for a run."""

    @abc.abstractmethod
    def run(self) -> str | None:
        """Works until the context's `stop` is set, or all is done.

        Returns:
          None where all is done; else why the work has ended before, in words.
        """

    @abc.abstractmethod
    def metrics(self) -> Mapping[str, float]:
        """What is reported of it, name -> value; called in another thread than `run`."""


class RoleProcess:
    """A process with a role; made a Ray actor by `fleet.Fleet`."""

    def __init__(
        self,
        name: str,
        place: str,
        arguments: Mapping[str, Any],
        workdir: pathlib.Path,
        hub_: Any,
        variables: Mapping[str, str],
    ):
        """Prepares the process.

        Args:
          name: of the role.
          place: "module:class" of a `Role`, loaded here alone: the driver needs no TensorFlow.
          arguments: of the class, after the context.
          workdir: the run's folder.
          hub_: handle of the `hub.Hub`.
          variables: of the environment, e.g. for TensorFlow's threads.
        """
        os.environ.update(variables)
        allocator.keep_freed_memory()
        self._context = Context(name, workdir, hub_)
        self._place, self._arguments = place, arguments
        self._role: Role | None = None
        self._notice = failure_notice.FailureNotice("the hub answers again")
        log_to(workdir / LOGS / f"{name}.log")
        self._stop_on_signals()
        self._gauges = role_metrics.Gauges(name)
        threading.Thread(target=self._keep_reporting, name="report", daemon=True).start()

    def run(self, recorded_versions: Mapping[str, str]) -> str | None:
        """Does the role's work; returns None where all is done, else why it has ended before.

        Args:
          recorded_versions: of the driver's machine, which must be the same here.

        Raises:
          MachineDiffersError: if this machine has other versions.
          UserError: for what the user can mend.
        """
        self._check_versions(recorded_versions)
        module, name = self._place.split(":")
        logging.info("process %d on %s", os.getpid(), socket.gethostname())
        try:
            role = getattr(importlib.import_module(module), name)
            self._role = role(self._context, **self._arguments)
            return self._role.run()
        except errors.UserError:
            raise
        except Exception:  # A bug. The driver logs only its message.
            logging.exception("%s failed", self._context.name)
            raise
        finally:
            self._context.state = ENDED
            self._report()  # the last episodes

    def _check_versions(self, expected: Mapping[str, str]) -> None:
        differing = versions.differing(expected)
        if differing:
            raise MachineDiffersError(
                f"{socket.gethostname()}, where {self._context.name} is to run, has {differing}: "
                "install the same requirements.lock and the same laser_tf on all machines"
            )

    @ray.method(concurrency_group=CONTROL)
    def stop(self) -> None:
        """Has `run` save what is to be saved, and end."""
        self._context.stop.set()

    @ray.method(concurrency_group=CONTROL)
    def leave(self) -> None:
        """Ends the process, which Ray then starts anew."""
        os._exit(1)

    def _stop_on_signals(self) -> None:
        # Python's own handlers wait for the main thread, which is in Ray's C++ all the time.
        receiver, sender = socket.socketpair()
        sender.setblocking(False)
        signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda *_: None)

        def wait_for_signals() -> None:
            while received := receiver.recv(1):
                if received[0] == signal.SIGTERM:
                    logging.info("told to end")
                    self._context.stop.set()

        self._sockets = receiver, sender
        threading.Thread(target=wait_for_signals, name="signals", daemon=True).start()

    def _keep_reporting(self) -> None:
        while True:
            self._report()
            time.sleep(_REPORT_SECONDS)

    def _report(self) -> None:
        context = self._context
        metrics = role_metrics.of_process() | self._metrics_of_role()
        self._gauges.set(metrics)
        health = hub.Health(
            socket.gethostname(),
            ray.get_runtime_context().get_node_id(),
            os.getpid(),
            context.state,
            context.is_at_risk,
            metrics,
        )
        sent = context.hub.report.remote(
            context.name, health, context.take_episodes(), context.replay
        )
        try:
            ray.get(sent, timeout=_REPORT_TIMEOUT_SECONDS)
            context.reported = health.state
            self._notice.succeeded()
        except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError) as error:
            self._notice.failed(f"the hub does not answer ({type(error).__name__})")

    def _metrics_of_role(self) -> dict[str, float]:
        """None where they cannot be had, as of replay that has ended: it is heard of still."""
        try:
            return dict(self._role.metrics()) if self._role else {}
        except Exception as error:  # this thread must outlive whatever it is
            logging.debug("no metrics: %s", errors.one_line(error))
            return {}


def log_to(path: pathlib.Path) -> None:
    """Sends what this process prints, and C++ libraries do, to a file, where its folder is seen.

    Elsewhere it stays in Ray's own logs.
    """
    if path.parent.is_dir():
        with path.open("ab") as log:
            for descriptor in (1, 2):
                os.dup2(log.fileno(), descriptor)
    log_messages.show("%(asctime)s %(message)s")
