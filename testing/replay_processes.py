"""Replay servers and writers in separate processes that tests stop and kill."""

import itertools
import os
import pathlib
import signal
from collections.abc import Callable
from multiprocessing import connection as pipes
from typing import Any

import numpy as np

from laser_tf.replay import connection, resilient_writer, server, stored_unroll
from laser_tf.replay.schemes import base
from testing import forks

_START_TIMEOUT_SECONDS = 120  # Of the first process on a busy machine.


def _serve(
    pipe: pipes.Connection,
    config: base.ReplayScheme,
    signature: Any,
    folder: pathlib.Path,
    port: int,
) -> None:
    replay = server.ReplayServer(config, signature, folder, port, is_external=True)
    pipe.send(replay.port)
    while pipe.recv() == "checkpoint":
        replay.checkpoint()
        pipe.send("done")


class _Process:
    """A process that a test can stop and kill."""

    def __init__(self, target: Callable[..., None], *arguments: Any):
        context = forks.context()
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=target, args=(theirs, *arguments), daemon=True)
        self._process.start()

    def _receive(self) -> Any:
        if not self._pipe.poll(_START_TIMEOUT_SECONDS):
            raise TimeoutError("the process sends nothing")
        return self._pipe.recv()

    def freeze(self) -> None:
        """Stops the process, which keeps its connections."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Continues the process."""
        os.kill(self._process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Kills the process."""
        self._process.kill()
        self._process.join()


class ReplayProcess(_Process):
    """A process with a replay server."""

    def __init__(
        self,
        config: base.ReplayScheme,
        signature: Any,
        folder: pathlib.Path,
        port: int = 0,
    ):
        """Starts the server, from a checkpoint in `folder` if any, and waits for it."""
        super().__init__(_serve, config, signature, folder, port)
        self.port = self._receive()
        self.address = f"localhost:{self.port}"

    def checkpoint(self) -> None:
        """Saves a checkpoint."""
        self._pipe.send("checkpoint")
        self._receive()


def _keep_writing(
    pipe: pipes.Connection, address: str, config: base.ReplayScheme, signature: Any
) -> None:
    replay = connection.ReplayConnection(address, config)
    target = resilient_writer.UnrollStream(replay, config.unroll_tables(base.QUEUE))
    unroll = stored_unroll.blank(signature)
    for number in itertools.count():
        target.write([unroll._replace(number=np.int64(number))], lambda: False)
        target.wait(lambda: False)
        if number == 0:
            pipe.send("writing")


class WriterProcess(_Process):
    """A process with actor 0, which writes padding unrolls as fast as it can."""

    def __init__(self, address: str, config: base.ReplayScheme, signature: Any):
        """Starts the actor; returns when it writes."""
        super().__init__(_keep_writing, address, config, signature)
        self._receive()
