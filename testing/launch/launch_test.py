"""Training and evaluation from the command line: errors, Ctrl-C, resuming."""

import json
import signal

import pytest
from absl.testing import absltest, parameterized

from testing import commands, messages, sweep_folders

CATCH = ("--config=configs/laser.py:catch", "--config.run.metrics_seconds=0.5")


class LaunchTest(commands.CommandTest):
    def setUp(self):
        super().setUp()
        self._flag = f"--workdir={self.workdir}"

    def _summary(self) -> dict:
        return json.loads((self.workdir / "evaluation.json").read_text())

    @parameterized.parameters(
        ("laser:atari", "--config.environment.task=pong,breakout", "breakout", 4),
        ("laser:dmlab30", "--config.run.seed=1", "DeepMind Lab"),
        ("laser:catch", "--override=agent.entropy_cost=0.1", "--override", "agent.entropy_cost"),
    )
    def test_bad_flag_is_rejected_and_nothing_written(self, config, flag, *named):
        self.assert_rejected(named, "train", f"--config={config}", flag, self._flag)
        self.assertFalse(self.workdir.exists())

    def test_unwritable_native_log_is_rejected(self):
        (self.workdir / "native.log").mkdir(parents=True)
        self.assert_rejected(("native.log",), "train", *CATCH, self._flag)

    def test_ctrl_c_saves_and_the_same_command_resumes(self):
        flags = (*CATCH, "--config.run.env_frames=8000", "--config.run.evaluation_episodes=4")
        process = commands.start("train", *flags, self._flag)
        self.assertIn("frames", process.stdout.readline())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, -signal.SIGINT, errors)  # a shell's 130
        self.assertIn("the same command resumes", errors)
        self.assertNotEmpty(list((self.workdir / "checkpoints/learner").iterdir()))

        sweep_folders.forget(self.workdir / "config.json", "environment.reward_offset")
        output, errors = self.succeed("train", *flags, self._flag)
        self.assertIn("Resuming", errors)
        self.assertIn("100.0%", output)
        self.assertNotIn("reverb", output + errors)  # The output of C++ libraries is diverted.
        summary = self._summary()
        self.assertEqual(summary["episodes"], 4)
        self.assertGreaterEqual(summary["env_frames"], 8_000)

        # The configuration of the run is in its directory.
        other = ("agent.discount", 0.99, 0.9), "train", "--config.agent.discount=0.9", self._flag
        self.assert_rejected(*other)
        _, errors = self.succeed("train", self._flag)
        self.assertIn("Skipped training", errors)
        self._check_evaluations()

    def _check_evaluations(self) -> None:
        evaluate = "evaluate", self._flag, "--episodes=7"
        changed = {"reward_offset": 100}
        given = {**changed, "max_broken_episodes": 3}  # Episodes do not depend on the latter.
        flags = [f"--environment={key}={value}" for key, value in given.items()]
        output, errors = self.succeed(*evaluate, "--greedy", *flags)
        summary = json.loads(output)
        self.assertIn("7 of 7 episodes", errors)
        self.assertEqual(summary["protocol"]["action_selection"], "greedy")
        self.assertGreater(summary["mean_return"], 800)  # nine steps, each with the offset
        self.assertEqual(summary["protocol"]["reward_offset"], 100.0)
        self.assertEqual(summary["protocol"]["changed_environment"], changed)
        for given, *named in (
            ("--environment=rows=12", "rows"),
            ("--environment=reward_offset=1e9", "reward_offset", 1e9),
            ("--history_length=3", "--history_length", 3),
        ):
            self.assert_rejected(named, "evaluate", self._flag, given)
        files = sorted((self.workdir / "evaluations").iterdir())
        episodes = [json.loads(path.read_text())["episodes"] for path in files]
        self.assertEqual(episodes, [4, 7])

    @pytest.mark.long
    def test_more_frames_on_a_schedule_require_extend(self):
        flags = (*CATCH, "--config.run.evaluation_episodes=4")
        self.succeed("train", *flags, self._flag, "--config.run.env_frames=8000")
        longer = ("train", *flags, self._flag, "--config.run.env_frames=9000")
        named = "run.env_frames", 8_000, 9_000, "--extend"
        self.assert_rejected(named, *longer)
        self.succeed(*longer, "--extend")
        noted = json.loads((self.workdir / "config.json").read_text())
        self.assertEqual(noted["extended_from_env_frames"], [8_000])
        self.assertGreaterEqual(self._summary()["env_frames"], 9_000)

    @pytest.mark.long
    def test_more_frames_continue_and_are_evaluated(self):
        flags = (
            *CATCH, self._flag, "--config.run.evaluation_episodes=4",
            "--config.learner.learning_rate_schedule=constant",
        )  # fmt: skip
        for env_frames, beginning in ((2_000, "Starting a run"), (4_000, "Resuming")):
            _, errors = self.succeed("train", *flags, f"--config.run.env_frames={env_frames}")
            self.assertIn(beginning, errors)
            self.assertBetween(self._summary()["env_frames"], env_frames, env_frames + 1_000)

    @pytest.mark.long
    def test_override_changes_the_run_from_now_on(self):
        flags = (*CATCH, self._flag, "--config.run.evaluation_episodes=0")
        self.succeed("train", *flags, "--config.run.env_frames=2000")
        for given, *named in (
            ("agent.discount=0.9", "--override", "agent.discount", "learner.learning_rate"),
            ("learner.learning_rate=-1", "learning_rate", -1.0),
            ("learner.learning_rate", "--override", "learner.learning_rate"),
            ("run.env_frames=1000", "run.env_frames", 2000, 1000),
        ):
            self.assert_rejected(named, "train", self._flag, f"--override={given}")
        overrides = "--override=run.env_frames=4000", "--override=learner.learning_rate=0.002"
        _, errors = self.succeed("train", self._flag, *overrides)
        messages.assert_names(errors, "learner.learning_rate", 0.002, 0.003)
        noted = json.loads((self.workdir / "config.json").read_text())
        self.assertEqual(noted["config"]["learner"]["learning_rate"], 0.002)
        self.assertEqual([entry["env_frames"] for entry in noted["overrides"]], [2_000])
        # The first command resumes with the new values.
        _, errors = self.succeed("train", *flags, "--config.run.env_frames=2000")
        messages.assert_names(errors, "learner.learning_rate=0.002", "run.env_frames=4000")
        self.assertIn("Skipped training", errors)

    @pytest.mark.long
    def test_history_length_has_its_own_files(self):
        self.succeed(
            "train", *CATCH, self._flag, "--config.agent.core=lstm", "--config.agent.core_size=16",
            "--config.run.env_frames=2000", "--config.run.evaluation_episodes=2",
        )  # fmt: skip
        others = [self.workdir / "evaluation.json", self.workdir / "videos/evaluation_001.mp4"]
        before = [path.read_bytes() for path in others]
        output, _ = self.succeed(
            "evaluate", self._flag, "--episodes=3", "--history_length=2", "--video"
        )
        self.assertEqual([path.read_bytes() for path in others], before)
        summary = json.loads((self.workdir / "evaluation_history_2.json").read_text())
        self.assertEqual(json.loads(output), summary)
        added = {"history_length", "greedy_match_fraction", "max_logit_difference"}
        self.assertEqual(set(summary), set(json.loads(before[0])) | added)
        self.assertEqual((summary["history_length"], summary["episodes"]), (2, 3))
        self.assertBetween(summary["greedy_match_fraction"], 0, 1)
        self.assertGreater(summary["max_logit_difference"], 1e-5)
        video = self.workdir / "videos/evaluation_history_2_001.mp4"
        self.assertEqual(summary["videos"], [str(video)])
        self.assertGreater(video.stat().st_size, 1000)

    @parameterized.parameters(
        (("--episodes=2",), "--workdir"),
        (("--workdir=runs/none",), "runs/none"),
        (("--workdir=runs/none", "--history_length=-2"), "--history_length", -2),
        (("--workdir=runs/none", "--environment=task=a", "--environment=task=b"), "task=b"),
    )
    def test_bad_flag_of_evaluate_is_rejected(self, flags, *named):
        self.assert_rejected(named, "evaluate", *flags)

    def test_report_of_a_sweep_is_written(self):
        self.workdir.mkdir()
        sweep_folders.write(self.workdir / "s", {"member_00": {"breakout": [(0, 1.0), (19, 2.0)]}})
        output, _ = self.succeed("plot", f"--report={self.workdir}")
        self.assertIn(f"{self.workdir}/report/report.html", output)

    def test_random_actions_give_the_zero_of_scores(self):
        output, _ = self.succeed("evaluate", "--random=laser:catch", "--episodes=300")
        summary = json.loads(output)["catch"]
        self.assertEqual(summary["episodes"], 300)
        self.assertBetween(summary["mean_return"], -0.8, -0.4)
        self.assertBetween(summary["standard_error"], 0.02, 0.06)


if __name__ == "__main__":
    absltest.main()
