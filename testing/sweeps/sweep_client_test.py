"""The client of a sweep: decisions of a population, reports, and copies of an agent."""

from typing import Any

import numpy as np
from absl.testing import absltest

from configs import sweeps
from laser_tf.environments import factory
from laser_tf.monitoring import episode_log, reporting
from laser_tf.sweeps import coordinator, sweep_client, sweep_config
from laser_tf.training import assembly, learner, named_variables
from testing import folders, messages, processes

COPYING, COPIED = "member_00", "member_01"


class SweepClientTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        values = sweeps.get_config("catch").to_dict()
        values["population"] = {"method": "pbt", "ready_env_frames": 100}
        self._config = sweep_config.parse(values)
        self._coordinator = coordinator.Coordinator(self._config, self._folder)
        self._error: Exception | None = None  # Of the next calls.

    def _call(self, method: str, *arguments: Any) -> Any:
        if self._error:
            raise self._error
        return getattr(self._coordinator, method)(*arguments)

    def _join(self, name: str) -> sweep_client.SweepClient:
        index = list(self._config.members).index(name)
        member = sweep_client.SweepClient(name, index, self._call, None)
        self.addCleanup(member.close)
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
        self.assertFalse(member.apply_decisions(trained, 0))
        returns.add(episode_log.Row(0, "catch", mean_return, 9))
        return member, trained, returns

    def _assert_copied(self, copy: learner.Learner, parent: learner.Learner) -> None:
        weights, others = (sweep_client.get_state(made) for made in (copy, parent))
        for name in weights:
            np.testing.assert_array_equal(weights[name], others[name], name)
        given, inherited = copy.hyperparameters(), parent.hyperparameters()
        for key, value in given.items():
            self.assertAlmostEqual(abs(np.log(value / inherited[key])), np.log(1.2), places=4)

    def test_copy_is_made_when_due_and_again_by_a_restarted_process(self):
        better, parent, _ = self._start(COPIED, 0.9)
        self.assertFalse(better.apply_decisions(parent, 100))
        worse, trained, returns = self._start(COPYING, -0.9)
        self.assertFalse(worse.apply_decisions(trained, 99))  # Not due.
        self.assertTrue(worse.apply_decisions(trained, 105))
        self._assert_copied(trained, parent)
        self.assertTrue(np.isnan(returns.mean_return()))

        again, resumed = self._join(COPYING), self._learner(COPYING)
        self.assertEqual(again.resume(resumed, 105, returns), 105)
        self._assert_copied(resumed, parent)
        untouched = self._learner(COPYING)
        self.assertEqual(again.resume(untouched, 145, returns), 105)
        self.assertEqual(untouched.hyperparameters(), self._learner(COPYING).hyperparameters())

    def test_weights_that_are_not_finite_are_not_stored(self):
        better, parent, _ = self._start(COPIED, 0.9)
        variable = parent.agent.trainable_variables[0]
        variable.assign(np.full(variable.shape, np.nan))
        with messages.raises(named_variables.NonFiniteWeightsError, "agent/_policy_head/kernel"):
            better.apply_decisions(parent, 100)
        path = self._folder / "population" / f"{COPIED}.npz"
        with np.load(path) as kept:
            self.assertTrue(all(np.isfinite(values).all() for values in kept.values()))

    def test_error_of_a_report_is_raised_by_check(self):
        member, _, _ = self._start(COPYING, 0.1)
        member.check()
        self._error = OSError()
        with self.assertRaises(OSError):
            processes.wait_until(member.check, 20.0)

    def test_member_ahead_of_the_others_waits(self):
        ahead, _, _ = self._start(COPYING, 0.1)
        behind, _, _ = self._start(COPIED, 0.1)
        for name in list(self._config.members)[2:]:
            self._coordinator.finish(name)
        lead = self._config.sweep.max_lead_env_frames
        behind.throttle(10, lambda: False)  # It continues at once.
        waited = []

        def note() -> bool:
            waited.append(None)
            if len(waited) == 3:
                behind.throttle(lead, lambda: False)
            return False

        ahead.throttle(lead + 10, note)
        self.assertGreaterEqual(len(waited), 3)


if __name__ == "__main__":
    absltest.main()
