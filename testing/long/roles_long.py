"""A run on several processes of which each is killed once: `testing.chaos` in small."""

import json
import os
import signal

import pytest
from absl.testing import absltest

from testing.cluster import fleet_case

pytestmark = pytest.mark.long


class RolesTest(fleet_case.FleetCase):
    def test_each_role_may_die_and_the_run_ends_as_it_should(self):
        process = self.start("--config.run.env_frames=120000")
        self.wait(process, self.learns, "learning")
        for role in ("actor_00", "replay", "learner"):
            self.wait(process, self.is_saved, "a checkpoint")
            before = self.process_of(role)
            os.kill(before, signal.SIGKILL)

            def is_replaced(role=role, before=before) -> bool:
                return self.process_of(role) not in (0, before) and self.learns()

            self.wait(process, is_replaced, f"{role}'s return")
        output, errors = process.communicate(timeout=2 * fleet_case.SECONDS)
        self.assertEqual(process.returncode, 0, errors)
        summary = json.loads((self.workdir / "evaluation.json").read_text())
        self.assertGreaterEqual(summary["env_frames"], 120_000)
        self.assertGreater(summary["mean_return"], 0.8)
        self.assertIn("resumed at", self.log("learner"))
        for role in ("actor_00", "replay", "learner"):
            self.assertIn(f"{role}: its process has died", errors)
        self.assertNotIn("Traceback", output + errors)


if __name__ == "__main__":
    absltest.main()
