"""A sweep as a user runs it: to its end through crashes, Ctrl-C and bad input."""

import csv
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import time

import psutil
import pytest
from absl.testing import absltest, parameterized

from laser_tf.cluster import fleet
from laser_tf.monitoring import tensorboard
from laser_tf.sweeps import lineage
from testing import commands, messages, processes, sweep_folders

CATCH = "--config=configs/sweeps.py:catch"
MEMBERS = ("member_00", "member_01")


class SweepTest(commands.CommandTest):
    def _wait_for_decisions(self, process: subprocess.Popen, number: int) -> None:
        """Waits until the population has made `number` decisions."""
        path = self.workdir / lineage.FILE
        processes.wait_until(lambda: len(lineage.read(path)) >= number, 600.0, process)

    def _wait_for_process(self, name: str, *, other_than: int = 0) -> int:
        """Returns the id of a role's process."""
        path = self.workdir / fleet.ROLES
        while True:
            text = path.read_text() if path.exists() else ""
            found = re.search(rf"^{name},[^,]*,[^,]*,[^,]+,(\d+),", text, re.M)
            if found and int(found[1]) != other_than:
                return int(found[1])
            time.sleep(0.1)

    def _coordinators(self) -> list[int]:
        """Returns the process ids of all coordinators so far."""
        log = (self.workdir / "logs/coordinator.log").read_text()
        return [int(number) for number in re.findall(r"Started process (\d+) for", log)]

    @pytest.mark.long
    def test_population_on_one_replay_survives_crashes_and_resumes(self):
        flags = (
            CATCH,
            "--search_space=learner.learning_rate=grid(0.0005,0.002)",
            "--search_space=agent.entropy_cost=grid(0.01)",
            "--population=pbt",
            "--config.population.ready_env_frames=3000",
            "--config.run.env_frames=30000",
            "--config.run.evaluation_episodes=4",
            "--config.run.checkpoint_minutes=0.05",
            "--config.run.replay_checkpoint_minutes=0.05",
            f"--workdir={self.workdir}",
        )
        process = commands.start("sweep", *flags)
        self.addCleanup(process.kill)
        self._wait_for_decisions(process, 4)  # after one of each agent, at 3,000 frames
        survivor = self._wait_for_process("member_00")
        killed = self._wait_for_process("member_01")
        os.kill(killed, signal.SIGKILL)
        os.kill(self._coordinators()[-1], signal.SIGKILL)
        self._wait_for_decisions(process, 8)
        self.assertNotEqual(self._wait_for_process("member_01"), killed)
        self.assertEqual(self._wait_for_process("member_00"), survivor)
        self.assertLen(self._coordinators(), 2)

        os.kill(self._wait_for_process("replay"), signal.SIGKILL)
        self._wait_for_decisions(process, 12)
        process.kill()
        _, errors = process.communicate()
        for name in ("member_01", "replay"):
            self.assertIn(f"Restarting {name}", errors)
        (self.workdir / fleet.ROLES).unlink()
        process = commands.start("sweep", *flags)
        self.addCleanup(process.kill)
        self._wait_for_decisions(process, 16)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=400)
        self.assertEqual(process.returncode, -signal.SIGINT, errors)
        messages.assert_names(errors, "saved")
        self._check_no_process_is_left()

        for name in ("sweep.json", *(f"{agent}/config.json" for agent in MEMBERS)):
            sweep_folders.forget(self.workdir / name, "environment.reward_offset")
        _, errors = self.succeed("sweep", *flags, seconds=600.0)
        self.assertIn("Resuming", errors)
        self._check_members()
        self._check_lineage()
        self._check_no_process_is_left()

        # Nothing is left to train, so that no Ray is asked for.
        (self.workdir / fleet.ROLES).unlink()
        self.succeed("sweep", *flags, "--config.cluster.address=127.0.0.1:9")
        self.assertFalse((self.workdir / fleet.ROLES).exists())

    def _check_no_process_is_left(self) -> None:
        for name in ("replay", *MEMBERS):
            self.assertFalse(psutil.pid_exists(self._wait_for_process(name)), name)
        self.assertFalse(psutil.pid_exists(self._coordinators()[-1]))

    def _check_members(self) -> None:
        for name in MEMBERS:
            folder = self.workdir / name
            summary = json.loads((folder / "evaluation.json").read_text())
            self.assertGreaterEqual(summary["env_frames"], 30_000)
            _, foreign = tensorboard.read_scalars(folder / "tensorboard", "replay/foreign_fraction")
            # Half, as long as both are there; a batch of a few sequences can be anything.
            self.assertBetween(statistics.median(foreign), 0.1, 0.9)
            for metric in (
                "trust_region/accepted_own_fraction",
                "trust_region/accepted_foreign_fraction",
                "policy/kl_own",
                "policy/kl_foreign",
                "replay/age_updates",
            ):
                _, values = tensorboard.read_scalars(folder / "tensorboard", metric)
                self.assertNotEmpty(values, metric)

    def _check_lineage(self) -> None:
        with (self.workdir / "population/lineage.csv").open() as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({row["member"] for row in rows}, set(MEMBERS))
        self.assertGreaterEqual(len(rows), 2 * 9)

    def _run_two_members(self) -> tuple[int, str, str]:
        """Returns exit status, output and errors of a short sweep of `MEMBERS`."""
        return commands.run(
            "sweep",
            CATCH,
            "--search_space=learner.learning_rate=grid(0.0005,0.002)",
            "--search_space=agent.entropy_cost=grid(0.01)",
            "--config.run.env_frames=1000",
            "--config.run.evaluation_episodes=0",
            f"--workdir={self.workdir}",
            seconds=600.0,
        )

    def test_all_members_are_trained(self):
        code, output, errors = self._run_two_members()
        self.assertEqual(code, 0, errors)
        for name in MEMBERS:
            self.assertRegex(output, f"{name}: frames 1,.* finished")
        self.assertTrue((self.workdir / "finished").exists())

    @pytest.mark.long
    def test_failed_member_does_not_stop_the_others(self):
        self.workdir.mkdir(parents=True)
        (self.workdir / "member_01").write_text("where its folder should be")
        code, output, errors = self._run_two_members()
        self.assertEqual(code, 1, errors)
        messages.assert_names(errors, "member_01", 4)
        self.assertStartsWith(errors.splitlines()[-1], "error: ")
        messages.assert_names(errors.splitlines()[-1], "member_01")
        self.assertRegex(output, "member_00: frames 1,.* finished")
        self.assertTrue((self.workdir / "finished_members/member_00").exists())
        self.assertFalse((self.workdir / "finished").exists())

    @parameterized.parameters(
        (("--search_space=learner.learning_rat=grid(0.1)",), ("learning_rat", "learning_rate")),
        (
            ("--search_space=agent.discount=grid(0.9)", "--search_space=agent.discount=grid(0.99)"),
            ("--search_space=agent.discount=grid(0.99)",),
        ),
        (
            (
                "--config=configs/sweeps.py:minatar",
                "--search_space=environment.task=grid(asterix,breakout)",
            ),
            ("environment.task", "'asterix'", "member_00", "'breakout'"),
        ),
        (
            ("--search_space=agent.discount=grid(0.9,0.99)", "--config.agent.discount=0.95"),
            ("--config.agent.discount=0.95",),
        ),
        # The flag replaces the learning rates that the configuration samples.
        (
            (
                "--config=configs/sweeps.py:minatar_multitask",
                "--search_space=learner.learning_rate=grid(0.001,-7.0)",
            ),
            ("member_10", "learning_rate", -7.0),
        ),
        (("--config=configs/laser.py:catch",), ("sweep", "configs/laser.py:catch")),
        (("--search=random",), ("--config", CATCH.partition("=")[2])),
        (("--trials=3",), ("--trials", 3, "--search")),
        (("--search=random", "--config=laser:catch", "--extend"), ("--extend",)),
        (("--config.cluster.actors=2",), ("config.cluster", "actors", 2)),
    )
    def test_bad_flag_is_rejected_and_nothing_written(self, flags, names):
        self.assert_rejected(names, "sweep", CATCH, f"--workdir={self.workdir}", *flags)
        self.assertFalse(self.workdir.exists())

    @parameterized.parameters(
        ("CartPole-v1", 4, "auto", "replay.frame_stack"),
        ("Pendulum-v1", 1, "implied", "agent.trust_region"),
    )
    def test_unfit_members_are_rejected_and_nothing_written(self, task, frame_stack, region, named):
        path = self._write_config(
            "config = laser.get_config('gymnasium')",
            "config.sweep = sweeps.get_config('catch').sweep",
            f"config.environment.task = '{task}'",
            f"config.replay.frame_stack = {frame_stack}",
            f"config.agent.trust_region = '{region}'",
        )
        flags = f"--config={path}", f"--workdir={self.workdir}"
        self.assert_rejected((named,), "sweep", *flags)
        self.assertFalse(self.workdir.exists())

    def _write_config(self, *lines: str) -> pathlib.Path:
        path = self.workdir.with_name("config.py")
        body = "".join(f"    {line}\n" for line in (*lines, "return config"))
        path.write_text(f"from configs import laser, sweeps\ndef get_config():\n{body}")
        return path

    def test_flags_add_sections_that_a_config_lacks(self):
        path = self._write_config(
            "config = sweeps.get_config('catch')", "del config.population, config.sweep.grid"
        )
        flags = (
            f"--config={path}",
            "--population=pbt",
            "--search_space=agent.entropy_cost=grid(0,0.1)",
        )
        self.assert_rejected(("agent.entropy_cost", 0, "member_00"), "sweep", *flags)

    def test_directory_of_another_sweep_is_rejected(self):
        self.workdir.mkdir()
        (self.workdir / "sweep.json").write_text(json.dumps({"config": {"run": {"seed": 7}}}))
        flags = f"--workdir={self.workdir}", "--config.cluster.address=127.0.0.1:9"  # never asked
        self.assert_rejected(("agent.discount", 0.995, 0.99), "sweep", CATCH, *flags)


if __name__ == "__main__":
    absltest.main()
