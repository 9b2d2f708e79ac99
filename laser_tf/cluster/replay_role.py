"""The role that keeps replay: a Reverb server, which comes back with what its checkpoint holds."""

import logging
import time
from collections.abc import Mapping

import ray

from laser_tf import types
from laser_tf.cluster import role_process
from laser_tf.host import failure_notice, folder_traces
from laser_tf.replay import server
from laser_tf.training import assembly, run_config


class ReplayRole(role_process.Role):
    """Serves replay until it is told to stop, then saves it."""

    def __init__(
        self,
        context: role_process.Context,
        config: run_config.RunConfig,
        spec: types.EnvironmentSpec,
    ):
        """Starts the server.

        Args:
          context: of the role.
          config: of the run.
          spec: of its environment.
        """
        self._context = context
        self._seconds = 60 * config.run.replay_checkpoint_minutes
        agent = assembly.build_agent(config, spec, "float32", seed=0)
        self._replay = server.EmbeddedReplay(
            config.replay,
            assembly.unroll_signature(config, spec, agent),
            context.workdir / "checkpoints/replay",
            config.run.replay_port,
        )
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
            if time.monotonic() >= next_save:
                self._save()
                next_save = time.monotonic() + self._seconds
        self._context.state = "saves"
        self._save()
        self._replay.stop()
        return role_process.TOLD

    def _save(self) -> None:
        # A folder with a saved replay and no weights would look like one that has lost them.
        if not folder_traces.has_checkpoint(self._context.workdir):
            return
        try:
            self._replay.checkpoint()
        except RuntimeError as error:
            self._notice.failed(f"cannot save replay: {error}; it is tried again")
        else:
            self._notice.succeeded()

    def metrics(self) -> Mapping[str, float]:
        """Fill of replay and of the learner's queue."""
        return self._replay.loads()
