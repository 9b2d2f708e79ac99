"""The role of a member of a sweep: it acts, learns and evaluates in one process."""

import concurrent.futures
import dataclasses
from collections.abc import Mapping
from typing import Any

import ray

from laser_tf.cluster import learner_role, replay_role, role, run_state
from laser_tf.environments import factory
from laser_tf.evaluation import evaluator_process, run_evaluation
from laser_tf.monitoring import tensorboard
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.sweeps import coordinator, sweep_client
from laser_tf.training import run_config, strategies, training
from laser_tf.workdir import lock, run_directory, versions


class MemberRole(learner_role.TrainingRole):
    """Trains a member until its budget is spent, then evaluates it."""

    def __init__(
        self,
        context: role.RoleContext,
        config: run_config.RunConfig,
        index: int,
        *,
        shares_replay: bool,
        members_hyperparameters: Mapping[str, Mapping[str, Any]],
    ):
        super().__init__(context, config)
        self._index = index
        self._shares_replay = shares_replay
        # By member and key, for TensorBoard's HPARAMS page; {} if another member writes the page.
        self._members_hyperparameters = members_hyperparameters
        self._workdir = context.workdir / context.name

    def run(self) -> bool:
        """See `role.Role`."""
        context, config = self._context, self._config
        strategy = strategies.make(config.learner)  # Before TensorFlow computes anything.
        self._open_workdir()
        if self._shares_replay:
            replay_role.wait_for_replay(
                context, config.replay, schemes_base.queue_name(context.name)
            )
        self._coordinator = ray.get_actor(coordinator.NAME)
        membership = sweep_client.SweepClient(
            context.name,
            self._index,
            self._call_coordinator,
            context.find_replay_address if self._shares_replay else None,
        )
        trainer = training.Training(
            config,
            self._workdir,
            factory.environment_spec(config.environment),
            membership,
            strategy=strategy,
            make_saving_context=context.saving,
        )
        if trainer.finished:
            membership.close(finished=True)  # The other members continue without this member.
            return self._evaluate()
        context.status = run_state.Status.RUNNING
        if trainer.resumed and not self._shares_replay:
            context.announce(run_state.Status.RESTORING)
        with evaluator_process.maybe_start(config, self._workdir, trainer.env_frames) as evaluator:
            self._run_loop(trainer, evaluator)
        return trainer.finished and self._evaluate()

    def _open_workdir(self) -> None:
        sweep = self._context.workdir
        self._context.check_workdir()
        # An earlier process of this member, which Ray has lost, may still hold the lock.
        self._context.status = run_state.Status.WAITING_FOR_LOCK
        run_directory.open_workdir(
            self._workdir,
            dataclasses.asdict(self._config),
            {"versions": versions.recorded()},
            defaults=run_config.defaults(dataclasses.asdict(self._config)),
            sweep_id=run_directory.read_sweep_id(sweep),
            patience_seconds=lock.SAVE_TIMEOUT_SECONDS,
            extend=True,  # `launch.sweep` has checked whether the budget may grow.
        )
        if self._members_hyperparameters:
            writer = tensorboard.MetricsWriter(self._workdir / "tensorboard")
            writer.write_sweep_columns(self._members_hyperparameters)

    def _call_coordinator(self, method: str, *arguments: Any) -> Any:
        """Returns the answer of the coordinator or raises its error."""
        try:
            return ray.get(getattr(self._coordinator, method).remote(*arguments))
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None

    def _evaluate(self) -> bool:
        """Evaluates the member; returns False if a stop was requested before the end."""
        self._context.status = run_state.Status.EVALUATING
        # In a thread, because an evaluation cannot be interrupted.
        executor = concurrent.futures.ThreadPoolExecutor(1)
        evaluation = executor.submit(run_evaluation.evaluate_finished, self._workdir, self._config)
        while not self._context.stop_requested.is_set():
            if concurrent.futures.wait([evaluation], timeout=0.2).done:
                evaluation.result()
                return True
        return False
