"""A sweep as a user runs it: to its end through crashes, Ctrl-C and bad input."""

import csv
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from absl.testing import absltest, parameterized

from laser_tf.monitoring import tensorboard
from laser_tf.sweeps import lineage
from testing import commands

CATCH = "--config=configs/sweep_laser_catch.py"


def _processes(*words: str) -> list[int]:
    """Ids of the processes whose command holds all of some words."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_text().split("\0")
        except OSError:  # it has ended meanwhile
            continue
        if all(any(word in part for part in command) for word in words):
            found.append(int(path.parent.name))
    return found


class SweepTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._workdir = pathlib.Path(folder.name) / "sweep"

    def _wait_for_decisions(self, process: subprocess.Popen, number: int) -> None:
        """Waits until the population has decided so often."""
        path = self._workdir / lineage.FILE
        while len(lineage.read(path)) < number:
            self.assertIsNone(process.poll())
            time.sleep(0.1)

    def _kill(self, signal_number: int, *words: str) -> None:
        (process_id,) = _processes(str(self._workdir), *words)
        os.kill(process_id, signal_number)

    def test_a_population_on_one_replay_survives_crashes_and_resumes(self):
        flags = (
            CATCH,
            "--grid=learner.learning_rate=0.0005,0.002,0.004",
            "--grid=agent.entropy_cost=0.01",
            "--population=pbt",
            "--config.population.ready_env_frames=4000",
            "--config.run.env_frames=40000",
            "--config.run.evaluation_episodes=4",
            "--config.run.checkpoint_minutes=0.05",
            "--config.run.replay_checkpoint_minutes=0.05",
            f"--workdir={self._workdir}",
        )
        process = commands.start("sweep", *flags)
        self._wait_for_decisions(process, 9)  # after two of each agent, at 8,000 frames
        self._kill(signal.SIGKILL, "launch.sweep_agent", "--name=agent_01")
        self._kill(signal.SIGKILL, "launch.replay_server")
        self._wait_for_decisions(process, 15)
        self._kill(signal.SIGTERM, "launch.sweep_agent", "--name=agent_02")
        self._kill(signal.SIGTERM, "launch.replay_server")
        self._wait_for_decisions(process, 21)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=400)
        self.assertEqual(process.returncode, -signal.SIGINT, errors)
        self.assertIn("the server has ended (signal SIGKILL) and is started again", errors)
        self.assertIn("agent_01 has ended (signal SIGKILL) and is started again", errors)
        self.assertIn("the same command resumes", errors)
        self.assertRegex(output, "agent_02: .* running, restarted [1-9]")
        self.assertEmpty(_processes(str(self._workdir)))

        code, _, errors = commands.run("sweep", *flags)
        self.assertEqual(code, 0, errors)
        self.assertIn("resuming", errors)
        self._check_agents()
        self._check_lineage()
        self.assertEmpty(_processes(str(self._workdir)))

    def _check_agents(self) -> None:
        for index in range(3):
            folder = self._workdir / f"agent_{index:02d}"
            summary = json.loads((folder / "evaluation.json").read_text())
            self.assertGreaterEqual(summary["env_frames"], 40_000)
            _, foreign = tensorboard.read_scalars(folder / "tensorboard", "replay/foreign_fraction")
            self.assertBetween(foreign[-1], 0.4, 0.9)  # two thirds
            for name in (
                "trust_region/accepted_own_fraction",
                "trust_region/accepted_foreign_fraction",
                "policy/kl_own",
                "policy/kl_foreign",
                "replay/age_updates",
            ):
                self.assertNotEmpty(tensorboard.read_scalars(folder / "tensorboard", name)[1], name)

    def _check_lineage(self) -> None:
        with (self._workdir / "population/lineage.csv").open() as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({row["agent"] for row in rows}, {"agent_00", "agent_01", "agent_02"})
        self.assertGreaterEqual(len(rows), 3 * 9)

    @parameterized.parameters(
        (("--grid=learner.learning_rat=0.1",), "no learner key 'learning_rat'.*learning_rate"),
        (("--grid=learning_rate=0.1",), "--grid=learning_rate=0.1: use SECTION.KEY="),
        (
            ("--config=configs/sweep_laser_minatar.py", "--grid=environment.task=asterix,breakout"),
            "environment.task is 'asterix' for agent_00, but 'breakout' for",
        ),
        (("--config=configs/laser_catch.py",), "no section `sweep`"),
        (("--population=pbd",), "method is 'pbd'"),
        (("--local=agent_00",), "give --port"),
        (("--port=0",), "port=0"),
        (("--local=agent_77", "--port=5000"), "--local=agent_77: the sweep's agents are agent_00"),
    )
    def test_bad_flags_are_refused_in_one_line(self, flags, message):
        code, _, errors = commands.run("sweep", CATCH, f"--workdir={self._workdir}", *flags)
        self.assertNotEqual(code, 0)
        lines = [line for line in errors.splitlines() if not line.startswith("no private network")]
        self.assertLen(lines, 1, errors)
        self.assertRegex(lines[0], f"^error: .*{message}")
        self.assertFalse(self._workdir.exists())

    def test_sections_that_a_config_may_lack_can_be_given_as_flags(self):
        path = self._workdir.parent / "config.py"
        path.write_text(
            "from configs import sweep_laser_catch\n"
            "def get_config():\n"
            "    config = sweep_laser_catch.get_config()\n"
            "    del config.population, config.sweep.grid\n"
            "    return config\n"
        )
        code, _, errors = commands.run(
            "sweep", f"--config={path}", "--population=pbt", "--grid=agent.entropy_cost=0,0.1"
        )
        self.assertEqual(code, 1, errors)
        self.assertRegex(errors, "agent.entropy_cost, 0 for agent_00, cannot be tuned")

    def test_an_agent_elsewhere_and_those_that_do_not_belong(self):
        port = 20_000 + os.getpid() % 10_000
        server = f"--server=localhost:{port}"
        flags = (
            CATCH,
            "--grid=learner.learning_rate=0.0005,0.002",
            "--grid=agent.entropy_cost=0.01",
            "--config.run.env_frames=4000",
            "--config.run.evaluation_episodes=0",
            "--local=agent_00",
            f"--port={port}",
            f"--workdir={self._workdir}",
        )
        sweep = commands.start("sweep", *flags)
        name = "--name=agent_01"
        secret = f"--secret_file={self._workdir / 'secret'}"
        while not (self._workdir / "secret").exists():
            self.assertIsNone(sweep.poll())
            time.sleep(0.1)
        self.assertEqual((self._workdir / "secret").stat().st_mode & 0o777, 0o600)
        other = self._workdir.parent / "other"
        other.write_text("0123")
        for command, message in (  # agent_00 waits for agent_01 meanwhile
            (
                ("sweep_agent", server, secret, "--name=agent_05"),
                "no agent 'agent_05': use one of agent_0",
            ),
            (
                ("sweep_agent", server, secret, "--name=agent_00"),
                "agent_00 is running already: two agents",
            ),
            (("sweep_agent", server), "--name is missing"),
            (("sweep_agent", "--server=nocolon", name), "--server=nocolon: use HOST:PORT"),
            (
                ("sweep_agent", server, secret, name, "--sweep_id=x"),
                "another sweep's server has this port",
            ),
            (("sweep_agent", server, name), "--secret_file is missing: give a copy of secret"),
            (
                ("sweep_agent", server, name, f"--secret_file={other}"),
                "the sweep's secret is missing or wrong",
            ),
            (("sweep", *flags), f"port {port} is in use"),
            (("sweep", *flags[:-3], flags[-1]), f"another process works in {self._workdir} "),
        ):
            code, _, errors = commands.run(*command)
            self.assertEqual(code, 1, errors)
            self.assertRegex(errors, f"error: .*{message}")
        elsewhere = self._workdir.parent / "elsewhere"
        code, _, errors = commands.run(
            "sweep_agent", server, secret, "--name=agent_01", f"--workdir={elsewhere}"
        )
        self.assertEqual(code, 0, errors)
        self.assertTrue((elsewhere / "config.json").exists())
        _, errors = sweep.communicate(timeout=400)
        self.assertEqual(sweep.returncode, 0, errors)

    def test_a_sweep_waits_for_agents_elsewhere_when_its_own_are_done(self):
        port = 10_000 + os.getpid() % 10_000
        sweep = commands.start(
            "sweep",
            CATCH,
            "--grid=learner.learning_rate=0.0005,0.002",
            "--grid=agent.entropy_cost=0.01",
            "--config.run.env_frames=2000",
            "--config.run.evaluation_episodes=0",
            "--config.sweep.equal_speed=false",
            "--local=agent_00",
            f"--port={port}",
            f"--workdir={self._workdir}",
        )
        while not re.search("agent_00: .*finished", sweep.stdout.readline()):
            self.assertIsNone(sweep.poll())
        self.assertFalse((self._workdir / "finished").exists())
        code, _, errors = commands.run(
            "sweep_agent",
            f"--server=localhost:{port}",
            "--name=agent_01",
            f"--secret_file={self._workdir / 'secret'}",
            f"--workdir={self._workdir.parent / 'elsewhere'}",
        )
        self.assertEqual(code, 0, errors)
        _, errors = sweep.communicate(timeout=400)
        self.assertEqual(sweep.returncode, 0, errors)
        self.assertTrue((self._workdir / "finished").exists())

    def test_a_folder_keeps_to_one_sweep(self):
        self._workdir.mkdir()
        (self._workdir / "sweep.json").write_text(json.dumps({"config": {"run": {"seed": 7}}}))
        code, _, errors = commands.run("sweep", CATCH, f"--workdir={self._workdir}")
        self.assertEqual(code, 1)
        self.assertRegex(errors, "belongs to a sweep of another config: .*run.seed .there 7, now 1")


if __name__ == "__main__":
    absltest.main()
