"""Evaluations during the training of a run in one process, in a second process.

A thread would start faster, but the interpreter's lock limits a run in one process: each Python
step of an evaluation would delay the actor and the learner. A process costs some 300 MB and some
seconds of start, runs at a lower priority, needs no share of the GPU, and can crash.

The imports are few, since the child lowers its priority before it loads TensorFlow.
"""

import contextlib
import dataclasses
import functools
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent import futures
from typing import TYPE_CHECKING, Any

from laser_tf import errors
from laser_tf.environments import worker_pool
from laser_tf.host import hardware, quick_import
from laser_tf.training import run_config

if TYPE_CHECKING:
    import numpy as np

    from laser_tf.evaluation import evaluator

_NICENESS = 10

_Outcome = Mapping[str, Any] | worker_pool.Failure


@contextlib.contextmanager
def maybe_start(
    config: run_config.RunConfig, workdir: pathlib.Path, env_frames: int
) -> Iterator["EvaluatorProcess | None"]:
    """Yields the evaluator of a run with periodic evaluations, otherwise None; closes it.

    For `env_frames` see `evaluator.Evaluator.during_training`.
    """
    if not config.run.evaluate_every_env_frames:
        yield None
        return
    with contextlib.closing(EvaluatorProcess(config, workdir, env_frames)) as evaluator:
        yield evaluator


class EvaluatorProcess:
    """A `training.evaluations.Evaluator` whose calls do not wait for the process.

    A thread sends the weights and receives the result. A process that failed is restarted for the
    next evaluation.
    """

    def __init__(self, config: run_config.RunConfig, workdir: pathlib.Path, env_frames: int = 0):
        """Starts the process; `workdir` gets the tracebacks of failed environments."""
        # Plain values, since sections can hold objects that cannot be pickled.
        factory = functools.partial(_make, dataclasses.asdict(config), workdir, env_frames)
        self._process = worker_pool.WorkerProcess(factory)
        self._has_failed = False
        self._thread = futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="evaluator")
        self._outcome: futures.Future[_Outcome] | None = None

    def begin(self, weights: Sequence["np.ndarray"], env_frames: int, learner_updates: int) -> None:
        """Starts an evaluation; see `evaluator.Evaluator.evaluate`."""
        if self._has_failed:
            try:
                self._process.restart()
            except OSError as error:  # E.g. too little memory for a process.
                self._outcome = futures.Future()
                self._outcome.set_result(worker_pool.Failure(errors.one_line(error)))
                return
        request = ("evaluate", weights, env_frames, learner_updates)
        self._outcome = self._thread.submit(self._call, request)

    def result(self) -> _Outcome | None:
        """Returns the summary of the evaluation, or its failure, once; None while it is running."""
        if self._outcome is None or not self._outcome.done():
            return None
        outcome, self._outcome = self._outcome.result(), None
        self._has_failed = isinstance(outcome, worker_pool.Failure)
        return outcome

    def close(self) -> None:
        """Ends the process immediately."""
        self._process.end(0.0)
        self._thread.shutdown()

    def _call(self, request: tuple) -> _Outcome:
        # The first answer of a process is None if its evaluator exists.
        if self._process.is_starting and (failure := self._process.receive()):
            return failure
        self._process.is_starting = False
        self._process.send(request)
        return self._process.receive()


def _make(
    values: Mapping[str, Mapping[str, Any]], workdir: pathlib.Path, env_frames: int, attempt: int
) -> "evaluator.Evaluator":
    """Creates an evaluator in the child process, on the CPU and with one compute thread."""
    os.nice(_NICENESS)
    hardware.hide_gpus()
    quick_import.install()
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    from laser_tf.evaluation import evaluator

    return evaluator.Evaluator.during_training(
        run_config.parse(values),
        evaluator_id=attempt,
        env_frames=env_frames,
        traceback_directory=workdir,
    )
