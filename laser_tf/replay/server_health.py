"""State of a replay server for its log."""

import time

from laser_tf.replay import lease, memory_limit, server, table_info
from laser_tf.replay.schemes import base


class Health:
    """State of a server: its contents, and its rates since the last call of `line`."""

    def __init__(
        self,
        replay: server.ReplayServer,
        table: str | None,
        limit: memory_limit.MemoryLimit | None,
    ):
        """Starts counting.

        Args:
          replay: Server in this process.
          table: Name of its replay table; None if it has only queues.
          limit: Limit of its memory.
        """
        self._replay = replay
        self._table = table
        self._limit = limit
        self._time, self._counts = time.monotonic(), self._count(replay.tables())

    def line(self) -> str:
        """Returns the state in one line."""
        infos, now = self._replay.tables(), time.monotonic()
        counts, seconds = self._count(infos), now - self._time
        inserted, sampled = (
            (after - before) / seconds for before, after in zip(self._counts, counts, strict=True)
        )
        self._time, self._counts = now, counts
        parts = []
        if self._table:
            held = infos[self._table]
            share = 100 * held.current_size / held.max_size
            parts.append(f"{held.current_size:,} items ({share:.0f}% full)")
        parts += [
            f"{name} {info.current_size}/{info.max_size}"
            for name, info in sorted(infos.items())
            if name.startswith(base.QUEUE)
        ]
        memory = f"{memory_limit.resident_bytes() / memory_limit.GIGABYTE:.2f} GB"
        if self._limit and self._limit.bytes:
            memory += f" of {self._limit.bytes / memory_limit.GIGABYTE:.2f}"
        return (
            f"replay: {', '.join(parts)}; {inserted:,.1f} inserts/s, {sampled:,.1f} samples/s, "
            f"{memory}"
        )

    def _count(self, infos: dict[str, table_info.TableInfo]) -> tuple[int, int]:
        """Returns the numbers of inserted and of sampled items, in replay or else in the queues."""
        limiters = [
            info.rate_limiter_info
            for name, info in infos.items()
            if name == (self._table or name) and not name.startswith(lease.PREFIX)
        ]
        return (
            sum(limiter.insert_stats.completed for limiter in limiters),
            sum(limiter.sample_stats.completed for limiter in limiters),
        )
