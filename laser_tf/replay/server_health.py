"""How a replay server is, in a line for its log."""

import time

from laser_tf.replay import claim, memory_limit, replay_config, server, table_info


class Health:
    """How a server is: what it holds, and what went in and out since it was last asked."""

    def __init__(
        self,
        replay: server.EmbeddedReplay,
        table: str | None,
        limit: memory_limit.MemoryLimit | None,
    ):
        """Starts to count.

        Args:
          replay: the server, in this process.
          table: its replay table; None: it has only queues.
          limit: on its memory.
        """
        self._replay = replay
        self._table = table
        self._limit = limit
        self._time, self._counts = time.monotonic(), self._count(self._infos())

    def line(self) -> str:
        """The state in a line."""
        infos, now = self._infos(), time.monotonic()
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
            if name.startswith(replay_config.ONLINE)
        ]
        memory = f"{memory_limit.resident_bytes() / memory_limit.GIGABYTE:.2f} GB"
        if self._limit and self._limit.bytes:
            memory += f" of {self._limit.bytes / memory_limit.GIGABYTE:.2f}"
        return (
            f"replay: {', '.join(parts)}; {inserted:,.1f} inserts/s, {sampled:,.1f} samples/s, "
            f"{memory}"
        )

    def _infos(self) -> dict[str, table_info.TableInfo]:
        return table_info.read(self._replay.client)

    def _count(self, infos: dict[str, table_info.TableInfo]) -> tuple[int, int]:
        """Unrolls or sequences that came, to the queues or to replay, and what was drawn there."""
        limiters = [
            info.rate_limiter_info
            for name, info in infos.items()
            if name == (self._table or name) and not name.startswith(claim.PREFIX)
        ]
        return (
            sum(limiter.insert_stats.completed for limiter in limiters),
            sum(limiter.sample_stats.completed for limiter in limiters),
        )
