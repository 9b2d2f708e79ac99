"""Experiments from the command line: training, resuming and drawing."""

import contextlib
import io
import json
import pathlib

import pytest
from absl.testing import absltest

from experiments import base, run
from laser_tf import errors
from laser_tf.plotting import curves
from launch import subcommand
from testing import folders, messages
from testing.plotting import run_logs

TINY = base.Experiment(
    config="laser:catch",
    conditions=(base.Condition("LASER"),),
    draw=curves.write,
)


class RunTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self.enter_context(
            absltest.mock.patch.object(base, "load", autospec=True, return_value=TINY)
        )

    def _run(self, *arguments):
        flags = f"--workdir={self._folder}", "--override=run.evaluation_episodes=1"
        run.main(["--experiment=tiny", *flags, *arguments])

    def test_missing_runs_are_trained_and_drawn(self):
        started = []

        def write_runs(commands, parallel=1):
            started.extend(command.arguments for command in commands)
            for command in commands:
                (folder,) = (a for a in command.arguments if a.startswith("--workdir="))
                folder = pathlib.Path(folder.removeprefix("--workdir="))
                run_logs.write_run(folder, [(k, 0, float(k)) for k in range(9)], tasks=["catch"])

        with absltest.mock.patch.object(subcommand, "run_all", write_runs):
            self._run("--override=run.env_frames=1000", "--seeds=2", "--extend")
        self.assertLen([given for given in started if "--extend" in given], 2)
        self.assertEqual((self._folder / "report/curves.png").read_bytes()[:4], b"\x89PNG")
        self.assertEqual(run_logs.read_csv(self._folder / "report/curves.csv")[-1]["seeds"], "2")

    @pytest.mark.long
    def test_trains_continues_and_draws(self):
        self._run("--override=run.env_frames=1000", "--seeds=1")
        table = self._folder / "report/curves.csv"
        first = table.read_text()
        self.assertEqual((self._folder / "report/curves.png").read_bytes()[:4], b"\x89PNG")
        self._run("--override=run.env_frames=1500", "--seeds=2", "--extend", "--parallel=2")
        self.assertNotEqual(table.read_text(), first)
        logs = list(self._folder.rglob("*.log"))
        self.assertLen([path for path in logs if path.name == "catch.log"], 2)
        config = json.loads((self._folder / "laser/seed_1/catch/config.json").read_text())
        self.assertEqual(config["extended_from_env_frames"], [1_000])

    def test_plot_only_needs_runs(self):
        with messages.raises(errors.UserError, self._folder / "laser/seed_1/catch"):
            self._run("--plot_only")

    def test_report_that_cannot_be_written_is_named(self):
        path = self._folder / "file"
        path.touch()
        with messages.raises(errors.UserError, path / "report"):
            self._run("--plot_only", f"--workdir={path}")

    def test_invalid_arguments_are_named(self):
        for flag, value in (("--seeds", "x"), ("--parallel", "0"), ("--tasks", "a,")):
            printed = io.StringIO()
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(printed):
                self._run(f"{flag}={value}")
            messages.assert_names(printed.getvalue().splitlines()[-1], flag, "must be", value)
        with messages.raises(errors.UserError, "--config", "none"):
            self._run("--config=none")

    @pytest.mark.long
    def test_failed_run_is_reported(self):
        (self._folder / "laser").touch()  # where a directory is needed
        with self.assertRaises(errors.UserError):
            self._run("--override=run.env_frames=1000", "--seeds=1")

    def test_override_without_a_value_is_rejected(self):
        with messages.raises(errors.UserError, "--override", "x"):
            run.main(["--experiment=continuous_control", "--override=x"])


if __name__ == "__main__":
    absltest.main()
