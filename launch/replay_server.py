r"""Runs a replay server in its own process, on any machine, for runs that name it.

    python -m launch.replay_server --config=laser:atari --port=5000 \
        --checkpoint_folder=replay --memory_limit_gb=8
    python -m launch.train --config=laser:atari --config.replay.address=HOST:5000

Use the config and overrides of the runs, because they determine the tables. The server resumes from
its checkpoint, saves itself periodically and on SIGTERM or Ctrl-C, and logs its state every minute.

Reverb has neither TLS nor passwords, and always listens on every interface ([::]). Restrict the
port to the machines of the run by a firewall, a Kubernetes NetworkPolicy or a private network such
as WireGuard, which also encrypts. See docs/replay_server.md.
"""

from laser_tf.host import interruption
from laser_tf.workdir import versions

if __name__ == "__main__":
    interruption.before_imports()
    versions.check()  # A wrong TensorFlow fails while Reverb is imported.

import logging
import math
import pathlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from absl import flags

from laser_tf.environments import factory
from laser_tf.host import hardware, log_messages, native_messages
from laser_tf.replay import server_address
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.training import run_config
from laser_tf.workdir import lock
from launch import command_line

if TYPE_CHECKING:
    from laser_tf.replay import server

_CONFIG = command_line.define_config("configs/laser.py:atari")
_PORT = flags.DEFINE_integer("port", 5000, "port of the server; 0 selects a free port")
_FOLDER = command_line.define_path("checkpoint_folder", "directory of the server's checkpoints")
_MEMORY_LIMIT_GB = flags.DEFINE_float(
    "memory_limit_gb", 0.0, "max GB of the process; beyond, old items are removed; 0: no limit", 0.0
)
_CHECKPOINT_MINUTES = flags.DEFINE_float(
    "checkpoint_minutes", 10.0, "minutes between checkpoints, which block all requests", 1e-6
)

_POLL_PERIOD_SECONDS = 0.5
_HEALTH_PERIOD_SECONDS = 60.0
_GIGABYTE = 1e9


def main() -> None:
    """Serves until a signal arrives, then saves everything."""
    config = run_config.parse(_CONFIG.values())
    if not _FOLDER.value:
        raise command_line.UsageError(
            "--checkpoint_folder must name a directory for the server's checkpoints"
        )
    for flag in (_MEMORY_LIMIT_GB, _CHECKPOINT_MINUTES):
        if not math.isfinite(flag.value):
            raise command_line.UsageError(f"--{flag.name} must be finite, got {flag.value}.")
    server_address.check_port(_PORT.value)
    folder = pathlib.Path(_FOLDER.value).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    spec = factory.environment_spec(config.environment)
    lock.acquire(folder / lock.FILE, flag="--checkpoint_folder")
    signals = interruption.Interruption()
    hardware.hide_gpus()
    # TensorFlow and Reverb take seconds to load, so all other checks come first.
    from laser_tf.replay import memory, server
    from laser_tf.training import assembly

    agent = assembly.build_agent(config, spec, "float32", seed=0)
    signature = assembly.unroll_signature(config, spec, agent)
    limit_bytes = int(_MEMORY_LIMIT_GB.value * _GIGABYTE)
    unroll_bytes = memory.reverb_unroll_bytes(signature)
    min_bytes = memory.resident_bytes() + unroll_bytes * config.replay.min_memory_unrolls
    if 0 < limit_bytes < min_bytes:
        raise command_line.UsageError(
            f"--memory_limit_gb must be at least {min_bytes / _GIGABYTE + 0.01:.2f} for this "
            f"process, full queues and one batch, got {_MEMORY_LIMIT_GB.value:g}"
        )
    with native_messages.diverted(folder / native_messages.FILE):
        replay = server.ReplayServer(
            config.replay,
            signature,
            folder / "replay",
            _PORT.value,
            is_external=True,
            memory_limit_bytes=limit_bytes or None,
        )
        replay.guard_memory()
        fill = config.replay.fill_level(replay.connect().size())
        logging.info("Serving replay on port %d, %.0f%% full", replay.port, 100 * fill)
        _serve(replay, config.replay, signals, folder)


def _serve(
    replay: "server.ReplayServer",
    scheme: schemes_base.ReplayScheme,
    signals: interruption.Interruption,
    folder: pathlib.Path,
) -> None:
    """Logs the server's state and saves it until a signal arrives, then ends the process."""
    health = _health_lines(replay, scheme.replay_table)
    next(health)  # Starts counting.
    notice = log_messages.FailureNotice(on_recovery="Replay can be saved again")
    period = 60 * _CHECKPOINT_MINUTES.value
    now = time.monotonic()
    next_save, next_health = now + period, now + _HEALTH_PERIOD_SECONDS
    while not signals.stop_requested:
        time.sleep(_POLL_PERIOD_SECONDS)
        if time.monotonic() >= next_health:
            next_health += _HEALTH_PERIOD_SECONDS
            logging.info("%s", next(health))
        if time.monotonic() >= next_save:
            lock.check(folder)
            try:
                replay.checkpoint()
            except RuntimeError as error:
                notice.failed(f"Cannot save replay: {error}. The next attempt follows")
            else:
                notice.succeeded()
            next_save = time.monotonic() + period
    logging.info("%s", next(health))
    lock.check(folder)
    try:
        replay.checkpoint()
    except RuntimeError as error:
        raise command_line.UsageError(
            f"cannot save replay: {error}. The previous checkpoint is unchanged"
        ) from None
    replay.stop()
    if scheme.in_checkpoints:
        logging.info("Saved replay; the same command resumes the server")
    interruption.end_by(signals.signal_number)


def _health_lines(replay: "server.ReplayServer", table: str | None) -> Iterator[str]:
    """Yields the contents of a server, and its rates since the last line.

    `table` is None if the server has only a queue.
    """
    from laser_tf.replay import memory

    limit = f" of {_MEMORY_LIMIT_GB.value:.2f}" if _MEMORY_LIMIT_GB.value else ""
    last = np.zeros(3)  # seconds, inserted and sampled items
    while True:
        tables = replay.tables()
        held, queue = tables[table or schemes_base.QUEUE], tables[schemes_base.QUEUE]
        limiter = held.rate_limiter_info
        inserted, sampled = limiter.insert_stats.completed, limiter.sample_stats.completed
        now = np.array([time.monotonic(), inserted, sampled])
        seconds, inserted, sampled = now - last
        last = now
        share = 100 * held.current_size / held.max_size
        items = f"{held.current_size:,} items ({share:.0f}% full), " if table else ""
        yield (
            f"replay: {items}queue {queue.current_size}/{queue.max_size}; "
            f"{inserted / seconds:,.1f} inserts/s, {sampled / seconds:,.1f} samples/s, "
            f"{memory.resident_bytes() / _GIGABYTE:.2f} GB{limit}"
        )


if __name__ == "__main__":
    command_line.run(main, (OSError,))
