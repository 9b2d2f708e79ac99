"""Environments of a user's own through launch.train, from the command line to the evaluation."""

import json
import pathlib
import socketserver
import tempfile
import threading

import pytest
from absl.testing import absltest, parameterized

from testing import commands, messages

SMALL = "testing.environments.small_environments"


class StepServer(socketserver.ThreadingTCPServer):
    """Serves `small_environments.Remote` and ends one of its processes.

    Attributes:
      steps: Number of answered requests.
      connections_after_exit: Number of connections after the end of that process.
    """

    daemon_threads = True

    def __init__(self, exit_at):
        super().__init__(("127.0.0.1", 0), _StepHandler)
        self.steps, self.connections_after_exit, self.exit_at = 0, 0, exit_at
        self.lock = threading.Lock()

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return super().__enter__()

    def __exit__(self, *arguments):
        self.shutdown()
        super().__exit__(*arguments)


class _StepHandler(socketserver.BaseRequestHandler):
    def handle(self):
        with self.server.lock:
            self.server.connections_after_exit += self.server.steps >= self.server.exit_at
        while self.request.recv(4):
            with self.server.lock:
                self.server.steps += 1
                is_exit = self.server.steps == self.server.exit_at
            self.request.sendall(b"exit" if is_exit else b"good")


class OwnEnvironmentTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = self.enter_context(tempfile.TemporaryDirectory())
        self._workdir = pathlib.Path(folder) / "run"

    def _train(self, task, *arguments, env_frames=6_000, config="laser:gymnasium"):
        return commands.run(
            "train",
            f"--config={config}",
            f"--workdir={self._workdir}",
            f"--config.environment.task={task}",
            "--config.environment.num_workers=1",
            f"--config.run.env_frames={env_frames}",
            "--config.run.evaluation_episodes=20",
            *arguments,
        )

    def _summary(self):
        return json.loads((self._workdir / "evaluation.json").read_text())

    @pytest.mark.long
    def test_an_own_class_of_30_lines_is_learned(self):
        code, _, errors = self._train(
            f"{SMALL}:Corridor-v0", "--config.environment.arguments=length=2"
        )
        self.assertEqual(code, 0, errors)
        self.assertGreaterEqual(self._summary()["mean_return"], 0.9)  # at random: 0.5
        self.assertEqual(self._summary()["protocol"]["arguments"], {"length": 2})
        self.assertTrue((self._workdir / "videos/evaluation_001.mp4").exists())

    def test_a_dict_of_an_image_and_vectors_is_learned(self):
        code, _, errors = self._train(
            f"{SMALL}:Beacons",
            "--config.environment.suite=dm_env",
            "--config.agent.torso=flat",
            "--config.run.evaluation_episodes=60",
            env_frames=20_000,
        )
        self.assertEqual(code, 0, errors)
        # At random 2.5 of 5, with a standard error of 0.14. By then most seeds answer all four
        # observations rightly, 5, and some three of them, 3.75.
        self.assertGreaterEqual(self._summary()["mean_return"], 3.2)

    @pytest.mark.long
    def test_continuous_actions_run(self):
        code, _, errors = self._train("Pendulum-v1", config="laser:control", env_frames=2_000)
        self.assertEqual(code, 0, errors)
        self.assertLess(self._summary()["max_return"], 0)

    def test_images_that_the_torso_cannot_read_are_refused_before_anything_is_written(self):
        code, _, error = self._train(f"{SMALL}:Started-v0")
        self.assertEqual(code, 1)
        messages.assert_names(error, "agent.torso", "shallow")
        self.assertLen(error.splitlines(), 1, error)
        self.assertFalse(self._workdir.exists())

    def test_frame_stack_without_images_writes_nothing(self):
        code, _, errors = self._train("CartPole-v1", "--config.replay.frame_stack=4")
        self.assertEqual(code, 1, errors)
        messages.assert_names(errors, "replay.frame_stack", 4, "replay.frame_stack=1")
        self.assertFalse(self._workdir.exists())

    def test_an_agent_that_cannot_take_the_actions_is_refused_before_anything_is_written(self):
        for config, flag, named in (
            ("laser:control", "--config.agent.relevance=implied", ("agent.relevance", "implied")),
            ("acer:control", "--config.agent.entropy_cost=0.01", ("agent.entropy_cost", 0.01)),
            ("laser:gymnasium", "--config.run.seed=1", ("--config=configs/laser.py:control",)),
        ):
            code, _, errors = self._train("Pendulum-v1", flag, config=config)
            self.assertEqual(code, 1, errors)
            messages.assert_names(errors.splitlines()[-1], *named)
            self.assertFalse(self._workdir.exists())

    def test_faults_are_survived_and_told(self):
        code, _, errors = self._train(
            f"{SMALL}:Breaking-v0", "--config.environment.arguments=fault=raise,each=50,bad_seed=-1"
        )
        self.assertEqual(code, 0, errors)
        training, _ = errors.split("mean return of the last 100 training episodes")
        messages.assert_names(training, "Breaking-v0", "KeyError")
        messages.assert_names(errors, "render_mode", "None")
        self.assertEmpty(list((self._workdir / "videos").iterdir()))
        self.assertIn("Traceback", (self._workdir / "environment_errors.txt").read_text())
        self.assertGreaterEqual(self._summary()["mean_return"], 0.9)

    def test_a_run_makes_an_environment_to_describe_it_and_those_that_it_plays(self):
        made = self._workdir.with_name("made")
        code, _, errors = self._train(
            f"{SMALL}:counted_beacons",
            "--config.environment.suite=dm_env",
            f"--config.environment.arguments=log={made}",
            "--config.environment.num_envs=1",
            "--config.run.evaluation_episodes=0",
            "--config.agent.torso=flat",
            env_frames=400,
        )
        self.assertEqual(code, 0, errors)
        self.assertEqual(made.read_text(), "made\n" * 2)

    @parameterized.parameters(0, 1)
    def test_environment_reaches_a_server_of_the_host(self, actors):
        """Also after a restart of the worker, and in the evaluation."""
        with StepServer(exit_at=100) as server:
            code, _, errors = self._train(
                f"{SMALL}:Remote",
                "--config.environment.suite=dm_env",
                f"--config.environment.arguments=port={server.server_address[1]}",
                "--config.environment.num_envs=2",
                "--config.run.evaluation_episodes=4",
                "--config.agent.torso=flat",
                f"--config.cluster.actors={actors}",
                env_frames=2_000,
            )
        self.assertEqual(code, 0, errors)
        self.assertEqual(self._summary()["episodes"], 4)
        self.assertGreater(server.steps, 1_000)
        self.assertGreaterEqual(server.connections_after_exit, 3)  # Training and evaluation.

    def test_what_cannot_be_played_leaves_nothing_behind(self):
        code, output, errors = self._train(f"{SMALL}:Corridoor-v0")
        self.assertEqual((code, output), (1, ""))
        self.assertLen(errors.splitlines(), 1, errors)
        messages.assert_names(errors, "Corridor-v0")
        self.assertFalse(self._workdir.exists())


if __name__ == "__main__":
    absltest.main()
