"""A game that a child process can make, to see how children live and die."""

import os
import sys
import time


class SmallGame:
    def __init__(self, number=0, refuses=False):
        if refuses:
            raise ValueError("no game\ntoday")
        self._number = number

    def add(self, value):
        return self._number + value

    def process(self):
        return os.getpid()

    def modules(self):
        return sorted(sys.modules)

    def wait(self, seconds):
        time.sleep(seconds)

    def fail(self):
        raise KeyError("lost")

    def die(self):
        os._exit(3)

    def close(self):
        if self._number < 0:  # a game that hangs
            time.sleep(600)
