"""The role that learns: the one-process run's loop, with actors elsewhere."""

import functools
import logging
from collections.abc import Mapping

from laser_tf import types
from laser_tf.cluster import remote_acting, role_process
from laser_tf.host import folder_lock, run_folder
from laser_tf.training import initial_weights, run_config, training

LOCK = "learner_lock"  # in a run's folder; its own is held by the driver


class _Numbers:
    """Stands for the progress display, which the driver shows."""

    def __init__(self):
        self.shown: dict[str, float] = {}

    def update(self, **numbers: float) -> None:
        """See `progress.ProgressDisplay`."""
        self.shown = numbers


class LearnerRole(role_process.Role):
    """Learns until the budget is spent or it is told to stop; saves everything."""

    def __init__(
        self,
        context: role_process.Context,
        config: run_config.RunConfig,
        spec: types.EnvironmentSpec,
        initial: initial_weights.InitialWeights | None,
    ):
        """Restores what the run's folder holds.

        Args:
          context: of the role.
          config: of the run.
          spec: of its environment.
          initial: what a run begins from that has no checkpoint yet.

        Raises:
          WorkdirError: if the folder is not seen here, or none of its checkpoints can be read.
        """
        self._context = context
        if not (context.workdir / run_folder.RUN).exists():
            raise run_folder.WorkdirError(
                f"the learner's machine does not see {context.workdir}: use a --workdir on a file "
                "system that all machines share"
            )
        # A learner that was cut off from the rest may be alive still.
        context.state = "waits until another learner has left the folder"
        folder_lock.hold(context.workdir / LOCK, folder_lock.LEAVING_SECONDS)
        self._numbers = _Numbers()
        self._run = training.Training(
            config,
            context.workdir,
            spec,
            initial=initial,
            act_elsewhere=functools.partial(remote_acting.RemoteActing, context, config),
        )
        logging.info("%s at %s frames", "resumed" if self._run.resumed else "begins",
                     f"{self._run.env_frames:,}")  # fmt: skip

    def run(self) -> bool:
        """See `role_process.Role`.

        Raises:
          UserError: see `training.Training.run`.
        """
        if not self._run.finished:
            try:
                self._run.run(self._context.stop, self._numbers)
            except remote_acting.StoppedError:
                return False
        return self._run.finished

    def metrics(self) -> Mapping[str, float]:
        """What the progress display shows."""
        return {f"progress/{name}": float(value) for name, value in self._numbers.shown.items()}
