"""The contract of replay schemes: how experience is cut, stored, sampled and mixed."""

import abc
import dataclasses
import pathlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import tree

from laser_tf import config_checks, errors, observations, user_code
from laser_tf.replay import server_address

if TYPE_CHECKING:  # A configuration is checked before TensorFlow and Reverb are loaded.
    import reverb
    import tensorflow as tf

    from laser_tf.agents import base as agents_base
    from laser_tf.replay import (
        batch_sources,
        client,
        connection,
        stored_unroll,
        turn_taking,
        unroll_check,
        writers,
    )

QUEUE = "queue"  # Queue of a single run, which all its learners read.
MAX_STORED_STEPS = 10**12  # 9 TB even with the smallest frames, those of the T-maze.
_MAX_BATCH_FRAMES = 10**8  # 700 GB of Atari frames.


class ActorContext(NamedTuple):
    """Actor that writers are made for."""

    replay: "connection.ReplayConnection"  # replay to write to
    signature: "stored_unroll.StoredUnroll"  # signature of an unroll
    agent: "agents_base.Agent"  # agent of the actor
    task_ids: np.ndarray  # integers [N], the tasks of the actor's environments
    member_index: int = 0  # index of the member in its sweep; 0 in a single run
    max_unrolls_per_episode: int = 0  # unrolls of the longest episode; 0 if unknown


class LearnerContext(NamedTuple):
    """Learner that batches are made for."""

    replay: "client.ReplayClient"  # replay to read
    signature: "stored_unroll.StoredUnroll"  # signature of an unroll
    agent: "agents_base.Agent"  # learner's agent, whose newest weights recompute core states
    seed: Sequence[int]  # equal for all learners of a run; Reverb's own samplers cannot be seeded
    check: "unroll_check.UnrollCheck"  # masks invalid unrolls
    # Starts to copy a batch to the learner's device; returns the batch.
    stage: "Callable[[stored_unroll.Batch], stored_unroll.Batch]" = lambda batch: batch
    turn_taking: "turn_taking.TurnTaking | None" = None  # turns with the actor in a serial run

    def iterate(self, make: "Callable[[str], tf.data.Dataset]") -> "batch_sources.ServerIterator":
        """Returns an iterator over the dataset that `make` returns for the server's address."""
        from laser_tf.replay import batch_sources

        return batch_sources.ServerIterator(self.replay.connection, make)


def queue_name(member_name: str) -> str:
    """Returns the name of the queue of a member of a sweep."""
    return f"{QUEUE}_{member_name}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplayScheme(abc.ABC):
    """A replay scheme with its configuration: validation, tables, writer and batch source.

    A subclass adds its keys as fields. It imports TensorFlow and Reverb within methods, so that
    reading a configuration loads neither. A value out of range raises ConfigError. The comment of a
    key is its text in `--help`; for a number it has the form `unit; meaning`.
    """

    replay_table: ClassVar[str | None] = None  # Reverb table that batches are sampled from
    uses_sequences: ClassVar[bool] = False  # whether batch entries are joined from several unrolls
    recomputes_states: ClassVar[bool] = False  # whether the learner recomputes core states
    supports_serial: ClassVar[bool] = (
        False  # whether equal seeds give equal batches in `run.serial`
    )
    divided_keys: ClassVar[tuple[str, ...]] = ("batch_size",)  # keys whose values learners share
    # Defaults for schemes without these keys; a subclass declares the key as a field.
    replay_fraction = 0.0  # replayed share of a batch
    replay_ratio = 0.0  # mean number of replayed batches per online batch
    capacity = 0  # agent steps in a full replay
    warm_up = 0  # agent steps in replay before the first update
    burn_in = 0  # agent steps at the start of a batch entry that only advance the core state
    core_state = ""  # initial core state of replayed entries: "stored" (by the actor) or "zero"
    priority_exponent = 0.0  # exponent of the priorities that the agent's loss returns

    scheme: str = ""  # replay scheme, or my_module:MyScheme; determines the other keys
    unroll_length: int = 20  # agent steps; length of a stored unroll
    frame_stack: int = 4  # frames; number K of stacked frames in an observation
    batch_size: int = 32  # entries; unrolls or sequences in the batch of an update
    queue_capacity: int = 64  # unrolls; max number that wait for the learner
    address: str = ""  # host:port; of a replay server; "": the run starts a server
    in_checkpoints: bool = True  # save replay in checkpoints; if not, a resumed run refills it

    def __post_init__(self):
        config_checks.check_types(self)
        if not user_code.is_path(self.scheme):
            config_checks.check_choice(self, "scheme", (type(self).scheme,))
        for name in ("unroll_length", "frame_stack", "batch_size"):
            config_checks.check_range(self, name, 1)
        config_checks.check_range(
            self, "queue_capacity", 1, MAX_STORED_STEPS, "no memory holds more"
        )
        server_address.check(self.address)
        frames = self.batch_size * self.steps_per_entry * self.frame_stack
        if frames > _MAX_BATCH_FRAMES:
            raise errors.ConfigError(
                "batch_size times frame_stack times the steps of an entry (unroll_length, or "
                "sequence_length plus burn_in) must be "
                f"{_MAX_BATCH_FRAMES} frames or less, got {frames}. Use smaller values"
            )

    # Properties of the batches.

    @property
    def online_entries(self) -> int:
        """Number of batch entries with new unrolls."""
        return self.batch_size - self.replayed_entries

    @property
    def replayed_entries(self) -> int:
        """Number of batch entries from replay."""
        return round(self.batch_size * self.replay_fraction)

    @property
    def steps_per_entry(self) -> int:
        """Agent steps of a batch entry: T of the loss's [T + 1, B] inputs."""
        return self.unroll_length

    @property
    def steps_per_update(self) -> int:
        """New agent steps per update; with alternating batches, per online update."""
        return self.online_entries * self.unroll_length

    @property
    def mean_steps_per_update(self) -> float:
        """Mean number of new agent steps per update; online and replayed batches are updates."""
        return self.steps_per_update / (1 + self.replay_ratio)

    @property
    def uses_priorities(self) -> bool:
        """True if replay needs the priorities that the agent's loss returns."""
        return self.priority_exponent > 0

    # Properties of the stored experience.

    @property
    def sampler_exponent(self) -> float:
        """Priority exponent of the sampler of `replay_table` (0 means uniform)."""
        return self.priority_exponent

    @property
    def new_steps_per_item(self) -> int:
        """Agent steps that each item of replay adds."""
        return self.unroll_length

    @property
    def max_items(self) -> int:
        """Number of items in a full replay."""
        return self.capacity // self.new_steps_per_item

    def fill_level(self, items: int) -> float:
        """Returns the share of the capacity that a number of items takes, in [0, 1]."""
        return items / self.max_items if self.max_items else 0.0

    @property
    def min_memory_unrolls(self) -> int:
        """Unrolls that a server needs memory for: those of a full queue and of one batch."""
        return self.queue_capacity + self.batch_size * self.steps_per_entry // self.unroll_length

    def stored_signature(self, signature: "stored_unroll.StoredUnroll") -> Any:
        """Returns the signature of an unroll as replay stores it, for memory estimates."""
        return signature

    # Checks against the rest of the configuration.

    def check_observation(self, observation: Any) -> None:
        """Raises ConfigError if `frame_stack` is above 1 and the observation has no image."""
        if self.frame_stack > 1 and not any(map(observations.is_image, tree.flatten(observation))):
            raise errors.ConfigError(
                f"replay.frame_stack must be 1 if no observation is an image, got "
                f"{self.frame_stack}. Use --config.replay.frame_stack=1; --config.agent.core=lstm "
                "remembers earlier vectors"
            )

    def check_episode_length(self, max_steps: int) -> None:  # noqa: B027 (most have no limit)
        """Raises ConfigError if replay cannot store an episode of `max_steps` (0 if unknown)."""

    def check_server(self, server_items: int) -> None:  # noqa: B027 (most have no minimum)
        """Raises ConfigError if a server of at most `server_items` items cannot start updates."""

    def per_learner(self, learners: int) -> Self:
        """Returns the scheme of one learner; raises ConfigError if batches have no equal shares."""
        for key in self.divided_keys:
            if getattr(self, key) % learners:
                raise errors.ConfigError(
                    f"replay.{key} must be a multiple of cluster.learners, {learners}, got "
                    f"{getattr(self, key)}. All learners take equal shares"
                )
        shares = {key: getattr(self, key) // learners for key in self.divided_keys}
        return dataclasses.replace(self, **shares)

    # Parts of a run. The defaults write each unroll to the queue and to `replay_table`.

    def signatures(self, signature: "stored_unroll.StoredUnroll") -> dict[str, Any]:
        """Returns the signatures of the items of each table; `QUEUE` stands for all queues."""
        return {QUEUE: signature} | ({self.replay_table: signature} if self.replay_table else {})

    def make_tables(
        self, signature: "stored_unroll.StoredUnroll", queues: Sequence[str] = (QUEUE,)
    ) -> "list[reverb.Table]":
        """Creates the tables of a server; `queues` names the queues of learners."""
        from laser_tf.replay import tables

        return tables.make_tables(self, signature, queues)

    def unroll_tables(self, queue: str) -> dict[str, bool]:
        """Returns table -> whether its item holds a full unroll or only its `UnrollHeader`.

        The writer inserts in this order. The queue comes last, because a full queue would keep the
        writer from the tables after it.
        """
        return ({self.replay_table: True} if self.replay_table else {}) | {queue: True}

    def make_writers(self, context: ActorContext) -> "list[writers.Writer]":
        """Creates the writers that take every step of an actor."""
        from laser_tf.replay import writers

        return [writers.UnrollWriter(self, context)]

    @abc.abstractmethod
    def make_batches(self, context: LearnerContext) -> "batch_sources.BatchSource":
        """Starts fetching the batches of a learner."""

    def make_learner_client(
        self,
        actors_client: "client.ReplayClient",
        signature: "stored_unroll.StoredUnroll",
        workdir: pathlib.Path,
    ) -> "client.ReplayClient":
        """Returns the learner's client of replay, by default that of the actors' server."""
        return actors_client
