"""Custom environments in launch.train, from the command line to the evaluation."""

import json
import socketserver
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


class OwnEnvironmentTest(commands.CommandTest):
    def _flags(self, task, *arguments, env_frames=6_000, config="laser:gymnasium"):
        return (
            "train",
            f"--config={config}",
            f"--workdir={self.workdir}",
            f"--config.environment.task={task}",
            "--config.environment.num_workers=1",
            f"--config.run.env_frames={env_frames}",
            "--config.run.evaluation_episodes=20",
            *arguments,
        )

    def _train(self, *arguments, **others):
        return self.succeed(*self._flags(*arguments, **others))

    def _summary(self):
        return json.loads((self.workdir / "evaluation.json").read_text())

    @pytest.mark.long
    def test_gymnasium_class_is_learned(self):
        self._train(f"{SMALL}:Corridor-v0", "--config.environment.arguments=length=2")
        self.assertGreaterEqual(self._summary()["mean_return"], 0.9)  # at random: 0.5
        self.assertEqual(self._summary()["protocol"]["arguments"], {"length": 2})
        self.assertTrue((self.workdir / "videos/evaluation_001.mp4").exists())

    @pytest.mark.long
    def test_dict_of_an_image_and_vectors_is_learned(self):
        self._train(
            f"{SMALL}:Beacons",
            "--config.environment.suite=dm_env",
            "--config.agent.torso=flat",
            "--config.run.evaluation_episodes=60",
            env_frames=20_000,
        )
        # A random policy reaches 2.5 with a standard error of 0.14. After this training most seeds
        # act well on all four observations (return 5), some seeds on three of them (3.75).
        self.assertGreaterEqual(self._summary()["mean_return"], 3.2)

    def test_suite_of_another_config_runs_with_continuous_actions(self):
        _, errors = self._train(
            "MountainCarContinuous-v0",
            "--config.environment.suite=gymnasium",
            "--config.environment.max_frames_per_episode=100",
            "--config.run.evaluation_episodes=2",
            config="laser:atari",
            env_frames=1_000,
        )
        messages.assert_names(errors, "environment.no_op_max", "agent.trust_region=behaviour")
        recorded = json.loads((self.workdir / "config.json").read_text())["config"]
        self.assertEqual(recorded["agent"]["trust_region"], "auto")
        self.assertEqual(recorded["environment"]["action_repeat"], 1)
        self.assertLess(self._summary()["max_return"], 0)

    @parameterized.parameters(
        ("laser:gymnasium", f"{SMALL}:Corridoor-v0", "--config.run.seed=1", "Corridor-v0"),
        # The torso cannot read its images.
        ("laser:gymnasium", f"{SMALL}:Started-v0", "--config.run.seed=1", "agent.torso", "shallow"),
        ("laser:gymnasium", "CartPole-v1", "--config.replay.frame_stack=4", "frame_stack", 4),
        ("r2d2:gymnasium", "Pendulum-v1", "--config.run.seed=1", "r2d2", "agent.name=laser"),
    )
    def test_unfit_environment_is_rejected_and_nothing_written(self, config, task, flag, *named):
        self.assert_rejected(named, *self._flags(task, flag, config=config))
        self.assertFalse(self.workdir.exists())

    def test_faults_are_logged_and_training_continues(self):
        _, errors = self._train(
            f"{SMALL}:Breaking-v0",
            "--config.environment.arguments=fault=raise,each=50,bad_seed=-1",
            env_frames=3_000,
        )
        training, _ = errors.split("in the last 100 training episodes")
        messages.assert_names(training, "Breaking-v0", "KeyError")
        messages.assert_names(errors, "render_mode", "None")
        self.assertEmpty(list((self.workdir / "videos").iterdir()))
        self.assertIn("Traceback", (self.workdir / "environment_errors.txt").read_text())
        self.assertGreaterEqual(self._summary()["mean_return"], 0.9)

    def test_run_makes_one_environment_more_for_its_spec(self):
        made = self.workdir.with_name("made")
        self._train(
            f"{SMALL}:counted_beacons",
            "--config.environment.suite=dm_env",
            f"--config.environment.arguments=log={made}",
            "--config.environment.num_envs=1",
            "--config.run.evaluation_episodes=0",
            "--config.agent.torso=flat",
            env_frames=400,
        )
        self.assertEqual(made.read_text(), "made\n" * 2)

    @parameterized.parameters(0, 1)
    @pytest.mark.long
    def test_environment_reaches_a_server_of_the_host(self, actors):
        """Also after a restart of the worker, and in the evaluation."""
        with StepServer(exit_at=100) as server:
            self._train(
                f"{SMALL}:Remote",
                "--config.environment.suite=dm_env",
                f"--config.environment.arguments=port={server.server_address[1]}",
                "--config.environment.num_envs=2",
                "--config.run.evaluation_episodes=4",
                "--config.agent.torso=flat",
                f"--config.cluster.actors={actors}",
                env_frames=2_000,
            )
        self.assertEqual(self._summary()["episodes"], 4)
        self.assertGreater(server.steps, 1_000)
        self.assertGreaterEqual(server.connections_after_exit, 3)  # Training and evaluation.


if __name__ == "__main__":
    absltest.main()
