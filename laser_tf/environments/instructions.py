"""Texts for agents: words become numbers that mean the same in every process."""

import re
import zlib

import numpy as np

from laser_tf import errors, types


def encode(text: str, length: int) -> np.ndarray:
    """Hashes each word of a text; upper or lower case and punctuation make no difference.

    No list of words is needed. Of the 57 words of MiniGrid's and BabyAI's missions "ball" and
    "fetch" share an id, and so do "reach" and "grey": no mission has one in the other's place.

    Args:
      text: Words with any separators.
      length: L.

    Returns:
      int32 [L]: for each word 1 + crc32(word) % 1000, then zeros.

    Raises:
      ValueError: for more than L words.
    """
    words = _words(text)
    if len(words) > length:
        raise errors.ConfigError(
            f"the instruction {text!r} has {len(words)} words and instruction_length is {length}: "
            f"use instruction_length={len(words)} or more"
        )
    ids = np.zeros(length, np.int32)
    ids[: len(words)] = [
        1 + zlib.crc32(word.encode()) % (types.VOCABULARY_SIZE - 1) for word in words
    ]
    return ids


def count(text: str) -> int:
    """The words of a text, as `encode` sees them."""
    return len(_words(text))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
