"""Configuration files and the flags that override their keys."""

import dataclasses
import json
import pathlib

from absl import flags
from absl.testing import absltest, flagsaver, parameterized

from laser_tf import errors
from laser_tf.api import config_files
from laser_tf.sweeps import sweep_config
from laser_tf.training import run_config
from launch import config_flag
from testing import folders, messages

_WORKDIR = flags.DEFINE_string("workdir", None, "")
flags.DEFINE_bool("trust_config", False, "")
_CONFIG = config_flag.ConfigFlag("laser:catch", resumes=True)


class LoadTest(folders.FolderTest):
    @parameterized.parameters(
        ("configs/laser_atari.py", "laser:atari"),
        ("sweep_laser_vizdoom", "sweeps:vizdoom"),
        ("r2d2_minatr", "r2d2:minatar"),
        ("configs/lazer.py:catch", "laser:catch"),
        ("nothing_like_it", "configs/"),
    )
    def test_missing_file_gives_close_variants(self, given, close):
        with messages.raises(errors.UserError, "--config", given, close):
            config_files.load(given, "--config")

    @parameterized.parameters(
        ("no Python", "line 1", "SyntaxError"),
        ("x = 1\ncompile('no Python', 'other.py', 'exec')", "line 2", "SyntaxError", "other.py"),
        ("x = 1\ny = x / 0", "line 2", "ZeroDivisionError"),
        ("import nothing_such", "line 1", "ModuleNotFoundError", "nothing_such"),
        ("def get_config():\n  return int('x')", "line 2", "ValueError"),
        ("raise SystemExit(0)", "line 1", "SystemExit"),
        ("def get_config():\n  pass", "get_config", "NoneType"),
        ("config = 1", "get_config"),
    )
    def test_unusable_file_is_rejected_with_its_line(self, content, *named):
        path = self._folder / "mine.py"
        path.write_text(content)
        with messages.raises(errors.UserError, path, *named):
            config_files.load(str(path))


class ConfigFlagTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self.enter_context(flagsaver.flagsaver())
        self.addCleanup(_CONFIG.overrides.clear)
        flags.FLAGS.mark_as_parsed()

    def _values(self, *arguments: str, config: str = "laser:catch"):
        flags.FLAGS["config"].parse(config)
        self.assertEmpty(_CONFIG.take(arguments))
        return _CONFIG.values()

    @parameterized.parameters("laser:catch", "sweeps:catch")
    def test_key_that_the_file_leaves_out_is_a_flag(self, name):
        values = self._values("--config.cluster.wait_minutes=3", config=name)
        self.assertEqual(values["cluster"]["wait_minutes"], 3)
        parse = sweep_config.parse if "sweep" in values else run_config.parse
        self.assertEqual(parse(values).cluster.wait_minutes, 3)

    @parameterized.parameters(
        (["--config.run.seed=77"], "run.seed", 77),
        (["--config.run.seed", "77"], "run.seed", 77),
        (["-config.run.seed=1", "--config.run.seed=2"], "run.seed", 2),
        (["--config.run.env_frames=1e5"], "run.env_frames", 100_000),
        (["--config.agent.popart"], "agent.popart", True),
        (["--noconfig.agent.popart"], "agent.popart", False),
        (["--config.environment.reward_scales=(0.5,)"], "environment.reward_scales", (0.5,)),
        (["--config.environment.reward_scales=0.5"], "environment.reward_scales", (0.5,)),
        (["--config.cluster.address="], "cluster.address", ""),
    )
    def test_override_has_the_type_of_its_key(self, arguments, key, expected):
        section, name = key.split(".")
        config = run_config.parse(self._values(*arguments))
        value = getattr(getattr(config, section), name)
        self.assertEqual((type(value), value), (type(expected), expected))

    def test_nested_key_of_a_sweep_is_a_flag(self):
        values = self._values(
            "--config.sweep.grid.learner.learning_rate=(2e-3, 1e-3)", config="sweeps:catch"
        )
        self.assertEqual(values["sweep"]["grid"]["learner"]["learning_rate"], (2e-3, 1e-3))
        sweep_config.parse(values)

    def test_texts_stay_texts(self):
        values = self._values(
            "--config.environment.suite=dm_env",
            "--config.environment.task=1",
            "--config.environment.arguments=length=2",
            config="laser:gymnasium",
        )
        self.assertEqual(values["environment"]["task"], "1")
        self.assertEqual(values["environment"]["arguments"], "length=2")
        self.assertEqual(_CONFIG.given()["environment.task"], "1")

    def test_other_arguments_remain(self):
        arguments = ["train", "--workdir=x", "--configuration=y", "--config=z"]
        arguments.append("--noconfig.run.serial=true")
        self.assertEqual(_CONFIG.take([*arguments, "--config.run.seed=2"]), arguments)

    def test_another_suite_drops_keys_that_it_lacks(self):
        flags_ = "--config.environment.suite=gymnasium", "--config.environment.task=CartPole-v1"
        values = self._values(*flags_, "--config.environment.num_envs=2", config="laser:atari")
        environment = run_config.parse(values).environment
        self.assertEqual((environment.suite, environment.num_envs), ("gymnasium", 2))

    def test_another_scheme_drops_keys_that_it_lacks(self):
        values = self._values("--config.replay.scheme=online", "--config.replay.batch_size=4")
        self.assertEqual(run_config.parse(values).replay.scheme, "online")

    @parameterized.parameters(
        ("laser:catch", "--config.foo=1", "foo"),
        ("laser:catch", "--config.run.seed.x=1", "run.seed.x", "seed"),
        ("laser:catch", "--config.agent.discout=0.9", "discout", "discount"),
        ("laser:catch", "--config.env.task=pong", "env", "environment"),
        ("laser:catch", "--config.replay.scheme=contextul", "contextual"),
        ("laser:catch", "--config.replay.address=localhost", "address", "localhost"),
        ("laser:catch", "--config.replay.address=a:1,b:1", "a:1,b:1"),
        ("laser:catch", "--config.replay.steps_per_update=80", "steps_per_update", "replay_only"),
        ("laser:catch", "--config.agent.discount=much", "discount", "much"),
        ("laser:catch", "--config.run.env_frames=1.5", "env_frames", 1.5),
        ("laser:atari", "--config.environment.task=pogn", "pogn", "pong"),
        ("laser:atari", "--config.replay.scheme=episodes", "replay.capacity", 27000),
        ("laser:catch", "--config.replay.scheme=replay_only", "agent.entropy_on_replay"),
        ("r2d2:tmaze", "--config.agent.entropy_cost=0.1", "entropy_cost"),
        ("reactor:minatar", "--config.replay.priority_exponent=0", "priority_exponent"),
    )
    def test_invalid_override_is_rejected(self, config, argument, *named):
        with messages.raises(errors.UserError, *named):
            run_config.parse(self._values(argument, config=config))

    def _make_run(self, content: str) -> pathlib.Path:
        (self._folder / "config.json").write_text(content)
        flags.FLAGS["workdir"].value = str(self._folder)
        return self._folder

    def test_run_directory_gives_its_configuration(self):
        parsed = run_config.parse(config_files.load("laser:minatar_multitask").to_dict())
        run = self._make_run(json.dumps({"config": dataclasses.asdict(parsed)}))
        self.assertEqual(_CONFIG.run, run)
        self.assertEqual(_CONFIG.file, str(run / "config.json"))
        self.assertEqual(run_config.parse(_CONFIG.values()), parsed)
        flags.FLAGS["config"].parse("laser:catch")
        flags.FLAGS["config"].present += 1
        self.assertIsNone(_CONFIG.run)

    @parameterized.parameters("{", "{}")
    def test_damaged_configuration_of_a_run_is_rejected(self, content):
        run = self._make_run(content)
        with messages.raises(errors.UserError, run / "config.json"):
            _CONFIG.values()


if __name__ == "__main__":
    absltest.main()
