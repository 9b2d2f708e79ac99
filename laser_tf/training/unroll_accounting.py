"""Which unrolls of the learner's queue were lost on their way, and which came twice.

Every unroll carries a tag: its actor, a number drawn at random for each environment of an actor's
process, and its number among that environment's, which counts from 0 in the order of writing. So a
number that never comes was lost, and one that has come before is doubled. Numbers may overtake each
other: a stream that was cut sends again what was not confirmed, in any order.
"""

import collections
import dataclasses

import numpy as np

PATIENCE = 1_000  # unrolls of any actor after which one that was overtaken counts as lost
MOST_MISSING = 10_000  # numbers of an actor that may still come; older ones are lost for good
MOST_ACTORS = 100_000  # that are remembered; the one that was silent longest is forgotten


@dataclasses.dataclass
class _Stream:
    """What has come of one actor: all numbers from `first` to `last` but those missing."""

    first: int
    last: int
    missing: dict[int, bool]  # number -> whether it is counted as lost


class UnrollAccounting:
    """Counts what was lost and what is doubled; memory is bounded by the numbers above.

    What was before the first unroll of an actor is not known, nor what was behind its last.

    Not for several threads at once.
    """

    def __init__(self):
        """Starts without any actor."""
        self.received = 0  # unrolls, those that are doubled left out
        self.lost = 0  # less those that came late after all
        self.doubled = 0
        self._streams: collections.OrderedDict[int, _Stream] = collections.OrderedDict()
        # Gaps of numbers [start, end) in the order in which they were noticed, and when.
        self._gaps: collections.deque[tuple[int, int, int, int]] = collections.deque()

    def add(self, actors: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Takes the tags of unrolls, in the order of their coming.

        Args:
          actors: int64 [B].
          numbers: int64 [B].

        Returns:
          bool [B], whether each is doubled.
        """
        pairs = zip(actors.tolist(), numbers.tolist(), strict=True)
        doubled = np.array([self._is_doubled(actor, number) for actor, number in pairs], bool)
        count = int(doubled.sum())
        self.doubled += count
        self.received += len(doubled) - count
        self._count_lost()
        return doubled

    def _is_doubled(self, actor: int, number: int) -> bool:
        stream = self._streams.get(actor)
        if stream is None:
            self._streams[actor] = _Stream(number, number, {})
            if len(self._streams) > MOST_ACTORS:
                self._forget(*self._streams.popitem(last=False)[1].missing.values())
            return False
        self._streams.move_to_end(actor)
        if number > stream.last:
            self._note_gap(actor, stream, stream.last + 1, number)
            stream.last = number
            return False
        if number < stream.first:
            self._note_gap(actor, stream, number + 1, stream.first)
            stream.first = number
            return False
        counted = stream.missing.pop(number, None)
        if counted:
            self.lost -= 1
        return counted is None

    def _note_gap(self, actor: int, stream: _Stream, start: int, end: int) -> None:
        if start == end:
            return
        kept = max(start, end - MOST_MISSING)
        self.lost += kept - start
        stream.missing.update(dict.fromkeys(range(kept, end), False))
        self._gaps.append((self.received, actor, kept, end))
        while len(stream.missing) > MOST_MISSING:
            self._forget(stream.missing.pop(next(iter(stream.missing))))

    def _forget(self, *counted: bool) -> None:
        """Counts numbers that are not waited for any longer, unless they were counted before."""
        self.lost += counted.count(False)

    def _count_lost(self) -> None:
        while self._gaps and self.received - self._gaps[0][0] > PATIENCE:
            _, actor, start, end = self._gaps.popleft()
            stream = self._streams.get(actor)
            if stream is None:
                continue
            for number in range(start, end):
                if stream.missing.get(number) is False:
                    stream.missing[number] = True
                    self.lost += 1

    def metrics(self) -> dict[str, float]:
        """Since this learner's process started."""
        return {
            "replay/lost_unrolls": float(self.lost),
            "replay/doubled_unrolls": float(self.doubled),
        }
