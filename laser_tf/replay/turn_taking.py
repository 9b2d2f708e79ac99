"""Turns of an actor and the learner in its process, which make runs repeatable."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from laser_tf.replay import connection, writers
from laser_tf.replay import tables as tables_module

_POLL_SECONDS = 0.0005


class TurnTaking(writers.Writer):
    """Makes an actor and the learner in its process take turns.

    As the actor's last writer, it blocks the actor after each unroll, until the learner has learned
    all that it can from what the actor has written. The actor acts with the weights of a fixed
    update, and the learner samples from a fixed replay.

    Attributes:
      should_stop: Polled while the learner waits for the actor; returns True to stop.
    """

    should_stop: Callable[[], bool]

    def __init__(self):
        self._is_learners_turn = threading.Event()

    def add(self, step: writers.Step, should_stop: Callable[[], bool]) -> None:
        """See `Writer`; the other writers take the step."""

    def wait(self, should_stop: Callable[[], bool]) -> None:
        """See `Writer`; blocks until the learner needs experience."""
        self._is_learners_turn.set()
        while self._is_learners_turn.is_set() and not should_stop():
            time.sleep(_POLL_SECONDS)

    def close(self) -> None:
        """See `Writer`; there is nothing to close."""

    def read(
        self,
        replay: connection.ReplayConnection,
        tables: Mapping[str, Iterator[Any]],
        size: int = 1,
    ) -> Iterator[list[list[Any]]]:
        """Yields what the actor has written in each of its turns, a list for each table.

        The next turn begins when its elements are requested. Tables are emptied during a turn, too,
        because a full one would block the actor.

        Args:
          replay: Connection to the server of the tables.
          tables: Name of a queue -> its elements, none of which has been read.
          size: Number of items in an element.
        """
        infos = tables_module.read(replay.client)
        counts = {name: infos[name].current_size - _inserts(infos, name) for name in tables}
        while True:
            turn: dict[str, list[Any]] = {name: [] for name in tables}
            is_over = False
            while not is_over:
                time.sleep(_POLL_SECONDS)
                if self.should_stop():
                    return
                is_over = self._is_learners_turn.is_set()  # Read before the number of items.
                infos = tables_module.read(replay.client)
                for name, elements in tables.items():
                    new = (_inserts(infos, name) + counts[name]) // size
                    turn[name] += itertools.islice(elements, new)
                    counts[name] -= new * size
            yield list(turn.values())
            self._is_learners_turn.clear()


def _inserts(infos: Mapping[str, tables_module.TableInfo], name: str) -> int:
    return tables_module.num_inserts(infos[name])
