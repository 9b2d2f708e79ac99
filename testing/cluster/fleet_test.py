"""A run on several processes whose driver is killed, and the head of Ray with it."""

import os
import pathlib
import signal
import subprocess

from absl.testing import absltest

from testing.cluster import fleet_case


class FleetTest(fleet_case.FleetCase):
    def test_a_run_goes_on_without_its_driver_and_ends_when_it_is_told(self):
        process = self.start()
        self.wait(process, lambda: self.learns() and self.is_saved(), "learning")
        drivers = subprocess.run(
            ["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True
        ).stdout.split()
        learner = self.process_of("learner")
        # Ray's workers would let every other program of the machine go first.
        own = os.getpriority(os.PRIO_PROCESS, 0)
        self.assertEqual(self._most_niceness("learner"), own)
        actors = min(own + 10, 19)  # the most that there is
        self.wait(process, lambda: self._most_niceness("actor_00") == actors, "a nice actor")
        os.kill(int(drivers[0]), signal.SIGKILL)
        self.wait(
            process,
            lambda: self.process_of("learner") not in (0, learner) and self.learns(),
            "another driver's learner",
        )
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=fleet_case.SECONDS)
        self.assertEqual(process.returncode, -signal.SIGTERM, errors)
        self.assertIn("it is started again", errors)
        self.assertIn("stopped and saved; the same command resumes", errors)
        self.assertRegex(self.log("learner"), "resumed at [0-9,]+ frames")

    def _most_niceness(self, role: str) -> int | None:
        """Of its threads; None where the process is not known or gone."""
        process = self.process_of(role)
        try:
            threads = [int(path.name) for path in pathlib.Path(f"/proc/{process}/task").iterdir()]
            return max(os.getpriority(os.PRIO_PROCESS, thread) for thread in threads)
        except (FileNotFoundError, ProcessLookupError):
            return None


if __name__ == "__main__":
    absltest.main()
