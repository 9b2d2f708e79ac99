"""Checkpoints of the learner, which survive damage, a full disk and non-finite weights."""

import contextlib
import logging
import os
import pathlib
import re
import shutil
from collections.abc import Iterator

import tensorflow as tf

from laser_tf import errors, types
from laser_tf.host import hardware
from laser_tf.training import assembly, best_weights, learner, named_variables, run_config
from laser_tf.workdir import atomic, checkpoint_rotation, run_directory

MAX_CHECKPOINTS = 3
_UNFINISHED = "unfinished"  # directory of a checkpoint that is being written
_LEARNER, _AGENT = "learner", "agent"  # attributes in a checkpoint


class VariablesDifferError(run_directory.WorkdirError):
    """The agent has other variables than its checkpoint, e.g. because its class has changed."""


class LearnerCheckpoints:
    """Checkpoints of a learner, numbered by its updates.

    The variables of its agent must have the names in the checkpoint.
    """

    def __init__(self, directory: pathlib.Path, saved_learner: learner.Learner):
        self._directory = directory
        self._learner = saved_learner
        self._checkpoint = tf.train.Checkpoint(**{_LEARNER: saved_learner})

    def save(self, number: int) -> pathlib.Path:
        """Writes a checkpoint, then deletes all but the newest `MAX_CHECKPOINTS`.

        Returns the common path of the checkpoint's files without their suffixes.

        Raises:
          NonFiniteWeightsError: If a variable is not finite. Nothing is written.
          WorkdirError: If the checkpoint cannot be written. Older checkpoints are unchanged.
        """
        if non_finite := self._find_non_finite():
            raise named_variables.NonFiniteWeightsError(
                f"{non_finite} must be finite, but is not after {number:,} updates. These weights "
                "are not saved. Run the same command again to resume from the newest checkpoint, "
                "or start again with another --workdir and a lower learner.learning_rate."
            )
        unfinished = self._directory / _UNFINISHED
        try:
            # A process that was killed may have left a directory of TensorFlow.
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir(parents=True, exist_ok=True)
            with _plain_name(unfinished) as plain:
                self._checkpoint.write(f"{plain}/checkpoint-{number}")
            self._move(unfinished, number)
        except (tf.errors.OpError, OSError) as error:
            raise run_directory.WorkdirError(
                f"cannot write a checkpoint in {self._directory}: {_reason(error)}"
            ) from None
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        self._delete_all_but_the_newest(number)
        return self._directory / f"checkpoint-{number}"

    def _find_non_finite(self) -> str | None:
        named = ((variable.name, variable) for variable in self._learner.variables)
        return named_variables.find_non_finite(named)

    def _move(self, unfinished: pathlib.Path, number: int) -> None:
        index = f"checkpoint-{number}.index"
        atomic.sync(unfinished)  # May take long: before the index of a checkpoint is deleted.
        # A checkpoint exists if its index exists: deleted first, moved last.
        (self._directory / index).unlink(missing_ok=True)
        for path in sorted(unfinished.iterdir(), key=lambda path: path.name == index):
            atomic.replace(path, self._directory / path.name)

    def _delete_all_but_the_newest(self, newest: int) -> None:
        # Checkpoints with larger numbers were damaged when the run resumed.
        kept = [number for number in self.numbers() if number <= newest][-MAX_CHECKPOINTS:]
        try:
            for path in self._directory.glob("checkpoint-*"):
                if path.stem not in {f"checkpoint-{number}" for number in kept}:
                    path.unlink()
        except OSError as error:
            logging.warning("Cannot delete an old checkpoint: %s. Delete it by hand", error)

    def restore(self) -> int | None:
        """Restores the newest readable and finite checkpoint, if any, and returns its number.

        Raises:
          WorkdirError: If all checkpoints are damaged.
          VariablesDifferError: See `check_variables`.
        """
        restored = checkpoint_rotation.load_first_usable(self._paths(), self._read)
        if restored is None and self.numbers():
            raise run_directory.WorkdirError(
                f"all checkpoints in {self._directory} are damaged. Restore them from a backup, or "
                "start again with another --workdir."
            )
        return restored

    def _paths(self) -> list[pathlib.Path]:
        """Returns the paths of all checkpoints, the newest first, without suffixes."""
        # A checkpoint without its index, e.g. if the file was deleted, is damaged.
        numbers = self._numbers_of(r"(index|data-\d+-of-\d+)")
        return [self._directory / f"checkpoint-{number}" for number in reversed(numbers)]

    def check_variables(self) -> None:
        """Raises VariablesDifferError if the newest readable checkpoint has other variables."""
        checkpoint_rotation.load_first_usable(self._paths(), self._check_variables)

    def _check_variables(self, path: pathlib.Path) -> None:
        try:
            with _plain_name(self._directory) as plain:
                saved = named_variables.saved(f"{plain}/{path.name}", _LEARNER, _AGENT)
        except Exception as error:  # TensorFlow raises almost any exception for damage.
            raise checkpoint_rotation.DamagedError(_describe(error)) from None
        here = dict(named_variables.walk(self._learner.agent, _AGENT, {}))
        if differing := named_variables.differences(saved, here):
            raise VariablesDifferError(
                f"the agent must have the variables of {path}, got others: {differing[0]}. If "
                "agent.name or agent.torso is module:Class, its class has changed: restore the "
                "earlier code, or start again with another --workdir."
            )

    def _read(self, path: pathlib.Path) -> int:
        self._check_variables(path)
        try:
            with _plain_name(self._directory) as plain:
                status = self._checkpoint.read(f"{plain}/{path.name}")
                status.assert_existing_objects_matched()
        except Exception as error:  # TensorFlow raises almost any exception for damage.
            raise checkpoint_rotation.DamagedError(_describe(error)) from None
        if non_finite := self._find_non_finite():
            raise checkpoint_rotation.DamagedError(f"{non_finite} is not finite")
        return int(path.name.rpartition("-")[2])

    def numbers(self) -> list[int]:
        """Returns the numbers of all checkpoints, ascending."""
        # From the files themselves, because a state file could be damaged, too.
        return self._numbers_of("index")

    def _numbers_of(self, suffix: str) -> list[int]:
        pattern = rf"checkpoint-(\d+)\.{suffix}"
        matches = [re.fullmatch(pattern, path.name) for path in self._directory.glob("*")]
        return sorted({int(match[1]) for match in matches if match})


def _reason(error: Exception) -> str:
    """Returns the reason without the name of a temporary file."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return errors.first_line(error).rpartition("; ")[2]  # TensorFlow: "path; reason".


def _describe(error: Exception) -> str:
    return re.sub(r"/proc/self/fd/\d+/", "", errors.first_line(error))  # from `_plain_name`


@contextlib.contextmanager
def _plain_name(directory: pathlib.Path) -> Iterator[str]:
    r"""Yields a path without `[`, `*`, `?` and `\`, which TensorFlow would read as a pattern."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def restore_learner(
    workdir: pathlib.Path,
    config: run_config.RunConfig,
    spec: types.EnvironmentSpec,
    *,
    best: bool = False,
) -> learner.Learner:
    """Returns a run's learner with its newest usable checkpoint, or its best weights if `best`.

    The best weights suffice for acting only.

    Raises:
      WorkdirError: If there is no checkpoint, or all are damaged; see `best_weights.assign`, too.
      VariablesDifferError: If the agent has other variables than the checkpoint.
    """
    dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
    restored = assembly.build_learner(config, spec, dtype, jit=False)
    checkpoints = LearnerCheckpoints(workdir / run_directory.LEARNER_CHECKPOINTS, restored)
    if best:
        checkpoints.check_variables()  # The best weights have no names.
        best_weights.assign(workdir, config.environment.action_repeat, restored)
        return restored
    if checkpoints.restore() is None:
        raise run_directory.WorkdirError(
            f"{workdir} holds no checkpoint: train first, or restore them from a backup"
        )
    return restored
