"""A trained policy leaves by `launch.export`, and a new run begins from its weights."""

import json
import pathlib
import shutil
import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from laser_tf.environments import catch, factory
from laser_tf.runtime import episode_player
from testing import commands

TRAINED = (
    "--config=configs/laser_catch.py",
    "--config.run.env_frames=40000",
    "--config.run.evaluation_episodes=0",
)
FINE_TUNED = (
    "--config=configs/laser_catch.py",
    "--config.run.env_frames=1500",
    "--config.run.evaluation_episodes=50",
    "--config.learner.learning_rate=1e-9",
)


class ExportTest(absltest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.run_folder, cls.output = cls.folder / "run", cls.folder / "policy"
        code, _, errors = commands.run("train", *TRAINED, f"--workdir={cls.run_folder}")
        assert code == 0, errors
        cls.exported = commands.run(
            "export", f"--workdir={cls.run_folder}", f"--output={cls.output}"
        )

    def _assert_refused(self, message: str, module: str, *arguments: str) -> None:
        before = sorted(self.folder.rglob("*"))
        code, output, errors = commands.run(module, *arguments)
        self.assertEqual((code, output), (1, ""))
        lines = [line for line in errors.splitlines() if not line.startswith("no private network")]
        self.assertLen(lines, 1, errors)
        self.assertRegex(lines[0], f"^error: .*{message}")
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def test_says_one_line_and_describes_itself(self):
        code, output, errors = self.exported
        self.assertEqual((code, output), (0, ""), errors)
        self.assertEqual(
            errors, f"written to {self.output}; {self.output}/README.md says what goes in and out\n"
        )
        about = json.loads((self.output / "policy.json").read_text())
        self.assertEqual(
            about["inputs"][0],
            {
                "name": "observation",
                "shape": ["batch", 10, 5, 1],
                "dtype": "uint8",
                "meaning": "image of height, width and channels",
                "minimum": "0",
                "maximum": "255",
            },
        )
        self.assertEqual(about["action"]["maximum"], "2")
        page = (self.output / "README.md").read_text()
        self.assertIn("| observation | uint8 [batch, 10, 5, 1] | image", page)
        self.assertGreaterEqual(about["trained_env_frames"], 40_000)

    def test_the_example_on_its_page_runs(self):
        page = (self.output / "README.md").read_text()
        example = page.split("```python\n")[1].split("```")[0]
        environment = _Gymnasium()
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "example.py"
            script.write_text(example.replace('load("policy")', f'load("{self.output}")'))
            exec(compile(script.read_text(), script, "exec"), {"environment": environment})
        self.assertEqual(environment.steps, catch.STEPS)

    def test_returns_are_those_of_a_greedy_evaluation(self):
        code, output, errors = commands.run(
            "evaluate", f"--workdir={self.run_folder}", "--greedy", "--episodes=40", "--seed=5"
        )
        self.assertEqual(code, 0, errors)
        policy = tf.saved_model.load(str(self.output))
        environment = factory.make_environment(catch.CatchConfig(), seed=5, num_envs=32)
        state = policy.initial_state(32)

        def act(step):
            nonlocal state
            numbers = (step.reward, step.discount, step.is_first)
            action, state = policy.greedy(step.observation, *numbers, state)
            return action.numpy()

        games = episode_player.EpisodePlayer(environment, act).play(40)
        returns = [game.episode_return for game in games]
        self.assertEqual(returns, json.loads(output)["returns"])
        self.assertGreater(np.mean(returns), 0.5)

    def test_what_cannot_be_exported_is_refused_in_one_line(self):
        there = f"--workdir={self.run_folder}"
        new = f"--output={self.folder / 'new'}"
        self._assert_refused(
            "policy exists: name a new", "export", there, f"--output={self.output}"
        )
        self._assert_refused("holds no run", "export", f"--workdir={self.folder}/none", new)
        self._assert_refused("--output is missing", "export", there)
        empty = self.folder / "empty"
        empty.mkdir()
        shutil.copy(self.run_folder / "config.json", empty)
        self._assert_refused("holds no checkpoint yet", "export", f"--workdir={empty}", new)
        self._assert_refused("cannot write /proc/none", "export", there, "--output=/proc/none")

    def test_damaged_checkpoints_leave_nothing_behind(self):
        damaged = self.folder / "damaged"
        shutil.copytree(self.run_folder, damaged)
        for path in (damaged / "checkpoints/learner").glob("*.data*"):
            path.write_bytes(b"damaged")
        output = self.folder / "from_damaged"
        code, _, errors = commands.run("export", f"--workdir={damaged}", f"--output={output}")
        self.assertEqual(code, 1)
        self.assertRegex(
            errors.splitlines()[-1], "^error: none of the checkpoints in .* can be used"
        )
        self.assertNotIn("Traceback", errors)
        self.assertEmpty(list(self.folder.glob("from_damaged*")))

    def test_fine_tuning_starts_at_the_return_that_was_learnt(self):
        workdir = self.folder / "fine_tuned"
        flags = (*FINE_TUNED, f"--workdir={workdir}", f"--init_from={self.run_folder}")
        code, _, errors = commands.run("train", *flags)
        self.assertEqual(code, 0, errors)
        evaluation = json.loads((workdir / "evaluation.json").read_text())
        self.assertGreater(evaluation["mean_return"], 0.5)  # fresh weights: about -0.6
        self.assertLess(evaluation["learner_updates"], 100)  # its own
        noted = json.loads((workdir / "config.json").read_text())["init_from"]
        self.assertEqual(noted["workdir"], str(self.run_folder))
        self.assertGreater(noted["learner_updates"], 100)

        for again in (flags, flags[:-1]):  # resumed with or without the flag
            code, _, errors = commands.run("train", *again)
            self.assertEqual(code, 0, errors)
            self.assertIn("trained already", errors)
        self._assert_refused(
            f"began from {self.run_folder}, not from {self.folder}/other: leave",
            "train", *flags[:-1], f"--init_from={self.folder}/other",
        )  # fmt: skip

    def test_weights_that_do_not_fit_are_named(self):
        flags = (*FINE_TUNED, f"--workdir={self.folder}/refused")
        self._assert_refused("none holds no run", "train", *flags, "--init_from=/tmp/none")
        self._assert_refused(
            r"agent/\S+ is float32\[\S.*\] there and (missing|float32\[.*\]) here.*; use the network",
            "train", *flags, f"--init_from={self.run_folder}", "--config.agent.core=lstm",
        )  # fmt: skip


class _Gymnasium:
    """Catch as a gymnasium environment."""

    def __init__(self):
        self._game = catch.Catch(1, seed=3)
        self.steps = 0

    def reset(self):
        return self._game.reset().observation[0], {}

    def step(self, action):
        self.steps += 1
        step = self._game.step(np.array([action]))
        return step.observation[0], step.reward[0], step.discount[0] == 0, False, {}


if __name__ == "__main__":
    absltest.main()
