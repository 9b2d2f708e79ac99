"""A fleet's checks, `roles.csv` and the order in which roles stop, without processes."""

import csv
import pathlib
import tempfile
from unittest import mock

import ray
from absl.testing import absltest, parameterized

from configs import laser, sweeps
from laser_tf import errors
from laser_tf.cluster import (
    fleet,
    role_actor,
    role_spec,
    run_job,
    run_state,
    supervision,
    sweep_job,
)
from laser_tf.cluster.run_state import Status
from laser_tf.environments import factory
from laser_tf.sweeps import lineage, sweep_config
from laser_tf.training import cluster_config, run_config
from laser_tf.workdir import run_directory
from testing import messages


def _heartbeat(status: Status = Status.RUNNING, **metrics: float) -> run_state.Heartbeat:
    return run_state.Heartbeat("host", "node", 7, status, "acts, slowly", False, metrics, 0.5)


class _Job:
    """A job that ends when it is told to."""

    def __init__(self):
        self.is_over = False
        self.on_update = lambda: None

    def start(self) -> None:
        pass

    def is_finished(self, roles: dict) -> bool:
        return self.is_over

    def update(self, roles: dict, heartbeats: dict) -> None:
        self.on_update()


class FleetTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self._made: dict[str, mock.Mock] = {}
        self._stopped: list[str] = []
        self._heartbeats: dict[str, run_state.Heartbeat] = {}
        self._job = _Job()
        self.enter_context(mock.patch.object(role_actor, "start_state"))
        self.enter_context(mock.patch.object(fleet.machines, "HeadMonitor"))
        self.enter_context(mock.patch.object(role_actor, "heartbeats", lambda _: self._heartbeats))
        self.enter_context(mock.patch.object(fleet.Fleet, "_start", self._start))

    def _start(self, spec: role_spec.RoleSpec, _) -> mock.Mock:
        role = mock.Mock(
            spec=supervision.SupervisedRole, is_done=False, has_failed=False, is_over=False,
            is_working=False, has_process=True, restarts=1, has_stopped_cleanly=True,
            required=spec.required, failure=f"{spec.name} failed",
        )  # fmt: skip
        role.name = spec.name
        role.status.side_effect = lambda heartbeat: (
            heartbeat.status if heartbeat else Status.STARTING
        )
        role.stop.side_effect = lambda: self._stopped.append(spec.name) or True
        self._made[spec.name] = role
        return role

    def _make(self, *specs: role_spec.RoleSpec) -> fleet.Fleet:
        return fleet.Fleet(self._job, specs, self._folder, cluster_config.ClusterConfig())

    def _specs(self) -> list[role_spec.RoleSpec]:
        values = laser.get_config("catch").to_dict()
        values["cluster"] = {"actors": 2, "learners": 2, "learner_gpus": 3.0}
        values["run"]["evaluate_every_env_frames"] = 1_000
        config = run_config.parse(values)
        return run_job.role_specs(config, factory.environment_spec(config.environment), None)

    def test_roles_of_a_run_and_their_resources(self):
        specs = self._specs()
        self.assertCountEqual(
            [spec.name for spec in specs],
            ["replay", "learner", "learner_1", "actor_00", "actor_01", "evaluator"],
        )
        self.assertEqual(role_spec.requested_resources(specs), (6.0, 6.0))

    def test_stop_releases_the_evaluator_and_ends_with_replay(self):
        running = self._make(*self._specs())
        interrupted = mock.Mock(stop=True, kill_requested=False)
        self._heartbeats = {}
        running.run(interrupted)
        self.assertEqual(self._stopped, ["actor_00", "actor_01", "learner", "learner_1", "replay"])
        self._made["evaluator"].release.assert_called_once_with()

    @parameterized.parameters(("replay", True), ("actor_00", False))
    def test_only_roles_that_save_state_are_reported_as_unsaved(self, name, is_reported):
        running = self._make(*self._specs())
        self._made[name].has_stopped_cleanly = False
        interrupted = mock.Mock(stop=True, kill_requested=False)
        running.run(interrupted)
        self.assertEqual(name in running.outcome(interrupted), is_reported)

    def _run_once(self, running: fleet.Fleet) -> None:
        def end() -> None:
            self._job.is_over = True

        self._job.on_update = end
        running.run(mock.Mock(stop=False, kill_requested=False))

    def test_failed_group_ends_the_fleet(self):
        running = self._make(*self._specs())
        self._made["actor_00"].has_failed = True
        self._run_once(running)
        self._job.is_over = False
        self._made["actor_01"].has_failed = True
        with messages.raises(supervision.RoleFailedError, "actor_00"):
            self._run_once(running)

    def test_ended_role_frees_its_resources(self):
        running = self._make(*self._specs())
        self._made["actor_00"].check.side_effect = lambda _: self._made["actor_00"].configure_mock(
            is_over=True
        )
        self._run_once(running)
        self._made["actor_00"].release.assert_called_once_with()
        self._made["actor_01"].release.assert_not_called()

    def test_roles_csv_has_a_row_for_each_role(self):
        running = self._make(*self._specs())
        self._heartbeats = {"actor_00": _heartbeat(memory_mebibytes=250.0)}
        self._run_once(running)
        text = (self._folder / fleet.ROLES).read_text()
        rows = {row["role"]: row for row in csv.DictReader(text.splitlines())}
        self.assertLen(rows, 6)
        self.assertEqual(rows["learner"]["status"], "starting")
        self.assertEqual(
            rows["actor_00"],
            {
                "role": "actor_00", "status": "running", "detail": "acts; slowly", "host": "host",
                "process": "7", "memory_mebibytes": "250", "silent_seconds": "0.5",
                "restarts": "1",
            },
        )  # fmt: skip


class WaitTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._now, self._ends_after, self._status = 0.0, 2_000.0, Status.SAVING
        self._state_is_away = range(0)
        self._role = mock.Mock()
        self._role.name = "replay"
        type(self._role).is_working = mock.PropertyMock(
            side_effect=lambda: self._now < self._ends_after
        )

    def _sleep(self, seconds: float) -> None:
        self._now += seconds

    def _read(self, _: object) -> dict[str, run_state.Heartbeat]:
        is_away = int(self._now) in self._state_is_away
        return {} if is_away else {"replay": _heartbeat(self._status)}

    def _wait(self, is_killed: bool = False) -> None:
        with mock.patch.object(role_actor, "heartbeats", self._read):
            fleet.wait_until_stopped(
                [self._role], None, mock.Mock(kill_requested=is_killed), 180.0,
                clock=lambda: self._now, sleep=self._sleep,
            )  # fmt: skip

    def test_saving_extends_the_limit_also_while_the_state_restarts(self):
        self._state_is_away = range(500, 600)
        self._wait()
        self.assertBetween(self._now, 2_000.0, 2_001.0)

    def test_role_that_saves_nothing_has_a_limit(self):
        self._status = Status.RUNNING
        self._wait()
        self.assertBetween(self._now, 180.0, 181.0)

    def test_second_interrupt_ends_the_wait(self):
        self._wait(is_killed=True)
        self.assertEqual(self._now, 0.0)


class SweepJobTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        values = sweeps.get_config("catch").to_dict()
        values["cluster"].update(learner_gpus=64.0)
        self._config = sweep_config.parse(values)
        self._display = mock.Mock()
        self._job = sweep_job.SweepJob(self._config, self._folder, self._display)
        self._names = list(self._config.members)
        self._roles = {name: self._role(name) for name in self._names}
        self._coordinator = mock.Mock()
        self.enter_context(mock.patch.object(sweep_job.role_actor, "on_this_node"))
        self.enter_context(
            mock.patch.object(sweep_job.role_actor, "restarted")
        ).return_value.remote.return_value = self._coordinator
        self._reports = {name: {"env_frames": 9, "finished": False} for name in self._names}
        self.enter_context(mock.patch.object(sweep_job.ray, "get", lambda *_, **__: self._reports))

    def _role(self, name: str) -> supervision.SupervisedRole:
        actor = mock.Mock(is_working=True)
        actor.result.return_value = Status.FINISHED
        supervised = supervision.SupervisedRole(name, actor, required=False)
        supervised._actor = actor
        return supervised

    def test_every_member_requests_the_resources_of_a_learner(self):
        spec = factory.environment_spec(self._config.first.environment)
        specs = sweep_job.role_specs(self._config, spec)
        self.assertEqual(role_spec.requested_resources(specs), (5.0, 256.0))
        self.assertEqual([spec.name for spec in specs], ["replay", *self._names])

    def test_states_of_members_are_shown(self):
        self._job.start()
        done, evaluating, restarted, waiting = self._roles.values()
        done.is_done, done.has_process = True, True
        evaluating.has_process = restarted.has_process = True
        restarted.restarts = 2
        self._reports[evaluating.name]["finished"] = True
        self._job.update(self._roles, {name: _heartbeat() for name in self._names})
        _, states = self._display.update.call_args.args
        self.assertEqual(
            states,
            {
                done.name: "finished",
                evaluating.name: "finished, evaluating",
                restarted.name: "running, 2 restarts",
                waiting.name: "starting",
            },
        )

    def test_dead_members_hold_up_nobody(self):
        self._job.start()
        self._roles[self._names[1]]._actor.is_working = False
        for _ in range(2):
            self._job.update(self._roles, {})
        self._coordinator.mark_dead.remote.assert_called_once_with(self._names[1])

    def test_sweep_ends_with_the_names_of_failed_members(self):
        self._job.start()
        for name in self._names:
            self._roles[name].is_done = name != self._names[3]
        self._roles[self._names[3]].failure = "failed"
        self.assertTrue(self._job.is_finished(self._roles))
        self._job.update(self._roles, {})
        with messages.raises(errors.UserError, self._names[3]):
            self._job.finish()
        self.assertFalse((self._folder / run_directory.FINISHED).exists())

    def test_sweep_whose_members_are_done_is_finished(self):
        self._job.finish()
        self.assertTrue((self._folder / run_directory.FINISHED).exists())

    def test_damaged_lineage_is_rejected_before_anything_starts(self):
        path = self._folder / lineage.FILE
        path.parent.mkdir()
        path.write_text("env_frames,member,parent,fitness,a.b\n40,member_00,,0.1,x\n50")
        with messages.raises(ValueError, path, 2):
            self._job.start()
        sweep_job.role_actor.restarted.assert_not_called()


class RoleActorTest(absltest.TestCase):
    def test_ray_keeps_no_record_of_calls(self):
        # Ray would keep 3 KB of each of a hundred thousand calls.
        with mock.patch.object(role_actor.ray, "remote") as remote:
            role_actor.restarted(run_state.RunState, num_cpus=0)
        options = remote.call_args.kwargs
        self.assertEqual(options["max_restarts"], -1)
        self.assertFalse(options["enable_task_events"])

    def test_exited_process_has_ended_its_call(self):
        handle = mock.Mock()
        actor = role_actor.RoleActor(handle, {})
        self.assertTrue(actor.has_exited)
        actor.start()
        with mock.patch.object(role_actor.ray, "wait", return_value=([], [])):
            self.assertTrue(actor.is_working)
            actor.exit()
            self.assertFalse(actor.has_exited)
        with mock.patch.object(ray, "wait", return_value=([1], [])):
            self.assertTrue(actor.has_exited)


if __name__ == "__main__":
    absltest.main()
