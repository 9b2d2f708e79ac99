"""Keys of a contextual tree for sequences of several games, which are to be neighbours there."""

from collections.abc import Sequence

BLOCK = 32  # keys in a row of one game
_SPARE_KEYS = 65_536  # of blocks that are not full: those of some 1,000 games


class KeyBlocks:
    """Gives keys out in blocks, each of one game, and knows where the oldest key may be.

    Sequences of all games leave in the order of their coming. So blocks empty in about the order in
    which they were begun, each slowly as its game was when it filled.
    """

    def __init__(self, keys: int):
        """Gives out no key yet.

        Args:
          keys: that are held at most.
        """
        self.span = 2 * keys + _SPARE_KEYS  # the newest key is less than so many above the oldest
        self._held: dict[int, int] = {}  # keys in each block from the first to the last
        self._first = self._next = 0  # blocks

    @property
    def first_key(self) -> int:
        """No key that is held lies below."""
        return self._first * BLOCK

    def begins_block(self, key: int) -> bool:
        """Whether the key after a game's last one cannot be had: another block is needed."""
        return key % BLOCK == 0 or key < self.first_key

    @property
    def is_full(self) -> bool:
        """Whether the first block has to go before another one begins, its game being that slow."""
        return self._next - self._first >= self.span // BLOCK

    def first_block(self) -> range:
        """All keys of the first block, whether they are held or not."""
        return range(self.first_key, self.first_key + BLOCK)

    def take(self, key: int) -> int:
        """A new key of a game.

        Args:
          key: the one after the game's last; 0 for a game without one.
        """
        if self.begins_block(key):
            key = self._next * BLOCK
            self._held[self._next] = 0
            self._next += 1
        self._held[key // BLOCK] += 1
        return key

    def give_back(self, key: int) -> None:
        """Takes note that a key is not held any more."""
        self._held[key // BLOCK] -= 1
        while self._first < self._next and not self._held[self._first]:
            del self._held[self._first]
            self._first += 1

    def restore(self, keys: Sequence[int]) -> None:
        """Holds keys that were given out once; none are so far.

        Raises:
          ValueError: if they are too far apart, or one comes twice; nothing is changed.
        """
        blocks = [key // BLOCK for key in keys]
        if not blocks:
            return
        first, last = min(blocks), max(blocks)
        if first < 0 or last - first >= self.span // BLOCK or len(set(keys)) < len(blocks):
            raise ValueError("its keys are too far apart, or doubled")
        self._first, self._next = first, last + 1
        self._held = dict.fromkeys(range(first, last + 1), 0)
        for block in blocks:
            self._held[block] += 1
