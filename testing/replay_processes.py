"""Replay servers in processes of their own, to be stopped and killed."""

import itertools
import multiprocessing
import os
import pathlib
import signal
import time
from collections.abc import Callable
from multiprocessing import connection as pipes
from typing import Any

import numpy as np

from laser_tf.replay import connection, lease, server, stored_unroll, writers
from laser_tf.replay.schemes import base

# A fork of a process that has imported all, but started nothing: a server is there at once.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__])
_START_SECONDS = 120  # of the first one on a busy machine


def _serve(
    pipe: pipes.Connection,
    config: base.ReplayScheme,
    signature: Any,
    folder: pathlib.Path,
    port: int,
) -> None:
    replay = server.ReplayServer(
        config, signature, folder, port,
        more_tables=lambda: [lease.make_table(base.QUEUE)],
    )  # fmt: skip
    pipe.send(replay.port)
    while pipe.recv() == "checkpoint":
        replay.checkpoint()
        pipe.send("done")


class _Process:
    """One that a test may stop and kill."""

    def __init__(self, target: Callable[..., None], *arguments: Any):
        self._pipe, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=target, args=(theirs, *arguments), daemon=True)
        self._process.start()

    def _receive(self) -> Any:
        if not self._pipe.poll(_START_SECONDS):
            raise TimeoutError("the process says nothing")
        return self._pipe.recv()

    def freeze(self) -> None:
        """Stops the process; whoever is connected to it stays so."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Has it go on."""
        os.kill(self._process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Kills it."""
        self._process.kill()
        self._process.join()


class ReplayProcess(_Process):
    """A replay server."""

    def __init__(
        self,
        config: base.ReplayScheme,
        signature: Any,
        folder: pathlib.Path,
        port: int = 0,
    ):
        """Starts it, from the checkpoint in a folder if one is there, and waits until it serves."""
        super().__init__(_serve, config, signature, folder, port)
        self.port = self._receive()
        self.address = f"localhost:{self.port}"

    def checkpoint(self) -> None:
        """Has it saved."""
        self._pipe.send("checkpoint")
        self._receive()


def _keep_writing(
    pipe: pipes.Connection, address: str, config: base.ReplayScheme, signature: Any
) -> None:
    replay = connection.ReplayConnection(address, config)
    target = writers.UnrollStream(replay, config.unroll_tables(base.QUEUE))
    unroll = stored_unroll.blank(signature)
    for number in itertools.count():
        target.write([unroll._replace(number=np.int64(number))], lambda: False)
        target.wait(lambda: False)
        if number == 0:
            pipe.send("writing")


class WriterProcess(_Process):
    """An actor, number 0, that writes blank unrolls as fast as it can."""

    def __init__(self, address: str, config: base.ReplayScheme, signature: Any):
        """Starts it and waits until it writes."""
        super().__init__(_keep_writing, address, config, signature)
        self._receive()


def wait_until(condition: Callable[[], Any], seconds: float = 60.0) -> None:
    """Raises TimeoutError unless a condition comes true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("it did not come true")
        time.sleep(0.05)
