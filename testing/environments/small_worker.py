"""An object for worker processes that fails on request."""

import multiprocessing
import os
import signal
import subprocess
import time


def _run_engine(pipe):
    pipe.send("ready")
    time.sleep(60)


class SmallWorker:
    def __init__(self, restarts, number=0, refuses_from=99, hangs_from=99):
        if restarts >= refuses_from:
            raise ValueError("no level\ntoday")
        if restarts >= hangs_from:
            time.sleep(600)
        self._number = number
        self._restarts = restarts

    def add(self, value):
        return self._number + value

    def restarts(self):
        return self._restarts

    def process(self):
        return os.getpid()

    def wait(self, seconds=0.05):
        time.sleep(seconds)

    def fail(self):
        raise KeyError("lost")

    def hang(self):
        """Blocks until SIGKILL."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(600)

    def end_engine(self, kind):
        """Returns the exit code of an engine that this worker terminates."""
        if kind == "command":
            engine = subprocess.Popen(["sleep", "60"])
            engine.terminate()
            return engine.wait()
        context = multiprocessing.get_context(kind)
        ours, theirs = context.Pipe()
        engine = context.Process(target=_run_engine, args=(theirs,))
        engine.start()
        ours.recv()
        engine.terminate()
        engine.join()
        return engine.exitcode

    def start_engine(self):
        """Starts an engine and returns its process id."""
        return subprocess.Popen(["sleep", "1000"]).pid

    def say(self, text):
        print(text, flush=True)

    def die(self):
        os._exit(3)

    def close(self):
        if self._number < 0:  # A worker that hangs.
            time.sleep(600)
