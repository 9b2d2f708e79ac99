"""The flag --callbacks: names, arguments, and a run of the command."""

import json
import os
import subprocess
import sys

import pytest
from absl.testing import absltest, parameterized

from laser_tf import callbacks, errors
from launch import command_line
from testing import commands, documented_code, messages, pages

_MODULE = """
from laser_tf import callbacks

class Mine(callbacks.Callback):
    def __init__(self, name, values=()):
        self.given = name, values

class Broken(callbacks.Callback):
    def on_update(self, run, metrics):
        raise ValueError("bug of mine")

class Other:
    pass

text = "a text"
"""


class CallbackFlagTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.enter_context(documented_code.importable({"own_callbacks": _MODULE}))

    def test_callbacks_have_their_arguments(self):
        mine = command_line.make_callback("own_callbacks:Mine(name=a, values=(1, 2.5))")
        self.assertEqual(mine.given, ("a", (1, 2.5)))
        best = command_line.make_callback("laser_tf.callbacks:KeepBest")
        self.assertIsInstance(best, callbacks.KeepBest)

    @parameterized.parameters(
        ("KeepBest", "--callbacks", "KeepBest"),
        ("own_callbacks:Mine(name=a", "own_callbacks:Mine(name=a"),
        ("no_such_module:Mine", "no_such_module"),
        ("own_callbacks:Mien", "Mien", "Mine"),
        ("own_callbacks:Mine", "own_callbacks:Mine", "name"),
        ("own_callbacks:Mine(name=a, size=3)", "size"),
        ("own_callbacks:Mine(3)", "3"),
        ("own_callbacks:Other", "own_callbacks:Other"),
        ("own_callbacks:text", "own_callbacks:text"),
        ("laser_tf.callbacks:StopAfter", "StopAfter"),
    )
    def test_bad_entry_raises(self, entry, *named):
        with messages.raises(errors.UserError, *named):
            command_line.make_callback(entry)


class CommandTest(commands.CommandTest):
    @pytest.mark.long
    def test_bug_of_a_callback_keeps_its_traceback_and_saves(self):
        (self.workdir.parent / "own_callbacks.py").write_text(_MODULE)
        done = subprocess.run(
            [
                sys.executable, "-m", "launch.train", "--config=laser:catch",
                "--callbacks=own_callbacks:Broken", f"--workdir={self.workdir}",
            ],
            cwd=self.workdir.parent, env=os.environ | {"PYTHONPATH": str(pages.ROOT)},
            capture_output=True, text=True, timeout=400,
        )  # fmt: skip
        self.assertNotEqual(done.returncode, 0)
        for part in ("Traceback", "in on_update", "ValueError: bug of mine"):
            self.assertIn(part, done.stderr)
        self.assertTrue((self.workdir / "checkpoints/learner/checkpoint-1.index").exists())

    def test_stopped_run_is_evaluated(self):
        _, errors_ = self.succeed(
            "train", "--config=laser:catch", "--config.run.env_frames=1000000",
            "--config.run.evaluation_episodes=3", f"--workdir={self.workdir}",
            "--callbacks=laser_tf.callbacks:StopAfter(seconds=0.01)",
        )  # fmt: skip
        self.assertIn("StopAfter", errors_)
        summary = json.loads((self.workdir / "evaluation.json").read_text())
        self.assertEqual(summary["episodes"], 3)
        self.assertLess(summary["env_frames"], 100_000)

    def test_cluster_is_rejected_and_nothing_written(self):
        self.assert_rejected(
            ("--callbacks", "laser_tf.callbacks:KeepBest", "config.cluster.actors"), "train",
            "--config=laser:catch", "--config.cluster.actors=2", f"--workdir={self.workdir}",
            "--callbacks=laser_tf.callbacks:KeepBest",
        )  # fmt: skip
        self.assertFalse(self.workdir.exists())


if __name__ == "__main__":
    absltest.main()
