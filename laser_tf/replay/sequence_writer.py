"""Writes overlapping sequences to replay (R2D2, section 2.3).

A sequence is S unrolls of one episode, [S, T + 1, ...]: first the burn-in, then the trained part.
Blank unrolls, without any transition, replace the burn-in before an episode's start, so that the
agent also learns from the first steps. They also pad a sequence after the episode's end. Sequences
share the unrolls of their overlap, which costs no memory.
"""

import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf
import tree

from laser_tf import array_function
from laser_tf.agents import base as agents_base
from laser_tf.replay import stored_unroll, writers
from laser_tf.replay.schemes import base, sequences

Priority = Callable[[stored_unroll.StoredUnroll], float]


def initial_priority(agent: agents_base.Agent) -> Priority:
    """Returns a function that computes the priority of a new sequence by an actor's agent."""

    def priorities(parts: stored_unroll.StoredUnroll) -> tf.Tensor:
        unrolls, _ = stored_unroll.join(tf.nest.map_structure(lambda leaf: leaf[None], parts))
        batch = stored_unroll.unweighted(unrolls, np.array([False]))
        return agent.initial_priorities(stored_unroll.unpack(batch))[0]

    compiled = array_function.ArrayFunction(priorities)
    return lambda parts: float(compiled(parts))


class SequenceWriter(writers.EnvWriter):
    """Writes each sequence once complete; the queue gets the count of each unroll."""

    def __init__(self, scheme: sequences.Sequences, context: base.ActorContext, priority: Priority):
        """Creates a writer; `priority` gets unrolls [S, ...] without observations and states."""
        length = scheme.unroll_length
        self._burn_in = scheme.burn_in // length
        self._size = scheme.steps_per_entry // length
        self._period = scheme.new_steps_per_item // length
        super().__init__(context, context.signature, self._size, separate_chunks=True)
        self._table, self._queue = scheme.sequence_table, context.replay.queue
        self._blank = stored_unroll.blank(context.signature)
        self._priority = priority
        self._recent: list[list[stored_unroll.StoredUnroll]] = [[] for _ in self._writers]

    def _append(self, index: int, unroll: stored_unroll.StoredUnroll) -> None:
        if not self._unrolls[index]:
            self._recent[index] = []
            # After a writer's loss the episode's next steps are the burn-in instead.
            for _ in range(self._burn_in if stored_unroll.begins_episode(unroll) else 0):
                self._append_unroll(index, self._blank_before(unroll))
        self._append_unroll(index, unroll)
        columns = tree.map_structure(lambda column: column[-1], self._writers[index].history)
        self._writers[index].create_item(self._queue, 1.0, stored_unroll.header_of(columns))

    def _end(self, index: int) -> None:
        last = self._recent[index][-1]
        while self._missing(index):
            self._append_unroll(index, self._blank_like(last))

    def _blank_like(self, unroll: stored_unroll.StoredUnroll) -> stored_unroll.StoredUnroll:
        """Returns an unroll without transitions with the same task and member."""
        return self._blank._replace(
            task=unroll.task, member=unroll.member, learner_update=unroll.learner_update
        )

    def _blank_before(self, unroll: stored_unroll.StoredUnroll) -> stored_unroll.StoredUnroll:
        """Returns a blank unroll whose last step is the first step of an episode's first unroll."""
        blank = self._blank_like(unroll)
        steps = stored_unroll.num_steps(unroll.env_output)
        env_output, agent_output = tree.map_structure(
            lambda leaf, first: np.concatenate([leaf[:-1], first[-steps][None]]),
            (blank.env_output, blank.agent_output),
            (unroll.env_output, unroll.agent_output),
        )
        return blank._replace(
            env_output=env_output, agent_output=agent_output, next_core_state=unroll.core_state
        )

    def _append_unroll(self, index: int, unroll: stored_unroll.StoredUnroll) -> None:
        writer, recent = self._writers[index], self._recent[index]
        writer.append(unroll)
        self._unrolls[index] += 1
        # The buffer will be overwritten: a copy of what priorities are made of.
        env_output = unroll.env_output._replace(observation=())
        small = unroll._replace(env_output=env_output, core_state=(), next_core_state=())
        recent.append(tree.map_structure(np.copy, small))
        del recent[: -self._size]
        if self._missing(index):
            return
        priority = self._priority(tree.map_structure(lambda *parts: np.stack(parts), *recent))
        trajectory = tree.map_structure(lambda column: column[-self._size :], writer.history)
        # Weights may not be finite. Reverb rejects NaN, and samples nothing but an infinite one.
        usable = priority if math.isfinite(priority) and priority >= 0 else 0.0
        writer.create_item(self._table, usable, trajectory)

    def _missing(self, index: int) -> int:
        """Returns the number of unrolls until the next sequence is complete."""
        missing = self._size - self._unrolls[index]
        return missing if missing > 0 else missing % self._period
