"""Checkpoints of the learner; damage, a full disk and non-finite weights do no harm to them."""

import contextlib
import json
import logging
import os
import pathlib
import re
import shutil
from collections.abc import Iterator, Mapping

import tensorflow as tf

from laser_tf import errors
from laser_tf.host import failure_notice
from laser_tf.training import finiteness
from laser_tf.workdir import atomic, checkpoint_rotation, run_directory

MAX_CHECKPOINTS = 3
_UNFINISHED = "unfinished"  # directory of a checkpoint that is being written


class LearnerCheckpoints:
    """Checkpoints of a `tf.Module`, numbered by learner updates."""

    def __init__(self, directory: pathlib.Path, module: tf.Module):
        """Touches no file.

        Args:
          directory: Directory of the checkpoints.
          module: Module to save and restore.
        """
        self._directory = directory
        self._module = module
        self._checkpoint = tf.train.Checkpoint(learner=module)
        self._deletion_notice = failure_notice.FailureNotice("Deleted old checkpoints again")

    def save(self, number: int, row_counts: Mapping[str, int] | None = None) -> None:
        """Writes a checkpoint, then deletes all but the newest `MAX_CHECKPOINTS`.

        Args:
          number: Learner updates so far.
          row_counts: Number of rows in each log of the run, by file name.

        Raises:
          NonFiniteWeightsError: If a variable is not finite. Nothing is written.
          WorkdirError: If the checkpoint cannot be written. Older checkpoints are unchanged.
        """
        non_finite = self._find_non_finite()
        if non_finite:
            raise finiteness.NonFiniteWeightsError(
                f"{non_finite} must be finite, but is not after {number:,} updates. These weights "
                "are not saved. Run the same command again to resume from the newest checkpoint, "
                "or start again with another --workdir and a lower learner.learning_rate."
            )
        unfinished = self._directory / _UNFINISHED
        try:
            # Left by a process that was killed; may hold a directory of TensorFlow.
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir(parents=True, exist_ok=True)
            with _plain_name(unfinished) as plain:
                self._checkpoint.write(f"{plain}/checkpoint-{number}")
            (unfinished / _row_counts_name(number)).write_text(json.dumps(dict(row_counts or {})))
            self._move(unfinished, number)
        except (tf.errors.OpError, OSError) as error:
            raise run_directory.WorkdirError(
                f"cannot write a checkpoint in {self._directory}: {_describe(error)}. "
                "Older checkpoints are unchanged"
            ) from None
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        self._delete_all_but_the_newest(number)

    def _find_non_finite(self) -> str | None:
        named = ((variable.name, variable) for variable in self._module.variables)
        return finiteness.find_non_finite(named)

    def _move(self, unfinished: pathlib.Path, number: int) -> None:
        index = f"checkpoint-{number}.index"
        # A checkpoint exists if its index exists: deleted first, moved last.
        (self._directory / index).unlink(missing_ok=True)
        for path in sorted(unfinished.iterdir(), key=lambda path: path.name == index):
            atomic.replace(path, self._directory / path.name)

    def _delete_all_but_the_newest(self, newest: int) -> None:
        numbers = self.numbers()
        # Checkpoints with larger numbers were damaged when the run resumed.
        kept = [number for number in numbers if number <= newest][-MAX_CHECKPOINTS:]
        try:
            for old in {*numbers, *self._without_index()} - set(kept):
                for path in self._directory.glob(f"checkpoint-{old}.*"):
                    path.unlink()
        except OSError as error:
            self._deletion_notice.failed(
                f"cannot delete an old checkpoint: {error.filename}: {error.strerror}. Delete it "
                "by hand; the newest checkpoint is saved"
            )
        else:
            self._deletion_notice.succeeded()

    def restore(self) -> int | None:
        """Restores the newest checkpoint that is readable and finite.

        Returns:
          Number of the checkpoint, or None if there is no checkpoint.

        Raises:
          WorkdirError: If all checkpoints are damaged.
        """
        numbers = self.numbers()
        for number in self._without_index():
            if number > max(numbers, default=-1):
                logging.warning(
                    "checkpoint-%d in %s is incomplete, or checkpoint-%d.index was deleted: using "
                    "an older checkpoint, if any",
                    number, self._directory, number,
                )  # fmt: skip
        paths = [self._directory / f"checkpoint-{number}" for number in reversed(numbers)]
        restored = checkpoint_rotation.load_first_usable(paths, self._read)
        if numbers and restored is None:
            raise run_directory.WorkdirError(
                f"all checkpoints in {self._directory} are damaged. Restore them from a backup, or "
                "start again with another --workdir."
            )
        return restored

    def read_row_counts(self, number: int) -> dict[str, int]:
        """Returns the `row_counts` of a checkpoint; empty if they are missing or damaged."""
        path = self._directory / _row_counts_name(number)
        try:
            return {name: int(count) for name, count in json.loads(path.read_text()).items()}
        except FileNotFoundError:
            pass
        except Exception as error:  # Any exception means damage.
            logging.warning(
                "Ignored %s, so that missing rows of logs are not detected: %s",
                path, errors.first_line(error),
            )  # fmt: skip
        return {}

    def _read(self, path: pathlib.Path) -> int:
        """Restores a checkpoint and returns its number; raises DamagedError if it is damaged."""
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

    def _without_index(self) -> list[int]:
        return sorted(set(self._numbers_of(r"data-\d+-of-\d+")) - set(self.numbers()))

    def _numbers_of(self, suffix: str) -> list[int]:
        pattern = rf"checkpoint-(\d+)\.{suffix}"
        matches = [re.fullmatch(pattern, path.name) for path in self._directory.glob("*")]
        return sorted(int(match[1]) for match in matches if match)


def _row_counts_name(number: int) -> str:
    return f"checkpoint-{number}.json"


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
