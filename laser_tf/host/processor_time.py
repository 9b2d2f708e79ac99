"""Processor time of this process, all its threads and the workers that it has launched."""

import contextlib
import time

import psutil

from laser_tf.host import process_launcher


def seconds() -> float:
    """Returns processor seconds, in user and system mode, of this process and running workers.

    Workers are processes started by `process_launcher`, with their descendants; their clock ticks
    every 10 ms. The sum shrinks when a worker ends.
    """
    total = time.process_time()
    for pid in process_launcher.launched():
        with contextlib.suppress(psutil.Error):  # It has just ended.
            worker = psutil.Process(pid)
            for process in (worker, *worker.children(recursive=True)):
                times = process.cpu_times()
                total += times.user + times.system
    return total
