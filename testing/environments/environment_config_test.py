"""Tests of the configurations of all suites."""

import json

from absl.testing import absltest, parameterized

from laser_tf import errors
from laser_tf.environments import dm_control_suite, suites
from testing import messages
from testing.environments import fake_packages

GYMNASIUM = suites.config_class("gymnasium")


class RejectedValuesTest(parameterized.TestCase):
    @parameterized.parameters(
        ("atari", {"task": "breakuot"}, ("breakuot", "breakout")),
        ("atari", {"task": "MsPacman"}, ("ms_pacman",)),
        ("atari", {"task": "combat"}, ("combat",)),  # For two players only.
        ("atari", {"max_broken_episodes": -1}, ("max_broken_episodes", "-1", "0")),
        ("atari", {"num_threads": -1}, ("num_threads", "-1", "0")),
        ("atari", {"sticky_actions": -0.1}, ("sticky_actions", "-0.1")),
        ("minatar", {"task": "breakout,brekout"}, ("brekout", "breakout")),
        ("minatar", {"task": "breakout, breakout"}, ("task", "breakout, breakout")),
        ("minatar", {"reward_scales": (1.0, 2.0)}, ("reward_scales", "breakout")),
        ("catch", {"action_repeat": 2}, ("action_repeat", "2", "1")),
        ("catch", {"reward_offset": 1_001.0}, ("reward_offset", "1001.0", "1000")),
        ("tmaze", {"corridor_length": 0}, ("corridor_length", "0", "1")),
        ("vizdoom", {"task": "deadly_coridor"}, ("deadly_coridor", "deadly_corridor")),
        ("minigrid", {"task": "BabyAI-GoToLocl-v0"}, ("BabyAI-GoToLocal-v0",)),
        ("minigrid", {"instruction_length": 0}, ("instruction_length", "0", "1")),
        ("dmlab", {"task": "rooms_watermase"}, ("rooms_watermase", "rooms_watermaze")),
        (
            "dmlab",
            {"task": "rooms_collect_good_objects_test"},
            ("rooms_collect_good_objects_train",),
        ),
        ("dmlab", {"reply_seconds": 0.0}, ("reply_seconds", "0.0", "0")),
        ("dm_control", {"task": "cheetah/walk"}, ("cheetah/walk", "cheetah/run")),
        ("dm_control", {"task": "lqr/lqr_2_1"}, ("dm_control", "lqr/lqr_2_1")),
        ("dm_control", {"arguments": "pixels=481"}, ("pixels=481", "480")),
        ("gymnasium", {"task": "Cart Pole"}, ("Cart Pole",)),
        ("gymnasium", {"arguments": "size"}, ("size", "name=value")),
        ("gymnasium", {"arguments": "a=1,a=2"}, ("a=1,a=2", "name=value")),
        # Evaluations and exports read arguments from a file, which would change these.
        ("gymnasium", {"arguments": {"levels": {1: "a"}}}, ("arguments", "levels={1: 'a'}")),
        ("gymnasium", {"arguments": {"size": (3, 4)}}, ("arguments", "size=(3, 4)")),
        ("gymnasium", {"arguments": {1: 2}}, ("arguments", "1=2", "name=2")),
        ("gymnasium", {"arguments": "text=don't, size=3"}, ("arguments", "don't", "quotes")),
        ("gymnasium", {"arguments": "size=(3, 4"}, ("arguments", "size=(3, 4", "brackets")),
        ("dm_env", {"task": "my_module"}, ("my_module", "my_module:make")),
        ("tf_agents", {"task": "a:b:c"}, ("a:b:c", "module:function")),
        ("dm_env", {"task": "a:b", "text_length": 0}, ("text_length", "0", "1")),
    )
    def test_rejected_value_is_named_in_one_line(self, suite, values, named):
        self.enter_context(fake_packages.installed())
        with messages.raises(errors.ConfigError, *named):
            suites.config_class(suite)(**values)

    @parameterized.parameters(("atary", "atari"), ("gym", "gymnasium"), ("control", "dm_control"))
    def test_unknown_suite_is_rejected_with_a_close_name(self, name, suite):
        with messages.raises(ValueError, name, suite):
            suites.config_class(name)


class TaskTest(parameterized.TestCase):
    @parameterized.parameters(
        ("atari", "ALE/MsPacman-v5", "ms_pacman"),
        ("atari", "ALE/UpNDown-v5", "up_n_down"),
        ("atari", "PongNoFrameskip-v4", "pong"),
        ("atari", "ALE/Pong-v5,breakout", "pong,breakout"),
        ("minatar", "MinAtar/SpaceInvaders-v1", "space_invaders"),
    )
    def test_id_of_gymnasium_becomes_the_name_of_the_suite(self, suite, task, own):
        self.assertEqual(suites.config_class(suite)(task=task).task, own)

    @parameterized.parameters(("minatar", 5), ("dmlab", 30))
    def test_all_names_every_task(self, suite, number):
        self.assertLen(suites.config_class(suite)(task="all").tasks, number)

    def test_video_runs_in_the_time_of_the_task(self):
        config = dm_control_suite.DmControlConfig(task="humanoid/stand,humanoid/walk")
        self.assertEqual(config.frames_per_second, 40)


class WorkerConfigTest(parameterized.TestCase):
    def test_time_limit_of_episodes_is_rounded_up_to_agent_steps(self):
        config = GYMNASIUM(action_repeat=2, max_frames_per_episode=3)
        self.assertEqual(config.max_steps_per_episode, 2)

    @parameterized.parameters((1, 80.0), (3, 30.0), (8, 10.0))
    def test_time_limit_of_a_step_covers_a_worker(self, workers, seconds):
        config = GYMNASIUM(num_envs=8, num_workers=workers, reply_seconds=5.0)
        self.assertEqual(config.max_step_seconds, seconds)

    @parameterized.parameters(
        ("", {}),
        ("size=3", {"size": 3}),
        (" a = 1.5 , b=text,c='x, y'", {"a": 1.5, "b": "text", "c": "x, y"}),
        ("map=8x8,slip=false,none=None", {"map": "8x8", "slip": False, "none": None}),
        ("shape=(3, 4),d={'a': [1, 2]}", {"shape": (3, 4), "d": {"a": [1, 2]}}),
        ({"size": [3, 4], "scale": 0.5}, {"size": [3, 4], "scale": 0.5}),
    )
    def test_arguments_are_python_values_or_texts(self, arguments, expected):
        self.assertEqual(GYMNASIUM(arguments=arguments).keyword_arguments(), expected)

    def test_protocol_states_arguments_as_json(self):
        config = GYMNASIUM(arguments="size=(3, 4), colours={1, 2}, level=easy")
        self.assertEqual(
            json.loads(json.dumps(config.protocol())),
            {
                "action_repeat": 1,
                "max_frames_per_episode": None,
                "arguments": {"size": "(3, 4)", "colours": "{1, 2}", "level": "easy"},
            },
        )


if __name__ == "__main__":
    absltest.main()
