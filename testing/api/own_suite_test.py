"""The suite of docs/extending.md, as a reader would use it."""

from absl.testing import absltest, parameterized

import laser_tf
from laser_tf import errors, user_code
from laser_tf.environments import environment_check, suites
from testing import documented_code, folders, messages

SUITE = "my_suite:LineSuite"
WRONG = """
from laser_tf.environments import environment_config, python_config

def make(): ...

class NoMaker(python_config.WorkerConfig): ...

class NoTasks(python_config.WorkerConfig):
    def maker(self, task, rendering): ...

class Undecorated(python_config.WorkerConfig):
    slip: float = 0.0

    def maker(self, task, rendering): ...
"""


def _config(**environment):
    values = {"environment.suite": SUITE, "environment.task": "short", "environment.num_envs": 4,
              "environment.num_workers": 1}  # fmt: skip
    values |= {f"environment.{key}": value for key, value in environment.items()}
    return laser_tf.load_config(
        "laser:gymnasium", values | {"run.env_frames": 600, "run.evaluation_episodes": 0}
    )


class OwnSuiteTest(folders.FolderTest):
    def test_run_resumes_evaluates_and_acts(self):
        with documented_code.importable():
            config = _config(slip=0.1)
            stop = laser_tf.callbacks.StopAfter(seconds=1e-3)
            run = laser_tf.train(config, self._workdir, callbacks=[stop], progress=False)
            self.assertFalse(run.finished)
            self.assertTrue(laser_tf.train(config, self._workdir, progress=False).finished)
            with messages.raises(user_code.UntrustedError, SUITE, "--trust_config"):
                laser_tf.evaluate(self._workdir)
            evaluation = laser_tf.evaluate(
                self._workdir, episodes=4, trust_config=True, progress=False,
                environment_changes={"slip": 0.0},
            )  # fmt: skip
            self.assertEqual(evaluation.episodes, 4)
            policy = laser_tf.load_policy(self._workdir, trust_config=True)  # As exports do.
        action, _ = policy.act([0.0, 1.0], policy.initial_state())
        self.assertIn(action, (0, 1))

    def test_check_describes_the_environment(self):
        with documented_code.importable():
            config = suites.config_class(SUITE)(suite=SUITE, task="long", num_envs=2)
            report = environment_check.check(config, steps=60, seed=0, seconds=0.1)
        self.assertEqual(report.fault, "")

    def test_values_are_checked(self):
        with documented_code.importable():
            with messages.raises(errors.ConfigError, "slip", 1.5):
                _config(slip=1.5)
            with messages.raises(errors.ConfigError, "task", "shrt", "short"):
                _config(task="shrt")


class WrongSuiteTest(parameterized.TestCase):
    @parameterized.parameters(
        ("no_such_module:Suite", "no_such_module"),
        ("my_wrong:NoMakr", "NoMaker"),
        ("my_wrong:make", "EnvironmentConfig", "function"),
        ("my_wrong:NoMaker", "maker"),
        ("my_wrong:NoTasks", "known_tasks", "check_task", "'short'"),
        ("my_wrong:Undecorated", "slip", "@dataclasses.dataclass"),
    )
    def test_wrong_suite_is_rejected(self, suite, *named):
        with documented_code.importable({"my_wrong": WRONG}):
            with messages.raises(errors.ConfigError, "suite", *named):
                _config(suite=suite)


if __name__ == "__main__":
    absltest.main()
