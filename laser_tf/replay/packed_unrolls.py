"""Unrolls as compressed bytes, as a store in memory and its checkpoint keep them."""

import zlib
from collections.abc import Sequence

import numpy as np
import tree

from laser_tf.replay import stored_unroll

# Level 6 takes three times as long for a sixth less, see `tools/sequence_store_benchmark.py`.
_LEVEL = 1


class Packer:
    """Packs unrolls of one signature; any thread may call it."""

    def __init__(self, signature: stored_unroll.StoredUnroll):
        """Takes the signature, of `tf.TensorSpec`s."""
        self._structure = tree.map_structure(lambda _: 0, signature)
        specs = tree.flatten(signature)
        self._columns = [
            (tuple(spec.shape), np.dtype(spec.dtype.as_numpy_dtype), spec.shape.num_elements())
            for spec in specs
        ]
        self.layout = " ".join(f"{spec.name}:{spec.dtype.name}{list(spec.shape)}" for spec in specs)

    def pack(self, leaves: Sequence[np.ndarray]) -> bytes:
        """An unroll's flat arrays, compressed."""
        return zlib.compress(b"".join(leaf.tobytes() for leaf in leaves), _LEVEL)

    def unpack(self, rows: Sequence[Sequence[bytes]]) -> stored_unroll.StoredUnroll:
        """Arrays [B, S, ...] of B rows of S packed unrolls."""
        leading = len(rows), len(rows[0])
        arrays = [np.empty([*leading, *shape], dtype) for shape, dtype, _ in self._columns]
        for index in np.ndindex(*leading):
            content, start = zlib.decompress(rows[index[0]][index[1]]), 0
            for array, (shape, dtype, elements) in zip(arrays, self._columns, strict=True):
                array[index] = np.frombuffer(content, dtype, elements, start).reshape(shape)
                start += elements * dtype.itemsize
        return tree.unflatten_as(self._structure, arrays)
