"""A game that a child process can make, to see how children live and die."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time


def _run_engine(pipe):
    pipe.send("ready")
    time.sleep(60)


class SmallWorker:
    def __init__(self, restarts, number=0, refuses_from=99, hangs_from=99):
        if restarts >= refuses_from:
            raise ValueError("no game\ntoday")
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

    def modules(self):
        return sorted(sys.modules)

    def wait(self, seconds=0.05):
        time.sleep(seconds)

    def fail(self):
        raise KeyError("lost")

    def hang(self):
        """As an engine in an endless loop: nothing but SIGKILL ends it."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(600)

    def end_engine(self, kind):
        """What an engine of its own, which would run for long, ends with once it is terminated."""
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

    def shout(self, size):
        """Prints so many bytes, and where they begin and end."""
        print(f"first words{'x' * size}last words", flush=True)

    def say(self, text):
        print(text, flush=True)

    def die(self):
        os._exit(3)

    def close(self):
        if self._number < 0:  # a game that hangs
            time.sleep(600)
