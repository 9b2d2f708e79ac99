"""Compatibility of a run with the tables of a replay server."""

from collections.abc import Mapping
from typing import Any

from laser_tf import errors
from laser_tf.replay import stored_unroll, table_info, tables
from laser_tf.replay.schemes import base


class Compatibility:
    """Compares the tables of a replay server with the tables that a run needs."""

    def __init__(self, scheme: base.ReplayScheme, queue: str):
        """Requires only the queue, until `require` is called.

        Args:
          scheme: Replay scheme of the run.
          queue: Name of the learner's queue.
        """
        self._scheme = scheme
        self._queue = queue
        self._expected: dict[str, Any] = {}  # signatures, by table
        self._accepted: dict[str, Any] = {}  # the same, as encoded by the server

    def require(self, signature: stored_unroll.StoredUnroll) -> None:
        """Requires tables of unrolls with this signature."""
        self._expected = self._scheme.signatures(signature)

    def check(self, info: Mapping[str, table_info.TableInfo], address: str) -> None:
        """Compares tables, signatures and priority exponents.

        Args:
          info: The server's tables, by name.
          address: Address of the server, for the message.

        Raises:
          ConfigError: For the first difference.
        """
        for table in self._expected or (base.QUEUE,):
            name = self._queue if table == base.QUEUE else table
            if name not in info:
                raise errors.ConfigError(
                    f"the replay server at {address} must have a table {name!r}, got only "
                    f"{', '.join(map(repr, sorted(info)))}. Start the server with the replay "
                    "configuration of this run."
                )
            if table in self._expected:
                self._check_table(table, info[name], address)

    def _check_table(self, table: str, info: table_info.TableInfo, address: str) -> None:
        if table == self._scheme.replay_table:
            self._check_exponent(info, address)
        # Decoding a signature leaks memory, so a signature that was accepted is not decoded again.
        if info.signature == self._accepted.get(info.name):
            return
        found = tables.difference(table_info.signature(info), self._expected[table])
        if found:
            raise errors.ConfigError(
                f"the replay server at {address} takes other unrolls: {found}. Agents that share a "
                "replay need the same environment, core and unroll length."
            )
        self._accepted[info.name] = info.signature

    def _check_exponent(self, info: table_info.TableInfo, address: str) -> None:
        server = info.sampler_options.prioritized.priority_exponent  # 0 for a uniform table
        run = self._scheme.sampler_exponent
        if server != run:
            raise errors.ConfigError(
                f"replay.priority_exponent must be {server:g} as on the replay server at "
                f"{address}, got {run:g}. Use --config.replay.priority_exponent={server:g}, or "
                "start the server with the replay configuration of this run."
            )
