"""Pool of worker processes, for engines that crash, block or need one process each.

A worker is a new interpreter that imports only the modules of its object. Python's
`multiprocessing` would also import the main module of the parent, and so TensorFlow, which takes
seconds and hundreds of megabytes per worker. Requests and answers are picklable.
"""

import contextlib
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import connection
from typing import Any, NamedTuple

from laser_tf import errors, installed_commands
from laser_tf.environments import faults
from laser_tf.host import process_launcher

_CLOSE_TIMEOUT_SECONDS = 10.0

_STANDARD_ERROR = 2  # The standard output of a command may be JSON.

# The parent handles signals to all processes of a terminal or a job. An engine that a worker starts
# inherits ignored signals, but must end when the worker terminates it.
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
    ends_run: bool = False  # A restart does not help.


def failure_of(error: Exception) -> Failure:
    """Returns the failure for an error that was just raised; invalid configurations end the run."""
    ends_run = isinstance(error, errors.ConfigError)
    reason = errors.one_line(error) if ends_run else faults.describe(error)
    return Failure(reason, errors.printable(traceback.format_exc()), ends_run)


class WorkerPool:
    """Pool of worker processes, each with one object; calls run in parallel.

    A worker that raises, ends or does not answer in time is restarted; its next call finds a new
    object. Workers end with their parent in any case. Each worker has its own session and process
    group, so the processes that it has started end with it.
    """

    def __init__(
        self,
        factories: Sequence[Callable[..., Any]],
        reply_seconds: float,
        files: Sequence[int] = (),
        progressed_at: Callable[[int], float] = lambda _: 0.0,
    ):
        """Starts the workers without waiting for their objects.

        Args:
          factories: For each worker a picklable function that creates its object, from the number
            of restarts and, if there are `files`, the descriptor. The object may have `close()`.
          reply_seconds: Time limit of a call, and of the start of a worker before the call.
          files: Descriptor of an open file for each worker, which inherits it.
          progressed_at: Maps the index of a worker to the `time.monotonic()` of its last progress
            within a call, which restarts the time limit.
        """
        self._reply_seconds = reply_seconds
        self._progressed_at = progressed_at
        self._workers = [
            WorkerProcess(factory, files[index : index + 1])
            for index, factory in enumerate(factories)
        ]

    def call(self, requests: Sequence[tuple | None]) -> list[Any]:
        """Calls a method of each object in parallel; any exception closes the pool.

        A request is (name of the method, *arguments), or None to skip the worker. An answer is the
        result of the method, None for a skipped worker, or a `Failure`.

        Raises:
          RuntimeError: If the pool is closed.
        """
        if not self._workers:
            raise RuntimeError("the workers are closed")
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
        late = Failure(
            f"no answer within {self._reply_seconds:g} s: raise environment.reply_seconds, or make "
            "the environment faster"
        )
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
        deadline = time.monotonic() + _CLOSE_TIMEOUT_SECONDS
        for worker in self._workers:
            worker.end(max(0.0, deadline - time.monotonic()))
        self._workers = []


class WorkerProcess:
    """One worker and the pipe to it."""

    def __init__(self, factory: Callable[..., Any], files: Sequence[int] = ()):
        """Starts the process; its first answer reports whether the object could be created."""
        self._factory = factory
        self._files = files
        self._restarts = 0
        self._start()

    def _start(self) -> None:
        self.pipe, theirs = connection.Pipe()
        with theirs:
            self._process = process_launcher.LaunchedProcess(
                [sys.executable, "-c", _CHILD],
                installed_commands.environment(),
                [_STANDARD_ERROR, theirs.fileno(), *self._files],
            )
        self.send(installed_commands.without(sys.path))
        self.send((self._factory, self._restarts))
        self.is_starting = True  # Until the worker reports that its object is created.

    @property
    def pid(self) -> int:
        """Returns the process id, which is also the id of the process group."""
        return self._process.pid

    def restart(self) -> None:
        """Kills the process and starts another one without waiting for its object."""
        self.pipe.close()
        self.end(0.0)
        self._restarts += 1
        self._start()

    def send(self, message: Any) -> None:
        """Sends a message."""
        with contextlib.suppress(OSError):  # `receive` detects that the process has ended.
            self.pipe.send(message)

    def receive(self) -> Any:
        """Returns the next answer, or a `Failure`."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            # A process that closed its pipe is about to end: it may still write its core file.
            code = self._process.wait(_CLOSE_TIMEOUT_SECONDS)
            return Failure(f"exited with code {code}: see its messages in native.log or above")

    def end(self, seconds: float) -> None:
        """Waits up to `seconds` for the process to end, then kills its process group."""
        self._process.end(seconds)


def serve(pipe: connection.Connection, files: Sequence[int]) -> None:
    """Creates the object of the first message and answers requests until the pipe closes."""
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
