"""Where agents meet: one process a name, what they are told, and what a population decides."""

import dataclasses
import pathlib
import tempfile
from unittest import mock

from absl.testing import absltest, parameterized

from configs import sweep_laser_catch
from laser_tf.host import whole_files
from laser_tf.sweeps import coordinator, lineage, rpc, sweep_config

TUNED = {"learner.learning_rate": 1e-3, "agent.entropy_cost": 1e-2, "learner.rmsprop_epsilon": 0.1}


class CoordinatorTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)
        values = sweep_laser_catch.get_config().to_dict()
        values["population"] = {"method": "pbt", "ready_env_frames": 100}
        self._config = sweep_config.parse(values)
        self._meeting = self._open()

    def _open(self) -> coordinator.Coordinator:
        return coordinator.Coordinator(
            self._config, self._folder, replay_port=1234, sweep_id="mine"
        )

    def _call(self, method: str, name: str = "agent_00", blob: bytes = b"", **values):
        values = {"session": f"of {name}"} | values
        return self._meeting.methods[method](rpc.Message({"name": name, **values}, blob))

    def _report(self, name: str, env_frames: int, fitness: float | None = None) -> int:
        values = {"env_frames": env_frames, "mean_return": 1.5, "fitness": fitness}
        return self._call("report", name, **values).values["limit"]

    def _decide(self, name: str, env_frames: int, fitness: float | None) -> rpc.Message:
        values = {"env_frames": env_frames, "fitness": fitness, "hyperparameters": TUNED}
        return self._call("decide", name, f"weights of {name}".encode(), **values)

    def _introduce_all(self) -> None:
        for name in self._config.agents:
            self._call("join", name)
            self._decide(name, 0, None)

    def _resume(self, name: str, env_frames: int) -> rpc.Message:
        return self._call("resume", name, env_frames=env_frames)

    def test_an_agent_is_told_what_it_is(self):
        joined = self._call("join", "agent_02").values
        self.assertEqual(joined["index"], 2)
        self.assertEqual(joined["replay_port"], 1234)
        self.assertEqual(joined["config"]["learner"]["learning_rate"], 5e-4)
        self.assertEqual(joined["config"]["agent"]["entropy_cost"], 2e-2)

    def test_unknown_names_are_refused(self):
        with self.assertRaisesRegex(ValueError, "no agent 'agent_09': use one of agent_00, "):
            self._call("join", "agent_09")

    def test_two_agents_cannot_have_one_name(self):
        self._call("join")
        with self.assertRaisesRegex(ValueError, "agent_00 is running already.*another --name"):
            self._call("join", session="another")
        self._report("agent_00", 0)
        with self.assertRaisesRegex(ValueError, "agent_00 is running already"):
            self._call("join", session="another")

    def test_a_name_is_free_again_when_its_process_has_ended(self):
        self._call("join")
        self._call("leave")
        self._call("join", session="another")
        with self.assertRaisesRegex(ValueError, "another process is agent_00 now"):
            self._call("leave")  # the first process, late
        with self.assertRaisesRegex(ValueError, "another process is agent_00 now"):
            self._report("agent_00", 0)
        with self.assertRaisesRegex(ValueError, "running already"):
            self._call("join", session="a third")
        self._meeting.methods["leave"](rpc.Message({"name": "agent_00"}))  # the supervisor
        self._call("join", session="a third")

    def test_who_asks_for_another_sweep_is_refused(self):
        self.assertEqual(self._call("join").values["sweep_id"], "mine")
        with self.assertRaisesRegex(ValueError, "another sweep's server .*another --port"):
            self._call("join", "agent_01", sweep_id="theirs")
        with self.assertRaisesRegex(ValueError, "another sweep"):  # their supervisor
            self._meeting.methods["leave"](rpc.Message({"name": "agent_00", "sweep_id": "theirs"}))
        self._report("agent_00", 0)
        self._call("join", "agent_01", sweep_id="mine")

    def test_who_has_finished_is_known_to_the_next_server_too(self):
        budget = self._config.first.run.env_frames
        for name in ("agent_00", "agent_01"):
            self._call("join", name)
            self._report(name, budget - 1)
        self._call("leave", "agent_00", finished=True)
        self._call("leave", "agent_01", finished=False)
        with self.assertRaises(ValueError):  # it has to hear that it was not heard
            self._call("leave", "agent_02", session="of a server before", finished=True)
        for _ in range(2):
            status = self._call("status").values
            self.assertEqual([status[name]["finished"] for name in status], [True] + 3 * [False])
            self.assertEqual(status["agent_00"]["env_frames"], budget)
            self._meeting = self._open()

    def test_agents_keep_pace(self):
        for name in self._config.agents:
            self._call("join", name)
            self._report(name, 0)
        lead = self._config.sweep.max_lead_env_frames
        self.assertEqual(self._report("agent_01", 500), lead)
        for name in ("agent_00", "agent_02"):
            self._report(name, 600)
        self.assertEqual(self._report("agent_03", 400), 400 + lead)
        self._call("leave", "agent_03")
        self.assertEqual(self._report("agent_01", 510), 510 + lead)

    def test_status_shows_what_was_reported(self):
        self._call("join")
        self._report("agent_00", 120)
        status = self._call("status").values
        self.assertEqual(status["agent_00"]["env_frames"], 120)
        self.assertEqual(status["agent_00"]["mean_return"], 1.5)
        self.assertTrue(status["agent_00"]["running"])
        self.assertFalse(status["agent_01"]["running"])

    def test_nobody_is_told_the_others_sessions(self):
        self._call("join", session="a token of its own")
        self._call("report", session="a token of its own", env_frames=1, other="internals")
        status = self._call("status").values
        self.assertNotRegex(repr(status), "token|session|internals")

    @parameterized.parameters(
        ("join", {"name": 3}, "name is 3: .*needs a text"),
        ("join", {"session": ""}, "session is ''"),
        ("report", {"session": None}, "session is None"),
        ("report", {"session": ["of agent_00"]}, "session is .*needs a text"),
        ("report", {"session": "x" * 1000}, "session is 'xxx.*needs a text of 1 to 200"),
        ("leave", {"session": 5}, "session is 5"),
        ("leave", {"finished": "yes"}, "finished is 'yes': .*needs true or false"),
        ("report", {"env_frames": "abc"}, "env_frames is 'abc': .*needs a whole number"),
        ("report", {"env_frames": True}, "env_frames is True"),
        ("report", {"env_frames": -1}, "env_frames is -1"),
        ("report", {"env_frames": 2**80}, "env_frames is 1"),
        ("report", {"fitness": "best"}, "fitness is 'best': .*needs a finite number"),
        ("report", {"mean_return": float("nan")}, "mean_return is nan"),
        ("resume", {"env_frames": None}, "env_frames is None"),
        ("decide", {"env_frames": 1.5}, "env_frames is 1.5"),
        ("decide", {"fitness": {}}, "fitness is {}"),
        ("decide", {"hyperparameters": [1]}, "hyperparameters is .1.: .*object of finite numb"),
        ("decide", {"hyperparameters": {"a": float("inf")}}, "hyperparameters is .*inf"),
        ("decide", {"hyperparameters": {"a": 1.0}}, "have no 'learner.learning_rate', which"),
    )
    def test_a_wrong_value_is_refused_and_ends_nothing(self, method, wrong, message):
        for name in ("agent_00", "agent_01"):
            self._call("join", name)
            self._report(name, 10)
        values = {"name": "agent_02" if method == "join" else "agent_00", "session": "of agent_00"}
        values |= {"env_frames": 20, "fitness": 0.5, "mean_return": 0.5, "hyperparameters": TUNED}
        with self.assertRaisesRegex(ValueError, message):
            self._meeting.methods[method](rpc.Message(values | wrong, b"weights"))
        self._report("agent_00", 11)
        self._report("agent_01", 12)
        status = self._call("status").values
        self.assertEqual([status[name].get("env_frames") for name in status], [11, 12, None, None])
        self.assertFalse(any(status[name]["finished"] for name in status))

    def test_only_the_agent_itself_says_that_it_is_finished(self):
        self._call("join")
        self._meeting.methods["leave"](rpc.Message({"name": "agent_00", "finished": True}))
        self.assertFalse(self._call("status").values["agent_00"]["finished"])

    def test_the_worst_becomes_a_copy_of_the_best(self):
        for name in self._config.agents:
            self._call("join", name)
            self.assertEqual(self._resume(name, 0).values["next_ready"], 0)
            self.assertEqual(self._decide(name, 0, None).values["next_ready"], 100)
        self.assertIsNone(self._decide("agent_03", 100, 0.9).values["parent"])
        self._meeting = self._open()  # it comes back with what it had
        self._call("join", "agent_00")
        self.assertEqual(self._resume("agent_00", 90).values["next_ready"], 100)
        answer = self._decide("agent_00", 105, -0.5)
        self.assertEqual(answer.values["parent"], "agent_03")
        self.assertEqual(answer.blob, b"weights of agent_03")
        self.assertEqual(answer.values["next_ready"], 200)
        for key, value in answer.values["hyperparameters"].items():
            factor = value / TUNED[key]
            self.assertTrue(abs(factor - 1.2) < 1e-6 or abs(factor - 1 / 1.2) < 1e-6)

    def test_agents_are_ranked_by_what_they_report_between_decisions(self):
        self._introduce_all()
        for name in self._config.agents:
            self.assertIsNone(self._decide(name, 100, 0.1).values["parent"])
        self._decide("agent_03", 200, 0.9)
        self.assertIsNone(self._decide("agent_00", 200, 0.2).values["parent"])
        for name in ("agent_01", "agent_02"):
            self._report(name, 199, fitness=0.5)
        self.assertEqual(self._decide("agent_00", 300, 0.3).values["parent"], "agent_03")

    def test_what_an_agent_has_missed_is_told_again_until_it_is_past_it(self):
        self._introduce_all()
        self._decide("agent_03", 100, 0.9)
        decided = self._decide("agent_00", 105, -0.5)
        self._decide("agent_03", 205, 0.9)  # the parent's weights go on meanwhile
        self._meeting = self._open()
        self._call("join", "agent_00")
        for env_frames in (105, 40, 40):
            answer = self._resume("agent_00", env_frames)
            self.assertEqual(answer.blob, decided.blob)
            self.assertEqual(answer.values["hyperparameters"], decided.values["hyperparameters"])
            self.assertEqual(answer.values["next_ready"], 200)
            self.assertEqual(answer.values["copied"], 105)
        past = self._resume("agent_00", 106)
        self.assertEqual(past.blob, b"")
        self.assertEqual(past.values, {"hyperparameters": {}, "next_ready": 200, "copied": 105})
        self._decide("agent_00", 210, 2.0)  # keeps what it copied and has trained since
        later = self._resume("agent_00", 106)
        self.assertEqual(later.blob, b"")
        self.assertEqual(later.values["hyperparameters"], TUNED)
        self.assertEqual(self._resume("agent_00", 105).blob, b"weights of agent_00")

    def test_without_a_population_nothing_was_missed(self):
        none = dataclasses.replace(self._config.population, method="none")
        self._config = dataclasses.replace(self._config, population=none)
        self._meeting = self._open()
        self._call("join")
        answer = self._resume("agent_00", 0)
        self.assertEqual(answer.values, {"hyperparameters": {}, "next_ready": None, "copied": -1})

    def test_who_copies_a_copy_gets_weights_and_values_that_belong_together(self):
        impala = dataclasses.replace(
            self._config.population, truncation_fraction=1.0, perturbation_factors=(2.0,)
        )
        self._config = dataclasses.replace(self._config, population=impala)
        self._meeting = self._open()
        for name in ("agent_00", "agent_01"):
            self._call("join", name)
            self._decide(name, 0, None)
        self._decide("agent_00", 100, 0.9)
        self.assertEqual(self._decide("agent_01", 100, 0.5).values["parent"], "agent_00")
        self._call("join", "agent_02")
        self._decide("agent_02", 0, None)
        self._decide("agent_00", 200, None)  # nobody copies it any more
        answer = self._decide("agent_02", 100, 0.1)
        self.assertEqual(answer.values["parent"], "agent_01")
        self.assertEqual(answer.blob, b"weights of agent_00")
        for key, value in answer.values["hyperparameters"].items():
            self.assertAlmostEqual(value / TUNED[key], 4.0)

    def test_a_full_disk_puts_a_decision_off(self):
        self._introduce_all()
        self._decide("agent_03", 100, 0.9)
        full = OSError(28, "No space left on device")
        for failing in (
            mock.patch.object(whole_files, "write", side_effect=full),
            mock.patch.object(lineage.Lineage, "append", side_effect=full),
        ):
            with failing, self.assertLogs(level="WARNING") as logs:
                answer = self._decide("agent_00", 105, -0.5)
            self.assertRegex(logs.output[0], "no decision about agent_00 now: .*No space left")
            self.assertEqual(
                answer.values, {"parent": None, "hyperparameters": {}, "next_ready": 115}
            )
            self.assertEqual(answer.blob, b"")
            self.assertEqual(self._resume("agent_00", 0).values["copied"], -1)
        self.assertEqual(self._decide("agent_00", 115, -0.5).values["parent"], "agent_03")

    def test_weights_that_are_gone_are_named(self):
        self._introduce_all()
        self._decide("agent_03", 100, 0.9)
        self._decide("agent_00", 105, -0.5)
        (self._folder / "population/agent_00.npz").unlink()
        with self.assertRaisesRegex(ValueError, "agent_00.npz, from which .*restore the file"):
            self._resume("agent_00", 105)


if __name__ == "__main__":
    absltest.main()
