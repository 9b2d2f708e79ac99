"""Where members meet: who is heard, what they are told, and what a population decides."""

import dataclasses
import math
import pathlib
import tempfile
import time
from collections.abc import Callable
from unittest import mock

import numpy as np
from absl.testing import absltest

from configs import sweeps
from laser_tf.sweeps import coordinator, lineage, sweep_config, weight_store
from laser_tf.workdir import atomic
from testing import messages

TUNED = {"learner.learning_rate": 1e-3, "agent.entropy_cost": 1e-2, "learner.rmsprop_epsilon": 0.1}


def _weights(name: str) -> dict[str, np.ndarray]:
    """Tells whose they are."""
    return {"member/weights": np.frombuffer(name.encode(), np.uint8)}


class CoordinatorTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)
        values = sweeps.get_config("catch").to_dict()
        values["population"] = {"method": "pbt", "ready_env_frames": 100}
        self._config = sweep_config.parse(values)
        self._coordinator = self._open()

    def _open(self, clock: Callable[[], float] = time.monotonic) -> coordinator.Coordinator:
        return coordinator.Coordinator(self._config, self._folder, clock)

    def _join(self, name: str) -> None:
        self._coordinator.join(name, f"of {name}")

    def _leave(self, name: str, finished: bool) -> None:
        self._coordinator.leave(name, f"of {name}", finished)

    def _report(self, name: str, env_frames: int, fitness: float = math.nan) -> float:
        return self._coordinator.report(name, f"of {name}", env_frames, 1.5, fitness)

    def _decide(self, name: str, env_frames: int, fitness: float) -> coordinator.Decision:
        return self._coordinator.decide(
            name, f"of {name}", env_frames, fitness, TUNED, _weights(name)
        )

    def _resume(self, name: str, env_frames: int) -> coordinator.CatchUp:
        return self._coordinator.resume(name, f"of {name}", env_frames)

    def _introduce_all(self) -> None:
        for name in self._config.members:
            self._join(name)
            self._decide(name, 0, math.nan)

    def _assert_weights(self, given: coordinator.Weights | None, name: str) -> None:
        self.assertIsNotNone(given)
        np.testing.assert_array_equal(given["member/weights"], _weights(name)["member/weights"])

    def test_a_process_that_was_replaced_is_refused_whatever_it_says(self):
        self._join("member_00")
        self._report("member_00", 50)
        self._coordinator.join("member_00", "newer")
        for call in (
            lambda: self._report("member_00", 60),
            lambda: self._resume("member_00", 60),
            lambda: self._decide("member_00", 60, 0.5),
            lambda: self._leave("member_00", True),
        ):
            with messages.raises(coordinator.StaleError, "member_00"):
                call()
        status = self._coordinator.status()
        self.assertEqual(status["member_00"]["env_frames"], 50)
        self.assertFalse(status["member_00"]["finished"])
        self._coordinator.report("member_00", "newer", 40, 1.5, math.nan)

    def test_a_process_that_has_died_is_refused_until_there_is_another(self):
        self._join("member_00")
        self._coordinator.mark_dead("member_00")
        with self.assertRaises(coordinator.StaleError):
            self._report("member_00", 60)
        self._join("member_00")
        self._report("member_00", 60)

    def test_a_coordinator_that_was_restarted_takes_those_who_go_on(self):
        for name in self._config.members:
            self._join(name)
            self._report(name, 100)
        self._coordinator = self._open()
        for name in self._config.members:
            self._report(name, 120)
        with self.assertRaises(coordinator.StaleError):  # who came first is the member
            self._coordinator.report("member_00", "older", 110, 1.5, math.nan)
        lead = self._config.sweep.max_lead_env_frames
        self.assertEqual(self._report("member_01", 130), 120 + lead)

    def test_who_says_again_that_it_leaves_is_heard(self):
        self._join("member_00")
        self._leave("member_00", True)
        self._leave("member_00", True)
        self.assertTrue(self._coordinator.status()["member_00"]["finished"])

    def test_who_has_finished_is_known_to_the_next_coordinator_too(self):
        budget = self._config.first.run.env_frames
        for name in ("member_00", "member_01"):
            self._join(name)
            self._report(name, budget - 1)
        self._leave("member_00", True)
        self._leave("member_01", False)
        for _ in range(2):
            status = self._coordinator.status()
            self.assertEqual([status[name]["finished"] for name in status], [True] + 3 * [False])
            self.assertEqual(status["member_00"]["env_frames"], budget)
            self._coordinator = self._open()

    def test_nobody_waits_for_who_finished_before_the_coordinator_began(self):
        self._join("member_00")
        self._leave("member_00", True)
        self._coordinator = self._open(clock=lambda: 0.0)
        for name in ("member_01", "member_02", "member_03"):
            self._join(name)
            self._report(name, 0)
            self._report(name, 700)
        lead = self._config.sweep.max_lead_env_frames
        self.assertEqual(self._report("member_01", 700), 700 + lead)

    def test_agents_keep_pace(self):
        for name in self._config.members:
            self._join(name)
            self._report(name, 0)
        lead = self._config.sweep.max_lead_env_frames
        self.assertEqual(self._report("member_01", 500), lead)
        for name in ("member_00", "member_02"):
            self._report(name, 600)
        self.assertEqual(self._report("member_03", 400), 400 + lead)
        self._leave("member_03", False)
        self.assertEqual(self._report("member_01", 510), 510 + lead)

    def test_status_shows_what_was_reported(self):
        self._join("member_00")
        self._report("member_00", 120)
        status = self._coordinator.status()
        self.assertEqual(status["member_00"]["env_frames"], 120)
        self.assertEqual(status["member_00"]["mean_return"], 1.5)
        self.assertEqual(status["member_01"], {"finished": False})

    def test_the_worst_becomes_a_copy_of_the_best(self):
        for name in self._config.members:
            self._join(name)
            self.assertEqual(self._resume(name, 0).next_ready, 0)
            self.assertEqual(self._decide(name, 0, math.nan).next_ready, 100)
        self.assertIsNone(self._decide("member_03", 100, 0.9).parent)
        self._coordinator = self._open()  # it comes back with what it had
        self._join("member_00")
        self.assertEqual(self._resume("member_00", 90).next_ready, 100)
        answer = self._decide("member_00", 105, -0.5)
        self.assertEqual(answer.parent, "member_03")
        self._assert_weights(answer.weights, "member_03")
        self.assertEqual(answer.next_ready, 200)
        for key, value in answer.hyperparameters.items():
            factor = value / TUNED[key]
            self.assertTrue(abs(factor - 1.2) < 1e-6 or abs(factor - 1 / 1.2) < 1e-6)

    def test_agents_are_ranked_by_what_they_report_between_decisions(self):
        self._introduce_all()
        for name in self._config.members:
            self.assertIsNone(self._decide(name, 100, 0.1).parent)
        self._decide("member_03", 200, 0.9)
        self.assertIsNone(self._decide("member_00", 200, 0.2).parent)
        for name in ("member_01", "member_02"):
            self._report(name, 199, fitness=0.5)
        self.assertEqual(self._decide("member_00", 300, 0.3).parent, "member_03")

    def test_what_an_agent_has_missed_is_told_again_until_it_is_past_it(self):
        self._introduce_all()
        self._decide("member_03", 100, 0.9)
        decided = self._decide("member_00", 105, -0.5)
        self._decide("member_03", 205, 0.9)  # the parent's weights go on meanwhile
        self._coordinator = self._open()
        self._join("member_00")
        for env_frames in (105, 40, 40):
            answer = self._resume("member_00", env_frames)
            self._assert_weights(answer.weights, "member_03")
            self.assertEqual(answer.hyperparameters, decided.hyperparameters)
            self.assertEqual(answer.next_ready, 200)
            self.assertEqual(answer.copied, 105)
        past = self._resume("member_00", 106)
        self.assertEqual(past, coordinator.CatchUp(200, 105, {}, None))
        self._decide("member_00", 210, 2.0)  # what is kept of it now is what it has trained since
        later = self._resume("member_00", 106)
        self.assertIsNone(later.weights)
        self.assertEqual(later.hyperparameters, TUNED)
        # Killed, it goes on from the checkpoint of its copy, not with weights of 210 frames.
        self.assertIsNone(self._resume("member_00", 105).weights)

    def test_without_a_population_nothing_was_missed(self):
        none = dataclasses.replace(self._config.population, method="none")
        self._config = dataclasses.replace(self._config, population=none)
        self._coordinator = self._open()
        self._join("member_00")
        answer = self._resume("member_00", 0)
        self.assertEqual(answer, coordinator.CatchUp(None, -1, {}, None))

    def test_who_copies_a_copy_gets_weights_and_values_that_belong_together(self):
        impala = dataclasses.replace(
            self._config.population, truncation_fraction=1.0, perturbation_factors=(2.0,)
        )
        self._config = dataclasses.replace(self._config, population=impala)
        self._coordinator = self._open()
        for name in ("member_00", "member_01"):
            self._join(name)
            self._decide(name, 0, math.nan)
        self._decide("member_00", 100, 0.9)
        self.assertEqual(self._decide("member_01", 100, 0.5).parent, "member_00")
        self._join("member_02")
        self._decide("member_02", 0, math.nan)
        self._decide("member_00", 200, math.nan)  # nobody copies it any more
        answer = self._decide("member_02", 100, 0.1)
        self.assertEqual(answer.parent, "member_01")
        self._assert_weights(answer.weights, "member_00")
        for key, value in answer.hyperparameters.items():
            self.assertAlmostEqual(value / TUNED[key], 4.0)

    def test_a_full_disk_puts_a_decision_off(self):
        self._introduce_all()
        self._decide("member_03", 100, 0.9)
        full = OSError(28, "No space left on device")
        for failing in (
            mock.patch.object(atomic, "write", side_effect=full),
            mock.patch.object(lineage.Lineage, "append", side_effect=full),
        ):
            with failing, self.assertLogs(level="WARNING") as logs:
                answer = self._decide("member_00", 105, -0.5)
            messages.assert_names(logs.output[0], "member_00", "No space left")
            self.assertEqual(answer, coordinator.Decision(None, {}, 115, None))
            self.assertEqual(self._resume("member_00", 0).copied, -1)
        self.assertEqual(self._decide("member_00", 115, -0.5).parent, "member_03")

    def test_a_full_disk_keeps_nobody_from_leaving(self):
        self._introduce_all()
        full = OSError(28, "No space left on device")
        with (
            mock.patch.object(pathlib.Path, "touch", side_effect=full),
            self.assertLogs(level="WARNING") as logs,
        ):
            self._leave("member_00", True)
        messages.assert_names(logs.output[0], "member_00", "No space left")
        with self.assertRaises(coordinator.StaleError):  # it has left
            self._report("member_00", 60)

    def test_weights_that_are_gone_or_damaged_are_named(self):
        self._introduce_all()
        self._decide("member_03", 100, 0.9)
        self._decide("member_00", 105, -0.5)
        path = self._folder / "population/member_00.npz"
        for damage in (lambda: path.write_bytes(path.read_bytes()[:-9]), path.unlink):
            damage()
            with messages.raises(weight_store.UnreadableError, path):
                self._resume("member_00", 105)

    def test_nobody_becomes_a_copy_of_damaged_weights(self):
        self._introduce_all()
        self._decide("member_03", 100, 0.9)
        (self._folder / "population/member_03.npz").write_bytes(b"damaged")
        with self.assertLogs(level="WARNING") as logs:
            answer = self._decide("member_00", 105, -0.5)
        messages.assert_names(logs.output[0], "member_00", "member_03.npz")
        self.assertEqual(answer, coordinator.Decision(None, {}, 115, None))
        self.assertEqual(self._resume("member_00", 105).copied, -1)


if __name__ == "__main__":
    absltest.main()
