"""The process of a role, without Ray."""

import pathlib
import tempfile
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.cluster import role_process
from laser_tf.workdir import versions


class _Ended(role_process.Role):
    """As replay: its server answers nobody once it has ended."""

    def __init__(self, context: role_process.Context):
        self._context = context

    def run(self) -> str:
        return role_process.TOLD

    def metrics(self) -> dict[str, float]:
        raise RuntimeError("Socket closed")


class _Failing(role_process.Role):
    """A role whose work or constructor raises an error."""

    def __init__(
        self, context: role_process.Context, start: Exception | None, work: Exception | None
    ):
        if start:
            raise start
        self._error = work

    def run(self) -> str:
        raise self._error

    def metrics(self) -> dict[str, float]:
        return {}


class RoleProcessTest(parameterized.TestCase):
    def _make(self, name: str, arguments: dict) -> tuple[role_process.RoleProcess, mock.Mock]:
        folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self.enter_context(mock.patch.object(role_process, "log_to"))
        self.enter_context(mock.patch.object(role_process, "role_metrics")).of_process = dict
        self.enter_context(mock.patch.object(role_process.threading, "Thread"))
        self.enter_context(mock.patch.object(role_process.RoleProcess, "_stop_on_signals"))
        self.enter_context(mock.patch.object(role_process, "ray"))
        hub = mock.Mock()
        place = f"{__name__}:{name}"
        return role_process.RoleProcess("replay", place, arguments, folder, hub, {}), hub

    @parameterized.parameters(
        ({"start": ValueError("bug"), "work": None}, True),
        ({"start": None, "work": ValueError("bug")}, True),
        ({"start": errors.ConfigError("no such level"), "work": None}, False),
        ({"start": None, "work": errors.UserError("no such level")}, False),
    )
    def test_only_a_bug_logs_a_traceback(self, arguments, is_logged):
        process, _ = self._make("_Failing", arguments)
        error = arguments["start"] or arguments["work"]
        with (
            mock.patch.object(role_process.logging, "exception") as exception,
            self.assertRaises(type(error)),
        ):
            process.run(versions.of_machine())
        self.assertEqual(exception.called, is_logged)

    def test_a_role_without_metrics_is_heard_of_and_ends_as_it_says(self):
        process, hub = self._make("_Ended", {})
        self.assertEqual(process.run(versions.of_machine()), role_process.TOLD)
        name, health, *_ = hub.report.remote.call_args.args
        self.assertEqual((name, health.state, health.metrics), ("replay", role_process.ENDED, {}))


class SavingTest(absltest.TestCase):
    def test_it_is_told_until_it_has_ended_or_failed(self):
        context = role_process.Context("replay", pathlib.Path(), None)
        context.state = "serves"
        with self.assertRaises(RuntimeError), context.saving():
            self.assertEqual(context.state, role_process.SAVES)
            raise RuntimeError
        self.assertEqual(context.state, "serves")


class AnnounceTest(parameterized.TestCase):
    @parameterized.parameters((role_process.RESTORES, 0.5, 1.0), (role_process.STARTS, 9.9, 11.0))
    def test_it_waits_until_the_state_is_reported_but_not_for_a_hub_that_is_away(
        self, heard, least, most
    ):
        context = role_process.Context("replay", pathlib.Path(), None)
        now = 0.0

        def sleep(seconds: float) -> None:
            nonlocal now
            now += seconds
            if now > 0.5:
                context.reported = heard

        with mock.patch.object(role_process, "time") as clock:
            clock.monotonic, clock.sleep = lambda: now, sleep
            context.announce(role_process.RESTORES)
        self.assertEqual(context.state, role_process.RESTORES)
        self.assertBetween(now, least, most)


if __name__ == "__main__":
    absltest.main()
