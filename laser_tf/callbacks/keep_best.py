"""Keeps the weights with the best periodic evaluation."""

import logging
import math

from laser_tf import errors
from laser_tf.host import log_messages
from laser_tf.training import best_weights, callbacks


class KeepBest(callbacks.Callback):
    """Keeps the weights with the highest mean return of a periodic evaluation.

    They are in `checkpoints/best` of the run directory. `launch.export --best` and
    `launch.evaluate --best` use them. A resumed run continues from the best evaluation so far.
    """

    def on_start(self, run: callbacks.Run) -> None:
        """See `Callback`; raises ConfigError if the run has no periodic evaluations."""
        period, frames = run.config.run.evaluate_every_env_frames, run.config.run.env_frames
        if not 0 < period <= frames:
            raise errors.ConfigError(
                "config.run.evaluate_every_env_frames must be between 1 and run.env_frames="
                f"{frames} for KeepBest, got {period}. Use e.g. "
                f"--config.run.evaluate_every_env_frames={max(1, frames // 10)}."
            )
        best = best_weights.read(run.workdir)
        self._mean_return = best.mean_return if best else -math.inf
        self._notice = log_messages.FailureNotice("The best weights can be written again.")

    def on_evaluation(self, run: callbacks.Run, evaluation: callbacks.Evaluation) -> None:
        """See `Callback`; a failure to write is logged."""
        if evaluation.mean_return <= self._mean_return:
            return
        best = best_weights.BestWeights(
            evaluation.mean_return,
            evaluation.env_frames,
            evaluation.learner_updates,
            run.wall_seconds,
            evaluation.weights,
        )
        try:
            best_weights.write(run.workdir, best)
        except OSError as error:
            self._notice.failed(
                f"Cannot write the best weights: {error.strerror}. Training continues, and the "
                "next better evaluation tries again."
            )
            return
        self._notice.succeeded()
        self._mean_return = evaluation.mean_return
        logging.info(
            "Kept the weights of %s frames with a mean return of %.2f",
            f"{evaluation.env_frames:,}", evaluation.mean_return,
        )  # fmt: skip
