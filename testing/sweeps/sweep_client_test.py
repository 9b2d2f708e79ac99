"""A member and its sweep's coordinator: decisions, and answers that are lost."""

import pathlib
import tempfile
import threading
import time
from typing import Any

import numpy as np
from absl.testing import absltest

from configs import sweeps
from laser_tf import errors
from laser_tf.environments import episode_statistics, factory
from laser_tf.monitoring import reporting
from laser_tf.sweeps import (
    coordinator,
    lineage,
    sweep_client,
    sweep_config,
    transplant,
    weight_store,
)
from laser_tf.training import assembly, finiteness, learner
from testing import messages

COPYING, COPIED = "member_00", "member_01"


class SweepClientTest(absltest.TestCase):
    OPTIMIZER = "rmsprop"

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)
        values = sweeps.get_config("catch").to_dict()
        values["population"] = {"method": "pbt", "ready_env_frames": 100}
        values["learner"]["optimizer"] = self.OPTIMIZER
        self._config = sweep_config.parse(values)
        self._coordinator = coordinator.Coordinator(self._config, self._folder)
        self._unheard: set[str] = set()  # methods that do not reach the coordinator
        self._lost_answers: set[str] = set()  # that do, to no avail
        self._stop = threading.Event()

    def _call(self, method: str, *arguments: Any) -> Any:
        if method in self._unheard:
            raise sweep_client.UnansweredError
        answer = getattr(self._coordinator, method)(*arguments)
        if method in self._lost_answers:
            self._lost_answers.remove(method)
            raise sweep_client.UnansweredError
        return answer

    def _join(self, name: str) -> sweep_client.SweepClient:
        index = list(self._config.members).index(name)
        member = sweep_client.SweepClient(name, index, self._call, self._stop, None)
        self.addCleanup(member._closed.set)
        return member

    def _learner(self, name: str) -> learner.Learner:
        config = self._config.members[name]
        spec = factory.environment_spec(config.environment)
        return assembly.build_learner(config, spec, "float32", jit=False)

    def _start(
        self, name: str, mean_return: float
    ) -> tuple[sweep_client.SweepClient, learner.Learner, reporting.EpisodeReturns]:
        """A member that the population knows."""
        member, trained = self._join(name), self._learner(name)
        returns = reporting.EpisodeReturns("catch", ["catch"])
        self.assertEqual(member.resume(trained, 0, returns), -1)
        member.start()
        self.assertFalse(member.after_update(trained, 0))
        returns.add(episode_statistics.Episode(0, 0, mean_return, 9))
        return member, trained, returns

    def _assert_same_weights(self, one: learner.Learner, other: learner.Learner) -> None:
        weights, others = (transplant.get_state(made) for made in (one, other))
        for name in weights:
            np.testing.assert_array_equal(weights[name], others[name], name)

    def _assert_copied(self, copy: learner.Learner, parent: learner.Learner) -> None:
        self._assert_same_weights(copy, parent)
        given, inherited = copy.hyperparameters(), parent.hyperparameters()
        for key, value in given.items():
            self.assertAlmostEqual(abs(np.log(value / inherited[key])), np.log(1.2), places=4)

    def test_a_decision_whose_answer_was_lost_is_made_up_for(self):
        better, parent, _ = self._start(COPIED, 0.9)
        self.assertFalse(better.after_update(parent, 100))
        worse, trained, returns = self._start(COPYING, -0.9)
        self._lost_answers.add("decide")
        self.assertTrue(worse.after_update(trained, 105))
        self._assert_copied(trained, parent)
        self.assertTrue(np.isnan(returns.mean_return()))
        self.assertLen(lineage.read(self._folder / lineage.FILE), 4)  # decided once

    def test_a_decision_that_nobody_heard_of_is_asked_for_again(self):
        better, parent, _ = self._start(COPIED, 0.9)
        self.assertFalse(better.after_update(parent, 100))
        worse, trained, _ = self._start(COPYING, -0.9)
        self._unheard.add("decide")
        self.assertFalse(worse.after_update(trained, 105))
        self._coordinator = coordinator.Coordinator(self._config, self._folder)  # it was restarted
        self._unheard.clear()
        self.assertTrue(worse.after_update(trained, 106))
        self._assert_copied(trained, parent)

    def test_a_process_that_died_before_it_could_act_does_so_when_it_comes_back(self):
        better, parent, _ = self._start(COPIED, 0.9)
        self.assertFalse(better.after_update(parent, 100))
        worse, before, _ = self._start(COPYING, -0.9)
        self.assertTrue(worse.after_update(before, 105))

        again, resumed = self._join(COPYING), self._learner(COPYING)
        returns = reporting.EpisodeReturns("catch", ["catch"])
        self.assertEqual(again.resume(resumed, 105, returns), 105)
        self._assert_copied(resumed, parent)
        untouched = self._learner(COPYING)
        self.assertEqual(again.resume(untouched, 145, returns), 105)
        self.assertEqual(untouched.hyperparameters(), self._learner(COPYING).hyperparameters())

    def test_a_copy_is_told_and_forgets_returns(self):
        better, parent, _ = self._start(COPIED, 0.9)
        better.after_update(parent, 100)
        worse, trained, returns = self._start(COPYING, -0.9)
        self.assertFalse(worse.after_update(trained, 99))  # not due
        self.assertTrue(worse.after_update(trained, 100))
        self._assert_same_weights(trained, parent)
        self.assertTrue(np.isnan(returns.mean_return()))

    def test_a_parent_that_is_not_finite_is_not_copied(self):
        better, parent, _ = self._start(COPIED, 0.9)
        better.after_update(parent, 100)
        path = self._folder / "population" / f"{COPIED}.npz"  # as an earlier version kept them
        weights = weight_store.read(path)
        name = next(name for name in weights if name.startswith("agent"))
        weight_store.write(path, weights | {name: np.full_like(weights[name], np.nan)})
        worse, trained, returns = self._start(COPYING, -0.9)
        with self.assertLogs(level="WARNING") as logs:
            worse.after_update(trained, 100)
        messages.assert_names(logs.output[0], COPYING, name)
        self._assert_same_weights(trained, self._learner(COPYING))
        self.assertFalse(np.isnan(returns.mean_return()))  # they are still its own
        with self.assertLogs(level="WARNING"):
            worse.resume(trained, 100, returns)
        self._assert_same_weights(trained, self._learner(COPYING))

    def test_weights_that_are_not_finite_reach_no_population(self):
        better, parent, _ = self._start(COPIED, 0.9)
        variable = parent.agent.trainable_variables[0]
        variable.assign(np.full(variable.shape, np.nan))
        with messages.raises(finiteness.NonFiniteWeightsError, "agent/_policy_head/kernel"):
            better.after_update(parent, 100)
        kept = weight_store.read(self._folder / "population" / f"{COPIED}.npz")
        self.assertTrue(all(np.isfinite(values).all() for values in kept.values()))

    def _wait_until_it_ends(self, member: sweep_client.SweepClient) -> None:
        """Raises what `check` does, which looks at what a heartbeat has found."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            member.check()
            time.sleep(0.01)

    def test_a_process_that_was_replaced_ends(self):
        member, trained, _ = self._start(COPYING, 0.1)
        member.check()
        self._join(COPYING)
        with messages.raises(coordinator.StaleError, "member_00"):
            self._wait_until_it_ends(member)
        with self.assertRaises(coordinator.StaleError):
            member.after_update(trained, 100)

    def test_a_coordinator_that_is_away_ends_nothing(self):
        member, trained, _ = self._start(COPYING, 0.1)
        self._unheard.update(("report", "decide", "resume"))
        threading.Timer(0.5, self._unheard.clear).start()
        self.assertFalse(member.after_update(trained, 105))
        self.assertEmpty(self._unheard)  # it has waited
        member.check()

    def test_who_is_told_to_stop_waits_for_nobody(self):
        member, trained, returns = self._start(COPYING, 0.1)
        self._unheard.update(("decide", "resume", "leave", "join"))
        threading.Timer(0.5, self._stop.set).start()
        for wait in (
            lambda: member.after_update(trained, 105),
            lambda: member.resume(trained, 105, returns),
            lambda: self._join(COPYING),
            lambda: member.close(finished=True),
        ):
            with self.assertRaises(errors.StoppedError):
                wait()
        self.assertFalse(self._coordinator.status()[COPYING]["finished"])

    def test_who_is_told_to_stop_still_says_that_it_is_finished(self):
        member, _, _ = self._start(COPYING, 0.1)
        self._stop.set()
        member.close(finished=True)
        self.assertTrue(self._coordinator.status()[COPYING]["finished"])

    def test_nobody_gets_further_ahead_than_allowed(self):
        ahead, _, _ = self._start(COPYING, 0.1)
        behind, _, _ = self._start(COPIED, 0.1)
        for name in list(self._config.members)[2:]:
            self._coordinator.mark_dead(name)
        lead = self._config.sweep.max_lead_env_frames
        behind.throttle(10, lambda: False)  # goes on at once
        waited = []

        def note() -> bool:
            waited.append(None)
            if len(waited) == 3:
                behind.throttle(lead, lambda: False)
            return False

        ahead.throttle(lead + 10, note)
        self.assertGreaterEqual(len(waited), 3)

    def test_who_was_trained_already_says_so_and_leaves(self):
        member = self._join(COPYING)
        member.close(finished=True)
        status = self._coordinator.status()
        budget = self._config.members[COPYING].run.env_frames
        self.assertEqual(status[COPYING], {"env_frames": budget, "finished": True})


class AdamSweepClientTest(SweepClientTest):
    """The same, of members that hand over Adam's state and have an epsilon less to tune."""

    OPTIMIZER = "adam"


if __name__ == "__main__":
    absltest.main()
