"""What a sweep says of its processes: a finished agent is not "running", whatever it does next."""

import pathlib
import tempfile
from unittest import mock

from absl.testing import absltest, parameterized

from configs import sweep_laser_catch
from laser_tf.host import run_folder
from laser_tf.sweeps import sweep_config, sweep_processes


class SweepProcessesTest(parameterized.TestCase):
    def _states(
        self, evaluation_episodes: int, ended: set[str], finished: set[str]
    ) -> dict[str, str]:
        """Of a sweep's first look at agents that ended, or that say that they are finished."""
        folder = self.enter_context(tempfile.TemporaryDirectory())
        values = sweep_laser_catch.get_config().to_dict()
        values["run"]["evaluation_episodes"] = evaluation_episodes
        config = sweep_config.parse(values)
        reports = {
            name: {"env_frames": 9, "running": name not in finished, "finished": name in finished}
            for name in config.agents
        }

        def process(name: str, *_) -> mock.Mock:
            made = mock.Mock(has_failed=False, is_over=name in ended, restarts=0)
            made.watch.return_value = False
            return made

        interrupted = mock.Mock()
        type(interrupted).stop = mock.PropertyMock(side_effect=[False, True, True])
        *local, _ = config.agents  # the last one is on another machine
        with (
            mock.patch.object(run_folder, "read_sweep_id", return_value="id"),
            mock.patch.object(sweep_processes.supervisor, "Process", process),
            mock.patch.object(sweep_processes.supervisor, "end"),
            mock.patch.object(sweep_processes.rpc, "Client") as client,
            mock.patch.object(sweep_processes.time, "sleep"),
            mock.patch.object(sweep_processes.sweep_display, "SweepDisplay") as display,
        ):
            client.return_value.call.return_value.values = reports
            sweep_processes.SweepProcesses(config, local, pathlib.Path(folder), None).run(
                interrupted
            )
            update = display.return_value.__enter__.return_value.update
        return update.call_args.args[1]

    @parameterized.parameters((30, "finished, evaluating"), (0, "finished"))
    def test_a_finished_agent_is_not_running(self, evaluation_episodes, expected):
        states = self._states(
            evaluation_episodes,
            ended={"agent_00"},
            finished={"agent_00", "agent_01", "agent_03"},
        )
        self.assertEqual(
            states,
            {
                "agent_00": "finished",
                "agent_01": expected,  # its process is still there
                "agent_02": "running",
                "agent_03": "elsewhere, finished",
            },
        )


if __name__ == "__main__":
    absltest.main()
