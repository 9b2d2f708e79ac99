"""Batches that are copied to an accelerator before their update."""

import collections
import secrets
from typing import Any

import tensorflow as tf

from laser_tf import array_function
from laser_tf.replay import stored_unroll


class StagedBatches:
    """Batches on the device, first in, first out.

    A copy waits for all computation that was enqueued before it. The thread that prefetches batches
    therefore starts the copy of the batch after next, which overlaps with the next update.
    """

    def __init__(self):
        self._name = f"batches_{secrets.token_hex(8)}"  # A staging area belongs to its name.
        self._order: collections.deque[stored_unroll.Batch] = collections.deque()
        self._put = array_function.ArrayFunction(self._stage)
        self._specs: Any = None  # nest of tf.TensorSpec, that of a batch

    def add(self, batch: stored_unroll.Batch) -> None:
        """Starts to copy a batch of arrays."""
        self._put(batch)
        self._order.append(batch)

    def prepare(self, batch: stored_unroll.Batch) -> None:
        """Makes a batch the next one of `take`; copies it now unless it was added before."""
        if not self._order:
            self.add(batch)
        if self._order.popleft() is not batch:
            raise ValueError("batches must be used in the order in which they were staged.")

    def take(self) -> stored_unroll.Batch:
        """Returns the tensors of the next batch, in the graph of an update."""
        specs = tf.nest.flatten(self._specs)
        tensors = tf.raw_ops.Unstage(dtypes=[spec.dtype for spec in specs], shared_name=self._name)
        shaped = [
            tf.ensure_shape(tensor, spec.shape) for tensor, spec in zip(tensors, specs, strict=True)
        ]
        return tf.nest.pack_sequence_as(self._specs, shaped)

    def clear(self) -> None:
        """Removes all batches."""
        if self._specs is not None:
            dtypes = [spec.dtype for spec in tf.nest.flatten(self._specs)]
            tf.raw_ops.StageClear(dtypes=dtypes, shared_name=self._name)
        self._order.clear()

    def _stage(self, batch: stored_unroll.Batch) -> tuple[()]:
        self._specs = tf.nest.map_structure(
            lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), batch
        )
        tf.raw_ops.Stage(values=tf.nest.flatten(batch), shared_name=self._name)
        return ()
