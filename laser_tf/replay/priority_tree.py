"""The order in which prioritised replay samples: a contextual priority tree (Gruslys et al. 2018).

"The Reactor", section 3.3 and appendix 6.3. A new key has no priority until it is first sampled.
Until then its priority is estimated from its neighbours in time (lazy initialisation).
"""

import array
from collections.abc import Iterable, Sequence

import numpy as np

_UNKNOWN = -1.0


class PriorityTree:
    """Leaves in the order of time, sampled in proportion to priorities, known or estimated.

    Each node of a binary tree is a block of time. It has the number c of the keys in it and the sum
    M of their priorities, known or estimated (figure 5, for keys in leaves):

        c = c_l + c_r
        M = M_l + M_r       if both halves hold known priorities,
            M_l c / c_l     if only the left one does, and likewise for the right one,
            unknown         if neither does.

    So an unknown priority is the weighted mean over the smallest block around it that holds a known
    priority. The weight of a known priority is the number of keys in its cell, the keys that it
    represents (section 3.3). Once all are known, sampling is proportional.

    The paper balances an AVL tree with a key in every node. Here every key is always a leaf: no
    rotation is needed, and all operations take O(log n) a key. The blocks do not depend on the
    priorities: otherwise estimates would be biased (section 3.3).

    Leaves may be left out, e.g. to give different environments separate blocks. Callers that share
    a tree among threads lock it.
    """

    def __init__(self, num_leaves: int, uniform_share: float = 0.0, seed: int | None = None):
        """Creates an empty tree of `num_leaves` leaves, a power of two; 1 million take 33 MB.

        `uniform_share` is epsilon, the share of the samples that are uniform.
        """
        self._uniform_share = uniform_share
        self.seed(seed)
        self._leaves = num_leaves
        # Node 1 is the root, 2 n and 2 n + 1 are the halves of node n, and leaves come last.
        # Plain arrays rather than NumPy's, whose single elements take four times as long to read.
        self._counts = array.array("q", [0]) * (2 * num_leaves)
        self._masses = array.array("d", [_UNKNOWN]) * (2 * num_leaves)

    def __len__(self) -> int:
        """Number of keys."""
        return self._counts[1]

    def seed(self, seed: int | Sequence[int] | None) -> None:
        """Seeds the samples; None means a random seed."""
        self._random = np.random.default_rng(seed)

    def insert(self, keys: Iterable[int]) -> None:
        """Adds keys, indices of empty leaves, without priorities."""
        self._set_counts(keys, 1)

    def remove(self, keys: Iterable[int]) -> None:
        """Removes keys."""
        self._set_counts(keys, 0)

    def _set_counts(self, keys: Iterable[int], count: int) -> None:
        nodes = [self._leaves + key for key in keys]
        for node in nodes:
            self._counts[node], self._masses[node] = count, _UNKNOWN
        self._refresh_above(nodes)

    def update(self, keys: Sequence[int], priorities: Sequence[float]) -> None:
        """Sets finite priorities of at least 0; the last one counts if a key is named twice."""
        nodes = [self._leaves + key for key in keys]
        for node, priority in zip(nodes, priorities, strict=True):
            self._masses[node] = priority
        self._refresh_above(nodes)

    def sample(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Samples keys, int64 [size], with replacement; returns them and their probabilities."""
        places = self._random.random(size).tolist()
        is_uniform = (self._random.random(size) < self._uniform_share).tolist()
        keys = list(map(self._key_at, places, is_uniform))
        return np.array(keys, np.int64), self.probabilities(keys)

    def probabilities(self, keys: Iterable[int]) -> np.ndarray:
        """Returns the probabilities of being sampled, float64; 0 for empty leaves."""
        return np.array(list(map(self._probability, keys)), np.float64)

    def priorities(self, keys: Sequence[int]) -> np.ndarray:
        """Returns the priorities of keys, float64; NaN for unknown ones."""
        masses = np.frombuffer(self._masses)[self._leaves + np.asarray(keys, np.int64)]
        return np.where(masses < 0, np.nan, masses)

    @property
    def known(self) -> int:
        """Number of keys that have a priority; takes a millisecond for a million leaves."""
        return int(np.count_nonzero(np.frombuffer(self._masses)[self._leaves :] >= 0))

    def _refresh_above(self, nodes: Iterable[int]) -> None:
        """Recomputes all ancestors of leaves level by level: shared ones once."""
        counts, masses = self._counts, self._masses
        for _ in range(self._leaves.bit_length() - 1):
            nodes = {node >> 1 for node in nodes}
            for node in nodes:
                left, right = 2 * node, 2 * node + 1
                counts[node] = count = counts[left] + counts[right]
                left_mass, right_mass = masses[left], masses[right]
                if left_mass < 0:
                    masses[node] = (
                        _UNKNOWN if right_mass < 0 else right_mass * count / counts[right]
                    )
                elif right_mass < 0:
                    masses[node] = left_mass * count / counts[left]
                else:
                    masses[node] = left_mass + right_mass

    def _key_at(self, place: float, is_uniform: bool) -> int:
        """Returns the key at a place in [0, 1), where each is as wide as it is probable."""
        counts, masses, node = self._counts, self._masses, 1
        while node < self._leaves:
            left, right = 2 * node, 2 * node + 1
            both_known = masses[left] >= 0 and masses[right] >= 0
            if both_known and masses[node] > 0 and not is_uniform:
                share = masses[left] / masses[node]
            else:  # either half's mean is the other's
                share = counts[left] / counts[node]
            if place < share:
                node, place = left, place / share
            else:
                node, place = right, (place - share) / (1 - share)
        return node - self._leaves

    def _probability(self, key: int) -> float:
        node = self._leaves + key
        if not self._counts[node]:
            return 0.0
        uniform = 1 / len(self)
        total = self._masses[1]
        if total <= 0:  # nothing is known, or all is 0
            return uniform
        while self._masses[node] < 0:
            node >>= 1
        proportional = self._masses[node] / self._counts[node] / total
        return (1 - self._uniform_share) * proportional + self._uniform_share * uniform
