"""How experience is cut, kept and mixed, and the names of the tables that it lies in."""

import dataclasses
from typing import Any

import tree

from laser_tf import config_checks, errors, observations
from laser_tf.replay import server_addresses

REPLAY = "replay"  # of unrolls
EPISODES = "episodes"  # replay of whole episodes
SEQUENCES = "sequences"  # replay of overlapping sequences
NEW_SEQUENCES = "new_sequences"  # the queue of those that the learner keeps itself
ONLINE = "online"  # the queue of a learner that has the server for itself

PROPORTIONAL, CONTEXTUAL = "proportional", "contextual"
MOST_KEYS = 10_000_000  # sequences in a contextual tree, which takes 2 GB then
MOST_STORED = 10**12  # 9 TB of a T-maze's frames, the smallest there are
MOST_REPLAYED = 1_000  # updates on replay alone after each one on online unrolls
MOST_BATCHED = 10**8  # frames; 700 GB of Atari's
CORE_STATES = ("stored", "zero", "recomputed")


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """How experience is cut, kept and mixed.

    There are three ways to learn. `replay_fraction`: every batch has online and replayed entries
    (LASER), or online ones only. `replay_ratio`: batches of online entries alone and of replayed
    ones alone take turns (ACER). `steps_per_update`: all batches are replayed (R2D2).

    Raises:
      ValueError: for a value out of range; the message names it, the reason and the remedy.
    """

    unroll_length: int = 20  # agent steps; T, of a stored unroll
    frame_stack: int = 4  # frames; K, in an observation
    batch_size: int = 32  # unrolls; in an update, online and replayed
    replay_fraction: float = 0.75  # fraction; of a batch, below 1; the rest is online
    replay_ratio: float = 0.0  # learner updates; on replay alone after an online one, mean
    steps_per_update: int = 0  # agent steps; learn from replay alone, once in so many; 0: do not
    warm_up: int = 0  # agent steps; in replay before the first such update
    capacity: int = 1_000_000  # agent steps; in replay, where a sequence counts without its overlap
    queue_capacity: int = 64  # unrolls; that wait for the learner at most
    sequence_length: int = 0  # agent steps; m, of replayed sequences; 0: unrolls are replayed
    sequence_overlap: int = 0  # agent steps; that adjacent sequences share
    burn_in: int = 0  # agent steps; l, before a sequence that only carry its core state on
    core_state: str = "stored"  # what replayed unrolls start from: stored, zero or recomputed
    priorities: str = PROPORTIONAL  # how replay draws: proportional (Reverb) or contextual (a tree)
    priority_exponent: float = 0.0  # exponent; of what the loss returns; 0: replay is uniform
    importance_exponent: float = 1.0  # exponent; beta, of the weights that correct for priorities
    uniform_share: float = 0.0  # fraction; epsilon, of draws by contextual priorities; uniform ones
    addresses: str = ""  # host:port,...; replay servers of their own; "": one in the run's process

    def __post_init__(self):
        config_checks.check_types(self)
        for name in ("unroll_length", "frame_stack", "batch_size"):
            config_checks.check_range(self, name, 1)
        for name in ("capacity", "queue_capacity"):
            config_checks.check_range(self, name, 1, MOST_STORED, "no memory holds more")
        config_checks.check_choice(self, "core_state", CORE_STATES)
        for name in ("priority_exponent", "importance_exponent"):
            if not 0 <= getattr(self, name) <= 1:
                raise errors.ConfigError(
                    f"{name} is {getattr(self, name)}: use a value from 0 to 1"
                )
        if self.core_state == "recomputed" and self.priority_exponent:
            raise errors.ConfigError(
                f"priority_exponent is {self.priority_exponent}: whole episodes, whose core states "
                "are recomputed, are drawn uniformly; use 0 or another core_state"
            )
        server_addresses.parse(self.addresses)
        self._check_ratio()
        self._check_sequences()
        self._check_priorities()
        self._check_batch()

    def _check_ratio(self) -> None:
        config_checks.check_range(
            self, "replay_ratio", 0, MOST_REPLAYED, "actors would stand still"
        )
        if not self.replay_ratio:
            return
        for name in ("replay_fraction", "steps_per_update", "sequence_length"):
            if getattr(self, name):
                raise errors.ConfigError(
                    f"replay_ratio is {self.replay_ratio}, but {name} is {getattr(self, name)}: "
                    "updates on online unrolls alone and on replayed unrolls alone take turns; use "
                    f"{name} 0, or replay_ratio 0"
                )
        if self.core_state == "recomputed":
            raise errors.ConfigError(
                f"replay_ratio is {self.replay_ratio}, but core_state is 'recomputed': episodes "
                "are replayed beside online unrolls; use another core_state, or replay_ratio 0"
            )

    def _check_batch(self) -> None:
        for name in ("steps_per_update", "warm_up"):
            config_checks.check_range(self, name, 0)
        if self.steps_per_update and self.core_state == "recomputed":
            raise errors.ConfigError(
                f"steps_per_update is {self.steps_per_update}: learning from replay alone does not "
                "recompute core states; use another core_state, or 0"
            )
        if self.warm_up and not self.steps_per_update:
            raise errors.ConfigError(
                f"warm_up is {self.warm_up}: it is for learning from replay alone; set "
                "steps_per_update"
            )
        if not 0 <= self.replay_fraction < 1:
            raise errors.ConfigError(
                f"replay_fraction is {self.replay_fraction}: use a value from 0 to below 1; "
                "without online unrolls V-trace's policy gradient need not converge "
                "(LASER, proposition 2)"
            )
        replayed = self.batch_size * self.replay_fraction
        if not self.steps_per_update and abs(replayed - round(replayed)) > 1e-6 * self.batch_size:
            raise errors.ConfigError(
                f"batch_size {self.batch_size} times replay_fraction {self.replay_fraction} is "
                f"{replayed:g} replayed unrolls: choose values whose product is a whole number"
            )
        frames = self.batch_size * self.steps_per_entry * self.frame_stack
        if frames > MOST_BATCHED:
            raise errors.ConfigError(
                f"batch_size {self.batch_size}, frame_stack {self.frame_stack} and "
                f"{self.steps_per_entry} agent steps (of unroll_length, or of sequence_length and "
                f"burn_in) make {frames} frames: use values whose product is {MOST_BATCHED} or "
                "less; no memory holds a larger batch"
            )
        least = self.least_capacity
        if self.replay_table and self.capacity < least:
            raise errors.ConfigError(
                f"capacity is {self.capacity} agent steps, less than one batch of "
                f"{self.batch_size} times {self.steps_per_entry}, or than warm_up: use {least} or "
                "more"
            )

    def _check_sequences(self) -> None:
        if not self.sequence_length:
            for name in ("sequence_overlap", "burn_in"):
                if getattr(self, name):
                    raise errors.ConfigError(
                        f"{name} is {getattr(self, name)}: it is of sequences; set sequence_length"
                    )
            return
        if not self.steps_per_update:
            raise errors.ConfigError(
                f"sequence_length is {self.sequence_length}: sequences are learned from replay "
                "alone; set steps_per_update to the agent steps that an update waits for"
            )
        if not 0 <= self.sequence_overlap < self.sequence_length:
            raise errors.ConfigError(
                f"sequence_overlap is {self.sequence_overlap}: use a value from 0 to below "
                f"sequence_length, {self.sequence_length}"
            )
        for name in ("sequence_length", "sequence_overlap", "burn_in"):
            if getattr(self, name) < 0 or getattr(self, name) % self.unroll_length:
                raise errors.ConfigError(
                    f"{name} is {getattr(self, name)}: use a multiple of unroll_length, "
                    f"{self.unroll_length}, which sequences are put together from"
                )

    def _check_priorities(self) -> None:
        config_checks.check_choice(self, "priorities", (PROPORTIONAL, CONTEXTUAL))
        if not 0 <= self.uniform_share <= 1:
            raise errors.ConfigError(
                f"uniform_share is {self.uniform_share}: use a value from 0 to 1"
            )
        if self.priorities == PROPORTIONAL:
            if self.uniform_share:
                raise errors.ConfigError(
                    f"uniform_share is {self.uniform_share}: it is of contextual priorities; use "
                    "priorities 'contextual', or 0"
                )
            return
        wrong = ""
        if not self.sequence_length:
            wrong = "it orders sequences; set sequence_length"
        elif not self.priority_exponent:
            wrong = "with priority_exponent 0 all are drawn alike; set one above 0"
        elif len(self.servers) > 1:
            wrong = f"one server fills the learner's store, addresses names {len(self.servers)}"
        elif self.capacity // self.steps_per_item > MOST_KEYS:
            wrong = (
                f"its tree orders {MOST_KEYS} sequences at most; use a capacity of "
                f"{MOST_KEYS * self.steps_per_item} agent steps or less, not {self.capacity}"
            )
        if wrong:
            raise errors.ConfigError(f"priorities is 'contextual': {wrong}, or use 'proportional'")

    def check_observation(self, observation: Any) -> None:
        """Checks that there is an image to stack.

        Args:
          observation: Nest of specs of single frames.

        Raises:
          ValueError: If `frame_stack` is above 1 and no leaf is an image.
        """
        if self.frame_stack > 1 and not any(map(observations.is_image, tree.flatten(observation))):
            raise errors.ConfigError(
                f"replay.frame_stack must be 1 if no observation is an image, got "
                f"{self.frame_stack}. Use --config.replay.frame_stack=1; --config.agent.core=lstm "
                "remembers earlier vectors"
            )

    def unroll_tables(self, queue: str) -> tuple[str, ...]:
        """The tables that get an item of every unroll, in that order: the learner's queue last."""
        replay = (REPLAY,) if self.replay_table == REPLAY else ()
        return replay if self.steps_per_update else (*replay, queue)

    def counting_tables(self, queue: str) -> tuple[str, ...]:
        """The tables that every unroll is counted in: a learner's from replay alone."""
        return (queue,) if self.steps_per_update else ()

    @property
    def servers(self) -> tuple[str, ...]:
        """The addresses of replay servers of their own; none: the run has one in its process."""
        return server_addresses.parse(self.addresses)

    @property
    def replay_table(self) -> str | None:
        """The table that replayed unrolls come from; None where nothing is replayed."""
        if self.sequence_length:
            return SEQUENCES if self.priorities == PROPORTIONAL else NEW_SEQUENCES
        if not self.replay_entries:
            return None
        return EPISODES if self.core_state == "recomputed" else REPLAY

    @property
    def replay_entries(self) -> int:
        """Entries of a batch that come from replay; of a replayed one with `replay_ratio`."""
        if self.replay_ratio:
            return self.batch_size
        return self.batch_size - self.online_entries

    @property
    def online_entries(self) -> int:
        """Entries of a batch that come fresh from actors; of an online one with `replay_ratio`."""
        if self.steps_per_update:
            return 0
        return self.batch_size - round(self.batch_size * self.replay_fraction)

    @property
    def least_capacity(self) -> int:
        """Smallest capacity in agent steps: one batch, and enough for the warm-up."""
        return max(self.batch_size * self.steps_per_entry, self.warm_up)

    @property
    def fresh_steps_per_update(self) -> int:
        """Agent steps that are new to the learner with each update that has any."""
        return self.steps_per_update or self.online_entries * self.unroll_length

    @property
    def steps_per_entry(self) -> int:
        """T, agent steps of an entry of the batch."""
        return self.burn_in + self.sequence_length or self.unroll_length

    @property
    def warm_up_items(self) -> int:
        """Items of replay that an update from replay alone waits for."""
        return max(1, self.warm_up // self.steps_per_item)

    @property
    def steps_per_item(self) -> int:
        """Agent steps that each item of replay adds."""
        return self.sequence_length - self.sequence_overlap or self.unroll_length


def queue_of(agent: str) -> str:
    """The queue of one agent of a sweep."""
    return f"{ONLINE}_{agent}"
