"""A run directory from another author runs no code that the user has neither named nor trusted."""

import json
import sys

from absl.testing import absltest, parameterized

from examples import read_replay
from laser_tf import user_code
from laser_tf.environments import function_suites, gymnasium_suite
from laser_tf.evaluation import run_evaluation
from laser_tf.export import exporter
from laser_tf.training import initial_weights
from testing import commands, fakes, messages

TASK = "os:system"


class TrustConfigTest(commands.CommandTest):
    def setUp(self):
        super().setUp()
        folder = self.workdir.parent
        self._run, self._marker, self._output = (
            folder / "other",
            folder / "marker",
            folder / "policy",
        )
        self._run.mkdir()
        values = fakes.config_values(fakes.catch_config())
        values["environment"] = {
            "suite": "dm_env",
            "task": TASK,
            "arguments": {"command": f"touch {self._marker}"},
        }
        (self._run / "config.json").write_text(json.dumps({"config": values}))

    def _name_module(self, key: str) -> str:
        """Names a module, which writes the marker if it is imported, in the configuration."""
        (self._run / "of_others.py").write_text(f"open({str(self._marker)!r}, 'w')")
        sys.path.insert(0, str(self._run))
        self.addCleanup(sys.path.remove, str(self._run))
        section, _, name = key.partition(".")
        values = fakes.config_values(fakes.catch_config())
        values[section][name] = "of_others:Other"
        (self._run / "config.json").write_text(json.dumps({"config": values}))
        return "of_others:Other"

    def _evaluate(self, **arguments):
        run_evaluation.evaluate(self._run, episodes=1, seed=1, video=False, **arguments)

    @parameterized.product(
        command=("evaluate", "export", "init_from", "replay"),
        key=("environment.task", "agent.name", "agent.torso", "replay.scheme"),
    )
    def test_code_in_a_config_is_rejected(self, command, key):
        code = TASK if key == "environment.task" else self._name_module(key)
        run = {
            "evaluate": self._evaluate,
            "export": lambda: exporter.export(self._run, self._output),
            "init_from": lambda: initial_weights.read(self._run),
            "replay": lambda: read_replay.read(self._run, unrolls=1),
        }[command]
        named = code, self._run / "config.json", "--trust_config"
        with messages.raises(user_code.UntrustedError, *named):
            run()
        self.assertFalse(self._marker.exists())

    @parameterized.parameters({"arguments": ""}, {"task": "my_module:make"})
    def test_other_changes_do_not_trust_the_task(self, **changes):
        with self.assertRaises(user_code.UntrustedError):
            self._evaluate(environment_changes=changes)

    @parameterized.parameters({"trust_config": True}, {"environment_changes": {"task": TASK}})
    def test_trusted_or_named_code_runs(self, **arguments):
        with self.assertRaises(ValueError):  # `os.system` returns no environment
            self._evaluate(**arguments)
        self.assertTrue(self._marker.exists())

    def test_output_of_an_environment_is_in_the_native_log(self):
        path = self._run / "config.json"
        path.write_text(path.read_text().replace("touch", "echo"))
        self.assert_rejected((TASK,), "evaluate", f"--workdir={self._run}", "--trust_config")
        self.assertIn(str(self._marker), (self._run / "native.log").read_text())

    def test_task_that_training_names_is_trusted(self):
        with self.assertRaises(ValueError):
            initial_weights.read(self._run, named=[TASK])
        self.assertTrue(self._marker.exists())

    @parameterized.parameters("export", "train", "resume")
    def test_commands_take_trust_config(self, module):
        arguments = {
            "export": [f"--workdir={self._run}", f"--output={self._output}"],
            "train": [
                "--config=configs/laser.py:catch",
                f"--workdir={self._output}",
                f"--init_from={self._run}",
            ],
            "resume": [f"--workdir={self._run}"],
        }[module]
        module = "train" if module == "resume" else module
        code, _, errors = commands.run_forked(module, *arguments, "--trust_config")
        self.assertEqual(code, 1)
        self.assertTrue(self._marker.exists(), errors)

    @parameterized.parameters("evaluate", "train")
    def test_untrusted_config_is_rejected_in_one_line(self, module):
        # Other values of the environment do not trust its task.
        flags = ["--config.environment.suite=dm_env"] if module == "train" else []
        self.assert_rejected(("--trust_config",), module, f"--workdir={self._run}", *flags)
        self.assertFalse(self._marker.exists())

    def test_resume_rejects_an_agent_before_its_import(self):
        agent = self._name_module("agent.name")
        self.assert_rejected((agent,), "train", f"--workdir={self._run}", forked=True)
        self.assertFalse(self._marker.exists())

    def test_resume_trusts_a_task_of_the_command_line(self):
        task = f"--config.environment.task={TASK}"
        code, _, errors = commands.run_forked("train", f"--workdir={self._run}", task)
        self.assertEqual(code, 1)
        self.assertTrue(self._marker.exists(), errors)

    def test_only_tasks_that_import_modules_are_code(self):
        def code(task):
            return gymnasium_suite.GymnasiumConfig(task=task).user_code()

        self.assertEmpty(fakes.catch_config().environment.user_code())
        self.assertEmpty(code("CartPole-v1"))
        self.assertEqual(code("CartPole-v1,package:Own-v0"), ("package:Own-v0",))
        self.assertEqual(code("GymV26Environment-v0"), ("GymV26Environment-v0",))
        config = function_suites.DmEnvConfig(task="a:make,b:make")
        self.assertEqual(config.user_code(), ("a:make", "b:make"))


if __name__ == "__main__":
    absltest.main()
