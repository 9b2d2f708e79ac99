"""The order in which prioritised replay draws: a contextual priority tree (Gruslys et al. 2018).

"The Reactor", section 3.3 and appendix 6.3. A new key has no priority. Until it is first drawn and
gets one, the priorities of its neighbours in time stand in for it (lazy initialisation).
"""

import array
import math
from collections.abc import Iterable, Sequence

import numpy as np

_UNKNOWN = -1.0


class PriorityTree:
    """Keys in the order of time, drawn in proportion to their priorities, known or estimated.

    Each node of a binary tree stands for a block of time and has the number c of the keys in it and
    the sum M of their priorities, those of unknown ones estimated (figure 5, for keys in leaves):

        c = c_l + c_r
        M = M_l + M_r       if both halves hold known priorities,
            M_l c / c_l     if only the left one does, and likewise for the right one,
            unknown         if neither does.

    So an unknown priority is the mean over the smallest block around it that holds a known one,
    where each of these counts as often as its cell is long, of the keys that it speaks for
    (section 3.3). Once all are known, keys are drawn in plain proportion.

    The paper balances an AVL tree with a key in every node, and takes a key out and back in as a
    leaf with each new priority, so that it speaks for those beside it. Here every key is a leaf for
    good: keys are numbers, and key k lies in leaf k modulo the number of leaves. No rotation is
    needed, all operations take O(log n) a key, and the blocks do not depend on the priorities,
    without which the estimates would be biased (section 3.3). There are twice as many leaves as
    keys, so that no block below the root holds both the newest keys and the oldest.

    Numbers may be left out: what is to be estimated apart, e.g. different games, is given blocks of
    its own. Whoever shares a tree among threads locks it.
    """

    def __init__(self, span: int, uniform_share: float = 0.0, seed: int | None = None):
        """Creates an empty tree whose oldest key may be 0.

        Args:
          span: keys; the newest is less than so many above the oldest. 1 million take 67 MB.
          uniform_share: epsilon, of the draws that are uniform.
          seed: of the draws; None: a random one.

        Raises:
          ValueError: for a value out of range.
        """
        if span < 1:
            raise ValueError(f"span is {span}: a tree holds 1 key or more")
        if not 0 <= uniform_share <= 1:
            raise ValueError(f"uniform_share is {uniform_share}: use a value from 0 to 1")
        self._span = span
        self._uniform_share = uniform_share
        self._random = np.random.default_rng(seed)
        self._oldest = 0
        self._leaves = 1 << (2 * span - 1).bit_length()
        # Node 1 is the root, 2 n and 2 n + 1 are the halves of node n, and leaves come last.
        # Plain arrays rather than NumPy's, whose single elements take four times as long to read.
        self._counts = array.array("q", [0]) * (2 * self._leaves)
        self._masses = array.array("d", [_UNKNOWN]) * (2 * self._leaves)

    def __len__(self) -> int:
        """Number of keys."""
        return self._counts[1]

    def insert(self, keys: Iterable[int]) -> None:
        """Adds keys without priorities.

        Raises:
          ValueError: for a key that is in the tree, or too far from its oldest; none is added.
        """
        keys = list(map(int, keys))
        if len(set(keys)) < len(keys):
            twice = next(key for place, key in enumerate(keys) if key in keys[:place])
            raise ValueError(f"key {twice} is named twice: insert it once")
        for key in keys:
            if not self._oldest <= key < self._oldest + self._span:
                raise ValueError(
                    f"key {key} is not within the {self._span} from {self._oldest} on: remove old "
                    "keys first"
                )
            if key in self:
                raise ValueError(f"key {key} is in the tree already: use `update`")
        leaves = list(map(self._leaf, keys))
        for leaf in leaves:
            self._counts[leaf] = 1
        self._refresh_above(leaves)

    def remove_before(self, key: int) -> None:
        """Removes the keys below one, first in first out; later ones start there."""
        first, self._oldest = self._oldest, max(int(key), self._oldest)
        end = min(self._oldest, first + self._span)
        self._empty([leaf for leaf in map(self._leaf, range(first, end)) if self._counts[leaf]])

    def remove(self, keys: Iterable[int]) -> None:
        """Removes keys wherever they are; what is gone is passed over."""
        self._empty([self._leaf(key) for key in map(int, keys) if key in self])

    def _empty(self, leaves: list[int]) -> None:
        for leaf in leaves:
            self._counts[leaf], self._masses[leaf] = 0, _UNKNOWN
        self._refresh_above(leaves)

    def update(self, keys: Sequence[int], priorities: Sequence[float]) -> None:
        """Gives keys priorities, the last one that is named for a key; what is gone is passed over.

        Args:
          keys: drawn before.
          priorities: 0 or more; an exponent, if there is one, has been applied.

        Raises:
          ValueError: for a priority that is none; nothing is changed.
        """
        for key, priority in zip(keys, priorities, strict=True):
            if not (priority >= 0 and math.isfinite(priority)):
                raise ValueError(f"the priority of key {key} is {priority}: use 0 or more, finite")
        leaves = []
        for key, priority in zip(map(int, keys), map(float, priorities), strict=True):
            if key in self:
                leaves.append(self._leaf(key))
                self._masses[leaves[-1]] = priority
        self._refresh_above(leaves)

    def sample(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Draws keys independently of each other, with replacement.

        Returns:
          Keys int64 [size] and their probabilities float64 [size].

        Raises:
          ValueError: if there is none.
        """
        if not len(self):
            raise ValueError("the tree is empty: insert keys before drawing")
        places = self._random.random(size).tolist()
        is_uniform = (self._random.random(size) < self._uniform_share).tolist()
        leaves = np.array(list(map(self._leaf_at, places, is_uniform)), np.int64)
        keys = self._oldest + ((leaves - self._oldest) & (self._leaves - 1))
        return keys, self.probabilities(keys.tolist())

    def probabilities(self, keys: Iterable[int]) -> np.ndarray:
        """The keys' probabilities of being drawn, float64; 0 for those that are gone."""
        return np.array([self._probability(int(key)) for key in keys], np.float64)

    def priorities(self, keys: Sequence[int]) -> np.ndarray:
        """The priorities that keys in the tree were given, float64; NaN where none was."""
        leaves = self._leaves + (np.asarray(keys, np.int64) & (self._leaves - 1))
        masses = np.frombuffer(self._masses)[leaves]
        return np.where(masses < 0, np.nan, masses)

    @property
    def known(self) -> int:
        """Number of keys that have a priority; takes a millisecond for a million leaves."""
        return int(np.count_nonzero(np.frombuffer(self._masses)[self._leaves :] >= 0))

    def __contains__(self, key: int) -> bool:
        """Whether a key is in the tree."""
        within = self._oldest <= key < self._oldest + self._span
        return within and self._counts[self._leaf(key)] > 0

    def _leaf(self, key: int) -> int:
        return self._leaves + (key & (self._leaves - 1))

    def _refresh_above(self, nodes: Iterable[int]) -> None:
        """Computes all ancestors of leaves anew, level by level: what they share but once."""
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

    def _leaf_at(self, place: float, is_uniform: bool) -> int:
        """The leaf at a place in [0, 1), where each is as wide as it is probable."""
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
        return node

    def _probability(self, key: int) -> float:
        if key not in self:
            return 0.0
        uniform = 1 / len(self)
        total = self._masses[1]
        if total <= 0:  # nothing is known, or all is 0
            return uniform
        node = self._leaf(key)
        while self._masses[node] < 0:
            node >>= 1
        proportional = self._masses[node] / self._counts[node] / total
        return (1 - self._uniform_share) * proportional + self._uniform_share * uniform
