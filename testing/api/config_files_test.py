"""Configurations by name, and overrides of their values; flags: launch/config_flag_test.py."""

import os
import pathlib
import sys
from concurrent import futures
from unittest import mock

from absl.testing import absltest, parameterized

import laser_tf
from laser_tf import errors
from testing import commands, folders, messages

ROOT = pathlib.Path(__file__).resolve().parents[2]


class LoadConfigTest(folders.FolderTest):
    def test_overrides_are_python_values(self):
        overrides = {"environment.task": "Acrobot-v1", "run.env_frames": 1e5}
        config = laser_tf.load_config("laser:gymnasium", overrides)
        self.assertEqual(config.environment.task, "Acrobot-v1")
        self.assertEqual(config.run.env_frames, 100_000)

    @parameterized.parameters(
        ("laser:gymnasum", {}, "gymnasum", "gymnasium"),
        ("lazer:catch", {}, "laser:catch"),
        ("sweeps:catch", {}, "sweeps:catch", "launch.sweep"),
        ("laser:catch", {"seed": 1}, "seed", "SECTION.KEY"),
        ("laser:catch", {"env.task": "pong"}, "env", "environment"),
        ("laser:catch", {"run.sed": 1}, "sed", "seed"),
        ("laser:catch", {"run.seed.x": 1}, "run.seed.x"),
        ("laser:catch", {"run.seed": "1"}, "seed", "'1'"),
        ("laser:catch", {"agent.name": "impala"}, "agent.name=laser", "replay.scheme=online"),
    )
    def test_bad_name_or_value_is_named(self, name, overrides, *named):
        with messages.raises(errors.UserError, *named):
            laser_tf.load_config(name, overrides)

    def test_own_file_and_own_package_of_this_name_are_used(self):
        (self._folder / "configs").mkdir()
        (self._folder / "configs/__init__.py").write_text("OWN = True")
        (self._folder / "mine.py").write_text(
            "from configs import laser\ndef get_config():\n  return laser.get_config('catch')\n"
        )
        program = f"""
            import pathlib, sys
            sys.path[:0] = [{str(self._folder)!r}, {str(ROOT)!r}]
            import configs, laser_tf
            expected = laser_tf.load_config("laser:catch")
            assert laser_tf.load_config("mine.py") == expected
            assert laser_tf.load_config(pathlib.Path("mine.py")) == expected
            assert laser_tf.load_config("~/mine.py") == expected
            import configs
            assert configs.OWN
            assert not {{"tensorflow", "reverb", "ray"}} & set(sys.modules)
        """
        variables = os.environ | {"HOME": str(self._folder)}
        done = commands.run_program(program, cwd=self._folder, env=variables)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_path_may_contain_colons(self):
        folder = self._folder / "a:b"
        folder.mkdir()
        for name, parameter in (("plain.py", ""), ("own.py", "variant")):
            (folder / name).write_text(
                f"from configs import laser\ndef get_config({parameter}):\n"
                f"  return laser.get_config({parameter or repr('catch')})\n"
            )
        expected = laser_tf.load_config("laser:catch")
        self.assertEqual(laser_tf.load_config(folder / "plain.py"), expected)
        self.assertEqual(laser_tf.load_config(f"{folder}/own.py:catch"), expected)

    def test_threads_load_configurations_at_the_same_time(self):
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)
        elsewhere = [path for path in sys.path if pathlib.Path(path).resolve() != ROOT]
        others = {name: module for name, module in sys.modules.items() if "configs" not in name}
        with (
            mock.patch.object(sys, "path", list(elsewhere)),  # An installed package.
            mock.patch.dict(sys.modules, others, clear=True),
            futures.ThreadPoolExecutor(4) as pool,
        ):
            configs = list(pool.map(laser_tf.load_config, ["laser:catch"] * 150))
            self.assertEqual(sys.path, elsewhere)
        self.assertEqual(configs, configs[:1] * 150)


class PublicNamesTest(absltest.TestCase):
    def test_public_names_are_documented(self):
        page = (ROOT / "docs/python_api.md").read_text()
        for name in laser_tf.__all__:
            self.assertIn(f"`laser_tf.{name}", page)
            self.assertTrue(getattr(laser_tf, name).__doc__, name)
            self.assertIn(name, dir(laser_tf))
        with self.assertRaises(AttributeError):
            laser_tf.nothing_such  # noqa: B018


if __name__ == "__main__":
    absltest.main()
