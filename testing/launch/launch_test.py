"""The commands as a user types them: errors in one line, Ctrl-C and resuming, evaluation."""

import json
import pathlib
import signal
import tempfile

import pytest
from absl.testing import absltest, parameterized

from testing import commands, sweep_folders

CATCH = ("--config=configs/laser.py:catch", "--config.run.metrics_seconds=0.5")


class LaunchTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._workdir = pathlib.Path(folder.name) / "run"

    def _assert_refused(self, message: str, module: str, *arguments: str) -> None:
        code, _, errors = commands.run(module, *arguments)
        self.assertNotEqual(code, 0)
        lines = [line for line in errors.splitlines() if not line.startswith("no private network")]
        self.assertLen(lines, 1, errors)
        self.assertRegex(lines[0], f"^error: .*{message}")

    @parameterized.parameters(
        ("--config.agent.discout=0.9", "'discout'.*agent.discount"),
        ("--config.agent.discount=much", "--config.agent.discount=much"),
        ("--config.environment.task=pogn", "'pogn': did you mean pong"),
        ("--config=configs/lasr.py", "configs/lasr.py"),
        ("--config.environment.task=pong,breakout", "tasks differ: breakout has.*4 actions"),
        (
            "--config.replay.scheme=episodes",
            "replay.capacity .*27000",
        ),
        ("--config=configs/laser.py:dmlab30", "DeepMind Lab is not installed"),
        ("--config=configs/r2d2.py:dmlab30", "DeepMind Lab is not installed"),
        ("--config.replay.scheme=replay_only", "agent.entropy_on_replay .*replay_only"),
        ("--config.replay.steps_per_update=80", "steps_per_update.*replay_only"),
    )
    def test_bad_flags_are_refused_in_one_line(self, flag, message):
        self._assert_refused(message, "train", flag, f"--workdir={self._workdir}")
        self.assertFalse(self._workdir.exists())

    @parameterized.parameters(
        ("--config.agent.entropy_cost=0.1", "unknown config key: 'entropy_cost'"),
        ("--config.replay.sequence_length=50", "sequence_length is 50: use a multiple of"),
        (
            "--config.agent.kind=laser",
            "config has no agent key.*where kind is 'laser': use a file of configs",
        ),
    )
    def test_bad_flags_of_r2d2_are_refused_in_one_line(self, flag, message):
        config = "--config=configs/r2d2.py:tmaze"
        self._assert_refused(message, "train", config, flag, f"--workdir={self._workdir}")
        self.assertFalse(self._workdir.exists())

    def test_an_unusable_workdir_is_refused_in_one_line(self):
        self._workdir.write_text("a file, not a folder")
        self._assert_refused("cannot write in", "train", *CATCH, f"--workdir={self._workdir}")

    def test_an_unwritable_native_log_gives_one_line(self):
        (self._workdir / "native.log").mkdir(parents=True)
        self._assert_refused("native.log", "train", *CATCH, f"--workdir={self._workdir}")

    def test_ctrl_c_saves_and_the_same_command_resumes(self):
        workdir = f"--workdir={self._workdir}"
        flags = (*CATCH, "--config.run.env_frames=12000", "--config.run.evaluation_episodes=4")
        process = commands.start("train", *flags, workdir)
        first_line = process.stdout.readline()
        self.assertIn("frames", first_line)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, -signal.SIGINT, errors)  # a shell's 130
        self.assertIn("the same command resumes", errors)
        self.assertNotEmpty(list((self._workdir / "checkpoints/learner").iterdir()))

        self._assert_refused(
            r"config: agent.discount \(there 0.99, now 0.9\)",
            "train", *flags, workdir, "--config.agent.discount=0.9",
        )  # fmt: skip

        sweep_folders.forget(self._workdir / "config.json", "environment.reward_offset")
        code, output, errors = commands.run("train", *flags, workdir)
        self.assertEqual(code, 0, errors)
        self.assertIn("resuming", errors)
        self.assertIn("100.0%", output)
        self.assertNotIn("reverb", output + errors)  # native chatter is diverted
        summary = json.loads((self._workdir / "evaluation.json").read_text())
        self.assertEqual(summary["episodes"], 4)
        self.assertGreaterEqual(summary["env_frames"], 12_000)

        # The configuration of the run is in its directory.
        self._assert_refused(
            r"config: agent.discount \(there 0.99, now 0.9\)\.",
            "train", workdir, "--config.agent.discount=0.9",
        )  # fmt: skip
        code, output, errors = commands.run("train", workdir)
        self.assertEqual(code, 0, errors)
        self.assertIn("trained already", errors)

        code, output, errors = commands.run("evaluate", workdir, "--episodes=7")
        self.assertEqual(code, 0, errors)
        self.assertEqual(json.loads(output)["episodes"], 7)
        self.assertIn("evaluating catch: 7 of 7 episodes", errors)
        self.assertEqual(json.loads(output)["protocol"]["action_selection"], "sampled")
        code, output, errors = commands.run("evaluate", workdir, "--episodes=7", "--greedy")
        self.assertEqual(code, 0, errors)
        self.assertEqual(json.loads(output)["protocol"]["action_selection"], "greedy")
        code, output, errors = commands.run(
            "evaluate", workdir, "--episodes=7", "--environment=reward_offset=100",
            "--environment=max_broken_episodes=3",
        )  # fmt: skip
        self.assertEqual(code, 0, errors)
        summary = json.loads(output)
        self.assertGreater(summary["mean_return"], 800)  # nine steps, each with the offset
        self.assertEqual(summary["protocol"]["reward_offset"], 100.0)
        changed = {"reward_offset": 100, "max_broken_episodes": 3}
        self.assertEqual(summary["protocol"]["changed_environment"], changed)
        for given, message in (
            ("rows=12", "no environment key 'rows'"),
            ("reward_offset=1e9", "reward_offset .* got 1000000000.0"),
            ("suite=minatar", "suite cannot be changed to 'minatar': an agent plays the suite"),
        ):
            self._assert_refused(message, "evaluate", workdir, f"--environment={given}")
        kept = sorted((self._workdir / "evaluations").iterdir())
        kept_episodes = [json.loads(path.read_text())["episodes"] for path in kept]
        self.assertEqual(kept_episodes, [4, 7, 7, 7])
        self._assert_refused(
            "--history_length=3: this agent has no memory", "evaluate", workdir,
            "--history_length=3",
        )  # fmt: skip

    @pytest.mark.long
    def test_more_frames_train_on_and_are_evaluated(self):
        flags = (
            *CATCH, f"--workdir={self._workdir}", "--config.run.evaluation_episodes=4",
            "--config.learner.learning_rate_schedule=constant",
        )  # fmt: skip
        for env_frames, beginning in ((2_000, "a new run"), (4_000, "resuming")):
            code, _, errors = commands.run("train", *flags, f"--config.run.env_frames={env_frames}")
            self.assertEqual(code, 0, errors)
            self.assertIn(beginning, errors)
            summary = json.loads((self._workdir / "evaluation.json").read_text())
            self.assertBetween(summary["env_frames"], env_frames, env_frames + 1_000)

    def test_more_frames_on_a_schedule_take_a_flag(self):
        flags = (*CATCH, f"--workdir={self._workdir}", "--config.run.evaluation_episodes=0")
        code, _, errors = commands.run("train", *flags, "--config.run.env_frames=2000")
        self.assertEqual(code, 0, errors)
        longer = (*flags, "--config.run.env_frames=4000")
        self._assert_refused("run.env_frames .*2000.*4000.*--extend", "train", *longer)
        code, _, errors = commands.run("train", *longer, "--extend")
        self.assertEqual(code, 0, errors)
        noted = json.loads((self._workdir / "config.json").read_text())
        self.assertEqual(noted["extended_from_env_frames"], [2_000])

    @pytest.mark.long
    def test_a_restricted_memory_is_evaluated_beside_the_full_one(self):
        workdir = f"--workdir={self._workdir}"
        code, _, errors = commands.run(
            "train", *CATCH, workdir, "--config.agent.core=lstm", "--config.agent.core_size=16",
            "--config.run.env_frames=2000", "--config.run.evaluation_episodes=2",
        )  # fmt: skip
        self.assertEqual(code, 0, errors)
        others = [self._workdir / "evaluation.json", self._workdir / "videos/evaluation_001.mp4"]
        before = [path.read_bytes() for path in others]
        code, output, errors = commands.run(
            "evaluate", workdir, "--episodes=3", "--history_length=2", "--video"
        )
        self.assertEqual(code, 0, errors)
        self.assertEqual([path.read_bytes() for path in others], before)
        path = self._workdir / "evaluation_history_2.json"
        self.assertIn(f"written to {path}", errors)
        summary = json.loads(path.read_text())
        self.assertEqual(json.loads(output), summary)
        added = {"history_length", "greedy_match_fraction", "max_logit_difference"}
        self.assertEqual(set(summary), set(json.loads(before[0])) | added)
        self.assertEqual((summary["history_length"], summary["episodes"]), (2, 3))
        self.assertBetween(summary["greedy_match_fraction"], 0, 1)
        self.assertGreater(summary["max_logit_difference"], 1e-5)
        film = self._workdir / "videos/evaluation_history_2_001.mp4"
        self.assertEqual(summary["videos"], [str(film)])
        self.assertGreater(film.stat().st_size, 1000)

    @parameterized.parameters(
        (("--episodes=0",), "--workdir"),
        (("--workdir=runs/none",), "holds no run"),
        (("--workdir=runs/none", "--history_length=-2"), "--history_length is -2: use 1 or more"),
        (("--workdir=runs/none", "--environment=task"), "--environment=task: use KEY=VALUE, e.g."),
        (
            ("--workdir=runs/none", "--environment=task=a", "--environment=task=b"),
            "--environment=task=b: use KEY=VALUE, e.g. sticky_actions=0.25, each key once",
        ),
    )
    def test_evaluate_refuses_in_one_line(self, flags, message):
        self._assert_refused(message, "evaluate", *flags)

    def test_report_writes_its_page(self):
        self._workdir.mkdir()
        sweep_folders.write(self._workdir / "s", {"member_00": {"breakout": [(0, 1.0), (19, 2.0)]}})
        code, output, errors = commands.run("plot", f"--report={self._workdir}")
        self.assertEqual(code, 0, errors)
        self.assertIn(f"{self._workdir}/report/report.html", output)

    def test_random_actions_give_the_zero_of_scores(self):
        code, output, errors = commands.run("evaluate", "--random=laser:catch", "--episodes=300")
        self.assertEqual(code, 0, errors)
        summary = json.loads(output)["catch"]
        self.assertEqual(summary["episodes"], 300)
        self.assertBetween(summary["mean_return"], -0.8, -0.4)
        self.assertBetween(summary["standard_error"], 0.02, 0.06)


if __name__ == "__main__":
    absltest.main()
