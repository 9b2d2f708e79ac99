"""Evaluations with restricted memory: only those that are missing are made."""

import json
import pathlib
import tempfile
from unittest import mock

from absl.testing import absltest

from laser_tf.evaluation import evaluation_files
from launch import memory_evaluations


def _write(run: pathlib.Path, length: int, env_frames: int = 100, **others: object) -> None:
    summary = {"episodes": 4, "tasks": {"tmaze": {}}, "env_frames": env_frames, **others}
    evaluation_files.result_file(run, length).write_text(json.dumps(summary))


class MemoryEvaluationsTest(absltest.TestCase):
    def test_only_what_is_missing_is_evaluated(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        run = pathlib.Path(folder.name)
        _write(run, 0)
        _write(run, 20)
        evaluation_files.result_file(run, 10).write_text('{"episodes": 4, "ta')  # cut short
        commands = []
        self.enter_context(
            mock.patch.object(
                memory_evaluations.subcommand, "run", lambda *command: commands.append(command)
            )
        )
        memory_evaluations.evaluate(run, (20, 10, 1), 4, 100)
        expected = [
            {f"--workdir={run}", "--episodes=4", "--trust_config", f"--history_length={k}"}
            for k in (10, 1)
        ]
        self.assertEqual([name for name, *_ in commands], ["evaluate"] * 2)
        self.assertEqual([set(flags) for _, *flags in commands], expected)
        commands.clear()
        # The user's, made meanwhile.
        _write(run, 20, protocol={"action_selection": "greedy"})
        _write(run, 10)
        _write(run, 1, protocol={"changed_environment": {"sticky_actions": 0.5}})
        memory_evaluations.evaluate(run, (20, 10, 1), 4, 100)
        self.assertEqual(
            [command[-1] for command in commands], ["--history_length=20", "--history_length=1"]
        )
        commands.clear()
        memory_evaluations.evaluate(run, (20,), 5, 100)  # the others' number differs
        self.assertEqual([command[-1] for command in commands],
                         ["--history_length=0", "--history_length=20"])  # fmt: skip
        commands.clear()
        _write(run, 10, env_frames=300)
        memory_evaluations.evaluate(run, (10,), 4, 300)  # the run has gone on since the other
        self.assertEqual([command[-1] for command in commands], ["--history_length=0"])


if __name__ == "__main__":
    absltest.main()
