"""Reverb tables of a replay server: creation, state and comparison, and restarts of the server.

`reverb.Client.server_info` decodes the signature of each table, and each decoding creates classes
that stay alive: a process that polled every two seconds grew by 4 MiB a minute. Signatures
therefore stay encoded here until they are compared.
"""

import itertools
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import reverb
import tensorflow as tf
import tree
from reverb.cc import schema_pb2

from laser_tf.replay import stored_unroll
from laser_tf.replay.schemes import base

TableInfo: TypeAlias = schema_pb2.TableInfo

_SILENCE_WARNING_SECONDS = 8.0  # since the last answer
_AGE_TOLERANCE_SECONDS = 4.0  # max lag of a server's reported age


def make_tables(
    scheme: base.ReplayScheme,
    signature: stored_unroll.StoredUnroll,
    queues: Sequence[str] = (base.QUEUE,),
) -> list[reverb.Table]:
    """Creates the tables of a server: all but `replay_table` are queues."""
    signatures = scheme.signatures(signature)
    queue_signatures = dict.fromkeys(queues, signatures.pop(base.QUEUE)) | signatures
    replayed = queue_signatures.pop(scheme.replay_table, None)
    made = [
        reverb.Table.queue(queue, scheme.queue_capacity, signature=queue_signature)
        for queue, queue_signature in queue_signatures.items()
    ]
    if scheme.replay_table:
        exponent = scheme.sampler_exponent
        sampler = reverb.selectors.Prioritized(exponent) if exponent else None
        made.append(
            reverb.Table(
                name=scheme.replay_table,
                sampler=sampler or reverb.selectors.Uniform(),
                remover=reverb.selectors.Fifo(),
                max_size=scheme.max_items,
                # A higher minimum than one item would block the learner, then, through the full
                # queue, the actors that fill replay.
                rate_limiter=reverb.rate_limiters.MinSize(1),
                signature=replayed,
            )
        )
    return made


def stacked(signature: stored_unroll.StoredUnroll, unrolls: int | None) -> Any:
    """Returns the signature of successive unrolls, [unrolls, ...]; None means any number."""
    return tree.map_structure(
        lambda spec: tf.TensorSpec([unrolls, *spec.shape], spec.dtype, spec.name), signature
    )


def difference(info: TableInfo, signature: Any) -> str:
    """Returns the first difference of a table's signature to an expected one in words, or ""."""
    decoded = reverb.reverb_types.TableInfo.from_serialized_proto(info.SerializeToString())
    columns = [
        [f"{spec.name} {spec.dtype.name} {list(spec.shape)}" for spec in tf.nest.flatten(specs)]
        for specs in (decoded.signature, signature)
    ]
    for there, here in itertools.zip_longest(*columns, fillvalue="no column"):
        if there != here:
            return f"{there} there, {here} here"
    return ""


def read(client: reverb.Client, timeout_seconds: int = 0) -> dict[str, TableInfo]:
    """Requests the tables of a server; returns name -> table. A timeout of 0 means no timeout.

    Raises RuntimeError if the server does not answer in time, or answers with an error.
    """
    # Reverb's public method is this call and the decoding.
    infos = map(TableInfo.FromString, client._client.ServerInfo(timeout_seconds))
    return {info.name: info for info in infos}


def num_inserts(info: TableInfo) -> int:
    """Returns the number of items that were inserted since the server's start."""
    return info.rate_limiter_info.insert_stats.completed


class Liveness:
    """Records whether a replay server answers, and whether it was restarted.

    Reverb's clients continue with an empty server without an error. Counts of inserts may be
    restored from a checkpoint, so that only its age reveals a new server.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self.is_answering = True  # whether the last poll was answered
        self.restarts = 0  # times that another server was found in place of the last one
        self._answered_at = clock()
        self._age = -math.inf  # age of the server at its last answer; -inf before that
        self._is_silence_logged = False

    def record_silence(self, address: str) -> None:
        """Records a poll without an answer; logs a warning once if the silence lasts."""
        self.is_answering = False
        silence = self._clock() - self._answered_at
        if silence >= _SILENCE_WARNING_SECONDS and not self._is_silence_logged:
            self._is_silence_logged = True
            logging.warning(
                "Replay server at %s has not answered for %.0f s: waiting for it", address, silence
            )

    def record_move(self) -> None:
        """Records a new address: the next answer comes from another server."""
        if self._age >= 0:
            self._age = math.inf

    def record_answer(self, infos: Mapping[str, TableInfo], address: str) -> bool:
        """Records an answer; returns whether another server gave it than the last answer."""
        # Age in seconds: the working and waiting time of the server's threads.
        age = max(
            sum(value for _, value in info.table_worker_time.ListFields()) / 1000
            for info in infos.values()
        )
        silence = self._clock() - self._answered_at
        is_restarted = age < max(self._age, self._age + silence - _AGE_TOLERANCE_SECONDS)
        self.restarts += is_restarted
        if self._is_silence_logged and not is_restarted:
            logging.info("Replay server at %s answered after %.0f s", address, silence)
        self._age, self._answered_at = age, self._answered_at + silence
        self.is_answering, self._is_silence_logged = True, False
        return is_restarted
