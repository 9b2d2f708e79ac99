r"""A replay server of its own, on a machine of its own, for runs that name it.

    python -m launch.replay_server --config=configs/laser.py:atari --port=5000 \
        --checkpoint_folder=replay --memory_limit_gb=8
    python -m launch.train --config=configs/laser.py:atari --config.replay.address=HOST:5000

Give it the config and overrides of the runs: they make its tables. It goes on from its checkpoint,
saves itself every so many minutes and when it is told to end, and logs its state every minute.

Reverb has neither TLS nor passwords, and listens on every interface ([::]), which cannot be
changed: let only the machines of the run reach the port, by a firewall, a Kubernetes NetworkPolicy
or a private network such as WireGuard, which also encrypts. See docs/replay_server.md.
"""

from laser_tf.host import interruption
from laser_tf.workdir import versions

if __name__ == "__main__":
    interruption.before_imports()
    versions.check()  # a wrong TensorFlow fails while Reverb is imported

import logging
import os
import pathlib
import time
from typing import TYPE_CHECKING

from absl import flags

from laser_tf.environments import factory
from laser_tf.host import failure_notice
from laser_tf.replay import server_address
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.training import run_config
from laser_tf.workdir import lock
from launch import command_line

if TYPE_CHECKING:
    from laser_tf.replay import memory_limit, server, server_health

_CONFIG = command_line.define_config("configs/laser.py:atari")
_PORT = flags.DEFINE_integer("port", 5000, "where runs find the server; 0 takes a free one")
_FOLDER = flags.DEFINE_string("checkpoint_folder", None, "the server's own, for its checkpoints")
_MEMORY_LIMIT_GB = flags.DEFINE_float(
    "memory_limit_gb",
    0.0,
    "10^9 bytes that the process may take; beyond them the oldest of replay is removed; 0: no "
    "limit but the tables' own",
)
_CHECKPOINT_MINUTES = flags.DEFINE_float(
    "checkpoint_minutes", 10.0, "between checkpoints, while which nothing is read or written"
)

_POLL_SECONDS = 0.5
_HEALTH_SECONDS = 60.0


def main() -> None:
    """Serves until it is told to end, then saves everything."""
    config = run_config.parse(command_line.config_values(_CONFIG))
    folder, queues = _check_flags(), [schemes_base.QUEUE]
    limit_bytes = int(_MEMORY_LIMIT_GB.value * 1e9)
    spec = factory.environment_spec(config.environment)
    lock.acquire(folder / lock.FILE, flag="--checkpoint_folder")
    interrupted = interruption.Interruption()
    # TensorFlow and Reverb take seconds to load: not before all is checked that can be.
    from laser_tf.replay import memory_limit, server_health, standalone
    from laser_tf.training import assembly

    agent = assembly.build_agent(config, spec, "float32", seed=0)
    signature = assembly.unroll_signature(config, spec, agent)
    base = memory_limit.resident_bytes()
    least = base + standalone.least_memory(config.replay, signature, len(queues))
    if limit_bytes and limit_bytes < least:
        raise command_line.UsageError(
            f"--memory_limit_gb is {_MEMORY_LIMIT_GB.value:g}: the process takes "
            f"{base / 1e9:.2f} GB without any replay; use {least / 1e9 + 0.01:.2f} or more"
        )
    command_line.divert_native_messages(folder / "native.log")
    replay = standalone.start(config.replay, signature, folder, _PORT.value, queues)
    table = config.replay.replay_table
    limit = memory_limit.for_machine(replay, config.replay, limit_bytes or None, base)
    fill = replay.connect().fill()
    logging.info("replay is served at port %d, %.0f%% full", replay.port, 100 * fill)
    serve(replay, limit, server_health.Health(replay, table, limit), interrupted, folder)


def _check_flags() -> pathlib.Path:
    """The server's folder, made.

    Raises:
      UsageError: for a flag that cannot be used.
    """
    if not _FOLDER.value:
        raise command_line.UsageError(
            "--checkpoint_folder is missing: name a folder for the server's checkpoints"
        )
    server_address.check_port(_PORT.value)
    for flag in (_MEMORY_LIMIT_GB, _CHECKPOINT_MINUTES):
        if not 0 <= flag.value < 1e9:
            raise command_line.UsageError(f"--{flag.name} is {flag.value}: use a number, 0 or more")
    if not _CHECKPOINT_MINUTES.value:
        raise command_line.UsageError("--checkpoint_minutes is 0: use a number above 0")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    if _MEMORY_LIMIT_GB.value > memory:
        raise command_line.UsageError(
            f"--memory_limit_gb is {_MEMORY_LIMIT_GB.value:g}: this machine has {memory:.1f}"
        )
    folder = pathlib.Path(_FOLDER.value).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise command_line.UsageError(
            f"--checkpoint_folder is {folder}: it cannot be made ({error.strerror})"
        ) from None
    return folder


def serve(
    replay: "server.ReplayServer",
    limit: "memory_limit.MemoryLimit | None",
    health: "server_health.Health",
    interrupted: interruption.Interruption,
    folder: pathlib.Path,
) -> None:
    """Looks after a server until the process is told to end, then ends it.

    Args:
      replay: the server.
      limit: on its memory.
      health: of the server.
      interrupted: what the process was told.
      folder: The locked directory of the checkpoints.

    Raises:
      LostError: If the directory no longer belongs to this process.
      UsageError: if the last checkpoint cannot be written.
    """
    notice = failure_notice.FailureNotice("replay can be saved again")
    period = 60 * _CHECKPOINT_MINUTES.value
    next_save, next_health = (time.monotonic() + seconds for seconds in (period, _HEALTH_SECONDS))
    while not interrupted.stop:
        time.sleep(_POLL_SECONDS)
        if limit:
            limit.try_to_enforce()
        if time.monotonic() >= next_health:
            next_health += _HEALTH_SECONDS
            logging.info("%s", health.line())
        if time.monotonic() >= next_save:
            try:
                lock.check(folder)
                replay.checkpoint()
            except lock.LostError:
                raise
            except RuntimeError as error:
                notice.failed(f"cannot save replay: {error}; it is served on and saved again later")
            else:
                notice.succeeded()
            next_save = time.monotonic() + period
    logging.info("%s", health.line())
    lock.check(folder)
    try:
        replay.checkpoint()
    except RuntimeError as error:
        raise command_line.UsageError(
            f"cannot save replay: {error}. What was saved before is there still"
        ) from None
    replay.stop()
    logging.info("saved; the same command goes on")
    interruption.end_by(interrupted.signal_number)


if __name__ == "__main__":
    command_line.run(main, (OSError,))
