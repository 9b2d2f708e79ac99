"""Objects in worker processes, for engines that crash, block or need one process each.

A worker starts as a fresh interpreter that imports the modules of its object and nothing else.
Python's `multiprocessing` would import the parent's main module as well: TensorFlow, with seconds
and hundreds of megabytes per worker. Requests and answers are anything that can be pickled.
"""

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import connection
from typing import Any, NamedTuple

from laser_tf import errors, installed_commands
from laser_tf.environments import faults, worker_output
from laser_tf.host import process_launcher

_CLOSE_TIMEOUT_SECONDS = 10.0

# The parent decides what signals mean that reach all processes of a terminal or a job. An engine
# that a worker starts inherits what is ignored, but must end where the worker terminates it.
_CHILD = """
import os, signal
for number in (signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
signal.signal(signal.SIGTERM, lambda *_: None)
os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))
import ctypes, sys
os.environ.setdefault("OMP_NUM_THREADS", "1")  # Workers share the cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
launcher, pipe, *files = map(int, sys.argv[1:])
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
if os.getppid() != launcher:  # It has ended already.
    sys.exit()
sys.stdout.reconfigure(line_buffering=True)  # A crash would lose the content of the buffer.
from multiprocessing import connection
pipe = connection.Connection(pipe)
sys.path[:] = pipe.recv()
from laser_tf.environments import worker_pool
worker_pool.serve(pipe, files)
"""


class Failure(NamedTuple):
    """Replaces the answer of a worker that failed and is restarted."""

    reason: str  # One line.
    details: str = ""  # Traceback, if the worker could send it.
    is_final: bool = False  # A restart does not help.


def failure_of(error: Exception) -> Failure:
    """Returns the failure for an error that was just raised; invalid configurations are final."""
    is_final = isinstance(error, errors.ConfigError)
    return Failure(faults.describe(error), errors.printable(traceback.format_exc()), is_final)


class WorkerPool:
    """Objects that live in one process each and are called at the same time.

    A worker that raises, dies or does not answer in time is restarted; its next call finds a new
    object. Workers end with their parent, however the parent ends. Each worker has its own session
    and process group, so the processes that it has started end with it.
    """

    def __init__(
        self,
        factories: Mapping[str, Callable[..., Any]],
        reply_seconds: float,
        files: Sequence[int] = (),
        progressed_at: Callable[[int], float] = lambda _: 0.0,
        close_seconds: float = _CLOSE_TIMEOUT_SECONDS,
    ):
        """Starts the workers and waits until all objects are made.

        Args:
          factories: Name of a worker, for messages -> function that makes its object. It is called
            with the number of restarts and, if there are `files`, the file descriptor. It can be
            pickled and comes from a module that is light to import. The object may have a `close`.
          reply_seconds: Time limit of a call, and of restarting a worker before the call. It
            restarts whenever `progressed_at` does.
          files: Descriptor of an open file for each worker, which inherits it.
          progressed_at: Maps the index of a worker to the `time.monotonic()` of its last progress
            within a call, e.g. when it moved to the next of several environments.
          close_seconds: Time limit of `close`, after which workers are killed.

        Raises:
          RuntimeError: If an object cannot be made; the message names its worker.
        """
        self._reply_seconds = reply_seconds
        self._progressed_at = progressed_at
        self._close_seconds = close_seconds
        self._workers: list[WorkerProcess] = []
        try:
            for index, factory in enumerate(factories.values()):
                self._workers.append(WorkerProcess(factory, files[index : index + 1]))
            answers = self._collect(range(len(self._workers)))
            for name, answer in zip(factories, answers, strict=True):
                if isinstance(answer, Failure):
                    raise RuntimeError(f"{name} cannot be made: {answer.reason}")
        except BaseException:
            self.close()
            raise

    def call(self, requests: Sequence[tuple | None]) -> list[Any]:
        """Calls a method of each object, at the same time.

        Args:
          requests: For each worker (name of the method, *arguments), or None to skip the worker.

        Returns:
          Results of the methods in the order of the workers: None for a skipped worker, a `Failure`
          for a failed one.
        """
        if not self._workers:
            raise RuntimeError("the workers are closed: make new ones")
        try:
            asked = [index for index, request in enumerate(requests) if request is not None]
            for index in asked:
                self._workers[index].send(requests[index])
            answers = self._collect(asked)
            for worker, answer in zip(self._workers, answers, strict=True):
                if isinstance(answer, Failure):
                    worker.restart()
        except BaseException:  # Otherwise the next call would receive the answers of this one.
            self.close()
            raise
        return answers

    def _collect(self, asked: Sequence[int]) -> list[Any]:
        """Waits for the answers of some workers."""
        answers: list[Any] = [None] * len(self._workers)
        waiting: dict[Any, int] = {self._workers[index].pipe: index for index in asked}
        since = dict.fromkeys(asked, time.monotonic())  # Last progress of each worker.
        late = Failure(f"no answer within {self._reply_seconds:g} s (environment.reply_seconds)")
        while waiting:
            deadline = min(map(since.get, waiting.values())) + self._reply_seconds
            ready = connection.wait(list(waiting), max(0.0, deadline - time.monotonic()))
            for pipe in ready:
                worker = self._workers[waiting[pipe]]
                answer = worker.receive()
                if worker.is_starting and not isinstance(answer, Failure):
                    worker.is_starting = False  # The answer to the request follows.
                    since[waiting[pipe]] = time.monotonic()
                    continue
                answers[waiting.pop(pipe)] = answer
            if not ready:
                oldest = time.monotonic() - self._reply_seconds
                for pipe, index in list(waiting.items()):
                    since[index] = max(since[index], self._progressed_at(index))
                    if since[index] <= oldest:
                        answers[waiting.pop(pipe)] = late
        return answers

    def close(self) -> None:
        """Ends all workers: they close their objects, or are killed after the time limit."""
        for worker in self._workers:
            worker.pipe.close()
        deadline = time.monotonic() + self._close_seconds
        for worker in self._workers:
            worker.end(max(0.0, deadline - time.monotonic()))
        self._workers = []


class WorkerProcess:
    """One worker and the pipe to it.

    Attributes:
      pipe: Connection to the worker.
      is_starting: True after a restart, until the worker reports that its object is made.
    """

    def __init__(self, factory: Callable[..., Any], files: Sequence[int] = ()):
        """Starts the process; its first answer reports whether the object could be made."""
        self._factory = factory
        self._files = files
        self._restarts = 0
        self._output = worker_output.WorkerOutput()
        self.is_starting = False
        self._start()

    def _start(self) -> None:
        self.pipe, theirs = connection.Pipe()
        with theirs, os.fdopen(self._output.open(), "wb") as output:
            self._process = process_launcher.LaunchedProcess(
                [sys.executable, "-c", _CHILD],
                installed_commands.environment(),
                [output.fileno(), theirs.fileno(), *self._files],
            )
        self.send(installed_commands.without(sys.path))
        self.send((self._factory, self._restarts))

    @property
    def pid(self) -> int:
        """Process id, and id of the process group."""
        return self._process.pid

    def restart(self) -> None:
        """Kills the process and starts another one, without waiting for its object."""
        self.pipe.close()
        self.end(0.0)
        self._restarts += 1
        self._start()
        self.is_starting = True

    def send(self, message: Any) -> None:
        """Sends a message."""
        with contextlib.suppress(OSError):  # `receive` finds a dead process.
            self.pipe.send(message)

    def receive(self) -> Any:
        """Returns the next answer, or a `Failure`."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            # A process that closed its pipe is about to end: it may still write its core file.
            code = self._process.wait(_CLOSE_TIMEOUT_SECONDS)
            self._output.drain()
            return Failure(f"died with exit code {code}: see its last messages")

    def end(self, seconds: float) -> None:
        """Waits until the process has ended, and kills its process group."""
        self._process.end(seconds)
        self._output.drain()


def serve(pipe: connection.Connection, files: Sequence[int]) -> None:
    """Runs a worker: makes its object from the first message and answers until the pipe closes."""
    target = None
    with contextlib.suppress(EOFError, OSError), contextlib.closing(pipe):
        factory, restarts = pipe.recv()
        try:
            target = factory(restarts, *files)
        except Exception as error:  # The parent reports any error.
            pipe.send(failure_of(error))
            return
        pipe.send(None)
        while True:
            method, *arguments = pipe.recv()
            try:
                answer = getattr(target, method)(*arguments)
            except Exception as error:
                answer = failure_of(error)
            pipe.send(answer)
    if close := getattr(target, "close", None):
        close()
