"""The role of an agent of a sweep: it acts, learns and is evaluated, all in one process."""

import dataclasses
import logging
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

import ray
import tensorflow as tf

from laser_tf.cluster import role_process
from laser_tf.environments import factory
from laser_tf.evaluation import after_training, evaluator_process
from laser_tf.monitoring import tensorboard
from laser_tf.replay import connection, replay_config
from laser_tf.sweeps import coordinator, sweep_member
from laser_tf.training import run_config, strategies, training
from laser_tf.workdir import lock, run_directory, versions

_ANSWER_SECONDS = 120.0  # for the coordinator, to whom weights may go, and from whom they may come


class _Progress:
    """Stands for the progress display: the sweep's shows what agents report.

    This one tells that replay is restored.
    """

    def __init__(self, context: role_process.Context):
        self._context = context

    def update(self, **_: float) -> None:
        """See `reporting.Display`."""
        self._context.state = role_process.LEARNS


class MemberRole(role_process.Role):
    """An agent, until its budget is spent and it is evaluated, or it is told to stop."""

    def __init__(
        self,
        context: role_process.Context,
        config: run_config.RunConfig,
        index: int,
        meeting: Any,
        *,
        shares_replay: bool,
        columns: Mapping[str, Mapping[str, Any]],
    ):
        """Begins without anything.

        Args:
          context: of the role, which has the agent's name, in the sweep's folder.
          config: of the agent.
          index: of it in the sweep.
          meeting: handle of the `coordinator.Coordinator`.
          shares_replay: whether there is one replay for all.
          columns: what this agent is to tell TensorBoard of the sweep, see
            `tensorboard.write_sweep_columns`; may be empty.
        """
        self._context = context
        self._config = config
        self._index = index
        self._meeting = meeting
        self._shares_replay = shares_replay
        self._columns = columns
        self._name = context.name
        self._workdir = context.workdir / context.name
        self._training: training.Training | None = None

    def run(self) -> str | None:
        """See `role_process.Role`.

        Raises:
          UserError: for what the user can mend.
        """
        strategy = strategies.make(self._config.learner)  # before TensorFlow computes anything
        self._open_folder()
        try:
            is_finished = self._train(strategy) and self._evaluate()
        except sweep_member.StoppedError:
            is_finished = False
        except coordinator.StaleError as error:
            return str(error)
        return None if is_finished else role_process.TOLD

    def _open_folder(self) -> None:
        sweep = self._context.workdir
        if not (sweep / run_directory.SWEEP_FILE).exists():
            raise run_directory.WorkdirError(
                f"{socket.gethostname()}, where {self._name} is to run, does not see {sweep}: use "
                "a --workdir on a file system that all machines share"
            )
        if self._columns and not any((sweep / "tensorboard").glob("events*")):
            tensorboard.write_sweep_columns(sweep / "tensorboard", self._columns)
        # A process that was cut off from the rest may be alive still.
        self._context.state = role_process.FOLLOWS
        run_directory.open_workdir(
            self._workdir,
            dataclasses.asdict(self._config),
            {"versions": versions.recorded()},
            defaults=run_config.defaults(dataclasses.asdict(self._config)),
            sweep_id=run_directory.read_sweep_id(sweep),
            patience_seconds=lock.SAVE_TIMEOUT_SECONDS,
            extend=True,  # what the sweep has taken
        )

    def _train(self, strategy: tf.distribute.Strategy | None) -> bool:
        """Returns whether the budget is spent."""
        if self._shares_replay and not self._wait_for_replay():
            return False
        member = sweep_member.SweepMember(
            self._name,
            self._index,
            self._call,
            self._context.stop,
            self._context.newest_replay_address if self._shares_replay else None,
        )
        spec = factory.environment_spec(self._config.environment)
        self._training = run = training.Training(
            self._config,
            self._workdir,
            spec,
            member,
            strategy=strategy,
            saving_replay=self._context.saving,
        )
        logging.info("%s at %s frames", "resumed" if run.resumed else "begins",
                     f"{run.env_frames:,}")  # fmt: skip
        if run.finished:
            member.close(finished=True)  # nobody has to wait while the agent is evaluated
            return True
        self._context.state = role_process.LEARNS
        if run.resumed and not self._shares_replay:
            self._context.announce(role_process.RESTORES)
        with evaluator_process.beside(self._config, self._workdir) as beside:
            run.run(self._context.stop.is_set, _Progress(self._context), beside)
        mean = run.returns.mean_return()
        logging.info("mean return of the last 100 training episodes: %.2f", mean)
        return run.finished

    def _wait_for_replay(self) -> bool:
        """Returns False once the role is to stop."""
        if self._context.find_replay() is None:
            return False
        # Where it was last: it may have died at the same time, and be somewhere else soon.
        queue = replay_config.queue_of(self._name)
        address = self._context.newest_replay_address
        replay = connection.ReplayConnection(address, self._config.replay, queue)
        return replay.wait(self._context.stop.is_set)

    def _call(self, method: str, *arguments: Any) -> Any:
        """See `sweep_member.Call`."""
        try:
            asked = getattr(self._meeting, method).remote(*arguments)
            return ray.get(asked, timeout=_ANSWER_SECONDS)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except (
            ray.exceptions.RayActorError,
            ray.exceptions.ObjectLostError,
            ray.exceptions.GetTimeoutError,
        ) as error:
            raise sweep_member.UnansweredError(type(error).__name__) from None

    def _evaluate(self) -> bool:
        """Returns whether it has come to its end; what is stopped begins anew another time."""
        self._context.state = "evaluates"
        return _run_beside(
            lambda: after_training.evaluate(self._workdir, self._config), self._context.stop
        )

    def metrics(self) -> Mapping[str, float]:
        """How far it has learned."""
        return {"env_frames": float(self._training.env_frames)} if self._training else {}


def _run_beside(work: Callable[[], None], stop: threading.Event) -> bool:
    """Does what nothing can interrupt in a thread; returns whether it ended before `stop`."""
    failures: list[Exception] = []

    def guarded() -> None:
        try:
            work()
        except Exception as error:  # for the caller
            failures.append(error)

    thread = threading.Thread(target=guarded, name="evaluation", daemon=True)
    thread.start()
    while thread.is_alive() and not stop.is_set():
        thread.join(0.2)
    if failures:
        raise failures[0]
    return not thread.is_alive()
