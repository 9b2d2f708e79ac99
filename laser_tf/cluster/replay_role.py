"""The role that keeps replay: a Reverb server, which comes back with what its checkpoint holds."""

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

LOCK = "replay_lock"  # in the folder of a run or a sweep; its own is held by the driver


class ReplayRole(role_process.Role):
    """Serves replay until it is told to stop, then saves it."""

    def __init__(
        self,
        context: role_process.Context,
        config: run_config.RunConfig,
        spec: types.EnvironmentSpec,
        folder: str = "checkpoints/replay",
        queues: Sequence[str] = (replay_config.ONLINE,),
    ):
        """Starts the server.

        Args:
          context: of the role.
          config: of the run.
          spec: of its environment.
          folder: of the checkpoint, in the run's or the sweep's.
          queues: one for each learner.
        """
        self._context = context
        # One that was cut off from the rest, or whose driver was killed, may be saving still.
        context.state = role_process.FOLLOWS
        lock.acquire(context.workdir / LOCK, lock.SAVE_TIMEOUT_SECONDS)
        self._seconds = 60 * config.run.replay_checkpoint_minutes
        agent = assembly.build_agent(config, spec, "float32", seed=0)
        signature = assembly.unroll_signature(config, spec, agent)
        if (context.workdir / folder).exists():
            context.announce(role_process.RESTORES)
        self._replay = server.EmbeddedReplay(
            config.replay, signature, context.workdir / folder, config.run.replay_port, queues
        )
        self._limit = memory_limit.for_machine(self._replay, config.replay, listing=context.saving)
        self._notice = failure_notice.FailureNotice("replay can be saved again")
        logging.info(
            "replay listens at port %d, %.0f%% full", self._replay.port, 100 * self._replay.fill()
        )
        context.replay = 0, f"{ray.util.get_node_ip_address()}:{self._replay.port}"
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
            self._replay.stop()
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
        # A run's folder with a saved replay and no weights would look like one that has lost them.
        workdir = self._context.workdir
        if (workdir / run_directory.CONFIG_FILE).exists() and not layout.has_checkpoint(workdir):
            return
        lock.check(workdir)
        with self._context.saving():
            self._replay.checkpoint()

    def metrics(self) -> Mapping[str, float]:
        """Fill of replay and of the learner's queue."""
        return self._replay.loads()
