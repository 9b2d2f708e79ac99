"""The coordinator: equal speed, decisions of a population, restarts and damaged files."""

import dataclasses
import io
import math
import time
from collections.abc import Callable
from unittest import mock

import numpy as np
from absl.testing import absltest

from configs import sweeps
from laser_tf import errors
from laser_tf.sweeps import coordinator, lineage, sweep_config
from laser_tf.workdir import atomic
from testing import folders, messages

TUNED = {"learner.learning_rate": 1e-3, "agent.entropy_cost": 1e-2, "learner.rmsprop_epsilon": 0.1}


def _weights(name: str) -> dict[str, np.ndarray]:
    return {"member/weights": np.frombuffer(name.encode(), np.uint8)}


class CoordinatorTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        values = sweeps.get_config("catch").to_dict()
        values["population"] = {"method": "pbt", "ready_env_frames": 100}
        self._config = sweep_config.parse(values)
        self._coordinator = self._open()

    def _open(self, clock: Callable[[], float] = time.monotonic) -> coordinator.Coordinator:
        return coordinator.Coordinator(self._config, self._folder, clock)

    def _report(self, name: str, env_frames: int, fitness: float = math.nan) -> float:
        return self._coordinator.report(name, env_frames, 1.5, fitness)

    def _decide(self, name: str, env_frames: int, fitness: float) -> coordinator.Decision:
        return self._coordinator.decide(name, env_frames, fitness, TUNED, _weights(name))

    def _introduce_all(self) -> None:
        for name in self._config.members:
            self._coordinator.join(name)
            self._decide(name, 0, math.nan)

    def _assert_weights(self, given: coordinator.Weights | None, name: str) -> None:
        self.assertIsNotNone(given)
        np.testing.assert_array_equal(given["member/weights"], _weights(name)["member/weights"])

    def test_restarted_coordinator_continues_with_new_reports(self):
        for name in self._config.members:
            self._coordinator.join(name)
            self._report(name, 100)
        self._coordinator = self._open()
        for name in self._config.members:
            self._report(name, 120)
        lead = self._config.sweep.max_lead_env_frames
        self.assertEqual(self._report("member_01", 130), 120 + lead)

    def test_next_coordinator_does_not_wait_for_finished_members(self):
        budget = self._config.first.run.env_frames
        for _ in range(2):  # Ray may repeat a call.
            self._coordinator.finish("member_00")
        self._coordinator = self._open(clock=lambda: 0.0)
        status = self._coordinator.status()
        self.assertEqual([status[name]["finished"] for name in status], [True] + 3 * [False])
        self.assertEqual(status["member_00"]["env_frames"], budget)
        for name in ("member_01", "member_02", "member_03"):
            self._coordinator.join(name)
            self._report(name, 0)
            self._report(name, 700)
        lead = self._config.sweep.max_lead_env_frames
        self.assertEqual(self._report("member_01", 700), 700 + lead)

    def test_status_has_the_last_report(self):
        self._coordinator.join("member_00")
        self._report("member_00", 120)
        status = self._coordinator.status()
        self.assertEqual(status["member_00"]["env_frames"], 120)
        self.assertEqual(status["member_00"]["mean_return"], 1.5)
        self.assertEqual(status["member_01"], {"finished": False})

    def test_worst_member_copies_the_best(self):
        for name in self._config.members:
            self._coordinator.join(name)
            self.assertEqual(self._coordinator.resume(name, 0).next_decision_at, 0)
            self.assertEqual(self._decide(name, 0, math.nan).next_decision_at, 100)
        self.assertIsNone(self._decide("member_03", 100, 0.9).parent)
        self._coordinator = self._open()
        self._coordinator.join("member_00")
        self.assertEqual(self._coordinator.resume("member_00", 90).next_decision_at, 100)
        answer = self._decide("member_00", 105, -0.5)
        self.assertEqual(answer.parent, "member_03")
        self._assert_weights(answer.weights, "member_03")
        self.assertEqual(answer.next_decision_at, 200)
        for key, value in answer.hyperparameters.items():
            factor = value / TUNED[key]
            self.assertTrue(abs(factor - 1.2) < 1e-6 or abs(factor - 1 / 1.2) < 1e-6)

    def test_reports_between_decisions_rank_members(self):
        self._introduce_all()
        for name in self._config.members:
            self.assertIsNone(self._decide(name, 100, 0.1).parent)
        self._decide("member_03", 200, 0.9)
        self.assertIsNone(self._decide("member_00", 200, 0.2).parent)
        for name in ("member_01", "member_02"):
            self._report(name, 199, fitness=0.5)
        self.assertEqual(self._decide("member_00", 300, 0.3).parent, "member_03")

    def test_missed_decision_is_returned_until_a_later_checkpoint(self):
        self._introduce_all()
        self._decide("member_03", 100, 0.9)
        decided = self._decide("member_00", 105, -0.5)
        self._decide("member_03", 205, 0.9)
        self._coordinator = self._open()
        self._coordinator.join("member_00")
        for env_frames in (105, 40, 40):
            answer = self._coordinator.resume("member_00", env_frames)
            self._assert_weights(answer.weights, "member_03")
            self.assertEqual(answer.hyperparameters, decided.hyperparameters)
            self.assertEqual(answer.next_decision_at, 200)
            self.assertEqual(answer.last_copied_at, 105)
        past = self._coordinator.resume("member_00", 106)
        self.assertEqual(past, coordinator.Decision(200, 105, {}, None, None))
        self._decide("member_00", 210, 2.0)
        later = self._coordinator.resume("member_00", 106)
        self.assertIsNone(later.weights)
        self.assertEqual(later.hyperparameters, TUNED)
        # A killed member resumes from its checkpoint, not with the stored weights of 210 frames.
        self.assertIsNone(self._coordinator.resume("member_00", 105).weights)

    def test_sweep_without_a_population_has_no_decisions(self):
        none = dataclasses.replace(self._config.population, method="none")
        self._config = dataclasses.replace(self._config, population=none)
        self._coordinator = self._open()
        self._coordinator.join("member_00")
        answer = self._coordinator.resume("member_00", 0)
        self.assertEqual(answer, coordinator.Decision(None, -1, {}, None, None))

    def test_copy_of_a_copy_has_matching_weights_and_values(self):
        impala = dataclasses.replace(
            self._config.population, truncation_fraction=1.0, perturbation_factors=(2.0,)
        )
        self._config = dataclasses.replace(self._config, population=impala)
        self._coordinator = self._open()
        for name in ("member_00", "member_01"):
            self._coordinator.join(name)
            self._decide(name, 0, math.nan)
        self._decide("member_00", 100, 0.9)
        self.assertEqual(self._decide("member_01", 100, 0.5).parent, "member_00")
        self._coordinator.join("member_02")
        self._decide("member_02", 0, math.nan)
        self._decide("member_00", 200, math.nan)  # No member copies it any more.
        answer = self._decide("member_02", 100, 0.1)
        self.assertEqual(answer.parent, "member_01")
        self._assert_weights(answer.weights, "member_00")
        for key, value in answer.hyperparameters.items():
            self.assertAlmostEqual(value / TUNED[key], 4.0)

    def test_full_disk_or_damaged_weights_postpone_a_decision(self):
        self._introduce_all()
        self._decide("member_03", 100, 0.9)
        full = OSError(28, "No space left on device")
        for results in (full, [None, full]):  # Of the weights, of the lineage.
            with (
                mock.patch.object(atomic, "write", side_effect=results),
                self.assertLogs(level="WARNING") as logs,
            ):
                answer = self._decide("member_00", 105, -0.5)
            messages.assert_names(logs.output[0], "member_00", "No space left")
            self.assertEqual(answer, coordinator.Decision(115, -1, {}, None, None))
            self.assertEqual(self._coordinator.resume("member_00", 0).last_copied_at, -1)
        path = self._folder / "population/member_03.npz"
        good = path.read_bytes()
        path.write_bytes(b"damaged")
        with self.assertLogs(level="WARNING") as logs:
            answer = self._decide("member_00", 105, -0.5)
        messages.assert_names(logs.output[0], "member_00", path.name)
        self.assertEqual(answer, coordinator.Decision(115, -1, {}, None, None))
        path.write_bytes(good)
        self.assertEqual(self._decide("member_00", 115, -0.5).parent, "member_03")

    def test_repeated_decision_is_the_same(self):
        self._introduce_all()
        self._decide("member_03", 100, 0.9)
        first, second = (self._decide("member_00", 105, -0.5) for _ in range(2))
        self._assert_weights(second.weights, "member_03")
        self.assertEqual(first._replace(weights=None), second._replace(weights=None))
        self.assertLen(lineage.read(self._folder / lineage.FILE), 6)

    def test_missing_or_damaged_weights_are_named(self):
        self._introduce_all()
        self._decide("member_03", 100, 0.9)
        self._decide("member_00", 105, -0.5)
        path = self._folder / "population/member_00.npz"
        good = path.read_bytes()
        flipped = bytearray(good)
        flipped[good.index(b"member_03")] ^= 1
        pickled, lone = io.BytesIO(), io.BytesIO()
        np.savez(pickled, a=np.array([{}], dtype=object))
        np.save(lone, np.zeros(3))
        damaged = (b"", b"weights", good[:-1], good[: len(good) // 2], bytes(flipped))
        for content in (*damaged, pickled.getvalue(), lone.getvalue(), None):
            path.unlink()
            if content is not None:
                path.write_bytes(content)
            with messages.raises(errors.UserError, path):
                self._coordinator.resume("member_00", 105)


if __name__ == "__main__":
    absltest.main()
