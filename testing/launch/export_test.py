"""launch.export of a trained policy, and new runs that start from its weights."""

import contextlib
import dataclasses
import functools
import io
import json
import pathlib
import runpy
import shutil
import sys
from unittest import mock

import gymnasium
import numpy as np
import tree
from absl.testing import absltest
from dm_env import specs

from laser_tf import errors
from laser_tf.api import plans
from laser_tf.environments import base, canonical_actions, catch, factory, gymnasium_suite
from laser_tf.evaluation import run_evaluation
from laser_tf.export import act, description, exporter, portable_policy
from laser_tf.training import assembly, initial_weights
from laser_tf.workdir import run_directory
from testing import commands, fakes, folders, messages
from testing.export import policies

TRAINED = (
    "--config=configs/laser.py:catch",
    "--config.run.env_frames=40000",
    "--config.run.evaluation_episodes=0",
)
FINE_TUNED = (
    "--config=configs/laser.py:catch",
    "--config.run.env_frames=1500",
    "--config.run.evaluation_episodes=50",
    "--config.learner.learning_rate=1e-9",
)


class ExportTest(commands.CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = folders.of_class(cls)
        cls.run_folder, cls.output = cls.folder / "run", cls.folder / "policy"
        code, _, printed = commands.run_forked("train", *TRAINED, f"--workdir={cls.run_folder}")
        assert code == 0, printed
        cls.exported = commands.run_forked(
            "export", f"--workdir={cls.run_folder}", f"--output={cls.output}"
        )

    def _assert_rejected(self, named: tuple, module: str, *arguments: str) -> None:
        before = sorted(self.folder.rglob("*"))
        self.assert_rejected(named, module, *arguments)
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def test_exported_policy_describes_itself(self):
        code, output, printed = self.exported
        self.assertEqual((code, output), (0, ""), printed)
        self.assertLen(printed.splitlines(), 1)
        self.assertIn(str(self.output / "README.md"), printed)
        about = json.loads((self.output / "policy.json").read_text())
        self.assertEqual(
            about["inputs"][0],
            {
                "name": "observation",
                "shape": ["batch", 10, 5, 1],
                "dtype": "uint8",
                "meaning": "image of height, width and channels; one of bool as 0 and 255",
                "minimum": "0",
                "maximum": "255",
            },
        )
        own = {
            "action": {"first": 0, "shape": [], "dtype": "int32", "minimum": 0, "maximum": 2},
            "observation_offsets": [0],
            "reward_scale": 1.0,
        }
        self.assertEqual(about["tasks"], {"catch": own})
        self.assertEqual(about["action"]["maximum"], "2")
        page = (self.output / "README.md").read_text()
        self.assertIn("| observation | uint8 [batch, 10, 5, 1] | image", page)
        self.assertGreaterEqual(about["trained_env_frames"], 40_000)

    def test_program_of_the_policy_runs_episodes(self):
        program = runpy.run_path(str(self.output / "act.py"))
        returns = program["run"](program["load"](self.output, "catch"), _Gymnasium(), 10)
        self.assertLen(returns, 10)
        self.assertGreater(np.mean(returns), 0.5)

    def test_returns_are_those_of_a_greedy_evaluation(self):
        summary = run_evaluation.evaluate(
            self.run_folder, episodes=40, seed=5, video=False, greedy=True
        )

        def times():
            return {path: path.stat().st_mtime_ns for path in self.output.rglob("*")}

        before = times()
        printed, _ = self.succeed(
            "evaluate", f"--policy={self.output}", "--episodes=40", "--seed=5", "--greedy"
        )
        exported = json.loads(printed)
        different = {key for key in exported if exported[key] != summary[key]}
        self.assertEmpty(different - {"seconds"})
        self.assertGreater(exported["mean_return"], 0.5)
        self.assertEqual(times(), before)

    def test_tflite_export_has_the_evaluation_in_its_card(self):
        summary = run_evaluation.evaluate(
            self.run_folder, episodes=8, seed=5, video=False, greedy=True
        )
        output = self.folder / "tflite [1]"  # Only SavedModels have paths that are patterns.
        _, printed = self.succeed(
            "export", f"--workdir={self.run_folder}", f"--output={output}", "--format=tflite"
        )
        self.assertLen(printed.splitlines(), 1)
        files = [path.name for path in output.iterdir()]
        self.assertCountEqual(files, ["README.md", "policy.json", "policy.tflite"])
        about = json.loads((output / "policy.json").read_text())
        self.assertEqual(about["format"], "tflite")
        self.assertEqual(about["evaluation"]["mean_return"], summary["mean_return"])
        self.assertEqual(about["config"]["agent"]["name"], "laser")
        card = (output / "README.md").read_text()
        self.assertIn(f"mean return {summary['mean_return']:.4g}", card)
        self.assertIn("8 episodes", card)

    def test_unusable_format_is_rejected_and_nothing_written(self):
        before = sorted(self.folder.rglob("*"))
        export = functools.partial(exporter.export, self.run_folder, self.folder / "new")
        with mock.patch.dict(sys.modules, {"tf2onnx": None}):
            with messages.raises(errors.MissingPackageError, "tf2onnx", "make onnx", "pip install"):
                export(model_format="onnx")
        with messages.raises(errors.ConfigError, "compute_dtype", "float32", "bfloat16"):
            export("bfloat16", model_format="tflite")
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def test_unusable_run_is_rejected_and_nothing_written(self):
        empty, damaged = self.folder / "empty", self.folder / "damaged"
        empty.mkdir()
        shutil.copy(self.run_folder / "config.json", empty)
        shutil.copytree(self.run_folder, damaged)
        for path in (damaged / "checkpoints/learner").glob("*.data*"):
            path.write_bytes(b"damaged")
        before = sorted(self.folder.rglob("*"))
        new = self.folder / "new"
        for workdir, output, named in (
            (self.run_folder, self.output, self.output),
            (self.folder / "none", new, self.folder / "none"),
            (empty, new, empty),
            (damaged, new, damaged / "checkpoints/learner"),
            (self.run_folder, pathlib.Path("/proc/none/new"), "/proc/none/new"),
            (self.run_folder, self.folder / "new [1]" / "policy", self.folder / "new [1]"),
            (self.run_folder, self.folder / "new\\1", self.folder / "new\\1"),
        ):
            with messages.raises(run_directory.WorkdirError, named):
                exporter.export(workdir, output)
            self.assertEqual(sorted(self.folder.rglob("*")), before)
        none = self.folder / "none"
        self._assert_rejected((none,), "export", f"--workdir={none}", f"--output={new}")
        self._assert_rejected((none,), "evaluate", f"--policy={none}")

    def test_fine_tuning_starts_at_the_learned_return(self):
        workdir = self.folder / "fine_tuned"
        self.succeed("train", *FINE_TUNED, f"--workdir={workdir}", f"--init_from={self.run_folder}")
        evaluation = json.loads((workdir / "evaluation.json").read_text())
        self.assertGreater(evaluation["mean_return"], 0.5)  # fresh weights: about -0.6
        self.assertLess(evaluation["learner_updates"], 100)  # its own
        noted = json.loads((workdir / "config.json").read_text())["init_from"]
        self.assertEqual(noted["workdir"], str(self.run_folder))
        self.assertGreater(noted["learner_updates"], 100)

        # It resumes from its own weights, with the flag or without it.
        self.assertIsNone(plans.find_origin(workdir, self.run_folder))
        spelling = self.run_folder / ".." / self.run_folder.name
        self.assertIsNone(plans.find_origin(workdir, spelling))
        self.assertIsNone(plans.find_origin(workdir, None))
        with messages.raises(run_directory.WorkdirError, "--init_from", self.run_folder, "/other"):
            plans.find_origin(workdir, pathlib.Path("/other"))
        with messages.raises(run_directory.WorkdirError, "--init_from", self.run_folder, workdir):
            plans.find_origin(self.run_folder, workdir)
        # Stopped before it saved anything, it begins there again.
        shutil.rmtree(workdir / "checkpoints/learner")
        self.assertEqual(plans.find_origin(workdir, None), self.run_folder)

    def test_weights_of_another_network_are_rejected(self):
        flags = (*FINE_TUNED, f"--workdir={self.folder}/refused")
        self._assert_rejected(
            (f"--init_from={self.run_folder}", "missing"),
            "train", *flags, f"--init_from={self.run_folder}", "--config.agent.torso=minatar",
        )  # fmt: skip


class InitialWeightsTest(absltest.TestCase):
    def test_only_weights_and_moments_are_copied(self):
        source, target = policies.make("continuous").agent, policies.make("continuous").agent
        r2d2 = policies.make("r2d2").agent
        learnt = initial_weights.select_variables(source)
        self.assertContainsSubset(
            {id(variable) for variable in source.acting_variables}, set(map(id, learnt.values()))
        )
        self.assertFalse(any(v is source.entropy_cost for v in learnt.values()))
        self.assertTrue(
            all(v.dtype.is_floating for v in initial_weights.select_variables(r2d2).values())
        )
        arrays = {name: np.float32(variable.numpy() + 1) for name, variable in learnt.items()}
        initial = initial_weights.InitialWeights(pathlib.Path("other"), 3, arrays)
        target.entropy_cost.assign(0.25)
        initial_weights.assign(initial, target)
        for name, variable in initial_weights.select_variables(target).items():
            np.testing.assert_array_equal(variable, arrays[name])
        self.assertEqual(target.entropy_cost.numpy(), 0.25)

    def test_other_shapes_are_rejected_and_nothing_assigned(self):
        agent = policies.make("feed_forward").agent
        learnt = initial_weights.select_variables(agent)
        before = {name: variable.numpy() for name, variable in learnt.items()}
        arrays = {name: array + 1 for name, array in before.items()}
        name = list(arrays)[-1]
        arrays[name] = np.zeros([7, 3], np.float32)
        initial = initial_weights.InitialWeights(pathlib.Path("other"), 3, arrays)
        shape = list(before[name].shape)
        with messages.raises(ValueError, name, "float32[7, 3]", f"float32{shape}"):
            initial_weights.assign(initial, agent)
        for name, variable in learnt.items():
            np.testing.assert_array_equal(variable, before[name])


class OwnActionsTest(commands.CommandTest):
    def test_program_runs_with_other_action_numbers_and_floats(self):
        # Actions from -1 to 1, observations of float64; gymnasium's own checker refuses others.
        task = "testing.environments.small_environments:Timed-v0"
        folder = self.workdir.parent
        self.succeed(
            "train",
            "--config=configs/laser.py:gymnasium",
            f"--config.environment.task={task}",
            "--config.environment.arguments=ends=9",
            "--config.environment.action_repeat=2",
            "--config.environment.max_frames_per_episode=7",
            "--config.environment.num_workers=1",
            "--config.run.env_frames=500",
            "--config.run.evaluation_episodes=0",
            f"--workdir={self.workdir}",
        )
        exporter.export(self.workdir, folder / "policy", trust_config=True)
        about = json.loads((folder / "policy/policy.json").read_text())
        own = about["tasks"][task]["action"]
        self.assertEqual((own["first"], own["minimum"], own["maximum"]), (-1, -1, 1))
        self.assertIn("which begin with -1", about["action"]["meaning"])
        environment = gymnasium.make(task, ends=4)
        self.assertLen(act.run(act.load(folder / "policy", task), environment, 3), 3)
        self._check_program(str(folder / "policy/act.py"), task)

    def _check_program(self, program, task):
        with (
            mock.patch.object(sys, "argv", [program, task]),
            contextlib.redirect_stdout(io.StringIO()) as output,
        ):
            runpy.run_path(program, run_name="__main__")
        self.assertEqual(json.loads(output.getvalue()), [8.0] * 10)  # 7 frames, cut after 4 steps.
        with mock.patch.object(sys, "argv", [program]), self.assertRaises(SystemExit) as raised:
            runpy.run_path(program, run_name="__main__")
        self.assertIn("TASK", str(raised.exception.code))

    def test_description_has_the_shape_of_actions(self):
        canonical = specs.BoundedArray([6], np.float32, -1, 1)
        own = base.NativeSpec(specs.BoundedArray([2, 3], np.float64, -1, 1), [0])
        meaning = description.describe_action(canonical, {"a": own, "b": own})["meaning"]
        self.assertIn("the environment gets it in the shape [2, 3]", meaning)

    def test_program_sends_actions_within_the_space(self):
        # 0.1 as float32 is above 0.1.
        low, high = np.array([[-0.3], [-1.0]]), np.array([[0.1], [5.0]])
        space = gymnasium.spaces.Box(low, high, dtype=np.float64)
        own = specs.BoundedArray(space.shape, space.dtype, space.low, space.high)
        task = json.loads(json.dumps(description.describe_task(base.NativeSpec(own, [0]))))
        chosen = np.float32([0.1, -0.5])
        self.assertFalse(space.contains(chosen.astype(np.float64).reshape([2, 1])))
        (sent,) = act.to_environment(chosen[None], task["action"])
        self.assertTrue(space.contains(sent))
        np.testing.assert_allclose(sent, [[0.1], [-0.5]], rtol=1e-6)

    def test_program_sends_nests_as_in_training(self):
        task = "testing.environments.small_environments:Dials-v0"
        config = gymnasium_suite.GymnasiumConfig(task=task, arguments="level=True", num_workers=1)
        with contextlib.closing(
            factory.make_environment(config, seed=0, num_envs=1)
        ) as environment:
            spec, (own,) = environment.spec(), environment.native_specs()
            actions = environment.random_actions(np.random.default_rng(0))
            environment.reset()
            environment.step(actions)
            self.assertEmpty(environment.fault_counts())  # The environment checks actions.
        about = json.loads(json.dumps(description.describe_task(own)))
        sent = act.to_environment(actions, about["action"])
        sent = tree.map_structure(lambda leaf: leaf[0], sent)
        space = gymnasium.make(task, level=True).action_space
        self.assertTrue(space.contains(sent), sent)
        expected = canonical_actions.Action(own.action)(actions[0])
        tree.map_structure(np.testing.assert_array_equal, sent, expected)
        meaning = description.describe_action(spec.action, {task: own})["meaning"]
        self.assertIn("tasks", meaning)

    def test_each_task_has_its_first_action_number(self):
        tasks = [f"testing.environments.small_environments:{name}-v0" for name in ("Timed", "Zero")]
        config = gymnasium_suite.GymnasiumConfig(task=",".join(tasks), num_workers=1)
        with contextlib.closing(
            factory.make_environment(config, seed=0, num_envs=1)
        ) as environment:
            spec, own = environment.spec(), environment.native_specs()
        self.assertEqual([each.action.minimum.item() for each in own], [-1, 0])
        run = dataclasses.replace(fakes.catch_config(), environment=config)
        agent = assembly.build_agent(run, spec, "float32", 1, is_evaluating=True)
        policy = portable_policy.PortablePolicy(agent, spec, frame_stack=1)
        about = description.describe(policy, run, 0, dict(zip(tasks, own, strict=True)))
        firsts = {task: entry["action"]["first"] for task, entry in about["tasks"].items()}
        self.assertEqual(firsts, dict(zip(tasks, (-1, 0), strict=True)))
        self.assertIn("which begin with what `tasks` says", about["action"]["meaning"])


class _Gymnasium:
    """Catch as a gymnasium environment."""

    def __init__(self):
        self._environment = catch.CatchConfig().make("catch", 1, 3, False)
        self.steps = 0

    def reset(self):
        over = self.steps and self._environment.step(np.array([1]))  # Starts the next episode.
        return (over or self._environment.reset()).observation[0], {}

    def step(self, action):
        self.steps += 1
        step = self._environment.step(np.array([action]))
        return step.observation[0], step.reward[0], step.discount[0] == 0, False, {}


if __name__ == "__main__":
    absltest.main()
