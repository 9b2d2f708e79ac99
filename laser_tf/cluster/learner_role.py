"""The roles that learn: their base class, and the learner of a run."""

import contextlib
import functools
import logging
import socket
from collections.abc import Mapping

import ray
import tensorflow as tf

from laser_tf import types
from laser_tf.cluster import evaluator_role, remote_actors, replay_role, role, run_state, run_work
from laser_tf.host import hardware
from laser_tf.monitoring import progress
from laser_tf.training import (
    assembly,
    evaluations,
    initial_weights,
    run_config,
    strategies,
    training,
)


class TrainingRole(role.Role):
    """Base of the learners of a run and of the members of a sweep."""

    def __init__(self, context: role.RoleContext, config: run_config.RunConfig):
        super().__init__(context, config)
        self._progress: dict[str, float] = {}

    def _run_loop(
        self, trainer: training.Training, evaluator: evaluations.Evaluator | None
    ) -> None:
        """Trains until the budget is spent or a stop is requested."""
        logging.info(
            "%s at %s frames, %s updates", "Resumed" if trainer.resumed else "Started",
            f"{trainer.env_frames:,}", f"{int(trainer.counters.learner_updates.numpy()):,}",
        )  # fmt: skip
        trainer.run(self._context.stop_requested.is_set, self._store_progress, evaluator)

    def _store_progress(self, numbers: progress.Progress) -> None:
        """Stores the progress, which the driver shows."""
        self._context.status, self._context.detail = run_state.Status.RUNNING, ""
        self._progress = numbers._asdict()

    def metrics(self) -> Mapping[str, float]:
        """Returns the progress."""
        return {f"{run_work.PROGRESS}{name}": float(v) for name, v in self._progress.items()}


class LearnerRole(TrainingRole):
    """Learns until the budget is spent or a stop is requested.

    Only the learner of rank 0 writes weights and logs of the run. The others follow it with their
    share of each batch.
    """

    def __init__(
        self,
        context: role.RoleContext,
        config: run_config.RunConfig,
        spec: types.EnvironmentSpec,
        rank: int,
        initial: initial_weights.InitialWeights | None,
    ):
        super().__init__(context, config)
        self._spec = spec
        self._rank = rank
        self._initial = initial

    def run(self) -> bool:
        """See `role.Role`, `training.Training.run` and `learner.Learner.update`."""
        try:
            return self._follow() if self._rank else self._lead()
        except strategies.LearnersLostError as error:
            raise role.RestartError(str(error)) from None

    def _lead(self) -> bool:
        context, config = self._context, self._config
        context.acquire_lock()
        trainer = training.Training(
            config,
            context.workdir,
            self._spec,
            initial=self._initial,
            connect_actors=functools.partial(remote_actors.RemoteActors, context, config),
            strategy=_connect_learners(context, config, self._rank),
            make_saving_context=context.saving,
        )
        evaluator = None
        if config.run.evaluate_every_env_frames:
            evaluator = evaluator_role.RemoteEvaluator(context)
        if not trainer.finished:
            self._run_loop(trainer, evaluator)
        return trainer.finished

    def _follow(self) -> bool:
        """Joins the chief's updates until a learner stops; returns whether the budget is spent."""
        context, config = self._context, self._config
        strategy = _connect_learners(context, config, self._rank)
        dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
        jit, _ = hardware.choose_jit_compile(config.learner.jit_compile)
        follower = assembly.build_learner(config, self._spec, dtype, jit=jit, strategy=strategy)
        follower.broadcast_from_chief()
        signature = assembly.unroll_signature(config, self._spec, follower.agent)
        replay = replay_role.connect_learner(context, config.replay, signature, is_chief=False)
        batches = assembly.make_batches(config, replay, signature, follower, self._spec)
        context.status = run_state.Status.RUNNING
        agent_steps = int(follower.counters.agent_steps.numpy())
        with contextlib.closing(batches):
            while agent_steps < config.total_agent_steps:
                batch = batches.get(context.stop_requested.is_set)
                if not follower.all_agree(batch is not None):
                    return False
                new_steps, priorities = follower.update(batch)
                agent_steps += new_steps
                if priorities is not None:
                    replay.update_priorities(batch, priorities)
        return True


def _connect_learners(
    context: role.RoleContext, config: run_config.RunConfig, rank: int
) -> tf.distribute.Strategy | None:
    """Waits for all learners of the run; LearnersLostError if they do not find each other."""
    if config.cluster.learners == 1:
        return strategies.make(config.learner)
    with socket.socket() as probe:
        probe.bind(("", 0))
        address = f"{ray.util.get_node_ip_address()}:{probe.getsockname()[1]}"
    addresses = context.wait_for(
        "rendezvous", rank, address, config.cluster.learners, what="the other learners"
    )
    context.detail = "joining the other learners"
    context.must_progress = True  # TensorFlow would wait without limit for a dead learner.
    try:
        return strategies.make(config.learner, addresses, rank)
    finally:
        context.must_progress = False
