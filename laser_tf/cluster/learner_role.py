"""The roles that learn: what they share, the learner of a run, and learners that follow it."""

import abc
import contextlib
import functools
import logging
import socket
from collections.abc import Mapping

import ray
import tensorflow as tf

from laser_tf import types
from laser_tf.cluster import evaluator_role, remote_acting, replay_role, role, run_job, run_state
from laser_tf.host import hardware
from laser_tf.sweeps import coordinator
from laser_tf.training import (
    assembly,
    evaluations,
    following,
    initial_weights,
    run_config,
    strategies,
    training,
)
from laser_tf.workdir import lock, run_directory

LOCK = "learner_lock"  # In a run's directory, whose own lock the driver holds.


class TrainingRole(role.Role):
    """Base of the learner of a run and of the members of a sweep."""

    def __init__(self, context: role.Context, config: run_config.RunConfig):
        """Stores the configuration.

        Args:
          context: Connection to the run.
          config: Configuration of the run, or of the member of a sweep.
        """
        self._context = context
        self._config = config
        self._progress: dict[str, float] = {}

    def run(self) -> run_state.Status:
        """See `role.Role`."""
        try:
            is_finished = self._train()
        except (strategies.LearnersLostError, coordinator.StaleError) as error:
            raise role.RestartError(str(error)) from None
        return run_state.Status.FINISHED if is_finished else run_state.Status.STOPPED

    @abc.abstractmethod
    def _train(self) -> bool:
        """Trains; returns whether the budget is spent.

        Raises:
          StoppedError: If the role is told to stop before it trains.
          LearnersLostError: If another learner has ended.
          StaleError: If another process is this member of the sweep.
          UserError: For bad input.
        """

    def _run_loop(self, run: training.Training, evaluator: evaluations.Evaluator | None) -> None:
        """Trains until the budget is spent or the role is told to stop."""
        logging.info(
            "%s at %s frames, %s updates", "Resumed" if run.resumed else "Started",
            f"{run.env_frames:,}", f"{int(run.counters.learner_updates.numpy()):,}",
        )  # fmt: skip
        run.run(self._context.stop.is_set, self, evaluator)

    def update(self, **numbers: float) -> None:
        """Stores the progress, which the driver shows; see `reporting.Display`."""
        self._context.status, self._context.detail = run_state.Status.RUNNING, ""
        self._progress = numbers

    def metrics(self) -> Mapping[str, float]:
        """Returns the progress."""
        return {f"{run_job.PROGRESS}{name}": float(v) for name, v in self._progress.items()}


class LearnerRole(TrainingRole):
    """Learns until the budget is spent or it is told to stop, and saves all of the run."""

    def __init__(
        self,
        context: role.Context,
        config: run_config.RunConfig,
        spec: types.EnvironmentSpec,
        initial: initial_weights.InitialWeights | None,
    ):
        """Stores the arguments.

        Args:
          context: Connection to the run.
          config: Configuration of the run.
          spec: Specs of its environment.
          initial: Weights for a run without a checkpoint; None for random weights.
        """
        super().__init__(context, config)
        self._spec = spec
        self._initial = initial

    def _train(self) -> bool:
        """See `TrainingRole` and `training.Training.run`.

        Raises:
          WorkdirError: If this machine does not see the run's directory, or no checkpoint can be
            read.
        """
        context, config = self._context, self._config
        context.check_workdir(run_directory.CONFIG_FILE)
        # The process of a learner that lost its connection may still run.
        context.status = run_state.Status.WAITING_FOR_LOCK
        lock.acquire(context.workdir / LOCK, lock.SAVE_TIMEOUT_SECONDS)
        run = training.Training(
            config,
            context.workdir,
            self._spec,
            initial=self._initial,
            act_elsewhere=functools.partial(remote_acting.RemoteActing, context, config),
            strategy=_join_learners(context, config, rank=0),
            saving_replay=context.saving,
        )
        evaluator = None
        if config.run.evaluate_every_env_frames:
            evaluator = evaluator_role.RemoteEvaluator(context)
        if not run.finished:
            self._run_loop(run, evaluator)
        return run.finished


class FollowerRole(TrainingRole):
    """Learns with the learner of the run: its share of each batch."""

    def __init__(
        self,
        context: role.Context,
        config: run_config.RunConfig,
        spec: types.EnvironmentSpec,
        index: int,
    ):
        """Stores the arguments.

        Args:
          context: Connection to the run.
          config: Configuration of the run.
          spec: Specs of its environment.
          index: Rank of this learner, from 1.
        """
        super().__init__(context, config)
        self._spec = spec
        self._rank = index

    def _train(self) -> bool:
        """See `TrainingRole` and `following.follow`."""
        context, config = self._context, self._config
        strategy = _join_learners(context, config, self._rank)
        dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
        jit, _ = hardware.choose_jit_compile(config.learner.jit_compile)
        learner = assembly.build_learner(config, self._spec, dtype, jit=jit, strategy=strategy)
        learner.take_from_chief()
        signature = assembly.unroll_signature(config, self._spec, learner.agent)
        replay = replay_role.connect_learner(
            context, config.replay, signature, is_chief=False, is_new=False
        )
        batches = assembly.make_batches(config, replay, signature, learner, self._spec)
        context.status = run_state.Status.RUNNING
        with contextlib.closing(batches):
            return following.follow(config, learner, replay, batches, context.stop.is_set)


def _join_learners(
    context: role.Context, config: run_config.RunConfig, rank: int
) -> tf.distribute.Strategy | None:
    """Returns the strategy of the run's learners; waits for all of them.

    Raises:
      StoppedError: If the role is told to stop before.
      LearnersLostError: If the learners do not find each other.
    """
    if config.cluster.learners == 1:
        return strategies.make(config.learner)
    with socket.socket() as probe:
        probe.bind(("", 0))
        address = f"{ray.util.get_node_ip_address()}:{probe.getsockname()[1]}"
    addresses = context.wait_for(
        "rendezvous", rank, address, config.cluster.learners, what="the other learners"
    )
    context.detail = "joining the other learners"
    context.may_hang = True  # TensorFlow blocks without limit if another learner has died.
    try:
        return strategies.make(config.learner, addresses, rank)
    finally:
        context.may_hang = False
