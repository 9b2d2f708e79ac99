"""Code and commands of docs/custom_configs.md."""

import contextlib
import importlib.util
import re
import shlex
import sys
import unittest
from unittest import mock

import gymnasium
import numpy as np
from absl.testing import absltest

from laser_tf.api import config_files
from laser_tf.environments import gymnasium_suite
from laser_tf.training import config_choices, run_config
from launch import config_flag
from testing import folders, pages
from testing.environments import rollouts

_PAGE = pages.text("docs/custom_configs.md")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", _PAGE, re.S)


def _train_commands() -> list[dict[str, str]]:
    """Returns the flags of each `launch.train` of the page, name -> text."""
    lines = "\n".join(_blocks("bash")).replace("\\\n", "").splitlines()
    prefix = "python -m launch.train "
    commands = [shlex.split(line.removeprefix(prefix)) for line in lines if prefix in line]
    return [dict(flag.removeprefix("--").split("=", 1) for flag in flags) for flags in commands]


class DocumentedConfigTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        config, wrapped, _ = _blocks("python")
        (self._folder / "my_config.py").write_text(config)
        (self._folder / "wrapped.py").write_text(wrapped)

    def test_commands_have_valid_configurations(self):
        commands = _train_commands()
        self.assertGreaterEqual(len(commands), 5)
        for flags in commands:
            name = flags["config"].replace("my_config.py", str(self._folder / "my_config.py"))
            values = config_files.load(name).to_dict()
            texts = {
                key.removeprefix("config."): text
                for key, text in flags.items()
                if key.startswith("config.")
            }
            changes = config_flag.parse_texts(values, texts)
            run_config.parse(config_choices.override(values, changes))

    def test_file_changes_its_values_only(self):
        values = config_files.load(str(self._folder / "my_config.py")).to_dict()
        config = run_config.parse(values)
        self.assertEqual(config.agent.mlp_units, (128, 128))
        self.assertEqual(config.learner.learning_rate, 5e-4)
        original = config_files.load("laser:gymnasium").to_dict()
        self.assertEqual(values["replay"], original["replay"])

    def test_wrappers_change_observations_rewards_and_length(self):
        self.enter_context(mock.patch.object(sys, "path", [str(self._folder), *sys.path]))
        self.enter_context(mock.patch.dict(sys.modules))
        self.enter_context(mock.patch.dict(gymnasium.registry))
        arguments = {"scale": 0.05, "frames": 4}
        environment = self.enter_context(
            contextlib.closing(gymnasium_suite.make("wrapped:Wrapped-v0", arguments, True, seed=0))
        )
        self.assertEqual(environment.observation_spec().shape, (4, 4))
        first = environment.reset()
        np.testing.assert_array_equal(first.observation[0], first.observation[3])
        step = environment.step(1)
        self.assertAlmostEqual(step.reward, 0.05)
        self.assertEqual(environment.render().ndim, 3)
        (limit,) = re.findall(r"max_episode_steps=(\d+)", _PAGE)
        lengths = gymnasium.make("Wrapped-v0").get_wrapper_attr("_max_episode_steps")
        self.assertEqual(lengths, int(limit))

    @unittest.skipUnless(importlib.util.find_spec("bsuite"), "needs bsuite")
    def test_bsuite_environments_step(self):
        for flags in _train_commands():
            if flags.get("config.environment.task") == "bsuite:load_from_id":
                arguments = flags["config.environment.arguments"]
        with rollouts.make(
            "dm_env", "bsuite:load_from_id", arguments=arguments, num_workers=1
        ) as environment:
            rows = rollouts.run(environment, rollouts.random_actions(environment, 30))
        self.assertEqual(rows.observation.shape[2:], (50,))
        self.assertEqual(set(np.unique(rows.reward)), {-1.0, 0.0, 1.0})


if __name__ == "__main__":
    absltest.main()
