"""Synchronous updates by replicas on several devices or machines.

Each replica has its own copy of all variables and computes the loss of its share of the joint
batch. Replicas exchange only the sums of `ops.joint_batch`, so that all take the same step and the
copies stay equal.
"""

import contextlib
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from laser_tf import array_function, errors
from laser_tf.host import interruption
from laser_tf.ops import joint_batch
from laser_tf.replay import stored_unroll
from laser_tf.training import learner_config

Update = Callable[[stored_unroll.Batch], tuple[dict[str, tf.Tensor], tf.Tensor]]  # see `Learner`

_JOB = "worker"
# Errors of TensorFlow if another process has died, hangs or was restarted.
_ERRORS_OF_OTHERS = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.FailedPreconditionError,
)


class LearnersLostError(errors.UserError):
    """Another learner has ended, so that this learner cannot continue."""


def make(
    config: learner_config.LearnerConfig, addresses: Sequence[str] = (), index: int = 0
) -> tf.distribute.Strategy | None:
    """Creates the strategy of several replicas; returns None for one replica.

    Call it once in a process, before TensorFlow computes anything, because it defines the devices.
    The devices are all cores of a TPU, GPUs if there are any, or logical CPUs (for tests). With
    several processes it blocks until all have called it. All give the same list of addresses,
    "host:port", and their index in this list; index 0 is the chief.

    Raises:
      ConfigError: If there are too few devices, or XLA cannot compile for them.
      LearnersLostError: If the processes cannot connect to each other.
    """
    replicas = config.num_devices
    if len(addresses) < 2 and replicas == 1:
        return None
    tf.get_logger().setLevel(logging.WARNING)  # INFO has a line for each compiled sum.
    if len(addresses) > 1:
        strategy = _across_machines(replicas, addresses, index)
    elif tf.config.list_physical_devices("TPU"):
        strategy = _on_tpu(replicas)
    else:
        strategy = tf.distribute.MirroredStrategy(_local_devices(replicas))
    devices = strategy.extended.worker_devices
    if config.jit_compile == "on" and "CPU" in devices[0]:
        raise errors.ConfigError(
            "learner.jit_compile must be auto or off for several replicas on CPUs, whose sums XLA "
            "cannot compile, got 'on'."
        )
    logging.info(
        "Splitting each batch among %d replicas, here on %s", strategy.num_replicas_in_sync,
        ", ".join(devices),
    )  # fmt: skip
    return strategy


@contextlib.contextmanager
def variables(strategy: tf.distribute.Strategy | None) -> Iterator[None]:
    """Gives each replica its own copy of every variable that is created in the context.

    Unlike with mirrored variables of `tf.distribute`, each replica assigns to its own copy, also
    within a condition. Elsewhere and in checkpoints, the first replica gives the value.
    """
    if strategy is None:
        yield
        return
    with strategy.scope(), tf.variable_creator_scope(_own_copy):
        yield


def _own_copy(create: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
    # TensorFlow would change this default for variables that are synchronised on reading.
    arguments["trainable"] = arguments.get("trainable") is not False
    arguments["synchronization"] = tf.VariableSynchronization.ON_READ
    arguments["aggregation"] = tf.VariableAggregation.ONLY_FIRST_REPLICA
    return create(**arguments)


def replicated(strategy: tf.distribute.Strategy, update: Update, *, jit: bool) -> Update:
    """Returns an update in which each replica of this process receives its share of a batch.

    `update` returns the same metrics on all replicas.
    """
    compiled = tf.function(update, jit_compile=True, autograph=False) if jit else update
    replicas = len(strategy.extended.worker_devices)

    def take(batch: stored_unroll.Batch) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        shares = _share_out(batch, replicas)
        # Each of several processes gets only its part of the joint batch.
        own = strategy.experimental_distribute_values_from_function(
            lambda context: shares[context.replica_id_in_sync_group % replicas]
        )
        metrics, priorities = strategy.run(compiled, (own,))
        first = {name: strategy.experimental_local_results(m)[0] for name, m in metrics.items()}
        return first, tf.concat(strategy.experimental_local_results(priorities), axis=0)

    return take


def _share_out(batch: stored_unroll.Batch, replicas: int) -> list[stored_unroll.Batch]:
    """Returns equal parts of a batch, the first of which counts its new steps."""
    new_steps = [batch.new_steps, *[tf.zeros_like(batch.new_steps)] * (replicas - 1)]
    entries = batch._replace(new_steps=())
    flat = [tf.split(leaf, replicas) for leaf in tf.nest.flatten(entries)]
    return [
        tf.nest.pack_sequence_as(entries, leaves)._replace(new_steps=steps)
        for *leaves, steps in zip(*flat, new_steps, strict=True)
    ]


def broadcast_from_chief(
    strategy: tf.distribute.Strategy, variables: Sequence[tf.Variable]
) -> None:
    """Copies variables of the chief's first replica to all replicas; all processes call it."""

    def copy() -> None:
        is_first = tf.equal(tf.distribute.get_replica_context().replica_id_in_sync_group, 0)
        for variable in variables:
            own = tf.where(is_first, variable, tf.zeros_like(variable))
            variable.assign(joint_batch.all_reduce_sum(own))

    tf.function(lambda: strategy.run(copy), autograph=False)()


def vote(strategy: tf.distribute.Strategy) -> Callable[[np.ndarray], np.ndarray]:
    """Returns a function that counts the replicas with True; all processes call it."""

    def count(mine: tf.Tensor) -> tf.Tensor:
        votes = strategy.run(joint_batch.all_reduce_sum, (tf.cast(mine, tf.float32),))
        return strategy.experimental_local_results(votes)[0]

    return array_function.ArrayFunction(count)


@contextlib.contextmanager
def convert_errors(strategy: tf.distribute.Strategy | None) -> Iterator[None]:
    """Converts errors of the connection to other learners to LearnersLostError."""
    try:
        yield
    except _ERRORS_OF_OTHERS as error:
        if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            raise
        raise LearnersLostError(
            f"Another learner has ended ({_reason(error)}), so this learner cannot continue. "
            "Restart all learners to resume from the newest checkpoint."
        ) from None


def _reason(error: tf.errors.OpError) -> str:
    found = re.search(r"Collective ops is aborted by: (.*?)(\. |\n|$)", error.message)
    return found[1] if found else error.message.strip().splitlines()[-1]


def _local_devices(replicas: int) -> list[str]:
    if _limit_gpus(replicas):
        return [f"GPU:{index}" for index in range(replicas)]
    (cpu,) = tf.config.list_physical_devices("CPU")
    if len(tf.config.get_logical_device_configuration(cpu) or [cpu]) < replicas:
        parts = [tf.config.LogicalDeviceConfiguration()] * replicas
        tf.config.set_logical_device_configuration(cpu, parts)
    return [f"CPU:{index}" for index in range(replicas)]


def _limit_gpus(replicas: int) -> bool:
    """Makes only the GPUs of the replicas visible; returns whether there are any."""
    gpus = tf.config.list_physical_devices("GPU")
    if gpus and replicas > len(gpus):
        raise errors.ConfigError(
            f"learner.num_devices must be at most {len(gpus)}, the number of GPUs of this machine, "
            f"got {replicas}."
        )
    tf.config.set_visible_devices(gpus[:replicas], "GPU")
    return bool(gpus)


def _on_tpu(replicas: int) -> tf.distribute.Strategy:
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver("local")
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    strategy = tf.distribute.TPUStrategy(resolver)
    if strategy.num_replicas_in_sync != replicas:
        raise errors.ConfigError(
            f"learner.num_devices must be {strategy.num_replicas_in_sync}, the number of cores of "
            f"the TPU, got {replicas}."
        )
    return strategy


def _across_machines(replicas: int, addresses: Sequence[str], index: int) -> tf.distribute.Strategy:
    gpus = _limit_gpus(replicas)
    if replicas > 1 and not gpus:
        raise errors.ConfigError(
            f"learner.num_devices must be 1 for several machines without GPUs, got {replicas}. Use "
            "more processes."
        )
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({_JOB: list(addresses)}),
        task_type=_JOB,
        task_id=index,
        num_accelerators={"GPU": replicas} if gpus else {},
        rpc_layer="grpc",
    )
    try:
        # TensorFlow handles SIGTERM itself, so that the signal would no longer end the process.
        with interruption.keeping_sigterm():
            return tf.distribute.MultiWorkerMirroredStrategy(resolver)
    except tf.errors.OpError as error:
        raise LearnersLostError(
            f"Learner {index} of {', '.join(addresses)} cannot join the other learners "
            f"({_reason(error)}). Free its port, and start all learners together."
        ) from None
