"""The configuration of a run: what it loads, what it refuses."""

import pathlib
import subprocess
import sys

from absl.testing import absltest

from laser_tf.agents import agent_config
from laser_tf.networks import cores, torsos, trunk_config
from laser_tf.ops import reward_clipping

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A name that sys.modules holds as None cannot be imported.
_PARSE_ALL = """
import importlib, pathlib, sys
for package in ("tensorflow", "reverb", "gymnasium", "ale_py", "minatar", "vizdoom"):
    sys.modules[package] = None
from laser_tf.environments import minigrid
minigrid.check_task = lambda task: None  # its names are in its package's registry only
from laser_tf.runtime import run_config, sweep_config
for path in sorted(pathlib.Path("configs").glob("[!_]*.py")):
    values = importlib.import_module(f"configs.{path.stem}").get_config().to_dict()
    (sweep_config if "sweep" in values else run_config).parse(values)
    print(path.stem)
"""


class LightnessTest(absltest.TestCase):
    def test_every_config_is_checked_without_tensorflow_reverb_or_an_emulator(self):
        result = subprocess.run(
            [sys.executable, "-c", _PARSE_ALL],
            capture_output=True, text=True, check=False, cwd=ROOT,
        )  # fmt: skip
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("laser_dmlab30", result.stdout)

    def test_the_names_that_need_no_tensorflow_are_the_registries_keys(self):
        self.assertEqual(trunk_config.TORSOS, tuple(torsos.TORSOS))
        self.assertEqual(trunk_config.CORES, ("none", *cores.CORES))
        self.assertEqual(agent_config.REWARD_CLIPS, tuple(reward_clipping.REWARD_CLIPS))


if __name__ == "__main__":
    absltest.main()
