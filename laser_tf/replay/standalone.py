"""Start of a replay server outside a run, with a check of the tables in its directory."""

import json
import pathlib
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from laser_tf import errors
from laser_tf.replay import lease, memory_estimate, server, stored_unroll
from laser_tf.replay.schemes import base
from laser_tf.workdir import atomic, checkpoint_rotation

_TABLES = "tables.json"  # describes the tables of the checkpoints in the server's directory
_REPLAY = "replay"


def start(
    scheme: base.ReplayScheme,
    signature: stored_unroll.StoredUnroll,
    folder: pathlib.Path,
    port: int,
    queues: Sequence[str],
) -> server.ReplayServer:
    """Starts a server whose queues can be leased. Restores its checkpoint, if any.

    Args:
      scheme: Replay scheme.
      signature: Signature of an unroll.
      folder: Directory of the server.
      port: Port to listen on.
      queues: Names of the learners' queues.

    Raises:
      ConfigError: If the port is in use, or the directory holds a replay with other tables.
      OSError: If the directory cannot be written.
    """
    described = _describe(scheme, signature, queues)
    if checkpoint_rotation.CheckpointRotation(folder / _REPLAY).has_checkpoint():
        _compare(folder, described)
    replay = server.ReplayServer(
        scheme,
        signature,
        folder / _REPLAY,
        port,
        queues,
        more_tables=lambda: [lease.make_table(queue) for queue in queues],
    )
    atomic.write(folder / _TABLES, json.dumps(described, indent=2) + "\n")
    return replay


def _describe(
    scheme: base.ReplayScheme,
    signature: stored_unroll.StoredUnroll,
    queues: Sequence[str],
) -> dict[str, Any]:
    """Describes what a checkpoint fixes of each table: size, sampler and columns."""
    described = {}
    for table in scheme.make_tables(signature, queues):
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
    scheme: base.ReplayScheme, signature: stored_unroll.StoredUnroll, queues: int
) -> int:
    """Returns the bytes of full queues and one batch from replay, without compression.

    Args:
      scheme: Replay scheme.
      signature: Signature of an unroll.
      queues: Number of queues.
    """
    return memory_estimate.unroll_bytes(signature) * scheme.min_server_unrolls(queues)
