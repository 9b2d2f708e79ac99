"""A learner's side of a replay server, its own or one that it shares."""

import os
from typing import Any

import numpy as np
import reverb
import tensorflow as tf

from laser_tf.replay import replay_config, stored_unroll, tables

TIMEOUT_SECONDS = 20

# gRPC would ask the proxy of `http_proxy` even for localhost. Empty means none.
os.environ.setdefault("grpc_proxy", "")


class Connection:
    """What a run asks of replay beside writing and sampling."""

    def __init__(
        self, address: str, config: replay_config.ReplayConfig, queue: str = replay_config.ONLINE
    ):
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

    @property
    def addresses(self) -> tuple[str, ...]:
        """Of all servers that are drawn from."""
        return (self.address,)

    def check(self, signature: stored_unroll.StoredUnroll) -> None:
        """Raises ValueError, naming the first difference, unless the server takes such unrolls."""
        info = self.client.server_info(timeout=TIMEOUT_SECONDS)
        if self.queue not in info:
            raise ValueError(
                f"the replay server at {self.address} has no table {self.queue!r}, only "
                f"{', '.join(map(repr, sorted(info)))}: it serves another sweep"
            )
        for table, expected in tables.signatures_of(self._config, signature).items():
            there = info[self.queue if table == replay_config.ONLINE else table].signature
            self._compare(there, expected)

    def _compare(self, there: Any, here: Any) -> None:
        served, given = ([_describe(s) for s in tf.nest.flatten(spec)] for spec in (there, here))
        if served != given:
            mine, theirs = next(
                (pair for pair in zip(given, served, strict=False) if pair[0] != pair[1]),
                (f"{len(given)} columns", f"{len(served)} columns"),
            )
            raise ValueError(
                f"the replay server at {self.address} takes other unrolls: {theirs} there, {mine} "
                "here; agents on one replay need the same environment, core and unrolls"
            )

    def size(self) -> int:
        """Items in replay, of `steps_per_item` agent steps each; 0 without a replay table."""
        table = self._config.replay_table
        if not table:
            return 0
        # A server that has died would else be waited for without end.
        return self.client.server_info(timeout=TIMEOUT_SECONDS)[table].current_size

    def fill(self) -> float:
        """Agent steps in replay over its capacity, in [0, 1]."""
        return self.size() * self._config.steps_per_item / self._config.capacity

    def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
        """Gives items of replay new priorities; those that are gone by now are passed over.

        Args:
          keys: uint64 [B].
          priorities: float [B], at least 0.
        """
        updates = dict(zip(keys.tolist(), priorities.tolist(), strict=True))
        self.client.mutate_priorities(self._config.replay_table, updates)

    def take_priorities(self, batch: stored_unroll.Batch, priorities: np.ndarray) -> None:
        """Gives what a batch replayed the priorities that its loss returned.

        Args:
          batch: arrays.
          priorities: float [B], at least 0; of online entries none are used.
        """
        drawn = ~batch.is_online
        self.update_priorities(batch.key[drawn], priorities[drawn])

    def checkpoint(self) -> None:
        """Does nothing: a shared server is saved by the process that runs it."""

    def stop(self) -> None:
        """Does nothing: a shared server outlives its learners."""


def _describe(spec: tf.TensorSpec) -> str:
    return f"{spec.name} {spec.dtype.name} {list(spec.shape)}"
