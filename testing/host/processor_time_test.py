"""Processor time includes threads and workers."""

import os
import sys
import threading
import time

from absl.testing import absltest

from laser_tf.host import process_launcher, processor_time
from testing import folders

_SPIN = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ntime.sleep(1000)"


class ProcessorTimeTest(folders.FolderTest):
    def test_work_of_threads_counts(self):
        def spin():
            end = time.thread_time() + 0.1
            while time.thread_time() < end:
                pass

        start = processor_time.seconds()
        thread = threading.Thread(target=spin)
        thread.start()
        thread.join()
        self.assertGreaterEqual(processor_time.seconds() - start, 0.1)

    def test_work_of_a_worker_and_its_child_counts(self):
        # The worker is the parent of the process that works.
        child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_SPIN!r}])"
        output = self._folder / "output"
        with output.open("wb") as file:
            worker = process_launcher.LaunchedProcess(
                [sys.executable, "-c", child], dict(os.environ), [file.fileno()]
            )
        own, total = time.process_time(), processor_time.seconds()
        while not output.stat().st_size:
            time.sleep(0.02)
        elsewhere = processor_time.seconds() - total - (time.process_time() - own)
        self.assertBetween(elsewhere, 0.2, 2.0)
        worker.end(0)
        self.assertNotIn(worker.pid, process_launcher.launched())


if __name__ == "__main__":
    absltest.main()
