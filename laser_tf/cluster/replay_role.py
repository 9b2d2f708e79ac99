"""The role that serves replay with Reverb, and the connections of other roles to replay."""

import logging
from collections.abc import Mapping, Sequence

import ray

from laser_tf import errors, types
from laser_tf.cluster import role, run_state
from laser_tf.host import log_messages
from laser_tf.replay import client, connection, server, stored_unroll
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.training import assembly, run_config
from laser_tf.workdir import lock, run_directory


class ReplayRole(role.Role):
    """Serves replay until a stop is requested, then saves it."""

    def __init__(
        self,
        context: role.RoleContext,
        config: run_config.RunConfig,
        spec: types.EnvironmentSpec,
        checkpoint_directory: str = run_directory.REPLAY_CHECKPOINT,
        queues: Sequence[str] = (schemes_base.QUEUE,),
    ):
        """Starts the server; `checkpoint_directory` is in the directory of the run or the sweep."""
        super().__init__(context, config)
        context.acquire_lock()
        self._save_period_seconds = 60 * config.run.replay_checkpoint_minutes
        agent = assembly.build_agent(config, spec, "float32", seed=0)
        signature = assembly.unroll_signature(config, spec, agent)
        checkpoint = context.workdir / checkpoint_directory
        if checkpoint.exists():
            context.announce(run_state.Status.RESTORING)
        self._server = server.ReplayServer(
            config.replay,
            signature,
            checkpoint,
            config.run.replay_port,
            queues,
            make_saving_context=context.saving,
        )
        self._notice = log_messages.FailureNotice(on_recovery="Replay can be saved again.")
        port = self._server.port
        fill = config.replay.fill_level(self._server.connect().size())
        logging.info("Serving replay on port %d, %.0f%% full", port, 100 * fill)
        context.served_replay_address = f"{ray.util.get_node_ip_address()}:{port}"
        context.status = run_state.Status.RUNNING
        # Once the status is RUNNING: the guard may save replay to list its oldest items, and then
        # sets the status back to the one that it found.
        self._server.guard_memory()

    def run(self) -> bool:
        """See `role.Role`."""
        while not self._context.stop_requested.wait(self._save_period_seconds):
            self._try_to_save()
        try:
            self._save()
        except RuntimeError as error:
            logging.error("Cannot save replay: %s", error)
            raise
        finally:
            self._server.stop()
        return False

    def _try_to_save(self) -> None:
        try:
            self._save()
        except lock.LostError:
            raise
        except RuntimeError as error:
            self._notice.failed(
                f"Cannot save replay: {error}. The next attempt follows at the next checkpoint."
            )
        else:
            self._notice.succeeded()

    def _save(self) -> None:
        workdir = self._context.workdir
        is_run = (workdir / run_directory.CONFIG_FILE).exists()  # Or else a sweep.
        # A run that has saved replay but no weights would look like one that has lost its weights.
        if not is_run or run_directory.has_checkpoint(workdir):
            lock.check(workdir)
            self._server.checkpoint()

    def metrics(self) -> Mapping[str, float]:
        """Returns the fill levels of replay and of the learners' queues."""
        return self._server.fill_levels()


def wait_for_replay(
    context: role.RoleContext, scheme: schemes_base.ReplayScheme, queue: str = schemes_base.QUEUE
) -> connection.ReplayConnection:
    """Waits until replay, of the fleet or at `scheme.address`, answers; returns a connection to it.

    Raises:
      StoppedError: If a stop is requested before replay answers.
      ValueError: If the tables of the server are not those of `scheme`.
    """
    replay = connection.ReplayConnection(
        scheme.address or context.find_replay_address, scheme, queue
    )
    context.status = run_state.Status.WAITING
    context.detail = f"waiting for the replay server at {replay.address}"
    if not replay.wait(context.stop_requested.is_set):
        raise errors.StoppedError
    context.status, context.detail = run_state.Status.STARTING, ""
    return replay


def connect(
    context: role.RoleContext,
    scheme: schemes_base.ReplayScheme,
    signature: stored_unroll.StoredUnroll,
) -> connection.ReplayConnection:
    """Waits for replay, checks its signature, and from then on watches whether it answers.

    Raises:
      StoppedError: If a stop is requested before replay answers.
      ValueError: If the tables are not those of `scheme`, or hold unrolls of another signature.
    """
    replay = wait_for_replay(context, scheme)
    replay.check(signature)
    replay.start_polling()
    return replay


def connect_learner(
    context: role.RoleContext,
    scheme: schemes_base.ReplayScheme,
    signature: stored_unroll.StoredUnroll,
    *,
    is_chief: bool,
    is_new: bool = False,
) -> client.ReplayClient:
    """Waits for replay and connects a learner to it.

    At an external server, the chief also leases the queue, so that no other run reads it. If the
    run is new (`is_new`), it logs a warning about experience that the server already holds.

    Raises:
      ValueError: If replay holds unrolls of another signature or serves another run.
    """
    if not scheme.address:
        return client.ReplayClient(connect(context, scheme, signature))
    wait_for_replay(context, scheme)
    workdir = context.workdir if is_chief else None
    return client.connect_external(scheme, signature, workdir, is_new=is_new)
