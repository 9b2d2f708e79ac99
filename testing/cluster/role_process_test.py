"""The process of a role and its context, without Ray."""

import logging
import os
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.cluster import role, role_process, run_state
from laser_tf.workdir import run_directory
from testing import folders, messages


class _Ended(role.Role):
    """A role without metrics, e.g. replay whose server has stopped."""

    def __init__(self, context: role.RoleContext):
        super().__init__(context, None)

    def run(self) -> bool:
        return True

    def metrics(self) -> dict[str, float]:
        raise RuntimeError("Socket closed")


class _Announcing(_Ended):
    """A role that logs a warning for the driver and another one."""

    def run(self) -> bool:
        logging.warning("needs %d GB", 9, extra={"is_announced": True})
        logging.warning("slow")
        return True


class _Failing(role.Role):
    """A role whose work or constructor raises an error."""

    def __init__(self, context: role.RoleContext, start: Exception | None, work: Exception | None):
        if start:
            raise start
        self._error = work

    def run(self) -> bool:
        raise self._error

    def metrics(self) -> dict[str, float]:
        return {}


class RoleProcessTest(folders.FolderTest):
    def _make(
        self, name: str, versions_: dict, num_gpus: float = 0.0, **arguments
    ) -> role_process.RoleProcess:
        self.enter_context(mock.patch.object(role_process, "log_to"))
        self.enter_context(mock.patch.object(logging.getLogger(), "filters", []))
        self.enter_context(mock.patch.object(role_process, "ray_metrics"))
        self.enter_context(mock.patch.object(role_process.threading, "Thread"))
        self._call = self.enter_context(mock.patch.object(role, "call"))
        spec = role.RoleSpec(
            "replay", f"{__name__}:{name}", arguments, role.StopStage.REPLAY, num_gpus=num_gpus
        )
        return role_process.RoleProcess(spec, self._folder, None, versions_, 0)

    @parameterized.parameters((0.0, ""), (0.5, "0"))
    def test_role_without_a_gpu_sees_none(self, num_gpus, visible):
        with mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "0"}):
            self._make("_Failing", {}, num_gpus=num_gpus)
            self.assertEqual(os.environ["CUDA_VISIBLE_DEVICES"], visible)

    @parameterized.parameters(
        ({"start": ValueError("bug"), "work": None}, True),
        ({"start": None, "work": ValueError("bug")}, True),
        ({"start": errors.ConfigError("no such level"), "work": None}, False),
        ({"start": None, "work": errors.UserError("no such level")}, False),
        ({"start": None, "work": role.RestartError("another learner")}, False),
    )
    def test_only_a_bug_logs_a_traceback(self, arguments, is_logged):
        process = self._make("_Failing", {}, **arguments)
        error = arguments["start"] or arguments["work"]
        with (
            mock.patch.object(role_process.logging, "exception") as exception,
            self.assertRaises(type(error)),
        ):
            process.run()
        self.assertEqual(exception.called, is_logged)

    def test_stop_while_the_role_waits_is_no_error(self):
        process = self._make("_Failing", {}, start=errors.StoppedError(), work=None)
        self.assertFalse(process.run())

    def test_other_versions_raise(self):
        process = self._make("_Ended", {"numpy": "0"})
        with messages.raises(role_process.MachineDiffersError, "replay", "numpy"):
            process.run()

    def test_role_without_metrics_sends_heartbeats(self):
        process = self._make("_Ended", {})
        self.assertTrue(process.run())
        _, method, name, heartbeat, *_ = self._call.call_args.args
        self.assertEqual(
            (method, name, heartbeat.status), ("report", "replay", run_state.Status.STOPPED)
        )
        self.assertEqual(list(heartbeat.metrics), [role_process.MEMORY])

    def test_announced_warning_is_in_heartbeats(self):
        self.assertTrue(self._make("_Announcing", {}).run())
        _, _, _, heartbeat, *_ = self._call.call_args.args
        self.assertEqual(heartbeat.announcements, ("needs 9 GB",))


class ContextTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._context = role.RoleContext("replay", self._folder, None)

    def test_saving_is_reported_until_it_ends_or_fails(self):
        self._context.status = run_state.Status.RUNNING
        with self.assertRaises(RuntimeError), self._context.saving():
            self.assertEqual(self._context.status, run_state.Status.SAVING)
            raise RuntimeError
        self.assertEqual(self._context.status, run_state.Status.RUNNING)

    def test_wait_ends_with_a_stop(self):
        self.enter_context(mock.patch.object(role, "call", return_value=None))
        self._context.stop_requested.set()
        with self.assertRaises(errors.StoppedError):
            self._context.find_replay_address()

    def test_missing_directory_names_the_flag(self):
        context = role.RoleContext("replay", self._folder / "missing", None)
        with messages.raises(run_directory.WorkdirError, "--workdir", context.workdir, "replay"):
            context.acquire_lock()


if __name__ == "__main__":
    absltest.main()
