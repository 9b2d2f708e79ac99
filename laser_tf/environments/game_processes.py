"""Games that run in a process each: for engines that crash hard, block or know no threads.

A child starts as a fresh interpreter that imports its game's modules and nothing else. Python's own
`multiprocessing` would import the parent's main module into it as well: TensorFlow, with seconds
and hundreds of megabytes a game. A game's modules must not import `laser_tf.types` either.
"""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import connection
from typing import Any

_PATIENCE = 10.0  # seconds for a game to close by itself

# Ctrl-C reaches all processes of a terminal: the parent alone decides what it means.
_CHILD = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
import sys
from multiprocessing import connection
pipe = connection.Connection(int(sys.argv[1]))
sys.path[:] = pipe.recv()
from laser_tf.environments import game_processes
game_processes.serve(pipe)
"""


class GameProcesses:
    """Objects that live in processes of their own and are called all at once.

    A failure in one game ends them all, as a batch of games cannot go on without it. Children end
    with their parent, however that ends.
    """

    def __init__(self, factories: Mapping[str, Callable[[], Any]]):
        """Starts the games and waits until all are made.

        Args:
          factories: the name of a game, for messages -> what makes it: a callable that can be
            pickled, from a module that is light to import. The object may have a `close`.

        Raises:
          RuntimeError: for a game that could not be made; the message names it.
        """
        self._names = list(factories)
        self._pipes: list[connection.Connection] = []
        self._processes: list[subprocess.Popen] = []
        for _ in factories:
            self._start()
        self._exchange(list(factories.values()))

    def _start(self) -> None:
        ours, theirs = connection.Pipe()
        self._pipes.append(ours)
        with theirs:
            self._processes.append(
                subprocess.Popen(
                    [sys.executable, "-c", _CHILD, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                )
            )
        with contextlib.suppress(OSError):  # a child that is dead already is found by the exchange
            ours.send(sys.path)

    def call(self, requests: Sequence[tuple]) -> list[Any]:
        """Calls a method of each game, at the same time.

        Args:
          requests: for each game (method's name, *arguments).

        Returns:
          What the methods return, in the order of the games.

        Raises:
          RuntimeError: in one line, for a game whose method raised, or whose process died: the
            message has its name and exit code. Afterwards all games are closed.
        """
        if not self._pipes:
            raise RuntimeError("the games are closed: make new ones")
        return self._exchange(requests)

    def _exchange(self, messages: Sequence[Any]) -> list[Any]:
        try:
            for index, message in enumerate(messages):
                self._or_death(index, self._pipes[index].send, message)
            answers = [self._or_death(index, pipe.recv) for index, pipe in enumerate(self._pipes)]
            for name, (_, error) in zip(self._names, answers, strict=True):
                if error:
                    raise RuntimeError(f"{name} failed: {error}")
        except BaseException:  # even after an interrupt: answers that nobody took would come next
            self.close()
            raise
        return [answer for answer, _ in answers]

    def _or_death(self, index: int, talk: Callable, *arguments: Any) -> Any:
        try:
            return talk(*arguments)
        except (EOFError, OSError):
            # A process that closed its pipe is on its way out: it may still be writing its core.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._processes[index].wait(_PATIENCE)
            raise RuntimeError(
                f"{self._names[index]} died with exit code {self._processes[index].poll()}: "
                "its own last messages say why"
            ) from None

    def close(self) -> None:
        """Ends all games: they close by themselves, or after some seconds they are killed."""
        for pipe in self._pipes:
            pipe.close()
        deadline = time.monotonic() + _PATIENCE
        for process in self._processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._pipes, self._processes = [], []


def serve(pipe: connection.Connection) -> None:
    """A child's life: makes its game from the first message and answers until the pipe closes."""
    game = None
    with contextlib.suppress(EOFError, OSError), contextlib.closing(pipe):
        game = _answer(pipe, lambda factory: (factory(), None))
        while game is not None:
            _answer(pipe, lambda request: (None, getattr(game, request[0])(*request[1:])))
    if hasattr(game, "close"):
        game.close()


def _answer(pipe: connection.Connection, handle: Callable[[Any], tuple[Any, Any]]) -> Any:
    """Handles one message: returns the first of the result, sends the second, or the error."""
    message = pipe.recv()
    kept, answer, error = None, None, ""
    try:
        kept, answer = handle(message)
    except Exception as exception:  # whatever it is, the parent has to hear of it
        error = " ".join(f"{type(exception).__name__}: {exception}".split())
    pipe.send((answer, error))
    return kept
