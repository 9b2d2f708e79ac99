"""A learner's side of a replay server, its own or one that it shares."""

import os

import numpy as np
import reverb
import tensorflow as tf

from laser_tf.replay import stored_unroll, tables

_TIMEOUT_SECONDS = 20

# gRPC would ask the proxy of `http_proxy` even for localhost. Empty means none.
os.environ.setdefault("grpc_proxy", "")


class Connection:
    """What a run asks of replay beside writing and sampling."""

    def __init__(self, address: str, config: tables.Config, queue: str = tables.ONLINE):
        """Connects; nothing is sent yet.

        Args:
          address: "host:port" of the Reverb server.
          config: of its tables.
          queue: this learner's.
        """
        self.address = address
        self.queue = queue
        self.client = reverb.Client(address)
        self._config = config

    def check(self, signature: stored_unroll.StoredUnroll) -> None:
        """Raises ValueError, naming the first difference, unless the server takes such unrolls."""
        info = self.client.server_info(timeout=_TIMEOUT_SECONDS)
        if self.queue not in info:
            raise ValueError(
                f"the replay server at {self.address} has no table {self.queue!r}, only "
                f"{', '.join(map(repr, sorted(info)))}: it serves another sweep"
            )
        there = [_describe(spec) for spec in tf.nest.flatten(info[self.queue].signature)]
        here = [_describe(spec) for spec in tf.nest.flatten(signature)]
        if here != there:
            mine, theirs = next(
                (pair for pair in zip(here, there, strict=False) if pair[0] != pair[1]),
                (f"{len(here)} columns", f"{len(there)} columns"),
            )
            raise ValueError(
                f"the replay server at {self.address} takes other unrolls: {theirs} there, {mine} "
                "here; agents on one replay need the same environment, core and unrolls"
            )

    def size(self) -> int:
        """Items in replay, of `unroll_length` agent steps each; 0 without a replay table."""
        table = self._config.replay_table
        if not table:
            return 0
        # A server that has died would else be waited for without end.
        return self.client.server_info(timeout=_TIMEOUT_SECONDS)[table].current_size

    def fill(self) -> float:
        """Agent steps in replay over its capacity, in [0, 1]."""
        return self.size() * self._config.unroll_length / self._config.capacity

    def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
        """Gives items of replay new priorities; those that are gone by now are passed over.

        Args:
          keys: uint64 [B].
          priorities: float [B], at least 0.
        """
        updates = dict(zip(keys.tolist(), priorities.tolist(), strict=True))
        self.client.mutate_priorities(self._config.replay_table, updates)

    def checkpoint(self) -> None:
        """Does nothing: a shared server is saved by the process that runs it."""

    def stop(self) -> None:
        """Does nothing: a shared server outlives its learners."""


def _describe(spec: tf.TensorSpec) -> str:
    return f"{spec.name} {spec.dtype.name} {list(spec.shape)}"
