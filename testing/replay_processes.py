"""Replay servers in processes of their own, to be stopped and killed."""

import multiprocessing
import os
import pathlib
import signal
import time
from multiprocessing import connection as pipes
from typing import Any

from laser_tf.replay import replay_config, server

# A fork of a process that has imported all, but started nothing: a server is there at once.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__])
_START_SECONDS = 120  # of the first one on a busy machine


def _serve(
    pipe: pipes.Connection,
    config: replay_config.ReplayConfig,
    signature: Any,
    folder: pathlib.Path,
    port: int,
) -> None:
    replay = server.EmbeddedReplay(config, signature, folder, port)
    pipe.send(replay.port)
    while pipe.recv() == "checkpoint":
        replay.checkpoint()
        pipe.send("done")


class ReplayProcess:
    """A replay server that a test may kill."""

    def __init__(
        self,
        config: replay_config.ReplayConfig,
        signature: Any,
        folder: pathlib.Path,
        port: int = 0,
    ):
        """Starts it, from the checkpoint in a folder if one is there, and waits until it serves."""
        self._pipe, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(
            target=_serve, args=(theirs, config, signature, folder, port), daemon=True
        )
        self._process.start()
        self.port = self._receive()
        self.address = f"localhost:{self.port}"

    def _receive(self) -> Any:
        if not self._pipe.poll(_START_SECONDS):
            raise TimeoutError("the server's process says nothing")
        return self._pipe.recv()

    def checkpoint(self) -> None:
        """Has it saved."""
        self._pipe.send("checkpoint")
        self._receive()

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


def wait_until(condition: Any, seconds: float = 60.0) -> None:
    """Raises TimeoutError unless a condition comes true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("it did not come true")
        time.sleep(0.05)
