"""Gymnasium, dm_env and TF-Agents environments in their workers: rows, seeds, faults, refusals."""

import contextlib
import functools
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import tree
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import types
from laser_tf.environments import (
    base,
    environment_worker,
    factory,
    faults,
    suites,
)
from laser_tf.training import run_config
from testing import messages
from testing.environments import small_environments

SMALL = "testing.environments.small_environments"
LIGHT = (
    ("corridor", {"suite": "gymnasium", "task": f"{SMALL}:Corridor-v0"}),
    ("beacons", {"suite": "dm_env", "task": f"{SMALL}:Beacons"}),
    ("pendulum", {"suite": "gymnasium", "task": "Pendulum-v1", "max_frames_per_episode": 30}),
)
PY_ENVIRONMENT = {"suite": "tf_agents", "task": "testing.environments.small_py_environment:make"}
HEAVY = (("py_environment", PY_ENVIRONMENT),) if importlib.util.find_spec("tf_agents") else ()
STEPS = 100


@contextlib.contextmanager
def make(suite, task, *, seed=0, rendering=False, folder=None, **options):
    """An environment of up to two workers, that closes when its `with` block ends.

    Workers of TF-Agents load TensorFlow, which takes minutes where the machine is busy.
    """
    config = suites.config_class(suite)(
        suite=suite,
        task=task,
        **{"num_envs": 3, "num_workers": 2, "reply_seconds": 600.0, **options},
    )
    environment = factory.make_environment(
        config, seed=seed, rendering=rendering, fault_folder=folder
    )
    with contextlib.closing(environment):
        yield environment


def random_actions(environment, steps, seed=0):
    generator = np.random.default_rng(seed)
    return np.stack([environment.random_actions(generator) for _ in range(steps)])


def play(environment, actions):
    """Resets and plays actions [T, N, ...]; returns an EnvOutput of arrays [T + 1, N, ...]."""
    rows = [environment.reset(), *map(environment.step, actions)]
    return tree.map_structure(lambda *column: np.stack(column), *rows)


def assert_same(expected, actual, fields=types.EnvOutput._fields):
    for name in fields:
        tree.map_structure(
            np.testing.assert_array_equal, getattr(expected, name), getattr(actual, name)
        )


class ConventionTest(parameterized.TestCase):
    @parameterized.named_parameters(*LIGHT, *HEAVY)
    def test_rows_follow_the_convention_and_the_specs(self, options):
        with make(**options) as environment:
            actions = random_actions(environment, STEPS)
            rows = play(environment, actions)
            spec = environment.spec()
        self.assertTrue(rows.is_first[0].all())
        self.assertTrue(rows.is_first[1:].any(axis=0).all(), "all should have ended")
        np.testing.assert_array_equal(rows.reward[rows.is_first], 0)
        np.testing.assert_array_equal(rows.discount[rows.is_first], 1)
        self.assertFalse((rows.is_first[1:] & rows.is_first[:-1]).any())
        self.assertTrue(rows.is_first[1:][rows.discount[:-1] == 0].all())
        np.testing.assert_array_equal(rows.previous_action[1:], actions)
        self.assertEqual(rows.previous_action.dtype, spec.action.dtype)
        for leaf_spec, leaf in zip(
            tree.flatten(spec.observation), tree.flatten(rows.observation), strict=True
        ):
            self.assertEqual(leaf.dtype, leaf_spec.dtype)
            leaf_spec.validate(leaf[STEPS, 2])
        self.assertEqual((rows.reward.dtype, rows.discount.dtype), (np.float32, np.float32))

    @parameterized.named_parameters(*LIGHT)
    def test_an_environment_depends_on_its_seed_and_its_actions_only(self, options):
        with make(**options, seed=7) as environment:
            actions = random_actions(environment, STEPS)
            batch = play(environment, actions)
        others = tree.map_structure(lambda column: column[:, 1].tobytes(), batch)
        last = tree.map_structure(lambda column: column[:, 2].tobytes(), batch)
        self.assertNotEqual(others.observation, last.observation)
        with make(**options, seed=9, num_envs=1, num_workers=1) as environment:
            alone = play(environment, actions[:, 2:])
        assert_same(tree.map_structure(lambda column: column[:, 2:], batch), alone)

    @parameterized.named_parameters(*LIGHT)
    def test_the_action_after_an_end_is_ignored_and_arrays_are_the_callers(self, options):
        with make(**options) as environment:
            actions = random_actions(environment, STEPS)
            expected = play(environment, actions)
        ignored = expected.is_first[1:].reshape(actions.shape[:2] + (1,) * (actions.ndim - 2))
        with make(**options) as environment:
            other = random_actions(environment, STEPS, seed=1)
            mixed = np.where(ignored, other, actions).astype(actions.dtype)
            rows = [environment.reset()]
            copies = [tree.map_structure(np.copy, rows[0])]
            for action in mixed:
                rows.append(environment.step(action))
                copies.append(tree.map_structure(np.copy, rows[-1]))
        for row, copied in zip(rows, copies, strict=True):
            assert_same(row, copied)
        actual = tree.map_structure(lambda *column: np.stack(column), *copies)
        assert_same(expected, actual, ("observation", "reward", "discount", "is_first"))

    def test_a_later_reset_starts_new_episodes_of_the_same_streams(self):
        def play_twice():
            with make(**dict(LIGHT)["beacons"]) as environment:
                actions = random_actions(environment, 3)
                return play(environment, actions), play(environment, actions)

        first, second = play_twice()
        self.assertTrue(second.is_first[0].all())
        self.assertFalse(
            np.array_equal(first.observation["picture"], second.observation["picture"])
        )
        assert_same(second, play_twice()[1])


class TimedTest(parameterized.TestCase):
    @parameterized.parameters(
        ({"arguments": "ends=4"}, 0, 4),
        ({"arguments": "cut=4"}, 1, 4),
        ({"arguments": {"ends": 4, "cut": 4}}, 0, 4),  # an end is an end, whatever the clock says
        ({"max_frames_per_episode": 3}, 1, 3),
        ({"arguments": "ends=3", "max_frames_per_episode": 3}, 0, 3),
        ({"arguments": "max_episode_steps=2"}, 1, 2),  # of gymnasium.make itself
    )
    def test_truncation_and_termination_stay_apart(self, options, discount, length):
        with make("gymnasium", f"{SMALL}:Timed-v0", num_envs=1, **options) as environment:
            rows = play(environment, np.ones([2 * length + 2, 1], np.int32))
        np.testing.assert_array_equal(
            np.flatnonzero(rows.is_first), [0, length + 1, 2 * length + 2]
        )
        ends = rows.discount[[length, 2 * length + 1], 0]
        np.testing.assert_array_equal(ends, [discount] * 2)
        np.testing.assert_array_equal(np.delete(rows.discount[:, 0], [length, 2 * length + 1]), 1)
        np.testing.assert_array_equal(rows.observation[: length + 1, 0, 1], np.arange(length + 1))

    def test_actions_keep_their_start_and_workers_share_the_environments(self):
        with make("gymnasium", f"{SMALL}:Timed-v0", num_envs=5, num_workers=2) as environment:
            rows = play(environment, np.array([[0, 1, 2, 0, 1]], np.int32))
        np.testing.assert_array_equal(rows.observation[1, :, 2], [0, 1, 2, 0, 1])
        processes = rows.observation[0, :, 0].astype(int).tolist()
        self.assertLen(set(processes), 2)
        self.assertNotIn(os.getpid(), processes)
        self.assertEqual([processes.count(process) for process in dict.fromkeys(processes)], [3, 2])

    def test_slow_environments_step_side_by_side(self):
        slow = {"arguments": "seconds=0.5", "num_envs": 4, "num_workers": 4}
        with make("gymnasium", f"{SMALL}:Timed-v0", **slow) as environment:
            environment.reset()
            start = time.monotonic()
            environment.step(np.zeros(4, np.int32))
            self.assertLess(time.monotonic() - start, 1.5)  # one after the other: 2 s


def _actions(steps):
    return np.tile(np.array([0, 0, 1, 1], np.int32), [steps, 1])


@functools.cache
def _play_unbroken(steps):
    with make(
        "gymnasium", f"{SMALL}:Breaking-v0", seed=10, num_envs=4, arguments="bad_seed=-1"
    ) as environment:
        return play(environment, _actions(steps))


class FaultTest(parameterized.TestCase):
    def _play(self, steps=8, options=None, **arguments):
        """Plays 4 environments in 2 workers, of which the one seeded with 11 breaks."""
        self.folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        arguments = {"bad_seed": 11, **arguments}
        with self.assertLogs(level="WARNING") as logs:
            with make(
                "gymnasium",
                f"{SMALL}:Breaking-v0",
                seed=10,
                num_envs=4,
                arguments=arguments,
                folder=self.folder,
                **(options or {}),
            ) as environment:
                rows = play(environment, _actions(steps))
                self.counts = dict(environment.fault_counts())
        self.messages = [record.getMessage() for record in logs.records]
        return rows

    @parameterized.parameters(
        ("raise", ("KeyError", "small_environments.py")),
        ("shape", ("observation", "[1]", "[2]")),
        ("dtype", ("observation", "<U32", "float32")),
        ("reward shape", ("reward", "float64[2]")),
        ("no reward", ("reward", "object[]")),
        ("surrogate", ("FileNotFoundError",)),
        ("text end", ("terminated", "'False'")),
        ("no end", ("truncated", "None")),
    )
    def test_what_is_wrong_ends_that_episode_alone_as_a_time_limit_would(self, fault, named):
        rows = self._play(fault=fault)
        self.assertLen(self.messages, 1)
        messages.assert_names(self.messages[0], 1, "Breaking-v0", *named)
        self.assertIn("Traceback", (self.folder / faults.FILE).read_text())
        self.assertEqual(self.counts, {faults.RESTARTS: 1})
        # The row before stands in for what was lost; then the next episode of a new environment.
        np.testing.assert_array_equal(rows.observation[2, 1], rows.observation[1, 1])
        self.assertEqual((rows.reward[2, 1], rows.discount[2, 1]), (0, 1))
        np.testing.assert_array_equal(rows.is_first[:5, 1], [True, False, False, True, False])
        self._assert_others_go_on(rows, [0, 2, 3])

    @parameterized.parameters(2.7, "2", 7, -1, True, None)
    def test_invalid_step_type_restarts_the_environment(self, step_type):
        with make(
            "dm_env",
            f"{SMALL}:MistypedStep",
            num_envs=1,
            num_workers=1,
            arguments={"step_type": step_type},
        ) as environment:
            play(environment, np.zeros([1, 1, 2], np.float32))
            self.assertEqual(environment.fault_counts(), {faults.RESTARTS: 1})

    def _assert_others_go_on(self, rows, others):
        clean = _play_unbroken(len(rows.reward) - 1)
        assert_same(*(tree.map_structure(lambda c: c[:, others], nest) for nest in (clean, rows)))

    @parameterized.parameters(
        ("nan", ("observation", "nan"), faults.OBSERVATIONS),
        ("nan reward", ("reward", "nan"), faults.REWARDS),
        ("huge reward", ("reward", "inf"), faults.REWARDS),
    )
    def test_what_is_not_finite_never_leaves(self, fault, named, kind):
        rows = self._play(fault=fault)
        self.assertLen(self.messages, 1)
        messages.assert_names(self.messages[0], 1, *named)
        self.assertEqual(self.counts, {kind: 1})
        self.assertTrue(all(np.isfinite(c).all() for c in (rows.observation, rows.reward)))
        self.assertEqual(rows.discount[2, 1], 1)
        np.testing.assert_array_equal(rows.is_first[:5, 1], [True, False, False, True, False])
        self.assertEqual(rows.observation[3, 1, 0], 0)  # a new episode, from its start
        self._assert_others_go_on(rows, [0, 2, 3])

    @parameterized.parameters(
        ("die", (3,), {}),
        ("hang", (4, "environment.reply_seconds"), {"reply_seconds": 4.0}),
    )
    def test_a_worker_that_dies_or_hangs_takes_its_environments_along(self, fault, named, limit):
        rows = self._play(fault=fault, options=limit)
        self.assertLen(self.messages, 1)
        messages.assert_names(self.messages[0], 1, *named)
        for index in (0, 1):
            self.assertEqual((rows.reward[2, index], rows.discount[2, index]), (0, 1))
            np.testing.assert_array_equal(rows.is_first[:4, index], [True, False, False, True])
            np.testing.assert_array_equal(rows.observation[2, index], rows.observation[1, index])
            self.assertEqual(rows.observation[3, index, 0], 0)
        self._assert_others_go_on(rows, [2, 3])

    def test_a_reset_that_fails_is_tried_again_with_another_seed(self):
        rows = self._play(fault="raise", in_reset=True)
        messages.assert_names(self.messages[0], 1, "KeyError", 0)
        self.assertTrue(rows.is_first[0].all())
        self._assert_others_go_on(rows, [0, 2, 3])

    @parameterized.parameters("die", "raise, die")
    def test_a_reset_that_ends_the_worker_cuts_who_was_stepping(self, fault):
        """The third episode of the worker dies: of game 0, while game 1 goes to and fro."""
        arguments = {"fault": fault, "each": 3, "in_reset": True, "bad_seed": -1}
        with make(
            "gymnasium", f"{SMALL}:Breaking-v0", num_envs=2, num_workers=1, arguments=arguments
        ) as environment:
            rows = play(environment, np.array([[0, step % 2] for step in range(6)], np.int32))
            counts = environment.fault_counts()
        self.assertEqual(counts, {faults.RESTARTS: 1 if fault == "die" else 2})
        np.testing.assert_array_equal(np.flatnonzero(rows.is_first[:, 0]), [0, 4])
        np.testing.assert_array_equal(np.flatnonzero(rows.is_first[:, 1]), [0, 5])
        np.testing.assert_array_equal(rows.observation[4, 1], rows.observation[3, 1])
        self.assertEqual((rows.reward[4, 1], rows.discount[4, 1]), (0, 1))
        np.testing.assert_array_equal(rows.observation[4:, :, 0] * 3, [[0, -1], [-1, 0], [-2, 1]])

    def test_who_had_begun_already_begins_again_with_a_worker_that_dies_in_a_reset(self):
        """Both begin their second episodes at once: game 1's raises and then ends the worker."""
        arguments = {"fault": "raise, die", "each": 4, "in_reset": True, "bad_seed": -1}
        with make(
            "gymnasium", f"{SMALL}:Breaking-v0", num_envs=2, num_workers=1, arguments=arguments
        ) as environment:
            rows = play(environment, np.zeros([7, 2], np.int32))
            counts = environment.fault_counts()
        self.assertEqual(counts, {faults.RESTARTS: 2})
        for game in (0, 1):
            np.testing.assert_array_equal(np.flatnonzero(rows.is_first[:, game]), [0, 4])

    @parameterized.parameters(False, True)
    def test_one_that_always_breaks_is_given_up(self, in_reset):
        named = 0, "KeyError", "environment.max_broken_episodes", 2
        with messages.raises(faults.EnvironmentFailedError, *named):
            self._play(
                steps=20,
                fault="raise",
                every_time=True,
                in_reset=in_reset,
                options={"max_broken_episodes": 2},
            )


class RefusalTest(parameterized.TestCase):
    @parameterized.parameters(
        ("gymnasium", "Cartpole-v1", ("CartPole-v1",)),
        ("gymnasium", "Qxqxq", ("CartPole-v1",)),
        ("gymnasium", "no_such.module:Own-v0", ("'no_such.module'",)),
        ("gymnasium", f"{SMALL}:Corridr-v0", ("Corridor-v0",)),
        ("dm_env", "no_such:make", ("'no_such'",)),
        ("dm_env", f"{SMALL}:Beacon", ("Beacons",)),
        ("dm_env", f"{SMALL}:NUMBER", ("int",)),
        ("dm_env", f"{SMALL}:not_an_environment", ("int", "dm_env.Environment")),
        ("dm_env", f"{SMALL}:sized_by_seed", ("seed",)),
        ("tf_agents", f"{SMALL}:Beacons", ("Beacons", "PyEnvironment")),
    )
    def test_what_does_not_exist_is_named_in_one_line(self, suite, task, named):
        with messages.raises(faults.EnvironmentCreationError, task, *named) as caught:
            with make(suite, task):
                pass
        self.assertNotIn("\n", str(caught.exception))

    def test_an_error_of_the_users_own_is_named_with_its_place(self):
        named = "TypeError", "speed", "launch.check_environment"
        with messages.raises(faults.EnvironmentCreationError, *named):
            with make("gymnasium", f"{SMALL}:Corridor-v0", arguments="speed=3"):
                pass

    @parameterized.parameters(
        ("gymnasium", {"task": "Cart Pole"}, ("Cart Pole",)),
        ("dm_env", {"task": "my_module"}, ("my_module", "my_module:make")),
        ("tf_agents", {"task": "a:b:c"}, ("a:b:c", "module:function")),
        ("dm_env", {"task": "a:b", "arguments": "x"}, ("x", "name=value")),
        ("dm_env", {"task": "a:b", "num_workers": -1}, ("num_workers", "-1", "0")),
        ("dm_env", {"task": "a:b", "reply_seconds": 0.0}, ("reply_seconds", "0.0")),
        ("dm_env", {"task": "a:b", "max_frames_per_episode": -1}, ("max_frames_per_episode", "-1")),
        ("dm_env", {"task": "a:b", "text_length": 0}, ("text_length", "0", "1")),
    )
    def test_refused_configurations(self, suite, values, named):
        with messages.raises(ValueError, *named):
            suites.config_class(suite)(**values)

    @parameterized.parameters("gymnasium", "dm_env", "tf_agents")
    def test_malformed_task_is_named_once(self, suite):
        with self.assertRaises(ValueError) as caught:
            suites.config_class(suite)(task="?")
        self.assertEqual(str(caught.exception).count("'?'"), 1)


class LengthTest(absltest.TestCase):
    def _parse(self, **environment):
        return run_config.parse(
            {
                "environment": {"suite": "gymnasium", **environment},
                "replay": {"scheme": "episodes", "capacity": 1_000},
                "agent": {"core": "lstm"},
            }
        )

    def test_whole_episodes_are_kept_up_to_a_length_that_is_known(self):
        with messages.raises(ValueError, "environment.max_frames_per_episode", "episodes", 0):
            self._parse()
        config = self._parse(max_frames_per_episode=500)
        self.assertEqual(config.max_unrolls_per_episode, 25)

    def test_an_evaluation_says_that_the_environments_own_limit_holds(self):
        config = suites.config_class("gymnasium")(arguments="size=3")
        self.assertEqual(
            config.protocol(),
            {"action_repeat": 1, "max_frames_per_episode": None, "arguments": {"size": 3}},
        )


class StepLimitTest(parameterized.TestCase):
    @parameterized.parameters((1, 80.0), (3, 30.0), (8, 10.0))
    def test_limit_of_a_step_covers_all_environments_of_a_worker(self, workers, seconds):
        config = suites.config_class("gymnasium")(
            num_envs=8, num_workers=workers, reply_seconds=5.0
        )
        self.assertEqual(config.max_step_seconds, seconds)


class ArgumentsTest(parameterized.TestCase):
    @parameterized.parameters(
        ("", {}),
        ("size=3", {"size": 3}),
        (" a = 1.5 , b=text,c='x, y'", {"a": 1.5, "b": "text", "c": "x, y"}),
        ("map=8x8,slip=false,none=None", {"map": "8x8", "slip": False, "none": None}),
        ("shape=(3, 4),d={'a': [1, 2]}", {"shape": (3, 4), "d": {"a": [1, 2]}}),
        ({"size": 3}, {"size": 3}),
    )
    def test_values_are_read_as_python_or_as_texts(self, arguments, expected):
        config = suites.config_class("gymnasium")(arguments=arguments)
        self.assertEqual(config.keyword_arguments(), expected)

    @parameterized.parameters("size", "=3", "a b=3", "a=1,a=2")
    def test_refused(self, arguments):
        with messages.raises(ValueError, "name=value"):
            suites.config_class("gymnasium")(arguments=arguments)


class ProcessTest(parameterized.TestCase):
    def test_a_worker_imports_neither_tensorflow_nor_what_the_parent_has(self):
        with messages.raises(ValueError, "ValueError", "numpy") as caught:
            with make("dm_env", f"{SMALL}:modules"):
                pass
        modules = set(str(caught.exception).split())
        self.assertNoCommonElements(modules, {"tensorflow", "absl", "pytest", "reverb"})

    def test_own_seeds_from_global_generators_are_those_of_the_environment(self):
        shown = []
        for _ in range(2):
            with make("dm_env", f"{SMALL}:Unseeded") as environment:
                shown.append(environment.reset().observation)
        np.testing.assert_array_equal(*shown)
        self.assertLen(np.unique(shown[0]), 6)

    def test_a_module_of_the_current_folder_is_found(self):
        folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        (folder / "own_module.py").write_text(f"from {SMALL} import Beacons as make")
        program = """
import sys
sys.path[:] = [path for path in sys.path if path not in ("", sys.argv[1])]  # as of a script
from laser_tf.environments import factory, suites
config = suites.config_class("dm_env")(task="own_module:make", num_envs=1)
environment = factory.make_environment(config, seed=0)
print(environment.reset().reward, "own_module" in sys.modules)
environment.close()
"""
        result = subprocess.run(
            [sys.executable, "-c", program, str(folder)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(pathlib.Path.cwd())},
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual((result.stdout, result.stderr), ("[0.] False\n", ""))

    def test_workers_end_with_a_parent_that_was_killed(self):
        program = f"""
import time
from laser_tf.environments import factory, suites
config = suites.config_class("gymnasium")(task="{SMALL}:Timed-v0", num_envs=2, num_workers=2)
environment = factory.make_environment(config, seed=0)
print(*environment.reset().observation[:, 0].astype(int), flush=True)
time.sleep(600)
"""
        parent = subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(pathlib.Path.cwd())},
        )
        workers = [pathlib.Path(f"/proc/{word}/stat") for word in parent.stdout.readline().split()]
        self.assertLen(workers, 2)
        parent.send_signal(signal.SIGKILL)
        parent.communicate()
        deadline = time.monotonic() + 30
        while any(map(_runs, workers)) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertFalse(any(map(_runs, workers)))

    def test_closing_leaves_no_file_open(self):
        before = _open_files()
        with make("dm_env", f"{SMALL}:Beacons") as environment:
            environment.reset()
        with self.assertRaises(ValueError), make("dm_env", f"{SMALL}:NUMBER"):
            pass
        self.assertEmpty(_open_files() - before)


def _open_files():
    """Files and pipes of this process; other tests' sockets may come and go at any time."""
    links = set()
    for file in pathlib.Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            links.add(str(file.readlink()))
    return {link for link in links if link.startswith(("/", "pipe:"))}


def _runs(stat):
    try:
        return stat.read_text().split()[2] != "Z"
    except OSError:
        return False


class WorkerTest(absltest.TestCase):
    def test_each_call_restarts_the_time_limit_of_its_environment(self):
        calls, steps = [], None

        class Noting(small_environments.Beacons):
            def _note(self):
                if steps is not None:
                    calls.append((int(steps.current_env[0]), float(steps.called_at[0])))

            def __init__(self, seed):
                self._note()
                super().__init__(seed)

            def reset(self):
                self._note()
                return super().reset()

            def step(self, action):
                self._note()
                return super().step(action)

        file = os.memfd_create("steps")
        self.addCleanup(os.close, file)
        worker = environment_worker.Worker(
            0, file, make=Noting, seeds=[0, 1], action_repeat=2, text_length=1
        )
        description = worker.describe()
        steps = environment_worker.SharedMemoryTimestep(file, description.observation, 2)
        for command in (environment_worker.RESET, environment_worker.STEP):
            self.assertEmpty(worker.play([command] * 2, np.zeros(2, np.int32)))
        self.assertEqual([index for index, _ in calls], [0, 1, 1, 0, 0, 1, 1])
        self.assertLen({since for _, since in calls}, len(calls))


class SharedMemoryTimestepTest(absltest.TestCase):
    def test_a_file_of_another_size_is_left_as_it_is(self):
        file = os.memfd_create("steps")
        self.addCleanup(os.close, file)
        spec = {"b": specs.Array([2], np.float32), "a": specs.Array([3], np.uint8)}
        one = environment_worker.SharedMemoryTimestep(file, spec, 4)
        other = environment_worker.SharedMemoryTimestep(file, spec, 4)
        one.observation[1][2] = [0.5, 1]
        np.testing.assert_array_equal(other.observation[1][2], [0.5, 1])
        self.assertEqual([leaf.shape for leaf in other.observation], [(4, 3), (4, 2)])
        with messages.raises(ValueError):
            environment_worker.SharedMemoryTimestep(file, specs.Array([9, 9, 9], np.uint8), 4)
        one.reward[:] = 3  # would end the process by SIGBUS
        np.testing.assert_array_equal(other.reward, 3)


class ActionRepeatTest(parameterized.TestCase):
    def test_an_action_is_taken_again_until_the_episode_ends(self):
        with make("gymnasium", f"{SMALL}:Corridor-v0", action_repeat=2) as environment:
            rows = play(environment, np.ones([5, 3], np.int32))  # the way out takes 3 frames
            self.assertEqual(environment.action_repeat, 2)
        np.testing.assert_allclose(rows.observation[:3, 0, 0], [0, 2 / 3, 1])
        np.testing.assert_array_equal(rows.discount[:, 1], [1, 1, 0, 1, 1, 0])
        np.testing.assert_array_equal(rows.is_first[:, 2], [1, 0, 0, 1, 0, 0])
        is_exit = rows.observation[0, :, 1] == 1
        np.testing.assert_array_equal(rows.reward[2], is_exit)

    def test_limits_count_env_frames(self):
        options = {"action_repeat": 2, "max_frames_per_episode": 3}
        config = suites.config_class("gymnasium")(**options)
        self.assertEqual(config.max_steps_per_episode, 2)
        with make("gymnasium", f"{SMALL}:Corridor-v0", arguments="length=9", **options) as one:
            rows = play(one, np.ones([5, 3], np.int32))
        np.testing.assert_array_equal(rows.is_first[:, 0], [1, 0, 0, 1, 0, 0])
        np.testing.assert_array_equal(rows.discount, 1)

    def test_what_an_environment_does_to_an_action_it_does_to_a_copy(self):
        task = f"{SMALL}:Doubled"
        with make("dm_env", task, action_repeat=3, num_envs=1, num_workers=1) as environment:
            environment.reset()
            actions = np.full([1, 1], 0.25, np.float32)
            row = environment.step(actions)
        np.testing.assert_array_equal(row.reward, [1.5])
        np.testing.assert_array_equal(tree.flatten(row.observation)[0], [[0.5]])
        np.testing.assert_array_equal(actions, [[0.25]])


class PictureTest(parameterized.TestCase):
    def test_an_environment_draws_itself(self):
        with make("gymnasium", f"{SMALL}:Corridor-v0", rendering=True) as environment:
            environment.reset()
            environment.step(np.array([0, 0, 1], np.int32))
            picture = environment.render(2)
        self.assertEqual((picture.shape, picture.dtype), ((8, 56, 3), np.uint8))
        np.testing.assert_array_equal(np.flatnonzero(picture[0, ::8, 0]), [4])

    def test_one_whose_class_takes_no_render_mode_is_made_without(self):
        with make("gymnasium", f"{SMALL}:Breaking-v0", rendering=True) as environment:
            environment.reset()
            with self.assertRaises(base.RenderError):
                environment.render(0)

    def test_an_environment_without_pictures_shows_the_image_that_it_observes(self):
        with make("dm_env", f"{SMALL}:Beacons", rendering=True) as environment:
            shown = environment.reset().observation["picture"]
            np.testing.assert_array_equal(environment.render(1), shown[1])

    def test_one_that_shows_nothing_says_so_and_goes_on(self):
        with make("gymnasium", f"{SMALL}:Timed-v0", rendering=True) as environment:
            environment.reset()
            with messages.raises(base.RenderError, "Timed-v0", "rgb_array"):
                environment.render(0)
            rows = environment.step(np.zeros(3, np.int32))
        np.testing.assert_array_equal(rows.observation[:, 1], 1)


class PyEnvironmentTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        if not importlib.util.find_spec("tf_agents"):
            self.skipTest("TF-Agents is not installed")

    def test_ends_are_mapped_and_actions_are_integers(self):
        with make(**PY_ENVIRONMENT, num_workers=1) as environment:
            self.assertEqual(environment.action_spec(), specs.DiscreteArray(3, np.int32, "action"))
            rows = play(environment, np.zeros([12, 3], np.int32))
        np.testing.assert_array_equal(np.flatnonzero(rows.is_first[:, 0]), [0, 4, 8, 12])
        np.testing.assert_array_equal(rows.discount[[3, 7, 11], 0], [0, 1, 0])

    def test_a_batched_one_is_refused(self):
        with messages.raises(ValueError, "4"):
            with make(
                "tf_agents", "testing.environments.small_py_environment:make_batched", num_workers=1
            ):
                pass


if __name__ == "__main__":
    absltest.main()
