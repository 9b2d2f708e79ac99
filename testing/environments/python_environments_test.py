"""Tests of gymnasium, dm_env and TF-Agents environments in workers: steps, seeds, faults."""

import contextlib
import functools
import importlib.util
import os
import pathlib
from unittest import mock

import numpy as np
import tree
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import errors
from laser_tf.environments import base, environment_worker, faults, suites
from testing import commands, folders, messages
from testing.environments import rollouts, small_environments

SMALL = "testing.environments.small_environments"


def make(suite, task, **options):
    """Makes an environment of up to two workers."""
    options = {"num_envs": 3, "num_workers": 2, **options}
    return rollouts.make(suite, task, **options)


class TimedTest(parameterized.TestCase):
    @parameterized.parameters(
        ({"arguments": "cut=4"}, 1, 4),
        ({"arguments": {"ends": 4, "cut": 4}}, 0, 4),  # A termination at the time limit.
        ({"arguments": "ends=3", "max_frames_per_episode": 3}, 0, 3),
        ({"arguments": "max_episode_steps=2"}, 1, 2),  # Of gymnasium.make.
    )
    def test_truncation_keeps_the_discount(self, options, discount, length):
        with make("gymnasium", f"{SMALL}:Timed-v0", num_envs=1, **options) as environment:
            outputs = rollouts.run(environment, np.ones([2 * length + 2, 1], np.int32))
        np.testing.assert_array_equal(
            np.flatnonzero(outputs.is_first), [0, length + 1, 2 * length + 2]
        )
        ends = outputs.discount[[length, 2 * length + 1], 0]
        np.testing.assert_array_equal(ends, [discount] * 2)
        np.testing.assert_array_equal(
            np.delete(outputs.discount[:, 0], [length, 2 * length + 1]), 1
        )
        np.testing.assert_array_equal(
            outputs.observation[: length + 1, 0, 1], np.arange(length + 1)
        )

    def test_workers_share_environments_and_actions_start_at_0(self):
        with make("gymnasium", f"{SMALL}:Timed-v0", num_envs=5, num_workers=2) as environment:
            outputs = rollouts.run(environment, np.array([[0, 1, 2, 0, 1]], np.int32))
        np.testing.assert_array_equal(outputs.observation[1, :, 2], [0, 1, 2, 0, 1])
        processes = outputs.observation[0, :, 0].astype(int).tolist()
        self.assertLen(set(processes), 2)
        self.assertNotIn(os.getpid(), processes)
        self.assertEqual([processes.count(process) for process in dict.fromkeys(processes)], [3, 2])


def _actions(steps):
    return np.tile(np.array([0, 0, 1, 1], np.int32), [steps, 1])


@functools.cache
def _run_unbroken(steps):
    with make(
        "gymnasium", f"{SMALL}:Breaking-v0", seed=10, num_envs=4, arguments="bad_seed=-1"
    ) as environment:
        return rollouts.run(environment, _actions(steps))


class FaultTest(folders.FolderTest):
    def _run(self, steps=8, options=None, **arguments):
        """Steps 4 environments in 2 workers; the environment with seed 11 fails."""
        arguments = {"bad_seed": 11, **arguments}
        with self.assertLogs(level="WARNING") as logs:
            with make(
                "gymnasium",
                f"{SMALL}:Breaking-v0",
                seed=10,
                num_envs=4,
                arguments=arguments,
                traceback_directory=self._folder,
                **(options or {}),
            ) as environment:
                outputs = rollouts.run(environment, _actions(steps))
                self.counts = dict(environment.fault_counts())
        self.messages = [record.getMessage() for record in logs.records]
        return outputs

    @parameterized.parameters(
        ("raise", ("KeyError", "small_environments.py")),
        ("shape", ("observation", "[1]", "[2]")),
    )
    def test_fault_truncates_only_its_episode(self, fault, named):
        outputs = self._run(fault=fault)
        self.assertLen(self.messages, 1)
        messages.assert_names(self.messages[0], 1, "Breaking-v0", "step 2", *named)
        self.assertIn("Traceback", (self._folder / faults.FILE).read_text())
        self.assertEqual(self.counts, {faults.RESTARTS: 1})
        # The previous step replaces the lost step. The next episode has a new environment.
        np.testing.assert_array_equal(outputs.observation[2, 1], outputs.observation[1, 1])
        self.assertEqual((outputs.reward[2, 1], outputs.discount[2, 1]), (0, 1))
        np.testing.assert_array_equal(outputs.is_first[:5, 1], [True, False, False, True, False])
        self._assert_others_continue(outputs, [0, 2, 3])

    def _assert_others_continue(self, outputs, others):
        clean = _run_unbroken(len(outputs.reward) - 1)
        rollouts.assert_same(
            *(tree.map_structure(lambda c: c[:, others], nest) for nest in (clean, outputs))
        )

    @parameterized.parameters(
        ("die", (3,), {}),
        ("hang", (2, "environment.reply_seconds"), {"reply_seconds": 2.0}),
    )
    def test_failed_worker_truncates_its_environments(self, fault, named, limit):
        outputs = self._run(fault=fault, options=limit)
        self.assertLen(self.messages, 1)
        messages.assert_names(self.messages[0], 1, *named)
        for index in (0, 1):
            self.assertEqual((outputs.reward[2, index], outputs.discount[2, index]), (0, 1))
            np.testing.assert_array_equal(outputs.is_first[:4, index], [True, False, False, True])
            np.testing.assert_array_equal(
                outputs.observation[2, index], outputs.observation[1, index]
            )
            self.assertEqual(outputs.observation[3, index, 0], 0)
        self._assert_others_continue(outputs, [2, 3])

    def test_failed_reset_is_repeated_with_another_seed(self):
        outputs = self._run(fault="raise", in_reset=True)
        messages.assert_names(self.messages[0], 1, "KeyError", 0)
        self.assertTrue(outputs.is_first[0].all())
        self._assert_others_continue(outputs, [0, 2, 3])

    @parameterized.parameters("die", "raise, die")
    def test_worker_that_ends_in_a_reset_truncates_others(self, fault):
        """The third episode ends the worker, in environment 0 while environment 1 steps."""
        arguments = {"fault": fault, "each": 3, "in_reset": True, "bad_seed": -1}
        with make(
            "gymnasium", f"{SMALL}:Breaking-v0", num_envs=2, num_workers=1, arguments=arguments
        ) as environment:
            outputs = rollouts.run(
                environment, np.array([[0, step % 2] for step in range(6)], np.int32)
            )
            counts = environment.fault_counts()
        self.assertEqual(counts, {faults.RESTARTS: 2 if fault == "die" else 3})
        np.testing.assert_array_equal(np.flatnonzero(outputs.is_first[:, 0]), [0, 4])
        np.testing.assert_array_equal(np.flatnonzero(outputs.is_first[:, 1]), [0, 5])
        np.testing.assert_array_equal(outputs.observation[4, 1], outputs.observation[3, 1])
        self.assertEqual((outputs.reward[4, 1], outputs.discount[4, 1]), (0, 1))
        np.testing.assert_array_equal(
            outputs.observation[4:, :, 0] * 3, [[0, -1], [-1, 0], [-2, 1]]
        )

    def test_worker_that_ends_in_a_reset_restarts_new_episodes(self):
        """Both start second episodes at once; environment 1 raises and then ends the worker."""
        arguments = {"fault": "raise, die", "each": 4, "in_reset": True, "bad_seed": -1}
        with make(
            "gymnasium", f"{SMALL}:Breaking-v0", num_envs=2, num_workers=1, arguments=arguments
        ) as environment:
            outputs = rollouts.run(environment, np.zeros([7, 2], np.int32))
            counts = environment.fault_counts()
        self.assertEqual(counts, {faults.RESTARTS: 3})
        for index in (0, 1):
            np.testing.assert_array_equal(np.flatnonzero(outputs.is_first[:, index]), [0, 4])

    @parameterized.parameters(False, True)
    def test_repeated_faults_end_the_run(self, in_reset):
        named = 0, "KeyError", "environment.max_broken_episodes", 2
        with messages.raises(faults.EnvironmentFailedError, *named):
            self._run(
                steps=20,
                fault="raise",
                every_time=True,
                in_reset=in_reset,
                options={"max_broken_episodes": 2},
            )


class RejectionTest(parameterized.TestCase):
    @parameterized.parameters(
        ("gymnasium", "Cartpole-v1", ("CartPole-v1",)),
        ("gymnasium", "no_such.module:Own-v0", ("'no_such.module'",)),
        ("gymnasium", f"{SMALL}:Corridr-v0", ("Corridor-v0",)),
        ("dm_env", "no_such:make", ("'no_such'",)),
        ("dm_env", f"{SMALL}:Beacon", ("Beacons",)),
        ("dm_env", f"{SMALL}:not_an_environment", ("int", "dm_env.Environment")),
        ("tf_agents", f"{SMALL}:Beacons", ("Beacons", "PyEnvironment")),
    )
    def test_unusable_task_is_named_in_one_line(self, suite, task, named):
        self.enter_context(mock.patch.dict(os.environ))
        create = suites.config_class(suite)(task=task).maker(task, rendering=False)
        with messages.raises(errors.ConfigError, *named):
            create(0)

    def test_specs_that_depend_on_the_seed_are_rejected(self):
        task = f"{SMALL}:sized_by_seed"
        with messages.raises(faults.EnvironmentCreationError, task, "seed"):
            make("dm_env", task)

    def test_error_of_user_code_is_named_with_the_command(self):
        named = "TypeError", "speed", "launch.check_environment"
        with messages.raises(faults.EnvironmentCreationError, *named):
            with make("gymnasium", f"{SMALL}:Corridor-v0", arguments="speed=3"):
                pass


class ProcessTest(folders.FolderTest):
    def test_worker_imports_only_modules_of_its_environment(self):
        with messages.raises(ValueError, "ValueError", "numpy") as caught:
            with make("dm_env", f"{SMALL}:modules"):
                pass
        modules = set(str(caught.exception).split())
        self.assertNoCommonElements(modules, {"tensorflow", "absl", "pytest", "reverb"})

    def test_global_generators_have_the_seed_of_the_environment(self):
        shown = []
        for _ in range(2):
            with make("dm_env", f"{SMALL}:Unseeded") as environment:
                shown.append(environment.reset().observation)
        np.testing.assert_array_equal(*shown)
        self.assertLen(np.unique(shown[0]), 6)

    def test_module_of_the_current_folder_is_found(self):
        (self._folder / "own_module.py").write_text(f"from {SMALL} import Beacons as make")
        program = """
import sys
sys.path[:] = [path for path in sys.path if path not in ("", sys.argv[1])]  # As in a script.
from laser_tf.environments import factory, suites
config = suites.config_class("dm_env")(task="own_module:make", num_envs=1)
environment = factory.make_environment(config, seed=0)
print(environment.reset().reward, "own_module" in sys.modules)
environment.close()
"""
        variables = os.environ | {"PYTHONPATH": str(pathlib.Path.cwd())}
        result = commands.run_program(program, self._folder, cwd=self._folder, env=variables)
        self.assertEqual((result.stdout, result.stderr), ("[0.] False\n", ""))

    def test_close_closes_the_shared_memory(self):
        before = _memory_files()
        with make("dm_env", f"{SMALL}:Beacons") as environment:
            environment.reset()
        for tasks in (f"{SMALL}:NUMBER", f"{SMALL}:Beacons,{SMALL}:NUMBER"):
            with messages.raises(ValueError, "NUMBER"), make("dm_env", tasks):
                pass
        self.assertEqual(_memory_files(), before)


def _memory_files():
    links = []
    for file in pathlib.Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            links.append(str(file.readlink()))
    return sum("laser_tf_steps" in link for link in links)


class WorkerTest(absltest.TestCase):
    def _file(self):
        file = os.memfd_create("steps")
        self.addCleanup(os.close, file)
        return file

    def test_each_call_restarts_the_time_limit_of_its_environment(self):
        calls, memory = [], None

        class Noting(small_environments.Beacons):
            def _note(self):
                calls.append((int(memory["current_env"]), float(memory["called_at"])))

            def reset(self):
                self._note()
                return super().reset()

            def step(self, action):
                self._note()
                return super().step(action)

        file = self._file()
        worker = environment_worker.Worker(
            0, file, make=Noting, seeds=[0, 1], action_repeat=2, max_words=1
        )
        memory = environment_worker.map_memory(file, worker.describe().observation, 2)
        for command in (environment_worker.RESET, environment_worker.STEP):
            self.assertEmpty(worker.step([command] * 2, np.zeros(2, np.int32)))
        self.assertEqual([index for index, _ in calls], [0, 1, 0, 0, 1, 1])
        self.assertLen({called_at for _, called_at in calls}, len(calls))

    def test_environment_of_length_0_is_created_once(self):
        made = []

        class Empty(small_environments.Beacons):
            def __init__(self, seed):
                super().__init__(seed)
                made.append(seed)

            def __len__(self):
                return 0

        worker = environment_worker.Worker(
            0, self._file(), make=Empty, seeds=[5], action_repeat=1, max_words=1
        )
        worker.describe()
        for _ in range(2):
            self.assertEmpty(worker.step([environment_worker.RESET], None))
        self.assertEqual(made, [5])

    def test_memory_of_other_specs_is_rejected_and_not_resized(self):
        file = self._file()
        spec = {"b": specs.Array([2], np.float32), "a": specs.Array([3], np.uint8)}
        one, other = (environment_worker.map_memory(file, spec, 4)["steps"] for _ in range(2))
        one["1"][2] = [0.5, 1]
        np.testing.assert_array_equal(other["1"][2], [0.5, 1])
        with messages.raises(ValueError):
            environment_worker.map_memory(file, specs.Array([9, 9, 9], np.uint8), 4)
        one["reward"][:] = 3  # Would end the process by SIGBUS.
        np.testing.assert_array_equal(other["reward"], 3)


class ActionRepeatTest(parameterized.TestCase):
    def test_action_is_repeated_until_the_episode_ends(self):
        with make("gymnasium", f"{SMALL}:Corridor-v0", action_repeat=2) as environment:
            # The exit is 3 frames away.
            outputs = rollouts.run(environment, np.ones([5, 3], np.int32))
            self.assertEqual(environment.action_repeat, 2)
        np.testing.assert_allclose(outputs.observation[:3, 0, 0], [0, 2 / 3, 1])
        np.testing.assert_array_equal(outputs.discount[:, 1], [1, 1, 0, 1, 1, 0])
        np.testing.assert_array_equal(outputs.is_first[:, 2], [1, 0, 0, 1, 0, 0])
        is_exit = outputs.observation[0, :, 1] == 1
        np.testing.assert_array_equal(outputs.reward[2], is_exit)


class RenderTest(parameterized.TestCase):
    def test_render_returns_the_image_of_the_environment(self):
        with make("gymnasium", f"{SMALL}:Corridor-v0", rendering=True) as environment:
            environment.reset()
            environment.step(np.array([0, 0, 1], np.int32))
            picture = environment.render(2)
        self.assertEqual((picture.shape, picture.dtype), ((8, 56, 3), np.uint8))
        np.testing.assert_array_equal(np.flatnonzero(picture[0, ::8, 0]), [4])

    def test_render_without_image_returns_the_observed_image(self):
        with make("dm_env", f"{SMALL}:Beacons", rendering=True) as environment:
            shown = environment.reset().observation["picture"]
            np.testing.assert_array_equal(environment.render(1), shown[1])

    def test_render_without_any_image_raises(self):
        with make("gymnasium", f"{SMALL}:Timed-v0", rendering=True) as environment:
            environment.reset()
            with messages.raises(base.RenderError, "Timed-v0", "rgb_array"):
                environment.render(0)
            outputs = environment.step(np.zeros(3, np.int32))
        np.testing.assert_array_equal(outputs.observation[:, 1], 1)

    def test_render_that_ends_the_worker_raises_and_ends_the_episode(self):
        with make(
            "gymnasium", f"{SMALL}:Rendered-v0", num_envs=1, rendering=True, arguments="kind=die"
        ) as environment:
            environment.reset()
            with messages.raises(base.RenderError, "Rendered-v0", 3):
                environment.render(0)
            with self.assertLogs(level="WARNING") as logs:
                environment.step(np.zeros(1, np.int32))
            messages.assert_names(logs.records[0].getMessage(), "render()")
            self.assertTrue(environment.step(np.zeros(1, np.int32)).is_first[0])


class PyEnvironmentTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        if not importlib.util.find_spec("tf_agents"):
            self.skipTest("TF-Agents is not installed")

    def _make(self, name):
        """Creates an environment without a worker, which would load TensorFlow."""
        task = f"testing.environments.small_py_environment:{name}"
        return suites.config_class("tf_agents")(task=task).maker(task, rendering=False)(0)

    def test_ends_of_episodes_are_mapped(self):
        environment = self._make("make")
        action = environment.action_spec()
        self.assertEqual((int(action.minimum), int(action.maximum)), (0, 2))
        steps = [environment.reset(), *(environment.step(np.int32(0)) for _ in range(12))]
        np.testing.assert_array_equal(
            [int(step.step_type) for step in steps], [0, 1, 1, 2] * 3 + [0]
        )
        self.assertEqual([steps[end].discount for end in (3, 7, 11)], [0, 1, 0])

    def test_batched_environment_is_rejected(self):
        with messages.raises(ValueError, "4"):
            self._make("make_batched")


if __name__ == "__main__":
    absltest.main()
