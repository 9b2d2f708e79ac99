"""Evaluations of exported policies, shipped ones among them, and damaged directories."""

import json
import pathlib
import runpy
import shutil
import sys
from unittest import mock

from absl.testing import absltest, parameterized

import laser_tf
from laser_tf import errors, user_code
from laser_tf.evaluation import episode_video
from laser_tf.export import policy_evaluation
from testing import folders, messages, pages

SHIPPED = pages.ROOT / "results/policies/cartpole"


def _evaluate(folder: pathlib.Path, **arguments) -> dict:
    return policy_evaluation.evaluate(folder, **{"episodes": 2, "seed": 1, **arguments})


class ShippedPolicyTest(folders.FolderTest):
    def test_sampled_actions_solve_cartpole(self):
        (self._folder / "cartpole_001.mp4").touch()
        with mock.patch.object(episode_video, "write", return_value=b"GIF"):
            summary = _evaluate(SHIPPED, videos=self._folder)
        self.assertGreaterEqual(summary["mean_return"], 400)
        self.assertEqual(summary["protocol"]["action_selection"], "sampled")
        self.assertEqual(summary["videos"], [str(self._folder / "cartpole_002.mp4")])

    def test_program_rejects_another_task(self):
        self.enter_context(mock.patch.object(sys, "argv", ["act.py", "Acrobot-v1"]))
        with messages.raises(SystemExit, "Acrobot-v1", "CartPole-v1"):
            runpy.run_path(str(SHIPPED / "act.py"), run_name="__main__")

    def test_program_names_a_missing_module(self):
        task = "missing_module:MyEnv-v0"
        self.enter_context(mock.patch.object(sys, "argv", ["act.py", task]))
        folder = self._folder / "policy"
        shutil.copytree(SHIPPED, folder)
        description = folder / "policy.json"
        description.write_text(description.read_text().replace('"CartPole-v1": {', f'"{task}": {{'))
        with messages.raises(SystemExit, "error", "missing_module"):
            runpy.run_path(str(folder / "act.py"), run_name="__main__")

    def test_program_names_missing_gymnasium_or_description(self):
        self.enter_context(mock.patch.object(sys, "argv", ["act.py", "CartPole-v1"]))
        program = shutil.copy(SHIPPED / "act.py", self._folder)
        with messages.raises(SystemExit, "error", self._folder / "policy.json"):
            runpy.run_path(program, run_name="__main__")
        with mock.patch.dict(sys.modules, {"gymnasium": None}):
            with messages.raises(SystemExit, "error", "gymnasium"):
                runpy.run_path(program, run_name="__main__")


class DamagedPolicyTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._policy = shutil.copytree(SHIPPED, self._folder / "policy")
        self._description = self._policy / "policy.json"

    def _change(self, **environment) -> None:
        about = json.loads(self._description.read_text())
        about["config"]["environment"].update(environment)
        self._description.write_text(json.dumps(about))

    def test_unreadable_description_is_named(self):
        for content in ("{", "[]", "{}", '{"format": "saved_model"}', b"\xff"):
            data = content if isinstance(content, bytes) else content.encode()
            self._description.write_bytes(data)
            for use in (_evaluate, laser_tf.load_policy):
                with messages.raises(errors.UserError, self._description):
                    use(self._policy)

    def test_format_without_functions_is_named(self):
        self._description.write_text('{"format": "tflite"}')
        with messages.raises(errors.UserError, self._policy, "tflite", "saved_model"):
            _evaluate(self._policy)

    @parameterized.parameters(
        "saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00001"
    )
    def test_damaged_or_missing_model_is_named(self, name):
        path = self._policy / name
        for damage in (lambda: path.write_bytes(path.read_bytes()[:99]), path.unlink):
            damage()
            for use in (_evaluate, laser_tf.load_policy):
                with messages.raises(errors.UserError, self._policy):
                    use(self._policy)

    @parameterized.parameters(("dm_env", "os:system"), ("os:system", "any"))
    def test_code_of_the_environment_needs_trust(self, suite, task):
        self._change(suite=suite, task=task)
        named = "os:system", self._description, "--trust_config"
        with messages.raises(user_code.UntrustedError, *named):
            _evaluate(self._policy)

    def test_environment_of_other_observations_is_rejected(self):
        self._change(task="Acrobot-v1")
        with messages.raises(errors.UserError, "policy.json"):
            _evaluate(self._policy)


if __name__ == "__main__":
    absltest.main()
