"""The command line of launch.reproduce: each figure's configuration, and what is refused."""

import pathlib
import tempfile
from unittest import mock

from absl.testing import absltest, flagsaver, parameterized

from laser_tf import errors
from laser_tf.analysis import figures
from laser_tf.cluster import ray_session, remote_command
from launch import command_line, figure_choices, reproduce, subcommand
from testing import commands


class ReproduceTest(parameterized.TestCase):
    @parameterized.parameters(
        ("--figure=3_left", "sweep_laser_minatar"),
        ("--figure=r2d2_1", "r2d2_minatar"),
        ("--config.agent.n_steps 3 --norun.x -figure r2d2_5 --games=a", "r2d2_tmaze"),
        ("--figure=3_left --figure=r2d2_5", "r2d2_tmaze"),
        ("--figure=acer_1", "acer_minatar"),
        ("--figure=acer_2", "acer_control"),
        ("--figure=reactor_3", "reactor_minatar"),
        ("--figure=agents", "laser_minatar"),
        ("--figure=atari --seeds=2", "laser_atari", ":dopamine"),
        ("--replicas=1", "sweep_laser_minatar"),  # main says what is missing
        ("--figure", "sweep_laser_minatar"),
    )
    def test_a_figure_has_a_configuration(self, arguments, name, variant=""):
        self.assertEqual(
            reproduce.default_config(["program", *arguments.split()]),
            f"configs/{name}.py{variant}",
        )

    def test_a_figure_may_have_a_configurations_variant(self):
        self.assertEqual(
            reproduce.default_config(["program", "--figure=sharing"]),
            "configs/sweep_laser_catch.py:companions",
        )

    def test_a_figure_that_there_is_not_has_none(self):
        self.assertIsNone(reproduce.default_config(["program", "--figure=5_left"]))

    @parameterized.parameters(
        (
            "--figure=5_left --config.agent.n_steps=3",
            "5_left.*<3_left.*r2d2_1.r2d2_5.*acer_3.reactor_3.agents.sharing.*atari>",
        ),
        ("--figure=r2d2_5 --config.agent.n_stps=3", "unknown config key: 'n_stps'"),
        ("--figure=r2d2_1 --config=configs/r2d2_tmz.py", "configs/r2d2_tmz.py: .*choose a file"),
        ("--config.run.env_frames=3", "--figure is missing: choose one of 3_left.*r2d2_5"),
        (
            "--figure=acer_2 --config.agent.dueling_samples=3",
            "--config.agent.dueling_samples: the figure has runs by trust_tis, too, which has no",
        ),
        (
            "--figure=acer_2 --config=configs/acer_minatar.py",
            "cannot load --config=configs/acer_minatar.py:trust_tis: .*get_config",
        ),
        (
            "--figure=reactor_3 --config=configs/r2d2_minatar.py",
            "--figure=reactor_3 compares variants of reactor, not r2d2: use e.g. .*reactor_minatar",
        ),
        (
            "--figure=agents --config=configs/acer_minatar.py",
            "--config: figure agents has a configuration for each of its agents; leave the option",
        ),
        (
            "--figure=agents --config.agent.relevance=none",
            "--config.agent.relevance: the figure has runs by configs/acer_minatar.py, too, which",
        ),
        (
            "--figure=agents --games=breakout,brakout",
            "task is 'brakout': there is no MinAtar game 'brakout': did you mean breakout",
        ),
        (
            "--figure=3_right --games=breakout --config.sweep.samples=0",
            "samples is 0: use",
        ),
        (
            "--figure=atari --games=pong,brakout",
            "--games: there is no published curve of 'brakout': did you mean breakout",
        ),
        ("--figure=atari --seeds=0", "--replicas=0: 0 is not a positive integer"),
        (
            "--figure=atari --config.environment.sticky_actions=0",
            "curves of Dopamine's protocol, but environment.sticky_actions is 0.0, not 0.25",
        ),
        ("--figure=atari --config.run.env_frames=0", "env_frames is 0: use"),
        (
            "--figure=atari --config.environment.task=pong",
            "--config.environment.task=pong: figure atari is of several games: use --games=pong",
        ),
        (
            "--figure=agents --config.run.evaluation_episodes=30",
            "--config.run.evaluation_episodes=30: figure agents has its own values of it: leave",
        ),
        (
            "--figure=2_right --config.replay.capacity=9000",
            "--config.replay.capacity=9000: figure 2_right has its own values of it: leave it out",
        ),
        (
            "--figure=3_left --config.agent.relevance=none",
            "--config.agent.relevance=none: figure 3_left compares runs by it: leave it out",
        ),
        (
            "--figure=4_left --config.sweep.shared_replay=false",
            "--config.sweep.shared_replay=False: figure 4_left compares runs by it: leave it out",
        ),
        (
            "--figure=acer_3 --config.agent.lambda_=0",
            "--config.agent.lambda_=0.0: figure acer_3 compares runs by it: leave it out",
        ),
        (
            "--figure=acer_2 --config.agent.trust_region=true",
            "--config.agent.trust_region=True: figure acer_2 compares runs by it: leave it out",
        ),
        (
            "--figure=3_left --config.learner.learning_rate=1e-3",
            "--config.learner.learning_rate=0.001 has no effect: the sweep's grid gives each agent "
            "its own; use --config.sweep.grid.learner.learning_rate, which is ",
        ),
        (
            "--figure=3_multitask --config.replay.replay_ratio=4",
            "--figure=3_multitask compares batches by .* replay.replay_ratio is 4.0, which rep",
        ),
        (
            "--figure=3_left --config=configs/laser_minatar.py",
            "--config=configs/laser_minatar.py has no section .sweep.: figure 3_left compares",
        ),
    )
    def test_bad_flags_are_refused_in_one_line(self, arguments, message):
        code, _, errors = commands.run("reproduce", *arguments.split())
        self.assertNotEqual(code, 0)
        self.assertLen(errors.splitlines(), 1, errors)
        self.assertRegex(errors, f"^error: .*{message}")

    def test_values_that_some_runs_of_a_figure_have_of_their_own_are_for_the_others(self):
        for name, given in (
            ("acer_2", {"replay.steps_per_update": 40, "environment.suite": "dm_control"}),
            ("acer_3", {"agent.lambda_": 0.9, "agent.truncation": 3.0}),
            ("r2d2_1", {"replay.burn_in": 5}),
            ("r2d2_5", {"run.evaluation_episodes": 7, "environment.task": "tmaze"}),
            ("reactor_3", {"replay.priority_exponent": 0.5}),
            ("3_left", {"replay.replay_fraction": 0.5, "agent.kl_threshold": 0.3}),
            ("agents", {"replay.capacity": 9_000, "learner.learning_rate": 1e-3}),
        ):
            variants = {condition.label: {} for condition in figures.ALL[name].conditions}
            figure_choices.check_values(name, variants, given)

    def test_a_threshold_that_no_run_would_read_is_refused(self):
        for name in ("sharing", "sharing_vizdoom", "3_multitask", "4_left"):
            with self.assertRaisesRegex(command_line.UsageError, "kl_threshold=0.2: .*no trust"):
                figure_choices.check_values(name, {}, {"agent.kl_threshold": 0.2})

    def test_games_are_the_users_or_the_figures_or_the_configurations(self):
        config = {"environment": {"task": "tmaze"}}
        games = figure_choices.games
        self.assertEqual(games("r2d2_1", None, config), ["breakout", "space_invaders"])
        self.assertEqual(games("3_left", ["asterix"], config), ["asterix"])
        self.assertEqual(games("r2d2_5", None, config), ["tmaze"])
        with self.assertRaisesRegex(command_line.UsageError, "r2d2_5 has one task"):
            games("r2d2_5", ["tmaze"], config)

    def _made(self, **given):
        """What `main` has run: the runs, and last what draws."""
        made = []
        self.enter_context(mock.patch.object(subcommand, "run", lambda *c: made.append(c)))
        self._run_all = self.enter_context(mock.patch.object(subcommand, "run_all"))
        reproduce.flags.FLAGS.mark_as_parsed()
        with flagsaver.flagsaver(workdir="/w", **given):
            reproduce.main()
        return [*self._run_all.call_args.args[0], *made]

    def _use_config(self, path, **cluster):
        values = command_line.read_config_file(path).to_dict()
        if cluster:
            values["cluster"].update(learner_cpus=3.0, learner_gpus=0.5, **cluster)
        for name, value in (("config_values", values), ("config_file", path)):
            patch = mock.patch.object(command_line, name, return_value=value)
            self.enter_context(patch)

    def test_a_game_by_another_of_its_names_is_the_same_game(self):
        *trainings, drawing = self._made(
            figure="agents", games=["MinAtar/Breakout-v1", "breakout"], seeds=1
        )
        self.assertLen(trainings, 5)
        for training in trainings:
            self.assertEndsWith(training.arguments[1], "/replica_1/breakout")
        self.assertEqual(drawing[3:], ("--replicas=1", "--game=breakout"))

    @parameterized.parameters((1, ""), (2, "/w/laser/replica_1/pong.log"))
    def test_atari_is_dopamines_protocol_for_ten_million_frames(self, parallel, log):
        self._use_config("configs/laser_atari.py:dopamine")
        given = {"figure": "atari", "games": ["pong", "qbert", "pong"], "seeds": 2}
        *trainings, drawing = self._made(parallel=parallel, **given)
        self.assertEqual(self._run_all.call_args.args[1], parallel)
        self.assertEqual(
            [training.arguments[1] for training in trainings],
            [
                f"--workdir=/w/laser/replica_{seed}/{game}"
                for seed in (1, 2)
                for game in ("pong", "qbert")
            ],
        )
        self.assertEqual(str(trainings[0].log or ""), log)
        self.assertEqual(trainings[0].arguments[0], "--config=configs/laser_atari.py:dopamine")
        for training in trainings:
            self.assertIn("--config.run.env_frames=10000000", training.arguments)
        self.assertEqual(drawing[3:], ("--replicas=2", "--game=pong", "--game=qbert"))

    def test_each_run_may_be_extended(self):
        self._use_config("configs/laser_atari.py:dopamine")
        for extend in (False, True):
            (training, _) = self._made(figure="atari", games=["pong"], seeds=1, extend=extend)
            self.assertEqual("--extend" in training.arguments, extend)

    @parameterized.parameters((0, ""), (2, "auto"))
    def test_runs_of_one_process_go_to_machines_of_the_cluster(self, actors, expected):
        self._use_config("configs/laser_atari.py:dopamine", address="auto", actors=actors)
        session = self.enter_context(mock.patch.object(ray_session, "session"))
        self.enter_context(mock.patch.object(ray_session, "check_versions"))
        remote = self.enter_context(mock.patch.object(remote_command, "RemoteCommand"))
        (training, _) = self._made(figure="atari", games=["pong"], seeds=1)
        values = [flag for flag in training.arguments if "cluster.address" in flag]
        self.assertEqual(values, [f"--config.cluster.address={expected}"] if not actors else [])
        if actors:  # each is a driver, which places its roles itself
            session.assert_not_called()
            self.assertIsNone(training.log)
            return
        _, at_once, start = self._run_all.call_args.args
        self.assertEqual((at_once, training.log.name), (1, "pong.log"))
        session.assert_called_once_with(mock.ANY, 3.0, 0.5)
        start(training)
        remote.assert_called_once_with(
            ("launch.train", *training.arguments), training.log, 3.0, 0.5
        )

    def test_a_configuration_may_leave_keys_to_their_defaults(self):
        path = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory())) / "mine.py"
        path.write_text(
            "from configs import sweep_laser_minatar\n"
            "def get_config():\n"
            "    config = sweep_laser_minatar.get_config()\n"
            "    del config.run.seed, config.replay.replay_fraction\n"
            "    del config.population, config.cluster\n"
            "    return config\n"
        )
        self._use_config(str(path))
        first, *_ = self._made(figure="3_left", games=["breakout"], replicas=1)
        self.assertIn("--config.run.seed=1", first.arguments)
        # Which ends when the flags are parsed.
        code, _, said = commands.run(first.module, *first.arguments, "--help")
        self.assertEqual(code, 0, said)

    def test_each_agents_configuration_is_read_once(self):
        read = command_line.read_config_file
        with mock.patch.object(command_line, "read_config_file", side_effect=read) as reader:
            self._made(figure="agents", games=["breakout"], replicas=1)
        files = [call.args[0] for call in reader.call_args_list]
        self.assertLen(files, 5)
        self.assertLen(set(files), 5)

    def test_each_agent_is_trained_by_its_own_configuration(self):
        *trainings, drawing = self._made(figure="agents", games=["breakout"], replicas=2)
        self.assertEqual(
            [(training.module, *training.arguments[:2]) for training in trainings],
            [
                ("train", f"--config=configs/{name}_minatar.py", f"--workdir=/w/{name}/{seed}")
                for seed in ("replica_1/breakout", "replica_2/breakout")
                for name in ("laser", "impala", "acer", "r2d2", "reactor")
            ],
        )
        frames = {flag for made in trainings for flag in made.arguments if "env_frames" in flag}
        self.assertLen(frames, 1)
        self.assertEqual(
            drawing,
            ("draw_figure", "--figure=agents", "--workdir=/w", "--replicas=2", "--game=breakout"),
        )

    def test_a_sweep_that_a_figure_cannot_compare_is_refused_before_anything_is_made(self):
        self.enter_context(mock.patch.object(subcommand, "run_all", self.fail))
        reproduce.flags.FLAGS.mark_as_parsed()  # the default is another figure's, on MinAtar
        with flagsaver.flagsaver(figure="sharing"):
            with self.assertRaisesRegex(errors.UserError, "reward_offset, not in minatar: use e.g"):
                reproduce.main()

    def test_flags_are_of_keys_that_all_agents_of_a_figure_have(self):
        variant = {"agent": {"delta": 1.0}, "replay": {"capacity": 3}}
        figure_choices.check_keys("tis", variant, ["agent.delta", "replay.capacity"])
        for key in ("agent.lambda_", "replay.delta", "sweep.label"):
            with self.assertRaisesRegex(command_line.UsageError, f"{key}: .*by tis, too"):
                figure_choices.check_keys("tis", variant, ["agent.delta", key])

    def test_lengths_of_history_are_of_the_figure_about_memory(self):
        lengths = figure_choices.history_lengths
        self.assertEqual(lengths("r2d2_5", ["20", "1", "20"]), [20, 1])
        self.assertEqual(lengths("r2d2_5", None)[0], 80)
        self.assertEqual(lengths("3_left", None), [])
        for name, given, message in (
            ("r2d2_5", ["20", "0"], "--history_lengths=20,0: use numbers"),
            ("r2d2_5", ["all"], "--history_lengths=all: use numbers"),
            ("r2d2_1", ["20"], "figure r2d2_1 has none"),
        ):
            with self.assertRaisesRegex(command_line.UsageError, message):
                lengths(name, given)


if __name__ == "__main__":
    absltest.main()
