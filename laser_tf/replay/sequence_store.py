"""Replayed sequences in the learner's own memory, which a contextual priority tree draws from.

Reverb draws by priorities that it is told, and an item's key is known to nobody before it is drawn:
neither can the neighbours' priorities stand in for a new one's, nor can a tree say what comes next.
So the actors' sequences pass through a queue of Reverb's to this store.
"""

import collections
import dataclasses
import logging
import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tree

from laser_tf import errors
from laser_tf.replay import (
    key_blocks,
    packed_unrolls,
    priority_tree,
    stored_unroll,
)
from laser_tf.replay.schemes import contextual

_KNOWN_NUMBERS = 64  # of each game's newest sequences, by which one that comes again is known
_MOST_GAMES = 10_000  # that are remembered; the one that was silent longest is forgotten
_LOOK_PERIOD = 256  # sequences from one look at the memory that is left to the next
_BLANK = -1


class Sequence(NamedTuple):
    """One of the store's. Adjacent ones share the unrolls that they overlap by."""

    game: int  # the tag `actor` of its unrolls
    numbers: tuple[int, ...]  # of its unrolls; -1 for blank ones
    unrolls: tuple[bytes, ...]  # packed


class Contents(NamedTuple):
    """What a checkpoint holds of a store: n sequences, oldest first."""

    layout: str  # of sequences
    keys: np.ndarray  # int64 [n]
    priorities: np.ndarray  # float64 [n]; NaN where none is known
    sequences: list[Sequence]


@dataclasses.dataclass
class _Game:
    """Where the next sequence of a game goes."""

    next_key: int = 0  # the one after its newest's
    numbers: collections.deque[int] = dataclasses.field(
        default_factory=lambda: collections.deque(maxlen=_KNOWN_NUMBERS)
    )

    def has(self, number: int) -> bool:
        """Whether a sequence came before; of one too old to tell: yes."""
        is_old = len(self.numbers) == _KNOWN_NUMBERS and number < min(self.numbers)
        return is_old or number in self.numbers


class SequenceStore:
    """Sequences first in, first out, drawn in the tree's order; any thread may use it.

    The tree estimates an unknown priority by its neighbours, which have to be neighbours in time of
    the same game. So each game is given its keys in blocks; where a whole block is unknown yet, the
    blocks beside it speak for it: other games of about the same time.
    """

    def __init__(
        self,
        scheme: contextual.Contextual,
        signature: stored_unroll.StoredUnroll,
        seed: int | None = None,
        has_room: Callable[[], bool] = lambda: True,
    ):
        """Creates an empty store.

        Args:
          scheme: Replay scheme.
          signature: of an unroll.
          seed: of the draws; None: a random one.
          has_room: whether this machine has memory left; where not, the oldest leave early.
        """
        self._scheme = scheme
        self._seed = seed
        self._most = scheme.max_items
        self._packer = packed_unrolls.Packer(signature)
        unrolls = scheme.steps_per_entry // scheme.unroll_length
        self._layout = f"{unrolls} of {self._packer.layout}"
        self._lock = threading.Lock()
        self._clear()
        self._has_room = has_room
        self._told = self._most  # the smallest number of sequences that was logged
        self._added = self._packed_bytes = 0

    def _clear(self) -> None:
        self._blocks = key_blocks.KeyBlocks(self._most)
        share = self._scheme.uniform_share
        self._tree = priority_tree.PriorityTree(self._blocks.span, share, self._seed)
        self._sequences: collections.OrderedDict[int, Sequence] = collections.OrderedDict()
        self._games: collections.OrderedDict[int, _Game] = collections.OrderedDict()

    def __len__(self) -> int:
        """Number of sequences."""
        return len(self._sequences)

    def add(self, sequence: stored_unroll.StoredUnroll) -> bool:
        """Adds a sequence without a priority; for one thread.

        Args:
          sequence: arrays [S, ...], unrolls in a row of one game, blank ones at either end.

        Returns:
          Whether it was new: a server that comes back may bring what has come before.
        """
        numbers = np.where(sequence.new_steps > 0, sequence.number, _BLANK)
        newest = int(numbers.argmax())
        tag, number = int(sequence.actor[newest]), int(numbers[newest])
        with self._lock:
            game = self._games.setdefault(tag, _Game())
            self._games.move_to_end(tag)
            if len(self._games) > _MOST_GAMES:
                self._games.popitem(last=False)
            if game.has(number):
                return False
            before = self._sequences.get(game.next_key - 1)
        packed = self._pack(sequence, numbers.tolist(), before)
        with self._lock:
            game.numbers.append(number)
            self._keep(Sequence(tag, tuple(numbers.tolist()), packed), game)
        return True

    def _pack(
        self, sequence: stored_unroll.StoredUnroll, numbers: list[int], before: Sequence | None
    ) -> tuple[bytes, ...]:
        """A sequence's unrolls, of which the one before has some already."""
        known = dict(zip(before.numbers, before.unrolls, strict=True)) if before else {}
        known.pop(_BLANK, None)
        leaves, packed = tree.flatten(sequence), []
        for place, number in enumerate(numbers):
            unroll = known.get(number)
            if unroll is None:
                unroll = self._packer.pack([leaf[place] for leaf in leaves])
                self._packed_bytes += len(unroll)
            packed.append(unroll)
        return tuple(packed)

    def _keep(self, sequence: Sequence, game: _Game) -> None:
        self._added += 1
        if self._added % _LOOK_PERIOD == 0 and not self._has_room():
            self._lower()
        while len(self._sequences) >= self._most:
            self._remove(next(iter(self._sequences)))
        if self._blocks.begins_block(game.next_key) and self._blocks.is_full:
            for key in self._blocks.first_block():
                if key in self._sequences:
                    self._remove(key)
        key = self._blocks.take(game.next_key)
        game.next_key = key + 1
        self._tree.insert([key])
        self._sequences[key] = sequence

    def _remove(self, key: int) -> None:
        del self._sequences[key]
        self._tree.remove([key])
        self._blocks.give_back(key)
        self._tree.remove_before(self._blocks.first_key)

    def _lower(self) -> None:
        """Keeps fewer sequences from now on, since the machine has no memory left."""
        scheme = self._scheme
        self._most = max(scheme.min_items, int(0.95 * len(self._sequences)))
        if self._most < 0.8 * self._told:
            self._told = self._most
            logging.warning(
                "this machine has hardly any memory left: replay keeps the newest %s agent steps "
                "of %s from now on, of %.0f bytes each; lower replay.capacity",
                f"{self._most * scheme.steps_per_item:,}", f"{scheme.capacity:,}",
                self._bytes_per_step(),
            )  # fmt: skip

    def _bytes_per_step(self) -> float:
        return self._packed_bytes / max(1, self._added) / self._scheme.steps_per_item

    def draw(self, size: int) -> stored_unroll.Drawn:
        """Draws sequences independently of each other, with replacement: arrays [size, S, ...].

        Raises:
          ValueError: if there is none.
        """
        with self._lock:
            keys, probabilities = self._tree.sample(size)
            rows = [self._sequences[key].unrolls for key in keys.tolist()]
            held = len(self._sequences)
        return stored_unroll.Drawn(
            self._packer.unpack(rows),
            keys.astype(np.uint64),
            probabilities,
            np.full(size, held, np.int64),
        )

    def update(self, keys: np.ndarray, priorities: np.ndarray) -> None:
        """Gives sequences new priorities; those that are gone by now are passed over.

        Args:
          keys: uint64 [B], of what was drawn.
          priorities: float [B], before their exponent; what is not finite is passed over, since an
            update may fail.
        """
        usable = np.isfinite(priorities) & (priorities >= 0)
        powers = priorities[usable].astype(np.float64) ** self._scheme.priority_exponent
        with self._lock:
            self._tree.update(keys[usable].tolist(), powers.tolist())

    def metrics(self) -> dict[str, float]:
        """For TensorBoard; bytes are those of what this process added."""
        with self._lock:
            known, held = self._tree.known, len(self._sequences)
            return {
                "replay/unknown_priorities": 1 - known / held if held else 1.0,
                "replay/bytes_per_agent_step": self._bytes_per_step(),
            }

    def contents(self) -> Contents:
        """What a checkpoint has to hold."""
        with self._lock:
            keys = np.array(list(self._sequences), np.int64)
            return Contents(
                self._layout,
                keys,
                self._tree.priorities(keys),
                list(self._sequences.values()),
            )

    def restore(self, contents: Contents) -> None:
        """Fills an empty store.

        Raises:
          ValueError: if the contents are of other unrolls, or do not fit; it stays empty.
        """
        if contents.layout != self._layout:
            raise ValueError("it is of other unrolls")
        if len(contents.keys) > self._most:
            raise ValueError(f"it has {len(contents.keys)} sequences, for a store of {self._most}")
        with self._lock:
            try:
                self._fill(contents)
            except Exception as error:  # Arrays that do not fit together raise almost any error.
                self._clear()
                reason = errors.one_line(error, 200)
                raise ValueError(f"its arrays do not fit together: {reason}") from None

    def _fill(self, contents: Contents) -> None:
        keys, is_known = contents.keys.tolist(), ~np.isnan(contents.priorities)
        for sequence in contents.sequences[:1]:
            self._packer.unpack([sequence.unrolls])
        self._blocks.restore(keys)
        self._tree.remove_before(self._blocks.first_key)
        self._tree.insert(keys)
        self._tree.update(contents.keys[is_known].tolist(), contents.priorities[is_known].tolist())
        for key, sequence in zip(keys, contents.sequences, strict=True):
            self._sequences[key] = sequence
            game = self._games.setdefault(sequence.game, _Game())
            game.next_key = key + 1
            game.numbers.append(max(sequence.numbers))
