"""Several learners that take each update together: on the devices of a machine, or on machines.

Every replica has a copy of its own of all variables and computes the loss of its share of the joint
batch. What depends on the whole batch is summed by `ops.joint_batch`, so that all take the very
same step and the copies stay equal; nothing else is ever sent.
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

_JOB = "worker"
# What TensorFlow raises when another process is dead, stands still or was started anew.
_OF_OTHERS = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.FailedPreconditionError,
)


class LearnersLostError(errors.UserError):
    """Another learner has gone: none can go on without it."""


def make(
    config: learner_config.LearnerConfig, addresses: Sequence[str] = (), index: int = 0
) -> tf.distribute.Strategy | None:
    """How this process learns together with others; None for one learner.

    To be called before TensorFlow computes anything, since it decides which devices there are; once
    in a process. With several processes it waits until all of them have called it.

    Args:
      config: says how many devices of this machine learn: all cores of a TPU, or GPUs if there are
        any, otherwise logical CPUs, which is for tests.
      addresses: "host:port" of each process that learns, in the same order in all of them.
      index: of this process among them; 0 is the chief.

    Raises:
      ValueError: if there are not so many devices, or XLA cannot compile for them.
      LearnersLostError: if the processes do not find each other.
    """
    replicas = config.replicas
    if len(addresses) < 2 and replicas == 1:
        return None
    tf.get_logger().setLevel(logging.WARNING)  # it tells of each sum that it compiles
    if len(addresses) > 1:
        strategy = _across_machines(replicas, addresses, index)
    elif tf.config.list_physical_devices("TPU"):
        strategy = _on_tpu(replicas)
    else:
        strategy = tf.distribute.MirroredStrategy(_local_devices(replicas))
    devices = strategy.extended.worker_devices
    if config.jit_compile == "on" and "CPU" in devices[0]:
        raise errors.ConfigError(
            "learner.jit_compile is 'on': XLA has no sums over several learners on CPUs; use "
            "learner.jit_compile=auto or off, or one learner"
        )
    logging.info(
        "%d learners share each batch, here on %s", strategy.num_replicas_in_sync,
        ", ".join(devices),
    )  # fmt: skip
    return strategy


def is_chief(strategy: tf.distribute.Strategy | None) -> bool:
    """Whether this process writes checkpoints and logs: one of several does."""
    return not _spans_machines(strategy) or strategy.cluster_resolver.task_id == 0


@contextlib.contextmanager
def variables(strategy: tf.distribute.Strategy | None) -> Iterator[None]:
    """Within, each replica gets a copy of its own of every variable that is created.

    Such a variable is assigned to by each replica for itself, within a condition, too, which
    `tf.distribute`'s mirrored ones are not; read from outside it is the first replica's. In
    checkpoints it looks like any other.
    """
    if strategy is None:
        yield
        return
    with strategy.scope(), tf.variable_creator_scope(_own_copy):
        yield


def _own_copy(create: Callable[..., tf.Variable], **arguments: Any) -> tf.Variable:
    # TensorFlow's default, which it would change for what is synchronised on reading.
    arguments["trainable"] = arguments.get("trainable") is not False
    arguments["synchronization"] = tf.VariableSynchronization.ON_READ
    arguments["aggregation"] = tf.VariableAggregation.ONLY_FIRST_REPLICA
    return create(**arguments)


def replicated(
    strategy: tf.distribute.Strategy,
    update: Callable[[stored_unroll.Batch], tuple[dict[str, tf.Tensor], tf.Tensor]],
    *,
    jit: bool,
) -> Callable[[stored_unroll.Batch], tuple[dict[str, tf.Tensor], tf.Tensor]]:
    """An update that every replica of this process takes with its share of a batch.

    Args:
      strategy: of several learners.
      update: of one replica: a share -> metrics, equal on all replicas, and its priorities.
      jit: whether XLA compiles it.

    Returns:
      The batch -> the metrics, and the priorities in the batch's order.
    """
    compiled = tf.function(update, jit_compile=True, autograph=False) if jit else update
    replicas = len(strategy.extended.worker_devices)

    def take(batch: stored_unroll.Batch) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        shares = _share_out(batch, replicas)
        # Of several processes, each has its own part of the joint batch already.
        own = strategy.experimental_distribute_values_from_function(
            lambda context: shares[context.replica_id_in_sync_group % replicas]
        )
        metrics, priorities = strategy.run(compiled, (own,))
        one = {name: strategy.experimental_local_results(m)[0] for name, m in metrics.items()}
        return one, tf.concat(strategy.experimental_local_results(priorities), axis=0)

    return take


def _share_out(batch: stored_unroll.Batch, replicas: int) -> list[stored_unroll.Batch]:
    """Equal parts of a batch; its new steps are counted in the first."""
    new_steps = [batch.new_steps, *[tf.zeros_like(batch.new_steps)] * (replicas - 1)]
    entries = batch._replace(new_steps=())
    flat = [tf.split(leaf, replicas) for leaf in tf.nest.flatten(entries)]
    return [
        tf.nest.pack_sequence_as(entries, leaves)._replace(new_steps=steps)
        for *leaves, steps in zip(*flat, new_steps, strict=True)
    ]


def copy_from_chief(strategy: tf.distribute.Strategy, variables: Sequence[tf.Variable]) -> None:
    """Gives every replica what the chief's first one holds; all processes call it."""

    def copy() -> None:
        is_first = tf.equal(tf.distribute.get_replica_context().replica_id_in_sync_group, 0)
        for variable in variables:
            own = tf.where(is_first, variable, tf.zeros_like(variable))
            variable.assign(joint_batch.all_reduce_sum(own))

    tf.function(lambda: strategy.run(copy), autograph=False)()


def vote(strategy: tf.distribute.Strategy) -> Callable[[np.ndarray], np.ndarray]:
    """What all processes call to learn how many replicas belong to those that say True."""

    def count(mine: tf.Tensor) -> tf.Tensor:
        votes = strategy.run(joint_batch.all_reduce_sum, (tf.cast(mine, tf.float32),))
        return strategy.experimental_local_results(votes)[0]

    return array_function.ArrayFunction(count)


@contextlib.contextmanager
def watch(strategy: tf.distribute.Strategy | None) -> Iterator[None]:
    """Tells an error of the others from one of this process.

    Raises:
      LearnersLostError: if another learner cannot be reached any more. This process cannot learn
        again: it has to end, and all learners have to be started anew.
    """
    try:
        yield
    except _OF_OTHERS as error:
        if not _spans_machines(strategy):
            raise
        raise LearnersLostError(
            f"another learner has gone ({_reason(error)}): this one cannot go on alone and ends; "
            "start all learners again, they go on from the newest checkpoint"
        ) from None


def _reason(error: tf.errors.OpError) -> str:
    """One sentence of TensorFlow's many lines."""
    found = re.search(r"Collective ops is aborted by: (.*?)(\. |\n|$)", error.message)
    return found[1] if found else error.message.strip().splitlines()[-1]


def _spans_machines(strategy: tf.distribute.Strategy | None) -> bool:
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def _local_devices(replicas: int) -> list[str]:
    gpus = _limit_gpus(replicas)
    if gpus:
        return [f"GPU:{index}" for index in range(replicas)]
    (cpu,) = tf.config.list_physical_devices("CPU")
    if len(tf.config.get_logical_device_configuration(cpu) or [cpu]) < replicas:
        parts = [tf.config.LogicalDeviceConfiguration()] * replicas
        tf.config.set_logical_device_configuration(cpu, parts)
    return [f"CPU:{index}" for index in range(replicas)]


def _limit_gpus(replicas: int) -> bool:
    """Shows TensorFlow as many GPUs as are to learn; whether there are any."""
    gpus = tf.config.list_physical_devices("GPU")
    if gpus and replicas > len(gpus):
        raise errors.ConfigError(
            f"learner.replicas is {replicas}, but this machine has {len(gpus)} GPUs: use "
            f"{len(gpus)} or fewer"
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
            f"learner.replicas is {replicas}, but the TPU has {strategy.num_replicas_in_sync} "
            f"cores, all of which learn: use {strategy.num_replicas_in_sync}"
        )
    return strategy


def _across_machines(replicas: int, addresses: Sequence[str], index: int) -> tf.distribute.Strategy:
    gpus = _limit_gpus(replicas)
    if replicas > 1 and not gpus:
        raise errors.ConfigError(
            f"learner.replicas is {replicas}, but this machine has no GPU: of several machines, "
            "each learns on its processor as a whole; use 1, and more processes if need be"
        )
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({_JOB: list(addresses)}),
        task_type=_JOB,
        task_id=index,
        num_accelerators={"GPU": replicas} if gpus else {},
        rpc_layer="grpc",
    )
    try:
        # TensorFlow takes the signal for a notice to itself: no process would end by it any more.
        with interruption.keeping_sigterm():
            return tf.distribute.MultiWorkerMirroredStrategy(resolver)
    except tf.errors.OpError as error:
        raise LearnersLostError(
            f"learner {index} of {', '.join(addresses)} cannot join the others ({_reason(error)}): "
            f"its port must be free here, and all of them must be started together"
        ) from None
