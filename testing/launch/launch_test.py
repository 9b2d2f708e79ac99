"""The commands as a user types them: errors in one line, Ctrl-C and resuming, evaluation."""

import json
import pathlib
import signal
import tempfile

import pytest
from absl.testing import absltest, parameterized

from testing import commands, messages, sweep_folders

CATCH = ("--config=configs/laser.py:catch", "--config.run.metrics_seconds=0.5")


class LaunchTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._workdir = pathlib.Path(folder.name) / "run"

    def _assert_rejected(self, named: tuple, module: str, *arguments: str) -> None:
        """Asserts that a command prints one line which names keys and values."""
        code, _, errors = commands.run(module, *arguments)
        self.assertNotEqual(code, 0)
        lines = [line for line in errors.splitlines() if not line.startswith("no private network")]
        self.assertLen(lines, 1, errors)
        self.assertStartsWith(lines[0], "error: ")
        messages.assert_names(lines[0], *named)

    @parameterized.parameters(
        ("laser:atari", "--config.agent.discout=0.9", "discout", "discount"),
        ("laser:atari", "--config.environment.task=pogn", "pogn", "pong"),
        ("laser:atari", "--config.environment.task=pong,breakout", "breakout", 4),
        ("laser:atari", "--config.replay.scheme=episodes", "replay.capacity", 27000),
        ("laser:atari", "--config.replay.scheme=replay_only", "agent.entropy_on_replay"),
        ("laser:atari", "--config.replay.steps_per_update=80", "steps_per_update", "replay_only"),
        ("laser:dmlab30", "--config.run.seed=1", "DeepMind Lab"),
        ("lasr:atari", "--config.run.seed=1", "lasr:atari", "laser:atari"),
        ("r2d2:tmaze", "--config.agent.entropy_cost=0.1", "entropy_cost"),
        ("r2d2:tmaze", "--config.replay.sequence_length=50", "sequence_length", 50),
        ("r2d2:tmaze", "--config.agent.kind=laser", "kind", "laser"),
    )
    def test_bad_flags_are_rejected_before_anything_is_written(self, config, flag, *named):
        workdir = f"--workdir={self._workdir}"
        self._assert_rejected(named, "train", f"--config={config}", flag, workdir)
        self.assertFalse(self._workdir.exists())

    def test_an_unusable_workdir_is_refused_in_one_line(self):
        self._workdir.write_text("a file, not a folder")
        self._assert_rejected((self._workdir,), "train", *CATCH, f"--workdir={self._workdir}")

    def test_an_unwritable_native_log_gives_one_line(self):
        (self._workdir / "native.log").mkdir(parents=True)
        self._assert_rejected(("native.log",), "train", *CATCH, f"--workdir={self._workdir}")

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

        self._assert_rejected(
            ("agent.discount", 0.99, 0.9),
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
        self._assert_rejected(
            ("agent.discount", 0.99, 0.9),
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
        for given, *named in (
            ("rows=12", "rows"),
            ("reward_offset=1e9", "reward_offset", 1e9),
            ("suite=minatar", "suite", "minatar"),
        ):
            self._assert_rejected(named, "evaluate", workdir, f"--environment={given}")
        kept = sorted((self._workdir / "evaluations").iterdir())
        kept_episodes = [json.loads(path.read_text())["episodes"] for path in kept]
        self.assertEqual(kept_episodes, [4, 7, 7, 7])
        self._assert_rejected(("--history_length", 3), "evaluate", workdir, "--history_length=3")

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
        self._assert_rejected(("run.env_frames", 2000, 4000, "--extend"), "train", *longer)
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
        (("--episodes=2",), "--workdir"),
        (("--workdir=runs/none",), "runs/none"),
        (("--workdir=runs/none", "--history_length=-2"), "--history_length", -2),
        (("--workdir=runs/none", "--environment=task"), "--environment", "task"),
        (("--workdir=runs/none", "--environment=task=a", "--environment=task=b"), "task=b"),
    )
    def test_evaluate_rejects_bad_flags(self, flags, *named):
        self._assert_rejected(named, "evaluate", *flags)

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
