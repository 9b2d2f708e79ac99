"""A fleet's checks, `roles.csv`, the order in which roles stop, and work, without processes."""

import contextlib
import csv
from unittest import mock

from absl.testing import absltest, parameterized

from configs import laser, sweeps
from laser_tf import errors
from laser_tf.cluster import fleet, machines, role, run_state, run_work, supervision, sweep_work
from laser_tf.cluster.run_state import Status
from laser_tf.environments import factory
from laser_tf.monitoring import progress
from laser_tf.sweeps import lineage, sweep_config
from laser_tf.training import cluster_config, run_config
from laser_tf.workdir import run_directory
from testing import fakes, folders, messages


def _heartbeat(status: Status = Status.RUNNING, **metrics: float) -> run_state.Heartbeat:
    return run_state.Heartbeat("host", 7, status, "acts, slowly", False, metrics, 0.5)


def _run_specs() -> list[role.RoleSpec]:
    values = laser.get_config("catch").to_dict()
    values["cluster"] = {"actors": 2, "learners": 2, "learner_gpus": 3.0}
    values["run"]["evaluate_every_env_frames"] = 1_000
    config = run_config.parse(values)
    spec = factory.environment_spec(config.environment)
    return run_work.RunWork(config, spec, None, mock.Mock()).role_specs


class _Work(fleet.Work):
    """Work that ends when `is_over` is set."""

    is_over = False

    def is_finished(self, roles: fleet.SupervisedRoles) -> bool:
        return self.is_over

    def update(self, roles: fleet.SupervisedRoles, heartbeats: fleet.Heartbeats) -> None:
        self.is_over = True


class FleetTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._stopped: list[str] = []
        self._heartbeats: dict[str, run_state.Heartbeat] = {}
        self._interrupted = mock.Mock(stop_requested=False, kill_requested=False)
        self._now = 0.0
        clock = mock.Mock(monotonic=lambda: self._now, sleep=self._sleep)
        self.enter_context(mock.patch.object(fleet, "time", clock))
        self.enter_context(mock.patch.object(fleet, "machines"))
        self.enter_context(mock.patch.object(role, "call", lambda *_: self._heartbeats))
        self.enter_context(mock.patch.object(fleet.Fleet, "_start", self._start))

    def _sleep(self, seconds: float) -> None:
        self._now += seconds

    def _start(self, spec: role.RoleSpec) -> mock.Mock:
        supervised = mock.Mock(
            spec=supervision.SupervisedRole, is_running=False, has_reported=True, restarts=1,
            waiting_seconds=0.0, has_unsaved_work=False, final_failure="",
        )  # fmt: skip
        supervised.name, supervised.spec = spec.name, spec
        supervised.status.side_effect = lambda heartbeat: (
            heartbeat.status if heartbeat else Status.STARTING
        )
        supervised.request_stop.side_effect = lambda: self._stopped.append(spec.name) or True
        return supervised

    def _make(self, **cluster: object) -> fleet.Fleet:
        work = _Work(_run_specs(), contextlib.nullcontext())
        return fleet.Fleet(work, self._folder, cluster_config.ClusterConfig(**cluster))

    def _run(self, running: fleet.Fleet) -> None:
        """Runs until the first check has ended."""
        running._work.is_over = False
        running.run(self._interrupted)

    def test_run_has_roles_with_their_resources(self):
        work = _Work(_run_specs(), contextlib.nullcontext())
        self.assertCountEqual(
            [spec.name for spec in work.role_specs],
            ["replay", "learner", "learner_1", "actor_00", "actor_01", "evaluator"],
        )
        self.assertEqual(work.requested_resources, (6.0, 6.0))

    def test_actor_may_step_the_environments_of_all_tasks_in_turn(self):
        values = laser.get_config("gymnasium").to_dict()
        values["environment"] |= {"task": "a,b", "num_workers": 1, "reply_seconds": 5.0}
        values["cluster"] = {"actors": 1, "envs_per_actor": 8}
        work = run_work.RunWork(run_config.parse(values), mock.Mock(), None, mock.Mock())
        (actor,) = (spec for spec in work.role_specs if spec.name == "actor_00")
        self.assertEqual(actor.max_step_seconds, 2 * (5 * 8) * 2)  # A worker may restart once.

    def test_stop_kills_the_evaluator_and_ends_with_replay(self):
        running = self._make()
        self._run(running)
        self.assertEqual(self._stopped, ["actor_00", "actor_01", "learner", "learner_1", "replay"])
        running.roles["evaluator"].kill.assert_called_once_with()

    @parameterized.parameters(("replay", True), ("actor_00", False))
    def test_only_roles_with_state_are_reported_as_unsaved(self, name, is_reported):
        running = self._make()
        running.roles[name].has_unsaved_work = True
        self._run(running)
        self.assertEqual(name in running.outcome(self._interrupted), is_reported)

    def test_learner_that_waits_for_a_restart_is_unsaved(self):
        running = self._make()
        learner = running.roles["learner"]
        learner.has_unsaved_work, learner.request_stop.side_effect = True, lambda: False
        self._run(running)
        self.assertIn("learner", running.outcome(self._interrupted))

    def test_failed_group_ends_the_fleet(self):
        running = self._make()
        running.roles["actor_00"].final_failure = "actor_00 failed"
        self._run(running)
        running.roles["actor_01"].final_failure = "actor_01 failed"
        with messages.raises(supervision.RoleFailedError, "actor_00"):
            self._run(running)

    @parameterized.parameters(
        (["learner"], 6, 0.0, True),
        (["actor_00", "actor_01"], 6, 0.0, True),
        (["actor_00"], 60, 0.0, False),
        (["learner"], 19, 20.0, False),
        (["learner"], 21, 20.0, True),
    )
    def test_missing_machine_fails_after_the_limit(
        self, waiting, minutes, wait_minutes, is_failure
    ):
        running = self._make(address="head:1", actors=2, wait_minutes=wait_minutes)
        for name in waiting:
            running.roles[name].waiting_seconds = 60.0 * minutes
        if is_failure:
            with messages.raises(
                supervision.RoleFailedError, *waiting, minutes, "cluster.wait_minutes"
            ):
                self._run(running)
            return
        with self.assertLogs(level="INFO") as logs:
            self._run(running)
        messages.assert_names(logs.output[0], *waiting)

    def test_roles_csv_has_a_row_for_each_role(self):
        running = self._make()
        self._heartbeats = {"actor_00": _heartbeat(memory_mebibytes=250.0)}
        self._run(running)
        text = (self._folder / fleet.ROLES).read_text()
        rows = {row["role"]: row for row in csv.DictReader(text.splitlines())}
        self.assertLen(rows, 6)
        self.assertEqual(rows["learner"]["status"], "starting")
        self.assertEqual(
            rows["actor_00"],
            {
                "role": "actor_00", "status": "running", "detail": "acts; slowly", "host": "host",
                "pid": "7", "memory_mebibytes": "250", "silent_seconds": "0.5",
                "restarts": "1",
            },
        )  # fmt: skip

    @parameterized.named_parameters(
        ("while_it_saves", Status.SAVING, range(0), 2_000),
        ("while_it_saves_and_the_state_restarts", Status.SAVING, range(500, 600), 2_000),
        ("for_a_limited_time", Status.RUNNING, range(0), 180),
    )
    def test_stop_waits(self, status, state_restarts, seconds):
        running = self._make()
        replay = running.roles["replay"]
        type(replay).is_running = mock.PropertyMock(side_effect=lambda: self._now < 2_000)
        heartbeat = {"replay": _heartbeat(status)}
        running._heartbeats = lambda: {} if int(self._now) in state_restarts else heartbeat
        self._run(running)
        self.assertBetween(self._now, seconds, seconds + 1)

    def test_second_interrupt_ends_the_wait(self):
        running = self._make()
        running.roles["replay"].is_running = True
        self._interrupted.kill_requested = True
        self._run(running)
        self.assertLess(self._now, 1.0)


class RunWorkTest(absltest.TestCase):
    def test_activities_are_shown_until_the_first_update(self):
        config = fakes.catch_config(cluster={"actors": 2})
        display = mock.Mock()
        work = run_work.RunWork(config, factory.environment_spec(config.environment), None, display)
        roles = {s.name: supervision.SupervisedRole(s, mock.Mock()) for s in work.role_specs}
        roles["replay"].has_reported = roles["learner"].has_reported = True
        heartbeats = {
            "replay": _heartbeat(),
            "learner": _heartbeat(Status.WAITING),
            "actor_00": _heartbeat(),  # Of a previous process.
        }
        work.update(roles, heartbeats)
        shown = {
            "replay": "running", "learner": "acts, slowly",
            "actor_00": "starting", "actor_01": "starting",
        }  # fmt: skip
        display.show_startup.assert_called_once_with(shown)
        numbers = dict.fromkeys(progress.Progress._fields, 1.0)
        metrics = {f"{run_work.PROGRESS}{name}": value for name, value in numbers.items()}
        work.update(roles, heartbeats | {"learner": _heartbeat(**metrics)})
        display.update.assert_called_once_with(progress.Progress(**numbers))
        display.show_startup.assert_called_once()


class SweepWorkTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        values = sweeps.get_config("catch").to_dict()
        values["cluster"].update(learner_gpus=64.0)
        self._config = sweep_config.parse(values)
        self._display = mock.Mock()
        spec = factory.environment_spec(self._config.first.environment)
        self._work = sweep_work.SweepWork(self._config, spec, self._folder, self._display)
        self._names = list(self._config.members)
        self._roles = {
            spec.name: supervision.SupervisedRole(spec, mock.Mock())
            for spec in self._work.role_specs
        }
        self._start_service = self.enter_context(mock.patch.object(machines, "start_service"))
        self._reports = {name: {"env_frames": 9, "finished": False} for name in self._names}
        self.enter_context(mock.patch.object(sweep_work.ray, "get", lambda *_, **__: self._reports))

    def test_every_member_requests_the_resources_of_a_learner(self):
        self.assertEqual(self._work.requested_resources, (5.0, 256.0))
        self.assertEqual([spec.name for spec in self._work.role_specs], ["replay", *self._names])

    def test_states_of_members_are_shown(self):
        self._work.start()
        done, running, restarted, placed = (self._roles[name] for name in self._names)
        done.is_done = True
        running.has_reported = restarted.has_reported = placed.has_reported = True
        restarted.restarts = 2
        heartbeats = {name: _heartbeat() for name in self._names}
        heartbeats[placed.name] = _heartbeat(Status.WAITING)
        self._work.update(self._roles, heartbeats)
        _, states = self._display.update.call_args.args
        self.assertEqual(
            states,
            {
                done.name: "finished",
                running.name: "running",
                restarted.name: "running, 2 restarts",
                placed.name: "acts, slowly",
            },
        )

    def test_sweep_ends_with_the_names_of_failed_members(self):
        self._work.start()
        for name in self._names:
            self._roles[name].is_done = name != self._names[3]
        self._roles[self._names[3]].final_failure = "failed"
        self.assertTrue(self._work.is_finished(self._roles))
        self._work.update(self._roles, {})
        with messages.raises(errors.UserError, self._names[3]):
            self._work.finish()
        self.assertFalse((self._folder / run_directory.FINISHED).exists())

    def test_sweep_whose_members_are_done_is_finished(self):
        self._work.finish()
        self.assertTrue((self._folder / run_directory.FINISHED).exists())

    def test_damaged_lineage_is_rejected_before_anything_starts(self):
        path = self._folder / lineage.FILE
        path.parent.mkdir()
        path.write_text("env_frames,member,parent,fitness,a.b\n40,member_00,,0.1,x\n")
        with messages.raises(ValueError, path, 2):
            self._work.start()
        self._start_service.assert_not_called()


if __name__ == "__main__":
    absltest.main()
