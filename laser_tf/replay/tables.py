"""Reverb's tables of a run: FIFO replay for everybody, one queue for each learner."""

import dataclasses
from collections.abc import Sequence

import reverb
import tensorflow as tf
import tree

from laser_tf.replay import stored_unroll

REPLAY = "replay"  # of unrolls
EPISODES = "episodes"  # replay of whole episodes
ONLINE = "online"  # the queue of a learner that has the server for itself

CORE_STATES = ("stored", "zero", "recomputed")


@dataclasses.dataclass(frozen=True)
class Config:
    """How experience is cut, kept and mixed.

    Raises:
      ValueError: for a value out of range; the message names it, the reason and the remedy.
    """

    unroll_length: int = 20  # T, agent steps
    frame_stack: int = 4  # K, frames in an observation
    batch_size: int = 32  # unrolls in an update, online and replayed
    replay_fraction: float = 0.75  # of a batch that is drawn from replay, in [0, 1)
    capacity: int = 1_000_000  # agent steps in replay
    queue_capacity: int = 64  # unrolls that wait for the learner at most
    learn_online: bool = True  # False: fresh unrolls are counted and kept, but not learned from
    core_state: str = "stored"  # what replayed unrolls start from, one of CORE_STATES
    priority_exponent: float = 0.0  # of the critic's loss; 0: replay is drawn uniformly
    importance_exponent: float = 1.0  # beta, of the weights that correct for priorities

    def __post_init__(self):
        for name in ("unroll_length", "frame_stack", "batch_size", "queue_capacity"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: use 1 or more")
        if self.core_state not in CORE_STATES:
            raise ValueError(
                f"core_state is {self.core_state!r}: choose one of "
                f"{', '.join(map(repr, CORE_STATES))}"
            )
        for name in ("priority_exponent", "importance_exponent"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}: use a value from 0 to 1")
        if self.core_state == "recomputed" and self.priority_exponent:
            raise ValueError(
                f"priority_exponent is {self.priority_exponent}: whole episodes, whose core states "
                "are recomputed, are drawn uniformly; use 0 or another core_state"
            )
        if not self.learn_online and not (
            self.replay_fraction and self.core_state != "recomputed" and not self.priority_exponent
        ):
            raise ValueError(
                "learn_online is False: it needs a replay_fraction above 0, a core_state that is "
                "not recomputed, and no priorities"
            )
        if not 0 <= self.replay_fraction < 1:
            raise ValueError(
                f"replay_fraction is {self.replay_fraction}: use a value from 0 to below 1; "
                "without online rows V-trace's policy gradient need not converge "
                "(LASER, proposition 2)"
            )
        replayed = self.batch_size * self.replay_fraction
        if abs(replayed - round(replayed)) > 1e-6 * self.batch_size:
            raise ValueError(
                f"batch_size {self.batch_size} times replay_fraction {self.replay_fraction} is "
                f"{replayed:g} replayed unrolls: choose values whose product is a whole number"
            )
        if self.replay_fraction > 0 and self.capacity < self.batch_size * self.unroll_length:
            raise ValueError(
                f"capacity is {self.capacity} agent steps, less than one batch of "
                f"{self.batch_size} unrolls of {self.unroll_length}: use "
                f"{self.batch_size * self.unroll_length} or more"
            )

    def unroll_tables(self, queue: str) -> tuple[str, ...]:
        """The tables that get an item of every unroll, in that order: the learner's queue last."""
        return (REPLAY, queue) if self.replay_table == REPLAY else (queue,)

    @property
    def replay_table(self) -> str | None:
        """The table that replayed unrolls come from; None where nothing is replayed."""
        if not self.replay_rows:
            return None
        return EPISODES if self.core_state == "recomputed" else REPLAY

    @property
    def replay_rows(self) -> int:
        """Unrolls of a batch that come from replay."""
        return round(self.batch_size * self.replay_fraction)

    @property
    def online_rows(self) -> int:
        """Unrolls of a batch that come fresh from actors."""
        return self.batch_size - self.replay_rows


def queue_of(agent: str) -> str:
    """The queue of one agent of a sweep."""
    return f"{ONLINE}_{agent}"


def make_tables(
    config: Config, signature: stored_unroll.StoredUnroll, queues: Sequence[str] = (ONLINE,)
) -> list[reverb.Table]:
    """The tables of one or more learners.

    A batch may already be drawn when replay holds one unroll: a limit that waited for more would
    stall the learner, and with it the queue and the actors that fill replay.

    Args:
      config: see there.
      signature: of an unroll.
      queues: one for each learner.
    """
    online = [
        reverb.Table.queue(queue, config.queue_capacity, signature=signature) for queue in queues
    ]
    if config.replay_table is None:
        return online
    if config.replay_table == EPISODES:
        # Priorities are 1 for an episode and 0 for what marks its room, see `episode_writer`.
        sampler, signature = reverb.selectors.Prioritized(1.0), episode_signature(signature)
    elif config.priority_exponent:
        sampler = reverb.selectors.Prioritized(config.priority_exponent)
    else:
        sampler = reverb.selectors.Uniform()
    replay = reverb.Table(
        name=config.replay_table,
        sampler=sampler,
        remover=reverb.selectors.Fifo(),
        max_size=config.capacity // config.unroll_length,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature=signature,
    )
    return [*online, replay]


def episode_signature(signature: stored_unroll.StoredUnroll) -> stored_unroll.StoredUnroll:
    """Of a whole episode, [n, ...] of the unrolls that a signature describes, without states."""
    return tree.map_structure(
        lambda spec: tf.TensorSpec([None, *spec.shape], spec.dtype, spec.name),
        signature._replace(core_state=()),
    )
