"""The role that serves replay with Reverb, and the connections of other roles to replay."""

import logging
import time
from collections.abc import Mapping, Sequence

import ray

from laser_tf import errors, types
from laser_tf.cluster import role, run_state
from laser_tf.host import failure_notice
from laser_tf.replay import (
    client,
    connection,
    external_server,
    memory_limit,
    server,
    stored_unroll,
)
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.training import assembly, run_config
from laser_tf.workdir import layout, lock, run_directory

LOCK = "replay_lock"  # In the directory of a run or a sweep, whose own lock the driver holds.
_POLL_PERIOD_SECONDS = 0.5


class ReplayRole(role.Role):
    """Serves replay until it is told to stop, then saves it."""

    def __init__(
        self,
        context: role.Context,
        config: run_config.RunConfig,
        spec: types.EnvironmentSpec,
        directory: str = layout.REPLAY_CHECKPOINT,
        queues: Sequence[str] = (schemes_base.QUEUE,),
    ):
        """Starts the server.

        Args:
          context: Connection to the run.
          config: Configuration of the run.
          spec: Specs of its environment.
          directory: Directory of the checkpoint, relative to that of the run or the sweep.
          queues: Names of the learners' queues.
        """
        self._context = context
        # The process of a driver that was killed, or that lost its connection, may still save.
        context.status = run_state.Status.WAITING_FOR_LOCK
        lock.acquire(context.workdir / LOCK, lock.SAVE_TIMEOUT_SECONDS)
        self._save_period_seconds = 60 * config.run.replay_checkpoint_minutes
        agent = assembly.build_agent(config, spec, "float32", seed=0)
        signature = assembly.unroll_signature(config, spec, agent)
        checkpoint = context.workdir / directory
        if checkpoint.exists():
            context.announce(run_state.Status.RESTORING)
        self._server = server.ReplayServer(
            config.replay, signature, checkpoint, config.run.replay_port, queues
        )
        self._limit = memory_limit.for_machine(self._server, config.replay, listing=context.saving)
        self._notice = failure_notice.FailureNotice("Replay can be saved again.")
        port = self._server.port
        fill = self._server.connect().fill()
        logging.info("Serving replay on port %d, %.0f%% full", port, 100 * fill)
        context.served_replay = f"{ray.util.get_node_ip_address()}:{port}"
        context.status = run_state.Status.RUNNING

    def run(self) -> run_state.Status:
        """See `role.Role`."""
        next_save = time.monotonic() + self._save_period_seconds
        while not self._context.stop.wait(_POLL_PERIOD_SECONDS):
            if self._limit:
                self._limit.try_to_enforce()
            if time.monotonic() >= next_save:
                self._try_to_save()
                next_save = time.monotonic() + self._save_period_seconds
        try:
            self._save()
        except RuntimeError as error:
            logging.error("Cannot save replay: %s", error)
            raise
        finally:
            self._server.stop()
        return run_state.Status.STOPPED

    def _try_to_save(self) -> None:
        try:
            self._save()
        except lock.LostError:
            raise
        except RuntimeError as error:
            self._notice.failed(f"Cannot save replay: {error}. The next attempt follows.")
        else:
            self._notice.succeeded()

    def _save(self) -> None:
        # A run that has saved replay but no weights would look like one that has lost its weights.
        workdir = self._context.workdir
        if (workdir / run_directory.CONFIG_FILE).exists() and not layout.has_checkpoint(workdir):
            return
        lock.check(workdir)
        with self._context.saving():
            self._server.checkpoint()

    def metrics(self) -> Mapping[str, float]:
        """Returns the fill levels of replay and of the learners' queues."""
        return self._server.fill_levels()


def connect_learner(
    context: role.Context,
    scheme: schemes_base.ReplayScheme,
    signature: stored_unroll.StoredUnroll,
    *,
    is_chief: bool,
    is_new: bool,
) -> client.ReplayClient:
    """Waits for replay and connects a learner to it.

    Args:
      context: The learner's connection to the run.
      scheme: Replay scheme.
      signature: Signature of an unroll.
      is_chief: Whether the learner leases a replay server outside the run.
      is_new: See `external_server.connect`.

    Raises:
      StoppedError: If the role is told to stop before replay answers.
      ValueError: If replay holds other unrolls or serves another run.
    """
    if not scheme.address:
        return client.LearnerReplay(_connect_to_role(context, scheme, signature))
    _wait_for_server(context, connection.ReplayConnection(scheme.address, scheme))
    run = external_server.name_of_run(context.workdir) if is_chief else None
    return external_server.connect(scheme, signature, run, is_new=is_new)


def connect_actor(
    context: role.Context,
    scheme: schemes_base.ReplayScheme,
    signature: stored_unroll.StoredUnroll,
) -> connection.ReplayConnection:
    """Waits for replay and connects an actor to it.

    Args:
      context: The actor's connection to the run.
      scheme: Replay scheme.
      signature: Signature of an unroll.

    Raises:
      StoppedError: If the role is told to stop before replay answers.
      ValueError: If replay holds other unrolls.
    """
    if not scheme.address:
        return _connect_to_role(context, scheme, signature)
    replay = connection.ReplayConnection(scheme.address, scheme)
    _wait_for_server(context, replay)
    return _checked(replay, signature)


def _connect_to_role(
    context: role.Context,
    scheme: schemes_base.ReplayScheme,
    signature: stored_unroll.StoredUnroll,
) -> connection.ReplayConnection:
    context.find_replay()
    return _checked(connection.ReplayConnection(context.newest_replay_address, scheme), signature)


def _wait_for_server(context: role.Context, replay: connection.ReplayConnection) -> None:
    context.status = run_state.Status.WAITING
    context.detail = f"waiting for the replay server at {replay.address}"
    if not replay.wait(context.stop.is_set):
        raise errors.StoppedError
    context.detail = ""


def _checked(
    replay: connection.ReplayConnection, signature: stored_unroll.StoredUnroll
) -> connection.ReplayConnection:
    replay.check(signature)
    replay.start_polling()
    return replay
