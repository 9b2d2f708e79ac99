"""Replayed sequences in the learner's own memory, sampled by a contextual priority tree.

Reverb returns an item's key only with a sample: it can neither estimate a new item's priority from
its neighbours nor sample in the order of a tree. So sequences pass through its queue to this store.
"""

import logging
import threading
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tree

from laser_tf.replay import memory, priority_tree, stored_unroll
from laser_tf.replay.schemes import contextual

BLOCK = 32  # adjacent keys of one stream
SPARE_LEAVES = 131_072  # for the partly filled blocks of some 4,000 streams
UNROLL_OVERHEAD_BYTES = 2_000  # objects and tree, per unroll; measured 1,200 to 2,000
_MEMORY_CHECK_PERIOD = 256  # sequences
_BLANK = -1
# Level 6 takes three times as long for a sixth less, see `tools/sequence_store_benchmark.py`.
_ZLIB_LEVEL = 1


class StoredSequence(NamedTuple):
    """A sequence of the store. Adjacent sequences share the unrolls of their overlap."""

    key: int  # the place in the tree, modulo the number of its leaves
    stream: int  # `stream` of its unrolls
    numbers: tuple[int, ...]  # numbers of its unrolls; -1 for blank ones
    unrolls: tuple[bytes, ...]  # compressed


class Contents(NamedTuple):
    """Contents of a store in a checkpoint: n sequences, oldest first."""

    layout: str  # specification of a sequence
    priorities: np.ndarray  # float64 [n]; NaN if unknown
    sequences: list[StoredSequence]


class SequenceStore:
    """Sequences first in, first out, sampled in the tree's order; any thread may use it.

    Neighbours in the tree have to be neighbours in time of the same environment, so each stream
    gets its keys in blocks. If a block has no known priority yet, the adjacent blocks are used,
    which hold other streams of about the same time.

    The tree has more than twice as many leaves as sequences, so that no block below its root holds
    both the newest sequences and the oldest.
    """

    def __init__(self, scheme: contextual.Contextual, signature: stored_unroll.StoredUnroll):
        """Creates an empty store, which removes old sequences early if memory runs out."""
        self._scheme = scheme
        self._max_size = self._logged_size = scheme.max_items
        self._num_leaves = 1 << (4 * self._max_size + SPARE_LEAVES - 1).bit_length()
        self._tree = priority_tree.PriorityTree(self._num_leaves, scheme.uniform_share)
        self._lock = threading.Lock()
        self._sequences: dict[int, StoredSequence] = {}  # key: leaf; oldest first
        self._newest: dict[int, StoredSequence] = {}  # newest sequence of each stream
        self._next_block = 0  # its first key
        self._added = self._packed_bytes = 0
        self._signature = signature
        self._specs = tree.flatten(signature)
        leaves = " ".join(f"{s.name}:{s.dtype.name}{list(s.shape)}" for s in self._specs)
        self._layout = f"{scheme.steps_per_entry // scheme.unroll_length} of {leaves}"

    def __len__(self) -> int:
        """Number of sequences."""
        return len(self._sequences)

    def add(self, sequence: stored_unroll.StoredUnroll) -> bool:
        """Adds a sequence, arrays [S, ...]; returns whether it is new. Only one thread may add."""
        numbers = np.where(sequence.new_steps > 0, sequence.number, _BLANK).tolist()
        stream = int(sequence.stream[np.argmax(numbers)])
        before = self._newest.get(stream)
        if before and max(numbers) <= max(before.numbers):
            return False  # A server that restarts may send sequences again.
        known = dict(zip(before.numbers, before.unrolls, strict=True)) if before else {}
        leaves, unrolls = tree.flatten(sequence), []
        for place, number in enumerate(numbers):
            if number == _BLANK or number not in known:
                content = b"".join(leaf[place].tobytes() for leaf in leaves)
                known[number] = zlib.compress(content, _ZLIB_LEVEL)
                self._packed_bytes += len(known[number])
            unrolls.append(known[number])
        with self._lock:
            self._added += 1
            if self._added % _MEMORY_CHECK_PERIOD == 0 and not memory.has_room():
                self._lower_max_size()
            while len(self._sequences) >= self._max_size:
                self._remove(next(iter(self._sequences)))
            key = self._next_key(stream)
            self._insert(StoredSequence(key, stream, tuple(numbers), tuple(unrolls)))
        return True

    def _next_key(self, stream: int) -> int:
        """Returns the key after the stream's newest one, or the first one of another block."""
        newest = self._newest.get(stream)
        if newest and (newest.key + 1) % BLOCK:
            return newest.key + 1
        key, self._next_block = self._next_block, self._next_block + BLOCK
        # A stream that is so slow that its old block still holds sequences loses them.
        for leaf in range(key % self._num_leaves, key % self._num_leaves + BLOCK):
            if leaf in self._sequences:
                self._remove(leaf)
        return key

    def _insert(self, sequence: StoredSequence) -> None:
        leaf = sequence.key % self._num_leaves
        self._sequences[leaf] = self._newest[sequence.stream] = sequence
        self._tree.insert([leaf])

    def _remove(self, leaf: int) -> None:
        sequence = self._sequences.pop(leaf)
        self._tree.remove([leaf])
        if self._newest.get(sequence.stream) is sequence:
            del self._newest[sequence.stream]

    def _lower_max_size(self) -> None:
        """Keeps fewer sequences from now on."""
        scheme = self._scheme
        self._max_size = max(
            scheme.batch_size, scheme.warm_up_items, int(0.95 * len(self._sequences))
        )
        if self._max_size < 0.8 * self._logged_size:
            self._logged_size = self._max_size
            logging.warning(
                "Memory runs out: replay keeps the newest %s agent steps of %s, of %.0f bytes each."
                " Lower replay.capacity",
                f"{self._max_size * scheme.new_steps_per_item:,}", f"{scheme.capacity:,}",
                self._bytes_per_step(),
            )  # fmt: skip

    def _bytes_per_step(self) -> float:
        return self._packed_bytes / max(1, self._added) / self._scheme.new_steps_per_item

    def seed(self, seed: Sequence[int]) -> None:
        """Seeds the samples."""
        self._tree.seed(seed)

    def sample(self, size: int) -> stored_unroll.ReplaySample:
        """Samples sequences independently and with replacement; the store must not be empty."""
        with self._lock:
            leaves, probabilities = self._tree.sample(size)
            sampled = [self._sequences[leaf] for leaf in leaves.tolist()]
            held = len(self._sequences)
        return stored_unroll.ReplaySample(
            self._unpack([sequence.unrolls for sequence in sampled]),
            np.array([sequence.key for sequence in sampled], np.uint64),
            probabilities,
            np.full(size, held, np.int64),
        )

    def _unpack(self, rows: Sequence[Sequence[bytes]]) -> stored_unroll.StoredUnroll:
        """Returns arrays [B, S, ...] of B rows of S compressed unrolls."""
        leading = len(rows), len(rows[0])
        arrays = [
            np.empty([*leading, *spec.shape], spec.dtype.as_numpy_dtype) for spec in self._specs
        ]
        for row, column in np.ndindex(*leading):
            content, start = zlib.decompress(rows[row][column]), 0
            for leaf in arrays:
                place = leaf[row, column, ...]
                flat = np.frombuffer(content, leaf.dtype, place.size, start)
                place[...] = flat.reshape(place.shape)
                start += place.nbytes
        return tree.unflatten_as(self._signature, arrays)

    def update(self, keys: np.ndarray, priorities: np.ndarray) -> None:
        """Sets priorities before their exponent; ignores invalid ones and removed sequences."""
        usable = np.isfinite(priorities) & (priorities >= 0)
        powers = priorities[usable].astype(np.float64) ** self._scheme.priority_exponent
        by_leaf = {}
        with self._lock:
            for key, power in zip(keys[usable].tolist(), powers.tolist(), strict=True):
                leaf = key % self._num_leaves
                if leaf in self._sequences and self._sequences[leaf].key == key:
                    by_leaf[leaf] = power
            self._tree.update(list(by_leaf), list(by_leaf.values()))

    def metrics(self) -> dict[str, float]:
        """Returns metrics for TensorBoard; bytes are those of what this process added."""
        with self._lock:
            known, held = self._tree.known, len(self._sequences)
            return {
                "replay/unknown_priorities": 1 - known / held if held else 1.0,
                "replay/bytes_per_agent_step": self._bytes_per_step(),
            }

    def contents(self) -> Contents:
        """Returns the contents for a checkpoint."""
        with self._lock:
            priorities = self._tree.priorities(list(self._sequences))
            return Contents(self._layout, priorities, list(self._sequences.values()))

    def restore(self, contents: Contents) -> None:
        """Fills an empty store; raises ValueError if the contents do not fit."""
        sequences, priorities = contents.sequences, contents.priorities
        if contents.layout != self._layout:
            raise ValueError("it is of other unrolls")
        if len(sequences) > self._max_size:
            raise ValueError(f"it has {len(sequences)} sequences, for a store of {self._max_size}")
        if sequences:
            self._next_block = BLOCK * (1 + max(s.key for s in sequences) // BLOCK)
        is_known = ~np.isnan(priorities)
        with self._lock:
            for sequence in sequences:
                self._insert(sequence)
            known = np.array(list(self._sequences), np.int64)[is_known]
            self._tree.update(known.tolist(), priorities[is_known].tolist())
