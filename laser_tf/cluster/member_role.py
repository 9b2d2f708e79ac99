"""The role of a member of a sweep: it acts, learns and evaluates in one process."""

import dataclasses
import threading
from collections.abc import Callable, Mapping
from typing import Any

import ray
import tensorflow as tf

from laser_tf.cluster import learner_role, role, run_state, sweep_job
from laser_tf.environments import factory
from laser_tf.evaluation import after_training, evaluator_process
from laser_tf.monitoring import tensorboard
from laser_tf.replay import connection
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.sweeps import sweep_client
from laser_tf.training import run_config, strategies, training
from laser_tf.workdir import lock, run_directory, versions

_CALL_TIMEOUT_SECONDS = 120.0  # Of the coordinator; calls may transfer weights.


class MemberRole(learner_role.TrainingRole):
    """Trains a member until its budget is spent, then evaluates it."""

    def __init__(
        self,
        context: role.Context,
        config: run_config.RunConfig,
        index: int,
        *,
        shares_replay: bool,
        columns: Mapping[str, Mapping[str, Any]],
    ):
        """Stores the arguments.

        Args:
          context: Connection to the sweep; it has the member's name.
          config: Configuration of the member.
          index: Index of the member in the sweep, from 0.
          shares_replay: Whether all members share one replay.
          columns: Hyper-parameters of all members, if this member writes them, see
            `tensorboard.write_sweep_columns`.
        """
        super().__init__(context, config)
        self._index = index
        self._shares_replay = shares_replay
        self._columns = columns
        self._workdir = context.workdir / context.name
        self._coordinator = sweep_job.find_coordinator(context.workdir)

    def _train(self) -> bool:
        """See `learner_role.TrainingRole`."""
        strategy = strategies.make(self._config.learner)  # Before TensorFlow computes anything.
        self._open_workdir()
        return self._train_member(strategy) and self._evaluate()

    def _open_workdir(self) -> None:
        sweep = self._context.workdir
        self._context.check_workdir(run_directory.SWEEP_FILE)
        if self._columns and not any((sweep / "tensorboard").glob("events*")):
            tensorboard.write_sweep_columns(sweep / "tensorboard", self._columns)
        # The process of a member that lost its connection may still run.
        self._context.status = run_state.Status.WAITING_FOR_LOCK
        run_directory.open_workdir(
            self._workdir,
            dataclasses.asdict(self._config),
            {"versions": versions.recorded()},
            defaults=run_config.defaults(dataclasses.asdict(self._config)),
            sweep_id=run_directory.read_sweep_id(sweep),
            patience_seconds=lock.SAVE_TIMEOUT_SECONDS,
            extend=True,  # Because the sweep has accepted it.
        )

    def _train_member(self, strategy: tf.distribute.Strategy | None) -> bool:
        """Returns whether the budget is spent."""
        if self._shares_replay and not self._wait_for_replay():
            return False
        member = sweep_client.SweepClient(
            self._context.name,
            self._index,
            self._call_coordinator,
            self._context.stop,
            self._context.newest_replay_address if self._shares_replay else None,
        )
        run = training.Training(
            self._config,
            self._workdir,
            factory.environment_spec(self._config.environment),
            member,
            strategy=strategy,
            saving_replay=self._context.saving,
        )
        if run.finished:
            member.close(finished=True)  # The other members continue without this member.
            return True
        self._context.status = run_state.Status.RUNNING
        if run.resumed and not self._shares_replay:
            self._context.announce(run_state.Status.RESTORING)
        with evaluator_process.beside(self._config, self._workdir) as evaluator:
            self._run_loop(run, evaluator)
        return run.finished

    def _wait_for_replay(self) -> bool:
        """Returns whether replay answers; False if the role is told to stop before."""
        self._context.find_replay()
        # Not the address that was found: replay may have died at the same time.
        replay = connection.ReplayConnection(
            self._context.newest_replay_address(),
            self._config.replay,
            schemes_base.queue_of(self._context.name),
        )
        return replay.wait(self._context.stop.is_set)

    def _call_coordinator(self, method: str, *arguments: Any) -> Any:
        """See `sweep_client.Call`."""
        try:
            answer = getattr(self._coordinator, method).remote(*arguments)
            return ray.get(answer, timeout=_CALL_TIMEOUT_SECONDS)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except (
            ray.exceptions.RayActorError,
            ray.exceptions.ObjectLostError,
            ray.exceptions.GetTimeoutError,
        ) as error:
            raise sweep_client.UnansweredError(type(error).__name__) from None

    def _evaluate(self) -> bool:
        """Returns whether the evaluation is complete; a stopped evaluation starts again."""
        self._context.status = run_state.Status.EVALUATING
        return _run_until_stopped(
            lambda: after_training.evaluate(self._workdir, self._config), self._context.stop
        )


def _run_until_stopped(work: Callable[[], None], stop: threading.Event) -> bool:
    """Runs work that cannot be interrupted in a thread; returns whether it ended before `stop`."""
    errors: list[Exception] = []

    def guarded() -> None:
        try:
            work()
        except Exception as error:  # For the caller.
            errors.append(error)

    thread = threading.Thread(target=guarded, name="evaluation", daemon=True)
    thread.start()
    while thread.is_alive() and not stop.is_set():
        thread.join(0.2)
    if errors:
        raise errors[0]
    return not thread.is_alive()
