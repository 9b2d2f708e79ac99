"""Role that runs the replay server and restores it from its checkpoint."""

import logging
import time
from collections.abc import Mapping, Sequence

import ray

from laser_tf import types
from laser_tf.cluster import role_process
from laser_tf.host import failure_notice
from laser_tf.replay import memory_limit, replay_config, server
from laser_tf.training import assembly, run_config
from laser_tf.workdir import layout, lock, run_directory

LOCK = "replay_lock"  # in the directory of a run or a sweep, whose own lock the driver holds


class ReplayRole(role_process.Role):
    """Runs the replay server until the role is stopped, then saves replay."""

    def __init__(
        self,
        context: role_process.Context,
        config: run_config.RunConfig,
        spec: types.EnvironmentSpec,
        checkpoint: str = layout.REPLAY_CHECKPOINT,
        queues: Sequence[str] = (replay_config.ONLINE,),
    ):
        """Starts the server.

        Args:
          context: Context of the role.
          config: Run configuration.
          spec: Specification of the environment.
          checkpoint: Path of the checkpoint, relative to the directory of the run or sweep.
          queues: Names of the learners' queues.
        """
        self._context = context
        # Another process of this role, e.g. on a disconnected machine, may still be saving.
        context.state = role_process.FOLLOWS
        lock.acquire(context.workdir / LOCK, lock.SAVE_TIMEOUT_SECONDS)
        self._seconds = 60 * config.run.replay_checkpoint_minutes
        agent = assembly.build_agent(config, spec, "float32", seed=0)
        signature = assembly.unroll_signature(config, spec, agent)
        path = context.workdir / checkpoint
        if path.exists():
            context.announce(role_process.RESTORES)
        self._server = server.ReplayServer(
            config.replay, signature, path, config.run.replay_port, queues
        )
        self._limit = memory_limit.for_machine(self._server, config.replay, listing=context.saving)
        self._notice = failure_notice.FailureNotice("replay can be saved again")
        fill = self._server.connect().fill()
        logging.info("Replay server listens at port %d, %.0f%% full", self._server.port, 100 * fill)
        context.replay = 0, f"{ray.util.get_node_ip_address()}:{self._server.port}"
        context.state = "serves"

    def run(self) -> str:
        """See `role_process.Role`."""
        next_save = time.monotonic() + self._seconds
        while not self._context.stop.wait(0.5):
            if self._limit:
                self._limit.try_to_enforce()
            if time.monotonic() >= next_save:
                self._try_to_save()
                next_save = time.monotonic() + self._seconds
        try:
            self._save()
        except RuntimeError as error:
            logging.error("cannot save replay: %s", error)
            raise
        finally:
            self._server.stop()
        return role_process.TOLD

    def _try_to_save(self) -> None:
        try:
            self._save()
        except lock.LostError:
            raise
        except RuntimeError as error:
            self._notice.failed(f"cannot save replay: {error}; it is tried again")
        else:
            self._notice.succeeded()

    def _save(self) -> None:
        # A run directory with replay but without weights would look like one that lost its weights.
        workdir = self._context.workdir
        if (workdir / run_directory.CONFIG_FILE).exists() and not layout.has_checkpoint(workdir):
            return
        lock.check(workdir)
        with self._context.saving():
            self._server.checkpoint()

    def metrics(self) -> Mapping[str, float]:
        """Returns the fill levels of replay and of the learner's queue."""
        return self._server.fill_levels()
