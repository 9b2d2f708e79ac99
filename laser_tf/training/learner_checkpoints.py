"""Checkpoints of the learner that survive damage, a full disk and weights that are not finite."""

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
from laser_tf.workdir import atomic, run_directory

KEPT = 3
_UNFINISHED = "unfinished"  # a folder for what is being written


class LearnerCheckpoints:
    """Numbered checkpoints of one `tf.Module`, newest last."""

    def __init__(self, folder: pathlib.Path, module: tf.Module):
        """Touches nothing yet."""
        self._folder = folder
        self._module = module
        self._checkpoint = tf.train.Checkpoint(learner=module)
        self._deletion_notice = failure_notice.FailureNotice("Deleted old checkpoints again")

    def save(self, number: int, row_counts: Mapping[str, int] | None = None) -> None:
        """Writes a checkpoint, then deletes those beyond the newest few.

        Args:
          number: Learner updates so far.
          row_counts: Number of rows in each log of the run, by file name.

        Raises:
          NonFiniteWeightsError: if a variable is not finite; nothing is written.
          WorkdirError: if it cannot be written; the older ones stay, and nothing of this one.
        """
        non_finite = self._find_non_finite()
        if non_finite:
            raise finiteness.NonFiniteWeightsError(
                f"{non_finite} is not finite after {number:,} updates: these weights are not "
                "saved, the checkpoints before them stay. The same command goes on from the "
                "newest; or start again with another --workdir and a lower learner.learning_rate"
            )
        unfinished = self._folder / _UNFINISHED
        try:
            # Of a process that was killed as it wrote: TensorFlow's own folder may be in there.
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir(parents=True, exist_ok=True)
            with _plain_name(unfinished) as plain:
                self._checkpoint.write(f"{plain}/checkpoint-{number}")
            (unfinished / _row_counts_name(number)).write_text(json.dumps(dict(row_counts or {})))
            self._move(unfinished, number)
        except (tf.errors.OpError, OSError) as error:
            raise run_directory.WorkdirError(
                f"cannot write a checkpoint in {self._folder}: {_describe(error)}; "
                "those before it are untouched"
            ) from None
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        self._delete_all_but_the_newest(number)

    def _find_non_finite(self) -> str | None:
        named = ((variable.name, variable) for variable in self._module.variables)
        return finiteness.find_non_finite(named)

    def _move(self, unfinished: pathlib.Path, number: int) -> None:
        for path in unfinished.iterdir():
            with path.open("rb") as file:
                atomic.sync(file.fileno())
        index = f"checkpoint-{number}.index"
        # It is there once its index is: removed first, moved last.
        (self._folder / index).unlink(missing_ok=True)
        for path in sorted(unfinished.iterdir(), key=lambda path: path.name == index):
            path.replace(self._folder / path.name)

    def _delete_all_but_the_newest(self, newest: int) -> None:
        numbers = self.numbers()
        # Those beyond could not be read when the run went on from one before them.
        kept = [number for number in numbers if number <= newest][-KEPT:]
        try:
            for old in {*numbers, *self._without_index()} - set(kept):
                for path in self._folder.glob(f"checkpoint-{old}.*"):
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
          Its number, or None where there is no checkpoint at all.

        Raises:
          WorkdirError: if there are checkpoints and none can be used.
        """
        numbers = self.numbers()
        for number in self._without_index():
            if number > max(numbers, default=-1):
                logging.warning(
                    "checkpoint-%d in %s has no index: it was not saved to the end, or "
                    "checkpoint-%d.index was deleted; using an older checkpoint if there is one",
                    number, self._folder, number,
                )  # fmt: skip
        for number in reversed(numbers):
            try:
                self._read(number)
                return number
            except Exception as error:  # damage shows as almost any error of TensorFlow's
                logging.warning(
                    "checkpoint-%d in %s cannot be used (%s); falling back to the one before it",
                    number, self._folder, _describe(error),
                )  # fmt: skip
        if numbers:
            raise run_directory.WorkdirError(
                f"none of the checkpoints in {self._folder} can be used: restore them from a "
                "backup, or start again with another --workdir"
            )
        return None

    def read_row_counts(self, number: int) -> dict[str, int]:
        """Returns the `row_counts` of a checkpoint; empty if they are missing or damaged."""
        path = self._folder / _row_counts_name(number)
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

    def _read(self, number: int) -> None:
        with _plain_name(self._folder) as plain:
            status = self._checkpoint.read(f"{plain}/checkpoint-{number}")
            status.assert_existing_objects_matched()
        non_finite = self._find_non_finite()
        if non_finite:
            raise finiteness.NonFiniteWeightsError(f"{non_finite} is not finite")

    def numbers(self) -> list[int]:
        """The numbers of the checkpoints that are there, ascending."""
        # Listed from the files themselves: a state file could be damaged too.
        return self._numbers_of("index")

    def _without_index(self) -> list[int]:
        return sorted(set(self._numbers_of(r"data-\d+-of-\d+")) - set(self.numbers()))

    def _numbers_of(self, suffix: str) -> list[int]:
        pattern = rf"checkpoint-(\d+)\.{suffix}"
        matches = [re.fullmatch(pattern, path.name) for path in self._folder.glob("*")]
        return sorted(int(match[1]) for match in matches if match)


def _row_counts_name(number: int) -> str:
    return f"checkpoint-{number}.json"


def _describe(error: Exception) -> str:
    return re.sub(r"/proc/self/fd/\d+/", "", errors.first_line(error))  # `_plain_name`'s


@contextlib.contextmanager
def _plain_name(folder: pathlib.Path) -> Iterator[str]:
    r"""A name without `[`, `*`, `?` and `\`: TensorFlow reads a path with them as a pattern."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
