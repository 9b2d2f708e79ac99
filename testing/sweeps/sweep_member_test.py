"""An agent and its sweep's server: decisions, and answers that are lost."""

import io
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from absl.testing import absltest

from configs import sweep_laser_catch
from laser_tf.environments import episode_statistics, factory
from laser_tf.monitoring import reporting
from laser_tf.sweeps import coordinator, rpc, sweep_config, sweep_member, transplant
from laser_tf.training import assembly, finiteness, learner

COPYING, COPIED = "agent_00", "agent_01"


class SweepMemberTest(absltest.TestCase):
    OPTIMIZER = "rmsprop"

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)
        values = sweep_laser_catch.get_config().to_dict()
        values["population"] = {"method": "pbt", "ready_env_frames": 100}
        values["learner"]["optimizer"] = self.OPTIMIZER
        self._config = sweep_config.parse(values)
        meeting = coordinator.Coordinator(self._config, self._folder, None, "mine")
        self._lost_answers: set[str] = set()  # to which methods
        self._server = rpc.Server(
            {name: self._losing(name, method) for name, method in meeting.methods.items()},
            0,
            "secret",
            max_bytes=rpc.WEIGHTS_BYTES,
        )
        self.addCleanup(self._server.stop)

    def _losing(
        self, name: str, method: Callable[[rpc.Message], rpc.Message]
    ) -> Callable[[rpc.Message], rpc.Message]:
        def answer(message: rpc.Message) -> rpc.Message:
            answered = method(message)
            if name in self._lost_answers:
                raise RuntimeError("the line is cut")
            return answered

        return answer

    def _call(self, method: str, values: dict[str, Any]) -> dict[str, Any]:
        client = rpc.Client(f"localhost:{self._server.port}", "secret")
        self.addCleanup(client.close)
        return client.call(method, values).values

    def _join(self, name: str) -> sweep_member.SweepMember:
        member = sweep_member.SweepMember(f"localhost:{self._server.port}", name, "secret")
        self.addCleanup(member.close)
        return member

    def _learner(self, name: str) -> learner.Learner:
        config = self._config.agents[name]
        spec = factory.environment_spec(config.environment)
        return assembly.build_learner(config, spec, "float32", jit=False)

    def _start(
        self, name: str, mean_return: float
    ) -> tuple[sweep_member.SweepMember, learner.Learner, reporting.EpisodeReturns]:
        """An agent that the population knows."""
        member, trained = self._join(name), self._learner(name)
        returns = reporting.EpisodeReturns("catch", ["catch"])
        self.assertEqual(member.resume(trained, 0, returns), -1)
        member.start()
        self.assertFalse(member.after_update(trained, 0))
        returns.add(episode_statistics.Episode(0, 0, mean_return, 9))
        return member, trained, returns

    def _assert_same_weights(self, one: learner.Learner, other: learner.Learner) -> None:
        arrays = [np.load(io.BytesIO(transplant.hand_over(made))) for made in (one, other)]
        for name in arrays[0].files:
            np.testing.assert_array_equal(arrays[0][name], arrays[1][name], name)

    def test_a_decision_whose_answer_was_lost_is_made_up_for(self):
        better, parent, _ = self._start(COPIED, 0.9)
        self.assertFalse(better.after_update(parent, 100))
        worse, before, _ = self._start(COPYING, -0.9)
        self._lost_answers.add("decide")
        with self.assertRaises(sweep_member.ServerLostError):
            worse.after_update(before, 105)
        self.assertTrue(worse.has_lost_server())  # it has to join again
        with self.assertRaises(sweep_member.ServerLostError):
            worse.check()
        worse.close()

        again, resumed = self._join(COPYING), self._learner(COPYING)
        returns = reporting.EpisodeReturns("catch", ["catch"])
        self.assertEqual(again.resume(resumed, 105, returns), 105)
        self._assert_same_weights(resumed, parent)
        given, inherited = resumed.hyperparameters(), parent.hyperparameters()
        for key, value in given.items():
            self.assertAlmostEqual(abs(np.log(value / inherited[key])), np.log(1.2), places=4)
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
        arrays = dict(np.load(path))
        name = next(name for name in arrays if name.startswith("agent"))
        with path.open("wb") as file:
            np.savez(file, **{**arrays, name: np.full_like(arrays[name], np.nan)})
        worse, trained, returns = self._start(COPYING, -0.9)
        with self.assertLogs(level="WARNING") as logs:
            worse.after_update(trained, 100)
        self.assertRegex(logs.output[0], f"{COPYING} keeps its own weights: {name} is not finite")
        self._assert_same_weights(trained, self._learner(COPYING))
        self.assertFalse(np.isnan(returns.mean_return()))  # they are still its own
        with self.assertLogs(level="WARNING"):
            worse.resume(trained, 100, returns)
        self._assert_same_weights(trained, self._learner(COPYING))

    def test_weights_that_are_not_finite_reach_no_population(self):
        better, parent, _ = self._start(COPIED, 0.9)
        variable = parent.agent.trainable_variables[0]
        variable.assign(np.full(variable.shape, np.nan))
        with self.assertRaisesRegex(finiteness.NonFiniteWeightsError, "handed over to nobody"):
            better.after_update(parent, 100)
        kept = np.load(self._folder / "population" / f"{COPIED}.npz")
        self.assertTrue(all(np.isfinite(kept[name]).all() for name in kept.files))

    def test_a_server_that_is_new_is_no_error_of_the_agent(self):
        member = self._join(COPYING)
        self._call("leave", {"name": COPYING})  # it knows nothing of the session either
        with self.assertRaisesRegex(rpc.RefusedError, "another process is agent_00 now"):
            member.resume(self._learner(COPYING), 0, reporting.EpisodeReturns("catch", ["catch"]))
        self.assertTrue(member.has_lost_server())

    def test_who_was_trained_already_says_so_and_leaves(self):
        member = self._join(COPYING)
        member.close(finished=True)
        status = self._call("status", {})
        budget = self._config.agents[COPYING].run.env_frames
        self.assertEqual(status[COPYING]["env_frames"], budget)
        self.assertTrue(status[COPYING]["finished"])
        self.assertFalse(status[COPYING]["running"])
        self.assertFalse(member.has_lost_server())


class AdamSweepMemberTest(SweepMemberTest):
    """The same, of agents that hand over Adam's state and have an epsilon less to tune."""

    OPTIMIZER = "adam"


if __name__ == "__main__":
    absltest.main()
