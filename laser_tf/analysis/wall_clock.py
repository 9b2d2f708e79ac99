"""How long a run has trained, from the pace that it logged."""

import pathlib

import numpy as np

from laser_tf import errors
from laser_tf.monitoring import tensorboard

_PACE = "throughput/env_frames_per_second"


def read(run: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
    """The env frames that a run had learned from, and the seconds that it had trained for.

    Each row of TensorBoard's has the pace since the row before. So the time between two commands
    that went on with the run is not counted, nor what a crash had played and lost. A row of pace 0
    (older runs begin a command with one) has no stretch behind it: its frames take the next pace.

    Args:
      run: its folder.

    Returns:
      Env frames float64 [n + 1] and seconds float64 [n + 1], both from 0 on.

    Raises:
      UserError: if the run has no such row yet.
    """
    frames, pace = tensorboard.read_scalars(run / "tensorboard", _PACE)
    frames, pace = frames[pace > 0], pace[pace > 0]
    _check_any(run, frames)
    starts = np.append(0, frames).astype(float)
    return starts, np.append(0, np.cumsum(np.diff(starts) / pace))


def env_frames(run: pathlib.Path) -> int:
    """The env frames that a run has learned from.

    Args:
      run: its folder.

    Raises:
      UserError: if the run has logged none yet.
    """
    frames, _ = tensorboard.read_scalars(run / "tensorboard", _PACE)
    _check_any(run, frames)
    return int(frames[-1])


def _check_any(run: pathlib.Path, frames: np.ndarray) -> None:
    if not len(frames):
        raise errors.UserError(
            f"{run} holds no values of {_PACE}: wait for its first ones, or train for more env "
            "frames"
        )
