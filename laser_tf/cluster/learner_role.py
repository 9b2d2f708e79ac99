"""The roles that learn: the chief, with the one-process run's loop, and those that follow it."""

import abc
import contextlib
import functools
import logging
import socket
from collections.abc import Mapping

import ray
import tensorflow as tf

from laser_tf import types
from laser_tf.cluster import remote_acting, remote_evaluator, replay_access, role_process
from laser_tf.host import hardware
from laser_tf.training import (
    assembly,
    following,
    initial_weights,
    run_config,
    strategies,
    streams,
    training,
)
from laser_tf.workdir import lock, run_directory

LOCK = "learner_lock"  # in a run's folder; its own is held by the driver


class _Numbers:
    """Stands for the progress display, which the driver shows."""

    def __init__(self):
        self.shown: dict[str, float] = {}

    def update(self, **numbers: float) -> None:
        """See `progress.ProgressDisplay`."""
        self.shown = numbers


class _Learning(role_process.Role):
    """What the roles that learn have in common: how their work may end."""

    def run(self) -> str | None:
        """See `role_process.Role`.

        Raises:
          UserError: see `_learn`.
        """
        try:
            return None if self._learn() else role_process.TOLD
        except replay_access.StoppedError:
            return role_process.TOLD
        except strategies.LearnersLostError as error:
            return str(error)

    @abc.abstractmethod
    def _learn(self) -> bool:
        """Learns; returns whether the budget is spent.

        Raises:
          StoppedError: if the role is to stop before it has begun.
          LearnersLostError: if another learner has gone.
          UserError: for what the user can mend.
        """


class LearnerRole(_Learning):
    """Learns until the budget is spent or it is told to stop; saves everything."""

    def __init__(
        self,
        context: role_process.Context,
        config: run_config.RunConfig,
        spec: types.EnvironmentSpec,
        initial: initial_weights.InitialWeights | None,
    ):
        """Takes what the run is.

        Args:
          context: of the role.
          config: of the run.
          spec: of its environment.
          initial: what a run begins from that has no checkpoint yet.
        """
        self._context = context
        self._config = config
        self._spec = spec
        self._initial = initial
        self._numbers = _Numbers()

    def _learn(self) -> bool:
        """See `_Learning` and `training.Training.run`.

        Raises:
          WorkdirError: if the folder is not seen here, or none of its checkpoints can be read.
        """
        context, config = self._context, self._config
        if not (context.workdir / run_directory.CONFIG_FILE).exists():
            raise run_directory.WorkdirError(
                f"the learner's machine does not see {context.workdir}: use a --workdir on a file "
                "system that all machines share"
            )
        # A learner that was cut off from the rest may be alive still.
        context.state = role_process.FOLLOWS
        lock.acquire(context.workdir / LOCK, lock.SAVE_TIMEOUT_SECONDS)
        run = training.Training(
            config,
            context.workdir,
            self._spec,
            initial=self._initial,
            act_elsewhere=functools.partial(remote_acting.RemoteActing, context, config),
            strategy=_meet(context, config, index=0),
            saving_replay=context.saving,
        )
        logging.info(
            "%s at %s frames, %s updates", "resumed" if run.resumed else "begins",
            f"{run.env_frames:,}", f"{int(run.counters.learner_updates.numpy()):,}",
        )  # fmt: skip
        beside = config.run.evaluate_every_env_frames
        evaluator = remote_evaluator.RemoteEvaluator(context) if beside else None
        if not run.finished:
            run.run(context.stop.is_set, self._numbers, evaluator)
        return run.finished

    def metrics(self) -> Mapping[str, float]:
        """What the progress display shows."""
        return {f"progress/{name}": float(value) for name, value in self._numbers.shown.items()}


class FollowerRole(_Learning):
    """Learns with the chief: its share of each batch."""

    def __init__(
        self,
        context: role_process.Context,
        config: run_config.RunConfig,
        spec: types.EnvironmentSpec,
        index: int,
    ):
        """Takes what the run is.

        Args:
          context: of the role.
          config: of the run.
          spec: of its environment.
          index: of the learner, from 1.
        """
        self._context = context
        self._config = config
        self._spec = spec
        self._index = index

    def _learn(self) -> bool:
        """See `_Learning` and `following.follow`."""
        context, config = self._context, self._config
        strategy = _meet(context, config, self._index)
        dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
        jit, _ = hardware.choose_jit_compile(config.learner.jit_compile)
        trained = assembly.build_learner(config, self._spec, dtype, jit=jit, strategy=strategy)
        trained.take_from_chief()
        signature = assembly.unroll_signature(config, self._spec, trained.agent)
        replay = replay_access.for_learner(
            context, config.replay, signature, is_chief=False, is_new=False
        )
        stream = streams.stream_of_run(config, replay, signature, trained, self._spec)
        context.state = role_process.LEARNS
        with contextlib.closing(stream):
            return following.follow(config, trained, replay, stream, context.stop.is_set)

    def metrics(self) -> Mapping[str, float]:
        """None: the chief's are those of all."""
        return {}


def _meet(
    context: role_process.Context, config: run_config.RunConfig, index: int
) -> tf.distribute.Strategy | None:
    """How the run's learners learn together; waits until all are there.

    Raises:
      StoppedError: if the role is to stop before that.
      LearnersLostError: if they do not find each other.
    """
    number = config.cluster.learners
    if number == 1:
        return strategies.make(config.learner)
    with socket.socket() as probe:
        probe.bind(("", 0))
        address = f"{ray.util.get_node_ip_address()}:{probe.getsockname()[1]}"
    addresses = context.wait_for("meet", index, address, number, what="the other learners")
    if addresses is None:
        raise replay_access.StoppedError
    context.state = "joins the other learners"
    context.is_at_risk = True  # TensorFlow waits without end for one that has died meanwhile
    try:
        return strategies.make(config.learner, addresses, index)
    finally:
        context.is_at_risk = False
