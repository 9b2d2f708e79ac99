"""Writes whole episodes to replay and replays them from their starts (LASER, section A.2).

An episode is cut into n unrolls from its start, [n, T + 1, ...]. The last step of each unroll is
the first step of the next.

Reverb counts items, but the capacity is in agent steps, so an episode of n unrolls takes n items.
The first item, which is removed first, is the whole episode and has priority 1. The others are
placeholders with priority 0: each refers to an unroll of the episode, which costs no memory. Reverb
samples a placeholder only if the table holds no whole episode.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from laser_tf import array_function
from laser_tf.agents import base as agents_base
from laser_tf.replay import batch_sources, dataset, stored_unroll, writers
from laser_tf.replay.schemes import base, episodes

EPISODE_TIMEOUT_SECONDS = 5.0  # to get an episode from a replay that is not empty

NextState = Callable[[stored_unroll.StoredUnroll], Any]


class EpisodeWriter(writers.EnvWriter):
    """Writes each environment's episode when it is over; unrolls are kept until then.

    An episode whose Reverb writer is lost is left out: it could not be replayed from its start.
    """

    def __init__(self, scheme: episodes.Episodes, context: base.ActorContext):
        signature = scheme.stored_signature(context.signature)
        super().__init__(context, signature, context.max_unrolls_per_episode)
        self._table = scheme.replay_table

    def _append(self, index: int, unroll: stored_unroll.StoredUnroll) -> None:
        if self._unrolls[index] or stored_unroll.begins_episode(unroll):
            self._writers[index].append(unroll)
            self._unrolls[index] += 1

    def _end(self, index: int) -> None:
        writer, unrolls = self._writers[index], self._unrolls[index]
        parts = [slice(-unrolls, None), *(slice(place, place + 1) for place in range(-unrolls, -1))]
        for number, part in enumerate(parts):
            trajectory = tree.map_structure(lambda column, part=part: column[part], writer.history)
            writer.create_item(self._table, float(number == 0), trajectory)


class Replayer:
    """The replayed entries of the learner's batches: unrolls with exact core states.

    Each entry replays an episode from its start. With every batch it advances by one unroll, and
    the newest weights advance its core state: one forward pass without gradient for each learning
    step.
    """

    def __init__(
        self,
        entries: int,
        signature: stored_unroll.StoredUnroll,
        next_state: NextState,
        sample: Callable[[], stored_unroll.StoredUnroll | None],
    ):
        """Creates a replayer without any episode.

        `sample` returns another episode, arrays [n, ...], or None while replay is empty: the entry
        then gets an unroll without transitions.
        """
        blank = stored_unroll.blank(signature)
        self._states = tree.map_structure(
            lambda state: np.stack([state] * entries), blank.core_state
        )
        self._blank = blank._replace(core_state=())
        self._next_state = next_state
        self._sample = sample
        self._pending: list[list[stored_unroll.StoredUnroll]] = [[] for _ in range(entries)]

    def next_batch(self) -> stored_unroll.StoredUnroll:
        """Returns the next unroll [entries, ...] of each entry's episode."""
        unrolls = map(self._next_unroll, self._pending)
        batch = tree.map_structure(lambda *leaves: np.stack(leaves), *unrolls)
        batch = batch._replace(core_state=self._states)
        self._states = self._next_state(batch)
        return batch

    def _next_unroll(self, pending: list[stored_unroll.StoredUnroll]) -> stored_unroll.StoredUnroll:
        if not pending:
            episode = self._sample()
            if episode is None:
                return self._blank
            for index in reversed(range(len(episode.env_output.reward))):
                pending.append(tree.map_structure(lambda leaf, index=index: leaf[index], episode))
        return pending.pop()


def make_batches(
    scheme: episodes.Episodes, context: base.LearnerContext
) -> batch_sources.BatchSource:
    """Starts fetching batches of online unrolls and of unrolls of whole episodes."""
    queue, table = context.replay.connection.queue, scheme.replay_table
    online = context.iterate(lambda address: dataset.online_batches(address, scheme, queue))
    stored = context.iterate(lambda address: dataset.items(address, table, in_flight=2))
    sampled = batch_sources.BackgroundSource(stored, [stored])
    next_state = state_recomputation(context.agent, scheme.replayed_entries)
    batches = mix(scheme, context, online, sampled, next_state)
    return batch_sources.BatchSource(context, batches, [online, sampled])


def mix(
    scheme: episodes.Episodes,
    context: base.LearnerContext,
    online: Iterator[stored_unroll.Batch],
    sampled: batch_sources.BackgroundSource,
    next_state: NextState,
) -> Iterator[stored_unroll.Batch]:
    """Yields batches of arrays: online entries, then entries that replay sampled episodes."""
    has_episodes = False

    def sample() -> stored_unroll.StoredUnroll | None:
        # Replay is empty at the start and after a server restarts without data. Waiting for its
        # first episode would block the learner, then the queue, then the actors that fill replay.
        nonlocal has_episodes
        episode = sampled.poll(EPISODE_TIMEOUT_SECONDS if has_episodes else 0)
        has_episodes = episode is not None
        if episode is None or context.check.has_any(episode):
            return None
        # Reverb samples placeholders while a full table holds nothing else.
        first = tree.map_structure(lambda leaf: leaf[0], episode)
        return episode if stored_unroll.begins_episode(first) else None

    replayer = Replayer(scheme.replayed_entries, context.signature, next_state, sample)
    is_online = np.arange(scheme.batch_size) < scheme.online_entries
    for batch in online:
        replayed = replayer.next_batch()
        mixed = tree.map_structure(lambda *parts: np.concatenate(parts), batch.unrolls, replayed)
        yield stored_unroll.unweighted(mixed, is_online, batch.new_steps)


def state_recomputation(agent: agents_base.Agent, entries: int) -> NextState:
    """Returns a function from arrays of unrolls to the core states before their last step."""

    def next_state(stored: stored_unroll.StoredUnroll) -> Any:
        batch = stored_unroll.unweighted(stored, np.zeros(entries, bool))
        unroll = stored_unroll.unpack(batch)
        steps = tf.nest.map_structure(lambda leaf: leaf[:-1], unroll.env_output)
        return agent.next_state(steps, unroll.core_state)

    return array_function.ArrayFunction(next_state)
