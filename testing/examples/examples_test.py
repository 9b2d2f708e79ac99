"""The examples of the documentation."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
from unittest import mock

import pytest
from absl.testing import absltest

from examples import read_replay, vtrace_loop
from laser_tf import errors
from laser_tf.workdir import run_directory
from testing import commands, fakes, messages, runs

ROOT = pathlib.Path(__file__).resolve().parents[2]


def _run(module, *arguments):
    """Runs `python -m examples.<module>` in the checkout."""
    variables = {name: value for name, value in os.environ.items() if name[:3] != "TF_"}
    return subprocess.run(
        [sys.executable, "-m", f"examples.{module}", *arguments],
        cwd=ROOT, env=variables, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


class ExamplesTest(commands.CommandTest):
    @pytest.mark.long
    def test_custom_environment_is_learned(self):
        done = _run(
            "own_environment", f"--workdir={self.workdir}", "--config.run.env_frames=30000",
            "--config.run.evaluation_episodes=20",
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = json.loads((self.workdir / "evaluation.json").read_text())
        self.assertGreater(summary["mean_return"], 0.9)  # At random below 0.5; the best is 1.

    def test_notebook_trains_and_acts(self):
        cells = json.loads((ROOT / "examples/quickstart.ipynb").read_text())["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        self.assertIn("5_000", sources[0])
        sources[0] = sources[0].replace("5_000", "500")
        # Cells define names in the main module, as in Jupyter.
        program = "import json, sys\nfor cell in json.loads(sys.argv[1]):\n    exec(cell)\n"
        folder = self.workdir.parent
        variables = os.environ | {"PYTHONPATH": str(ROOT)}
        done = commands.run_program(program, json.dumps(sources), cwd=folder, env=variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("cartpole", "corridor"):
            self.assertTrue((folder / "runs" / name / "evaluation.json").exists())

    def test_vtrace_learns_in_a_custom_loop(self):
        self.assertGreater(vtrace_loop.main(updates=150), 0.8)  # at the start 0.5

    def test_replay_is_read_into_a_table(self):
        runs.train(fakes.catch_config(), self.workdir)
        before = sorted((self.workdir / "checkpoints").rglob("*"))
        steps = read_replay.read(self.workdir, unrolls=200)
        self.assertEqual(
            list(steps.columns),
            ["unroll", "learner_update", "step", "action", "reward", "discount", "is_reset"],
        )
        self.assertEqual(sorted((self.workdir / "checkpoints").rglob("*")), before)
        self.assertLen(steps, 2_000)
        self.assertEqual(set(steps.action), {0, 1, 2})
        self.assertBetween((~steps.is_reset).sum(), 1_700, 1_900)  # Nine of ten steps.

    def test_run_without_saved_unrolls_is_rejected(self):
        config = fakes.catch_config()
        run_directory.open_workdir(self.workdir, dataclasses.asdict(config), {})
        with messages.raises(errors.UserError, self.workdir, config.replay.scheme):
            read_replay.read(self.workdir, unrolls=1)

    def test_checkpoint_that_is_replaced_is_reported(self):
        run_directory.open_workdir(self.workdir, dataclasses.asdict(fakes.catch_config()), {})
        replaced = shutil.Error([("a", "b", "No such file or directory")])
        with (
            mock.patch.object(shutil, "copytree", side_effect=replaced),
            messages.raises(errors.UserError, self.workdir, "No such file or directory"),
        ):
            read_replay.read(self.workdir, unrolls=1)


if __name__ == "__main__":
    absltest.main()
