"""Writes whole episodes to replay and replays them from their starts (LASER, section A.2).

An episode is stored as the unrolls that cut it from its start: [n, T + 1, ...], the last step of
each is the first step of the next.

Reverb counts items, the capacity is in agent steps: an episode of n unrolls takes n items. The
first item is the whole episode and has priority 1. The others only mark the room that it takes:
each refers to one of its unrolls, which costs no memory, and has priority 0, with which it is never
sampled. The first item is also the first to be removed, so that replay never exceeds its capacity.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from laser_tf import array_function
from laser_tf.agents import base as agents_base
from laser_tf.replay import (
    batch_sources,
    dataset,
    env_writer,
    stored_unroll,
    unroll_buffer,
    unroll_check,
)
from laser_tf.replay.schemes import base, episodes

_EPISODE_TIMEOUT_SECONDS = 5.0  # To get an episode from a replay that has some.
_TABLE = "episodes"


class EpisodeWriter(env_writer.EnvWriter):
    """Writes each environment's episode when it is over; unrolls are kept until then.

    An episode whose Reverb writer is lost is left out: it could not be replayed from its start.
    """

    @classmethod
    def make(cls, scheme: episodes.Episodes, context: base.ActorContext) -> "EpisodeWriter":
        """Creates the writer of an actor."""
        signature = scheme.stored_signature(context.signature)
        buffer = unroll_buffer.UnrollBuffer(signature, context.task_ids, context.member)
        return cls(context.replay, buffer, context.max_unrolls_per_episode)

    def _append(self, index: int, unroll: stored_unroll.StoredUnroll) -> None:
        if not self._unrolls[index] and not stored_unroll.begins_episode(unroll):
            return
        self._writers[index].append(unroll)
        self._unrolls[index] += 1

    def _end(self, index: int) -> None:
        writer, unrolls = self._writers[index], self._unrolls[index]
        parts = [slice(-unrolls, None), *(slice(place, place + 1) for place in range(-unrolls, -1))]
        for number, part in enumerate(parts):
            trajectory = tree.map_structure(lambda column, part=part: column[part], writer.history)
            writer.create_item(_TABLE, float(number == 0), trajectory)


class Replayer:
    """The replayed entries of the learner's batches: unrolls with exact core states.

    Each entry replays an episode from its start. With every batch it advances by one unroll, and
    the newest weights advance its core state: one forward pass without gradient for each learning
    step. Every transition of a sampled episode is returned exactly once, in order.
    """

    def __init__(
        self,
        entries: int,
        unroll_signature: stored_unroll.StoredUnroll,
        next_state: Callable[[stored_unroll.StoredUnroll], Any],
    ):
        """Creates a replayer without any episode.

        Args:
          entries: Number of replayed entries of a batch.
          unroll_signature: Signature of an unroll with its core state.
          next_state: Advances the core states of a batch [entries, ...] from before step 0 to
            before the last step, which is the first step of the next unrolls.
        """
        blank = stored_unroll.blank(unroll_signature)
        self._blank = blank._replace(core_state=())
        self._states = tree.map_structure(
            lambda state: np.stack([state] * entries), blank.core_state
        )
        self._next_state = next_state
        self._pending: list[list[stored_unroll.StoredUnroll]] = [[] for _ in range(entries)]

    def next_batch(
        self, draw: Callable[[], stored_unroll.StoredUnroll | None]
    ) -> stored_unroll.StoredUnroll:
        """Returns the next unroll of each entry's episode.

        Args:
          draw: Returns another episode, arrays [n, ...], or None if there is none yet. An entry
            without an episode gets an unroll without transitions.

        Returns:
          [entries, ...], with the core states before step 0.
        """
        batch = tree.map_structure(
            lambda *unrolls: np.stack(unrolls),
            *(self._next_unroll(pending, draw) for pending in self._pending),
        )
        batch = batch._replace(core_state=self._states)
        self._states = self._next_state(batch)
        return batch

    def _next_unroll(
        self,
        pending: list[stored_unroll.StoredUnroll],
        draw: Callable[[], stored_unroll.StoredUnroll | None],
    ) -> stored_unroll.StoredUnroll:
        if not pending:
            episode = draw()
            if episode is None:
                return self._blank
            for index in reversed(range(len(episode.env_output.reward))):
                pending.append(tree.map_structure(lambda leaf, index=index: leaf[index], episode))
        return pending.pop()


class EpisodeBatches(batch_sources.BackgroundSource):
    """Batches of online unrolls and of unrolls of whole episodes with recomputed core states."""

    def __init__(
        self,
        online: batch_sources.BatchSource,
        sampled: batch_sources.BackgroundSource,
        scheme: episodes.Episodes,
        unroll_signature: stored_unroll.StoredUnroll,
        next_state: Callable[[stored_unroll.StoredUnroll], Any],
        invalid: unroll_check.InvalidUnrolls | None = None,
    ):
        """Starts fetching `stored_unroll.Batch`es of arrays, online unrolls first.

        Args:
          online: Batches of the online entries.
          sampled: Whole episodes.
          scheme: Replay scheme.
          unroll_signature: Signature of an unroll with its core state.
          next_state: See `Replayer`.
          invalid: Drops episodes with invalid unrolls; None drops none.
        """
        self._online = online
        self._sampled = sampled
        self._invalid = invalid
        self._replayer = Replayer(scheme.replayed_entries, unroll_signature, next_state)
        self._is_online = np.arange(scheme.batch_size) < scheme.online_entries
        self._has_episodes = False
        super().__init__(self._mix)

    def _mix(self) -> stored_unroll.Batch | None:
        online = self._online.get(self._closed.is_set)
        if online is None:
            return None
        replayed = self._replayer.next_batch(self._sample)
        mixed = tree.map_structure(lambda *parts: np.concatenate(parts), online.unrolls, replayed)
        return stored_unroll.unweighted(mixed, self._is_online, online.new_steps)

    def _sample(self) -> stored_unroll.StoredUnroll | None:
        # Until an episode ends somewhere, waiting for one would block the learner, with it the
        # queue, and with it the actors that run it: at the start, and after a server restarts
        # empty.
        episode = self._sampled.poll(_EPISODE_TIMEOUT_SECONDS if self._has_episodes else 0)
        self._has_episodes = episode is not None
        if episode is not None and self._invalid and self._invalid.has_any(episode):
            return None
        return episode

    def metrics(self) -> dict[str, float]:
        """See `batch_sources.BatchSource`."""
        return self._online.metrics()

    def close(self) -> None:
        """See `batch_sources.Source`."""
        super().close()
        self._online.close()
        self._sampled.close()


def make_batches(scheme: episodes.Episodes, context: base.LearnerContext) -> EpisodeBatches:
    """Starts fetching the batches of a learner."""
    online = batch_sources.online_batches(
        context.replay, scheme.online_entries, scheme.unroll_length
    )
    sampled = batch_sources.ServerSource(
        context.replay.connection, lambda address: dataset.items(address, _TABLE, in_flight=2)
    )
    next_state = state_recomputation(context.agent, scheme.replayed_entries)
    return EpisodeBatches(online, sampled, scheme, context.signature, next_state, context.invalid)


def state_recomputation(
    agent: agents_base.Agent, entries: int
) -> Callable[[stored_unroll.StoredUnroll], Any]:
    """Returns a function that advances core states with the agent's newest weights.

    Args:
      agent: The learner's agent.
      entries: Number of unrolls.

    Returns:
      Arrays `StoredUnroll [entries, ...]` -> the core states before their last step.
    """

    def next_state(stored: stored_unroll.StoredUnroll) -> Any:
        batch = stored_unroll.unweighted(stored, np.zeros(entries, bool))
        unroll = stored_unroll.unpack(batch)
        steps = tf.nest.map_structure(lambda leaf: leaf[:-1], unroll.env_output)
        return agent.next_state(steps, unroll.core_state)

    return array_function.ArrayFunction(next_state)
