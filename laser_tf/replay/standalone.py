"""A replay server that is no run's own, which starts on a folder of its own tables only."""

import json
import pathlib
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from laser_tf import errors
from laser_tf.replay import (
    claim,
    memory_estimate,
    replay_config,
    saved_tables,
    server,
    stored_unroll,
    tables,
)

_TABLES = "tables.json"  # in the server's folder: what its checkpoints hold
_REPLAY = "replay"


def start(
    config: replay_config.ReplayConfig,
    signature: stored_unroll.StoredUnroll,
    folder: pathlib.Path,
    port: int,
    queues: Sequence[str],
) -> server.EmbeddedReplay:
    """Starts a server that runs may claim, from its checkpoint where there is one.

    Args:
      config: of the tables.
      signature: of an unroll.
      folder: the server's own.
      port: to listen on.
      queues: one for each learner.

    Raises:
      ValueError: if the port is in use, or the folder holds replay of other tables.
      OSError: if the folder cannot be written.
    """
    described = _describe(config, signature, queues)
    has_saved = saved_tables.find(folder / _REPLAY) or (folder / f"{_REPLAY}_previous").exists()
    if has_saved:
        _compare(folder, described)
    replay = server.EmbeddedReplay(
        config,
        signature,
        folder / _REPLAY,
        port,
        queues,
        more_tables=lambda: [claim.make_table(queue) for queue in queues],
    )
    temporary = folder / f"{_TABLES}.tmp"
    temporary.write_text(json.dumps(described, indent=2) + "\n")
    temporary.replace(folder / _TABLES)
    return replay


def _describe(
    config: replay_config.ReplayConfig,
    signature: stored_unroll.StoredUnroll,
    queues: Sequence[str],
) -> dict[str, Any]:
    """What a checkpoint fixes of each table: what it holds, how many, and how it is drawn."""
    described = {}
    for table in tables.make_tables(config, signature, queues):
        info = table.info
        described[info.name] = {
            "items": info.max_size,
            "drawn": " ".join(str(info.sampler_options).split()),
            "columns": [
                f"{spec.name} {spec.dtype.name} {spec.shape}"
                for spec in tf.nest.flatten(info.signature)
            ],
        }
    return described


def _compare(folder: pathlib.Path, described: dict[str, Any]) -> None:
    remedy = "use the same configuration, or another --checkpoint_folder"
    unreadable = errors.ConfigError(
        f"{folder} holds a replay checkpoint, but what its tables are cannot be read in "
        f"{folder / _TABLES}: use another --checkpoint_folder"
    )
    try:
        saved = json.loads((folder / _TABLES).read_text())
    except Exception:
        raise unreadable from None
    try:
        if set(saved) != set(described):
            there, here = ", ".join(sorted(saved)), ", ".join(sorted(described))
            raise errors.ConfigError(f"{folder} holds the tables {there}, not {here}: {remedy}")
        for name, table in described.items():
            for key, here in table.items():
                there = saved[name][key]
                if there != here and isinstance(here, list):
                    there, here = next(
                        (pair for pair in zip(there, here, strict=False) if pair[0] != pair[1]),
                        (f"{len(there)} columns", f"{len(here)} columns"),
                    )
                if there != here:
                    raise errors.ConfigError(
                        f"{folder} holds a table {name!r} with {key} {there}, not {here}, and a "
                        f"restored one stays as it was: {remedy}"
                    )
    except (KeyError, TypeError, AttributeError, IndexError):
        raise unreadable from None


def least_memory(
    config: replay_config.ReplayConfig, signature: stored_unroll.StoredUnroll, queues: int
) -> int:
    """Bytes that full queues and one batch from replay take, if nothing can be compressed.

    Where the learner keeps the sequences, their queue takes the place of the batch.

    Args:
      config: of the tables.
      signature: of an unroll.
      queues: how many.
    """
    is_queue = config.replay_table == replay_config.NEW_SEQUENCES
    entries = config.queue_capacity if is_queue else config.batch_size
    unrolls = entries * -(-config.steps_per_entry // config.unroll_length)
    return memory_estimate.unroll_bytes(signature) * (queues * config.queue_capacity + unrolls)
