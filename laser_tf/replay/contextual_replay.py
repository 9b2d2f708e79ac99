"""Replay whose sequences are stored in the learner's process, in a contextual priority tree."""

import logging
import pathlib
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from laser_tf import array_function, errors
from laser_tf.replay import batch_sources, client, dataset, memory, sequence_store, stored_unroll
from laser_tf.replay.schemes import base, contextual, replay_only
from laser_tf.workdir import checkpoint_rotation, run_directory

_UNROLLS, _LAYOUT = "unrolls", "layout.txt"


class ContextualReplay(client.ReplayClient):
    """A replay whose server has only the queue of new sequences; `store` holds the sequences."""

    def __init__(
        self,
        source: client.ReplayClient,
        scheme: contextual.Contextual,
        signature: stored_unroll.StoredUnroll,
        workdir: pathlib.Path,
    ):
        """Creates the store of the actors' server, filled from the run's checkpoint, if any."""
        super().__init__(source.connection)
        stored_bytes = memory.unroll_bytes(signature) + sequence_store.UNROLL_OVERHEAD_BYTES
        memory.warn_if_too_large(scheme, stored_bytes)
        self._source = source
        self._checkpoint = workdir / run_directory.SEQUENCES_CHECKPOINT
        self._in_checkpoints = scheme.in_checkpoints
        if not scheme.in_checkpoints:
            checkpoint_rotation.CheckpointRotation(self._checkpoint).delete_all()
        self.store = restore_store(
            self._checkpoint, lambda: sequence_store.SequenceStore(scheme, signature)
        )

    def size(self) -> int:
        """See `client.ReplayClient`."""
        return len(self.store)

    def update_priorities(self, batch: stored_unroll.Batch, priorities: np.ndarray) -> None:
        """See `client.ReplayClient`; all entries are sampled from the store."""
        self.store.update(batch.key, priorities)

    def metrics(self) -> dict[str, float]:
        """See `client.ReplayClient`."""
        return self.store.metrics()

    def checkpoint(self) -> None:
        """See `client.ReplayClient`; saves the queue, if this process runs it, then the store.

        Sequences that move to the store in between are in both, and recognised by their number.
        """
        self._source.checkpoint()
        if self._in_checkpoints:
            save_store(self._checkpoint, self.store.contents())

    def stop(self) -> None:
        """See `client.ReplayClient`."""
        self._source.stop()


def make_batches(
    scheme: contextual.Contextual, context: base.LearnerContext
) -> batch_sources.BatchSource:
    """Starts filling the store of a `ContextualReplay` and sampling from it.

    Batches are sampled two ahead of the learner: their priorities are at most two updates old. In a
    serial run, each batch is sampled after the last update.
    """
    replay = context.replay
    assert isinstance(replay, ContextualReplay)
    replay.store.seed(context.seed)
    counts = scheme.iterate_counts(context)
    new = context.iterate(lambda address: dataset.items(address, scheme.sequence_table))
    headers: Iterator[stored_unroll.UnrollHeader] = counts
    sources: list[Any] = [counts, new]
    if context.turn_taking:
        tables = {replay.connection.queue: counts, scheme.sequence_table: new}
        headers = _fill_in_turns(replay.store, context.turn_taking.read(replay.connection, tables))
    else:
        # A thread empties the queue of new sequences, however slow the learner is: a full queue
        # would block the actors, and with them the steps that the learner waits for.
        sources = [counts, batch_sources.BackgroundSource(_fill(replay.store, new), [new])]
    counter = batch_sources.UnrollCounter()
    limiter = replay_only.UpdateRateLimiter(scheme, replay.size, counter)
    batches = limiter.batches(headers, sampled_batches(scheme, replay.store))
    return batch_sources.BatchSource(context, batches, sources, counter)


def _fill(
    store: sequence_store.SequenceStore, sequences: Iterator[stored_unroll.StoredUnroll]
) -> Iterator[None]:
    """Adds sequences to a store; yields nothing."""
    for sequence in sequences:
        store.add(sequence)
    yield from ()


def _fill_in_turns(
    store: sequence_store.SequenceStore, turns: Iterator[list[list[Any]]]
) -> Iterator[stored_unroll.UnrollHeader]:
    """Adds the sequences of an actor's turn to a store, then yields the headers of its unrolls.

    Each environment has a separate Reverb writer, so that their items arrive in any order.
    """

    def place(item: Any) -> tuple[int, int]:
        """Returns stream and number of a header or of the last unroll that is not blank."""
        return max(zip(np.ravel(item.stream), np.ravel(item.number), strict=True))

    for headers, sequences in turns:
        for sequence in sorted(sequences, key=place):
            store.add(sequence)
        yield from sorted(headers, key=place)


def sampled_batches(
    scheme: contextual.Contextual, store: sequence_store.SequenceStore
) -> Iterator[stored_unroll.Batch]:
    """Yields batches of arrays from a store that has sequences."""
    to_batch = array_function.ArrayFunction(lambda drawn: dataset.replayed_batch(drawn, scheme))
    while True:
        yield to_batch(store.sample(scheme.replayed_entries))


def save_store(path: pathlib.Path, contents: sequence_store.Contents) -> None:
    """Saves the contents of a store as a zip archive and keeps the previous checkpoint.

        unrolls         packed unrolls, concatenated; unrolls shared by sequences are stored once
        lengths.npy     bytes of each unroll, [U]
        places.npy      indices of the unrolls of each sequence, [n, S]
        numbers.npy, games.npy, keys.npy, priorities.npy
        layout.txt      specification of an unroll

    Raises RuntimeError if that fails. Existing checkpoints are then unchanged.
    """
    try:
        with checkpoint_rotation.CheckpointRotation(path).saving() as unfinished:
            _write(unfinished, contents)
    except OSError as error:
        raise RuntimeError(f"{path}: {error.strerror or error}") from None


def restore_store(
    path: pathlib.Path, make_store: Callable[[], sequence_store.SequenceStore]
) -> sequence_store.SequenceStore:
    """Returns a new store with the contents of the newest usable checkpoint, if any."""

    def load(checkpoint: pathlib.Path) -> sequence_store.SequenceStore:
        store = make_store()
        try:
            store.restore(_read(checkpoint))
        except Exception as error:  # zipfile and NumPy raise almost any exception for damage.
            raise checkpoint_rotation.DamagedError(errors.one_line(error, 200)) from None
        return store

    restored = checkpoint_rotation.CheckpointRotation(path).restore(load)
    store = make_store() if restored is None else restored
    logging.info("Replay starts with %s sequences", f"{len(store):,}")
    return store


def _write(path: pathlib.Path, contents: sequence_store.Contents) -> None:
    sequences = contents.sequences
    unrolls = {id(unroll): unroll for sequence in sequences for unroll in sequence.unrolls}
    places = {identity: place for place, identity in enumerate(unrolls)}
    columns = {
        "lengths": [len(unroll) for unroll in unrolls.values()],
        "places": [[places[id(unroll)] for unroll in s.unrolls] for s in sequences],
        "numbers": [sequence.numbers for sequence in sequences],
        "games": [sequence.stream for sequence in sequences],
        "keys": [sequence.key for sequence in sequences],
    }
    arrays = {name: np.array(values, np.int64) for name, values in columns.items()}
    arrays["priorities"] = contents.priorities
    with zipfile.ZipFile(path, "w") as archive:  # without another compression
        with archive.open(_UNROLLS, "w", force_zip64=True) as packed:
            packed.writelines(unrolls.values())
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.save(file, array, allow_pickle=False)
        archive.writestr(_LAYOUT, contents.layout)


def _read(path: pathlib.Path) -> sequence_store.Contents:
    with zipfile.ZipFile(path) as archive, np.load(path) as arrays:
        if damaged := archive.testzip():
            raise ValueError(f"the checksum of {damaged} differs")
        with archive.open(_UNROLLS) as packed:
            unrolls = [packed.read(length) for length in arrays["lengths"].tolist()]
        columns = (arrays[name].tolist() for name in ("keys", "games", "numbers", "places"))
        sequences = [
            sequence_store.StoredSequence(
                key, stream, tuple(numbers), tuple(unrolls[place] for place in places)
            )
            for key, stream, numbers, places in zip(*columns, strict=True)
        ]
        layout = archive.read(_LAYOUT).decode()
        return sequence_store.Contents(layout, arrays["priorities"], sequences)
