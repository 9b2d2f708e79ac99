"""An evaluator beside the training of a run on one machine: in a process of its own.

A thread would be cheaper to start, but the one interpreter is what limits a run in one process:
each Python step of an evaluation would come out of the actor's and the learner's. A process costs
some 300 MB and some seconds of start, runs at a lower priority on what cores the run leaves idle,
needs no share of the GPU, and may crash.

Few imports: the child that makes an evaluator lowers its priority before it loads TensorFlow.
"""

import contextlib
import dataclasses
import functools
import os
import pathlib
import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from laser_tf.environments import worker_pool
from laser_tf.training import run_config

if TYPE_CHECKING:
    import numpy as np

    from laser_tf.evaluation import continuous_evaluator

_NICENESS = 10  # a tenth of the time of a core that the run wants, too, and all of an idle one
_PATIENCE = 10.0  # seconds for a thread whose process was killed

_Outcome = Mapping[str, Any] | worker_pool.Failure


@contextlib.contextmanager
def beside(
    config: run_config.RunConfig, workdir: pathlib.Path
) -> Iterator["EvaluatorProcess | None"]:
    """The evaluator that a run asks for, until its training has ended; None where it asks for none.

    Args:
      config: of the run.
      workdir: its folder, which gets the tracebacks of environments that fail.
    """
    if not config.run.evaluate_every_env_frames:
        yield None
        return
    with contextlib.closing(EvaluatorProcess(config, workdir)) as evaluator:
        yield evaluator


class EvaluatorProcess:
    """A `training.evaluations.Evaluator`: a process that plays, and a thread that talks to it.

    The thread is there so that nobody waits for the process: not when it starts, not when it takes
    weights, and not when it is stopped by a signal.
    """

    def __init__(self, config: run_config.RunConfig, workdir: pathlib.Path):
        """Begins to start the process; see `beside`."""
        # As plain values: what a section may hold need not be something that can be pickled.
        self._factory = functools.partial(_make, dataclasses.asdict(config), workdir)
        self._attempts = 0
        self._lock = threading.Lock()  # of the two that follow
        self._process: worker_pool.WorkerProcess | None = None
        self._is_closed = False
        self._requests: queue.SimpleQueue[tuple | None] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[_Outcome] = queue.SimpleQueue()
        # The process ends with the thread that started it: this one stays until `close`.
        self._thread = threading.Thread(target=self._serve, name="evaluator", daemon=True)
        self._thread.start()

    def begin(self, weights: Sequence["np.ndarray"], env_frames: int, learner_updates: int) -> None:
        """Has weights play; see `continuous_evaluator.ContinuousEvaluator.evaluate`."""
        self._requests.put((weights, env_frames, learner_updates))

    def result(self) -> _Outcome | None:
        """What came of the oldest `begin` that it was not told of; None while it is under way."""
        try:
            return self._outcomes.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        """Ends the process at once, whatever it is at."""
        with self._lock:
            self._is_closed = True
            if self._process:
                self._process.end(0.0)
        self._requests.put(None)
        self._thread.join(_PATIENCE)

    def _serve(self) -> None:
        failure = self._start()  # before the first weights come
        while request := self._requests.get():
            failure = failure or self._ready()
            self._outcomes.put(failure or self._call(request))
            failure = None

    def _ready(self) -> worker_pool.Failure | None:
        return None if self._process else self._start()

    def _start(self) -> worker_pool.Failure | None:
        """Starts a process; returns why there is none."""
        with self._lock:
            if self._is_closed:
                return worker_pool.Failure("it is closed")
            factory = functools.partial(self._factory, self._attempts)
            self._attempts += 1
            self._process = process = worker_pool.WorkerProcess(factory)
        return self._answer(process)

    def _call(self, request: tuple) -> _Outcome:
        process = self._process
        assert process  # what `_ready` has just seen to
        process.send(("evaluate", *request))
        return self._answer(process)

    def _answer(self, process: worker_pool.WorkerProcess) -> Any:
        """What the process answers; one that failed is ended, another one follows it."""
        answer = process.receive()
        if isinstance(answer, worker_pool.Failure):
            with self._lock:
                process.pipe.close()
                process.end(0.0)
                self._process = None
        return answer


def _make(
    values: Mapping[str, Mapping[str, Any]], workdir: pathlib.Path, attempt: int, _: int
) -> "continuous_evaluator.ContinuousEvaluator":
    """Makes an evaluator in the child's process, on the CPU and with one thread to compute."""
    os.nice(_NICENESS)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # TensorFlow would take all memory of a GPU it sees
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    from laser_tf.evaluation import continuous_evaluator

    config = run_config.parse(values)
    return continuous_evaluator.ContinuousEvaluator(config, attempt=attempt, fault_folder=workdir)
