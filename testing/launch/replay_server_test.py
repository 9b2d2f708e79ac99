"""launch.replay_server: processes, signals and bad flags."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
from unittest import mock

import pytest
from absl.testing import absltest, parameterized

from laser_tf.host import private_network
from testing import commands, messages, processes

CATCH = "--config=configs/laser.py:catch"


class ReplayServerTest(commands.CommandTest):
    def setUp(self):
        super().setUp()
        self._folder = self.workdir.parent
        self._checkpoint = f"--checkpoint_folder={self._folder / 's'}"

    def _start(self, port: int, *flags: str) -> tuple[subprocess.Popen, pathlib.Path]:
        """Starts a server and waits until it serves; also returns its log."""
        log = self._folder / "s.log"
        with log.open("a") as file:
            started = log.read_text().count("Serving replay")
            process = subprocess.Popen(
                [
                    sys.executable, "-m", "launch.replay_server", CATCH, f"--port={port}",
                    self._checkpoint, *flags,
                ],
                stderr=file,
            )  # fmt: skip
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        processes.wait_until(
            lambda: log.read_text().count("Serving replay") > started, 120.0, process
        )
        return process, log

    def _end(self, process: subprocess.Popen) -> None:
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=60), -signal.SIGTERM)

    def test_run_trains_on_a_server_and_resumes_after_its_restart(self):
        port = processes.free_port()
        process, log = self._start(port)
        flags = (
            CATCH,
            f"--config.replay.address=localhost:{port}",
            "--config.learner.learning_rate_schedule=constant",
            "--config.run.evaluation_episodes=0",
            f"--workdir={self.workdir}",
        )
        self.succeed("train", *flags, "--config.run.env_frames=4000")
        self.assertEmpty(list((self.workdir / "checkpoints/replay").iterdir()))
        self._end(process)
        held = re.findall(r"replay: ([0-9,]+) items", log.read_text())
        self.assertGreater(int(held[-1].replace(",", "")), 250)

        # The server comes back with its items at another port.
        moved = processes.free_port()
        again, log = self._start(moved)
        full = int(re.findall(r"Serving replay on port \d+, (\d+)% full", log.read_text())[-1])
        self.assertGreater(full, 12)
        flags = (*flags, f"--config.replay.address=localhost:{moved}")
        _, errors = self.succeed("train", *flags, "--config.run.env_frames=6000")
        self.assertIn("Resuming", errors)
        config = json.loads((self.workdir / "config.json").read_text())["config"]
        self.assertEqual(config["run"]["env_frames"], 6000)
        self._end(again)

    @pytest.mark.long
    def test_killed_server_of_a_cluster_run_resumes(self):
        port = processes.free_port()
        process, log = self._start(port, "--checkpoint_minutes=0.02")
        flags = (
            CATCH, f"--config.replay.address=localhost:{port}", "--config.run.env_frames=8000",
            "--config.run.evaluation_episodes=0", f"--workdir={self.workdir}",
            "--config.cluster.actors=2",
        )  # fmt: skip
        self.succeed("train", *flags)
        roles = (self.workdir / "roles.csv").read_text()
        self.assertRegex(roles, r"\nlearner,finished,(?s:.*)\nactor_01,")
        self.assertNotRegex(roles, r"\nreplay,")
        time.sleep(5)
        process.kill()
        process.wait()
        again, log = self._start(port)
        full = int(re.findall(r"Serving replay on port \d+, (\d+)% full", log.read_text())[-1])
        self.assertGreater(full, 25)
        self._end(again)
        named = "'replay'", 2000, 3000, "--checkpoint_folder"
        flags = CATCH, "--config.replay.capacity=30000", self._checkpoint, "--port=0"
        code, _, errors = commands.run("replay_server", *flags)
        self.assertEqual(code, 1)
        messages.assert_names(errors, *named)

    @parameterized.parameters(
        ((), "--checkpoint_folder"),
        (("--checkpoint_folder=F", "--port=70000"), "port", 70000),
        (("--checkpoint_folder=/proc/x",), "/proc/x"),
        (("--checkpoint_folder=F", "--memory_limit_gb=-1"), "memory_limit_gb", "-1"),
        (("--checkpoint_folder=F", "--checkpoint_minutes=0"), "checkpoint_minutes", 0),
        (("--checkpoint_folder=F", "--memory_limit_gb=nan"), "--memory_limit_gb", "nan"),
        (("--checkpoint_folder=F", "--checkpoint_minutes=nan"), "--checkpoint_minutes", "nan"),
        (("--checkpoint_folder=F", "--config.replay.capacity=1"), "capacity", 160, 1),
    )
    def test_bad_flag_is_rejected(self, flags, *named):
        given = [flag.replace("=F", f"={self._folder / 's'}") for flag in flags]
        self.assert_rejected(named, "replay_server", CATCH, *given)

    def test_taken_port_is_rejected_before_tensorflow_is_loaded(self):
        # Found before TensorFlow itself.
        (self._folder / "tensorflow.py").write_text("raise RuntimeError('it was loaded')")
        with (
            socket.create_server(("", 0)) as taken,
            mock.patch.dict(os.environ, PYTHONPATH=str(self._folder)),
        ):
            port = f"--port={taken.getsockname()[1]}"
            flags = CATCH, self._checkpoint, port
            self.assert_rejected(("port",), "replay_server", *flags, forked=False)

    def test_memory_limit_below_the_process_is_rejected(self):
        flags = CATCH, "--port=0", self._checkpoint, "--memory_limit_gb=0.1"
        self.assert_rejected(("--memory_limit_gb", 0.1), "replay_server", *flags)

    def test_unreachable_server_is_rejected_and_nothing_written(self):
        flags = CATCH, "--config.replay.address=localhost:1", f"--workdir={self.workdir}"
        self.assert_rejected(("address", "localhost:1"), "train", *flags)
        self.assertFalse(self.workdir.exists())

    @parameterized.parameters(
        (("--config.replay.address=a:1",), True),
        (("--config.replay.address", "a:1"), True),
        (("-config.replay.address=a:1",), True),
        (("--config.replay.address=",), False),
        (("--config.replay.address=a:1", "--config.replay.address="), False),
        (("--config.replay.capacity=1",), False),
        (("--config.cluster.address=auto",), True),
        (("--config.cluster.address", "a:1", "--config.replay.address="), True),
        (("--config.cluster.address=",), False),
        (("--override=replay.address=a:1",), True),
        (("--override", "cluster.address=a:1"), True),
        (("--config.replay.address=a:1", "--override=replay.address="), False),
        (("--override=learner.learning_rate=0.1",), False),
    )
    def test_run_that_names_other_machines_keeps_its_network(self, flags, names):
        self.assertEqual(private_network.names_other_machines(("train", *flags)), names)


if __name__ == "__main__":
    absltest.main()
