"""Output of worker processes, copied to the standard error stream up to a limit."""

import contextlib
import os
import threading

MAX_BYTES = 2**20  # of each worker, its restarts included
TAIL_BYTES = 8 * 2**10  # of each process

_STANDARD_ERROR = 2  # A command's standard output may be JSON.
_CHUNK_BYTES = 2**16
_DRAIN_TIMEOUT_SECONDS = 2.0


class WorkerOutput:
    """Copies the output of one worker to the standard error stream.

    Output beyond `MAX_BYTES` is dropped. The last `TAIL_BYTES` of what a process wrote beyond the
    limit are copied when the process ends, so that the last messages of a crash stay visible.
    """

    def __init__(self):
        self._left = MAX_BYTES
        self._thread: threading.Thread | None = None

    def open(self) -> int:
        """Opens a pipe for a new process and returns its write end.

        A thread reads the pipe until all copies of the write end are closed.
        """
        source, sink = os.pipe()
        self._thread = threading.Thread(
            target=self._copy, args=(source,), name="worker output", daemon=True
        )
        self._thread.start()
        return sink

    def drain(self) -> None:
        """Waits until the output of a process that has ended is copied.

        The wait is short, because a process outside the worker's group may hold the pipe open.
        """
        if self._thread is not None:
            self._thread.join(_DRAIN_TIMEOUT_SECONDS)

    def _copy(self, source: int) -> None:
        tail, dropped = b"", 0
        with open(source, "rb", buffering=0) as pipe:
            while chunk := pipe.read(_CHUNK_BYTES):
                shown, rest = chunk[: self._left], chunk[self._left :]
                self._left -= len(shown)
                _write(shown)
                if rest and not dropped:
                    _write(
                        b"\n[a worker has printed more than %d bytes: the last %d bytes follow "
                        b"when its process ends]\n" % (MAX_BYTES, TAIL_BYTES)
                    )
                tail = (tail + rest)[-TAIL_BYTES:]
                dropped += len(rest)
        if dropped:
            _write(b"\n[%d bytes of a worker's output are left out]\n" % (dropped - len(tail)))
            _write(tail)


def _write(data: bytes) -> None:
    with contextlib.suppress(OSError):  # E.g. a full disk, which must not block the worker.
        while data:
            data = data[os.write(_STANDARD_ERROR, data) :]
