"""The weights of a run with the best periodic evaluation: a file of arrays in `checkpoints/best`.

Acting and exports need no other variables of a checkpoint.
"""

import io
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from laser_tf import errors
from laser_tf.workdir import atomic, run_directory

if TYPE_CHECKING:  # The module imports TensorFlow.
    from laser_tf.training import learner

_FILE = f"{run_directory.BEST_CHECKPOINT}/weights.npz"


class BestWeights(NamedTuple):
    """Weights and the result of their evaluation."""

    mean_return: float  # result of the evaluation
    env_frames: int  # behind the weights
    learner_updates: int  # behind the weights
    wall_seconds: float  # seconds of training when the evaluation ended
    arrays: Sequence[np.ndarray]  # values of the agent's `acting_variables`


_NUMBERS = BestWeights._fields[:-1]


def write(workdir: pathlib.Path, best: BestWeights) -> None:
    """Replaces the best weights of a run. After an OSError the previous ones are unchanged."""
    path = workdir / _FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    arrays = {f"variable_{index}": array for index, array in enumerate(best.arrays)}
    np.savez(buffer, **{name: getattr(best, name) for name in _NUMBERS}, **arrays)
    atomic.write(path, buffer.getvalue())


def read(workdir: pathlib.Path) -> BestWeights | None:
    """Returns the best weights of a run, if any; raises WorkdirError if they cannot be read."""
    path = workdir / _FILE
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            values: dict[str, Any] = {name: file[name].item() for name in _NUMBERS}
            arrays = [file[f"variable_{index}"] for index in range(len(file) - len(values))]
    except Exception as error:  # Damage causes almost any error of NumPy and zipfile.
        raise run_directory.WorkdirError(
            f"cannot read {path}: {errors.first_line(error)}. Delete it; KeepBest then keeps the "
            "next best weights."
        ) from None
    return BestWeights(**values, arrays=arrays)


def assign(workdir: pathlib.Path, action_repeat: int, restored: "learner.Learner") -> None:
    """Assigns a run's best weights and their counts; raises WorkdirError if none fit."""
    best = read(workdir)
    if best is None:
        raise run_directory.WorkdirError(
            f"{workdir / _FILE} is missing: no periodic evaluation has ended, or KeepBest was not "
            "given. Train longer with --callbacks=laser_tf.callbacks:KeepBest, or leave out --best"
        )
    variables = restored.agent.acting_variables
    if [array.shape for array in best.arrays] != [tuple(v.shape) for v in variables]:
        raise run_directory.WorkdirError(
            f"{workdir / _FILE} holds weights of another agent. Leave out --best"
        )
    for variable, array in zip(variables, best.arrays, strict=True):
        variable.assign(array)
    restored.counters.learner_updates.assign(best.learner_updates)
    restored.counters.agent_steps.assign(best.env_frames // action_repeat)
    restored.counters.wall_seconds.assign(best.wall_seconds)
