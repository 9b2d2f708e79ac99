"""Games that run in a process each: for engines that crash hard, block or know no threads.

A child starts as a fresh interpreter that imports its game's modules and nothing else. Python's own
`multiprocessing` would import the parent's main module into it as well: TensorFlow, with seconds
and hundreds of megabytes a game. What goes to a game and what it answers may be anything that can
be pickled.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import connection
from typing import Any, NamedTuple

from laser_tf import errors, installed_commands
from laser_tf.environments import group_watcher, worker_output

_PATIENCE = 10.0  # seconds for a game to close by itself

# The parent alone decides what signals mean that reach all processes of a terminal or a job. An
# engine that a game starts by itself inherits what is ignored, but must end where the game
# terminates it. A game that hangs never sees that its pipe is closed: the system kills it when its
# parent ends.
_CHILD = """
import os, signal
for number in (signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
signal.signal(signal.SIGTERM, lambda *_: None)
os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))
import ctypes, sys
os.environ.setdefault("OMP_NUM_THREADS", "1")  # games side by side have a core each at most
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
if os.getppid() != int(sys.argv[2]):  # it has ended already
    sys.exit()
sys.stdout.reconfigure(line_buffering=True)  # a crash would lose what is in the buffer
from multiprocessing import connection
pipe = connection.Connection(int(sys.argv[1]))
sys.path[:] = pipe.recv()
from laser_tf.environments import game_processes
game_processes.serve(pipe)
"""


class Failure(NamedTuple):
    """What stands for the answer of a game that failed, and is started again."""

    reason: str  # one line
    details: str = ""  # its traceback, where its process could tell it


class GameProcesses:
    """Objects that live in processes of their own and are called all at once.

    A game that raises, dies or gives no answer in time is started again; its next call finds it as
    it was made. Children end with their parent, however that ends. Each child has its own session
    and process group, which ends with it: so do the processes that it has started.
    """

    def __init__(
        self,
        factories: Mapping[str, Callable[[int], Any]],
        reply_seconds: float,
        files: Sequence[int] = (),
        progressed_at: Callable[[int], float] = lambda _: 0.0,
    ):
        """Starts the games and waits until all are made.

        Args:
          factories: the name of a game, for messages -> what makes it, from how often it was made
            before: a callable that can be pickled, from a module that is light to import. The
            object may have a `close`.
          reply_seconds: Time limit of a call, and of starting a game again before the call. It
            restarts whenever `progressed_at` does.
          files: descriptors of open files that all children inherit, under the same numbers.
          progressed_at: Maps the index of a game to the `time.monotonic()` of its last progress
            within a call, e.g. when it moved to the next of several environments.

        Raises:
          RuntimeError: for a game that could not be made; the message names it.
        """
        self._reply_seconds = reply_seconds
        self._progressed_at = progressed_at
        self._games: list[GameProcess] = []
        self._watcher = group_watcher.GroupWatcher()
        try:
            self._games = [GameProcess(factory, files) for factory in factories.values()]
            self._watch_groups()
            answers = self._collect(range(len(self._games)))
            for name, answer in zip(factories, answers, strict=True):
                if isinstance(answer, Failure):
                    raise RuntimeError(f"{name} cannot be made: {answer.reason}")
        except BaseException:
            self.close()
            raise

    def call(self, requests: Sequence[tuple | None]) -> list[Any]:
        """Calls a method of each game, at the same time.

        Args:
          requests: for each game (method's name, *arguments), or None to leave it alone.

        Returns:
          What the methods return, in the order of the games; None for those left alone, a `Failure`
          for those that failed.
        """
        if not self._games:
            raise RuntimeError("the games are closed: make new ones")
        try:
            asked = [index for index, request in enumerate(requests) if request is not None]
            for index in asked:
                self._games[index].send(requests[index])
            answers = self._collect(asked)
            for game, answer in zip(self._games, answers, strict=True):
                if isinstance(answer, Failure):
                    game.start_again()
                    self._watch_groups()
        except BaseException:  # even after an interrupt: answers that nobody took would come next
            self.close()
            raise
        return answers

    def _watch_groups(self) -> None:
        self._watcher.watch(game.process_group for game in self._games)

    def _collect(self, asked: Sequence[int]) -> list[Any]:
        """Waits for the answers of some games."""
        answers: list[Any] = [None] * len(self._games)
        waiting: dict[Any, int] = {self._games[index].pipe: index for index in asked}
        since = dict.fromkeys(asked, time.monotonic())  # of each game: its last sign of progress
        late = Failure(f"no answer within {self._reply_seconds:g} s (environment.reply_seconds)")
        while waiting:
            deadline = min(map(since.get, waiting.values())) + self._reply_seconds
            ready = connection.wait(list(waiting), max(0.0, deadline - time.monotonic()))
            for pipe in ready:
                game = self._games[waiting[pipe]]
                answer = game.receive()
                if game.is_starting and not isinstance(answer, Failure):
                    game.is_starting = False  # what it was asked comes next
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
        """Ends all games: they close by themselves, or after some seconds they are killed."""
        for game in self._games:
            game.pipe.close()
        deadline = time.monotonic() + _PATIENCE
        for game in self._games:
            game.end(max(0.0, deadline - time.monotonic()))
        self._games = []
        self._watcher.close()


class GameProcess:
    """One game's process, and the pipe to it; for what need not answer beside others."""

    def __init__(self, factory: Callable[[int], Any], files: Sequence[int]):
        """Starts the process; its first answer says whether the game could be made."""
        self._factory = factory
        self._files = files
        self._restarts = 0
        self._output = worker_output.WorkerOutput()
        self.is_starting = False  # again: an answer that says so comes before that to a call
        self._start()

    def _start(self) -> None:
        self.pipe, theirs = connection.Pipe()
        with theirs, os.fdopen(self._output.open(), "wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _CHILD, str(theirs.fileno()), str(os.getpid())],
                env=installed_commands.environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[theirs.fileno(), *self._files],
                start_new_session=True,
            )
        self._has_group = True
        self.send(installed_commands.without(sys.path))
        self.send((self._factory, self._restarts))

    @property
    def process_group(self) -> int:
        """The id of the process group of this process and of the processes that it starts."""
        return self._process.pid

    def start_again(self) -> None:
        """Kills the process and starts another, without waiting for it."""
        self.pipe.close()
        self.end(0.0)
        self._restarts += 1
        self._start()
        self.is_starting = True

    def send(self, message: Any) -> None:
        """Hands a message over."""
        with contextlib.suppress(OSError):  # a process that is dead is found by `receive`
            self.pipe.send(message)

    def receive(self) -> Any:
        """The next answer, or why there is none."""
        try:
            answer, reason, details = self.pipe.recv()
        except (EOFError, OSError):
            # A process that closed its pipe is on its way out: it may still be writing its core.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_PATIENCE)
            code = self._process.poll()
            if code is not None:
                self._kill_group()
            return Failure(f"died with exit code {code}: its own last messages say why")
        return Failure(reason, details) if reason else answer

    def end(self, seconds: float) -> None:
        """Waits until the process has ended, and kills what is left of its group."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        self._kill_group()

    def _kill_group(self) -> None:
        """Kills the process group, once: its id may then belong to other processes."""
        if self._has_group:
            self._has_group = False
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process_group, signal.SIGKILL)
        self._process.wait()
        self._output.drain()


def serve(pipe: connection.Connection) -> None:
    """A child's life: makes its game from the first message and answers until the pipe closes."""
    game = None
    with contextlib.suppress(EOFError, OSError), contextlib.closing(pipe):
        game = _answer(pipe, lambda request: (request[0](request[1]), None))
        while game is not None:
            _answer(pipe, lambda request: (None, getattr(game, request[0])(*request[1:])))
    if close := getattr(game, "close", None):
        close()


def _answer(pipe: connection.Connection, handle: Callable[[Any], tuple[Any, Any]]) -> Any:
    """Handles one message: returns the first of the result, sends the second, or the error."""
    message = pipe.recv()
    kept, answer, reason, details = None, None, "", ""
    try:
        kept, answer = handle(message)
    except Exception as exception:  # whatever it is, the parent has to hear of it
        reason = errors.printable(" ".join(f"{type(exception).__name__}: {exception}".split()))
        details = errors.printable(traceback.format_exc())
    pipe.send((answer, reason, details))
    return kept
