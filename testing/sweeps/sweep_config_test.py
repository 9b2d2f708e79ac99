"""The configurations of members, and members that cannot share replay or copy each other."""

import math

from absl.testing import absltest, parameterized

from configs import sweeps
from laser_tf.sweeps import sweep_config
from laser_tf.training import cluster_config, config_choices
from testing import messages


def _values(sweep: dict, **sections) -> dict:
    values = sweeps.get_config("catch").to_dict()
    values["sweep"] = {"grid": {}} | sweep
    for section, overrides in sections.items():
        values[section].update(overrides)
    return values


class SweepConfigTest(parameterized.TestCase):
    def test_grid_of_the_paper_has_nine_members(self):
        config = sweep_config.parse(sweeps.get_config("atari").to_dict())
        self.assertEqual(list(config.members), [f"member_{index:02d}" for index in range(9)])
        pairs = [
            (agent.learner.learning_rate, agent.agent.entropy_cost)
            for agent in config.members.values()
        ]
        self.assertEqual(pairs, [(r, e) for e in (5e-3, 1e-2, 2e-2) for r in (3e-4, 6e-4, 1.2e-3)])
        self.assertEqual([agent.run.seed for agent in config.members.values()], list(range(1, 10)))
        self.assertEqual(
            config.hyperparameters["member_05"],
            {"learner.learning_rate": 1.2e-3, "agent.entropy_cost": 1e-2},
        )
        self.assertEqual(config.queues, [f"queue_member_{index:02d}" for index in range(9)])

    def test_samples_are_log_uniform_and_repeatable(self):
        values = _values(
            {
                "log_uniform": {"learner": {"learning_rate": (1e-5, 1e-1)}},
                "choices": {"learner": {"rmsprop_epsilon": (1e-1, 1e-3)}},
                "samples": 400,
            }
        )
        config = sweep_config.parse(values)
        logs = [math.log10(a.learner.learning_rate) for a in config.members.values()]
        self.assertTrue(all(-5 <= value <= -1 for value in logs))
        for low in range(-5, -1):  # About 100 in each decade.
            self.assertBetween(sum(low <= value < low + 1 for value in logs), 55, 145)
        epsilons = [a.learner.rmsprop_epsilon for a in config.members.values()]
        self.assertBetween(epsilons.count(1e-3), 150, 250)
        self.assertEqual(config.hyperparameters, sweep_config.parse(values).hyperparameters)
        values["sweep"]["seed"] = 2
        self.assertNotEqual(config.hyperparameters, sweep_config.parse(values).hyperparameters)

    def test_zipped_values_are_combined_with_the_grid(self):
        zipped = {"learner": {"learning_rate": (1e-3, 0.1)}, "agent": {"entropy_cost": (0.01, 0.0)}}
        config = sweep_config.parse(
            _values({"zipped": zipped, "grid": {"agent": {"discount": (0.9, 0.99)}}, "samples": 2})
        )
        found = [
            (agent.agent.discount, agent.learner.learning_rate, agent.agent.entropy_cost)
            for agent in config.members.values()
        ]
        points = [(d, *rest) for d in (0.9, 0.99) for rest in ((1e-3, 0.01), (0.1, 0.0))]
        self.assertEqual(found, [point for point in points for _ in range(2)])
        self.assertLen({agent.run.seed for agent in config.members.values()}, 8)
        self.assertEqual(
            config.hyperparameters["member_02"],
            {"agent.discount": 0.9, "learner.learning_rate": 0.1, "agent.entropy_cost": 0.0},
        )

    @parameterized.parameters(
        (
            {"zipped": {"learner": {"learning_rate": (1e-3, 0.1)}, "agent": {"discount": (0.9,)}}},
            ("zipped", "'learner.learning_rate': 2", "'agent.discount': 1"),
        ),
        ({"zipped": {"agent": {"discount": 0.9}}}, ("zipped.agent.discount", 0.9)),
        (
            {"zipped": {"agent": {"discount": (0.9,)}}, "grid": {"agent": {"discount": (0.9,)}}},
            ("grid.agent.discount", "zipped.agent.discount", "(0.9,)"),
        ),
        (
            {"zipped": {"agent": {"discount": (0.9,) * 501}}, "samples": 2},
            ("grid", "zipped", 1002),
        ),
        (
            {"grid": {"learner": {"learning_rat": (1e-3,)}}},
            ("member_00", "learning_rat", "learning_rate"),
        ),
        ({"grid": {"lerner": {"learning_rate": (1e-3,)}}}, ("lerner", "learner")),
        ({"grid": {"learner": {"rate": {"x": (1e-3,)}}}}, ("member_00", "rate")),
        ({"grid": {"learner": {"learning_rate": {"x": (1e-3,)}}}}, ("member_00", "learning_rate")),
        ({"grid": {"learner": {"learning_rate": 1e-3}}}, ("grid.learner.learning_rate", 0.001)),
        (
            {"grid": {"learner": {"learning_rate": (1e-3, -1.0)}}},
            ("member_01", "learning_rate", "-1.0"),
        ),
        (
            {"log_uniform": {"agent": {"entropy_cost": (0.0, 1.0)}}},
            ("log_uniform", "agent.entropy_cost", 0.0),
        ),
        (
            {
                "grid": {"learner": {"learning_rate": (1e-3,)}},
                "log_uniform": {"learner": {"learning_rate": (1e-4, 1e-3)}},
            },
            ("grid.learner.learning_rate", "log_uniform.learner.learning_rate", "(0.001,)"),
        ),
        (
            {"grid": {"run": {"env_frames": (100, 200)}}},
            ("run.env_frames",),
        ),
        ({"samples": 0}, ("config.sweep", "samples", 0)),
        ({"sampels": 1}, ("sampels", "samples")),
        (
            {"grid": {"environment": {"max_broken_episodes": (10, 20)}}},
            ("environment.max_broken_episodes", 10, "member_00", 20, "member_01"),
        ),
        (
            {"grid": {"replay": {"unroll_length": (10, 11)}}},
            ("replay.unroll_length", 10, "member_00", 11, "member_01", "shared_replay=false"),
        ),
        ({"grid": {"replay": {"scheme": ("online", "mixed")}}}, ("replay.scheme", "online")),
        ({"grid": {"agent": {"core": ("none", "lstm")}}}, ("agent.core", "none", "member_00")),
        (
            {"grid": {"agent": {"continuous_policy": ("squashed", "clipped")}}},
            ("agent.continuous_policy", "squashed", "member_00", "clipped", "member_01"),
        ),
    )
    def test_invalid_config_names_key_and_value(self, sweep, names):
        with messages.raises(ValueError, *names):
            sweep_config.parse(_values(sweep))

    def test_members_on_one_replay_may_differ_in_the_ratio(self):
        base = _values({"grid": {"replay": {"replay_ratio": (1.0, 4.0)}}})
        base = config_choices.override(base, {"replay.scheme": "alternating"})
        ratios = [agent.replay.replay_ratio for agent in sweep_config.parse(base).members.values()]
        self.assertEqual(ratios, [1.0, 4.0])

    @parameterized.parameters(
        ("agent.channel_multiplier", (1, 2), (1, "member_00", 2)),
        ("agent.torso", ("minatar", "flat"), ("minatar", "member_00", "flat")),
        ("agent.popart", (False, True), (False, "member_00", True, "member_01")),
        ("agent.pixel_control_cost", (0.0, 0.1), (False, "member_00", True)),
        ("agent.continuous_policy", ("squashed", "clipped"), ("squashed",)),
        ("environment.reward_offset", (0.0, 0.1), (0.0, "member_00", 0.1)),
        ("learner.optimizer", ("rmsprop", "adam"), ("rmsprop", "member_00", "adam")),
    )
    def test_population_needs_one_network_and_task(self, key, values, names):
        section, _, name = key.partition(".")
        base = _values({"grid": {section: {name: values}}, "shared_replay": False})
        self.assertLen(sweep_config.parse(base).members, 2)
        base["population"]["method"] = "pbt"
        with messages.raises(ValueError, key, *names, "population.method='none'"):
            sweep_config.parse(base)

    @parameterized.parameters(
        ("learner.rmsprop_decay", "rmsprop"),
        ("agent.entropy_cots", "rmsprop"),
        ("learner.rmsprop_epsilon", "adam"),
    )
    def test_key_that_cannot_be_tuned_is_rejected(self, key, optimizer):
        tuned = ("learner.learning_rate", key)
        values = _values(
            {}, population={"method": "pbt", "tuned": tuned}, learner={"optimizer": optimizer}
        )
        with messages.raises(ValueError, key, "member_00"):
            sweep_config.parse(values)

    @parameterized.parameters(
        ("rmsprop", ["learning_rate", "entropy_cost", "rmsprop_epsilon"]),
        ("adam", ["learning_rate", "entropy_cost"]),
    )
    def test_tuned_keys_depend_on_the_optimizer_by_default(self, optimizer, expected):
        section = {"method": "pbt", "ready_env_frames": 100}
        values = _values({"samples": 2}, learner={"optimizer": optimizer}) | {"population": section}
        tuned = sweep_config.parse(values).population.tuned
        self.assertEqual([name.partition(".")[2] for name in tuned], expected)
        section["tuned"] = ("learner.learning_rate",)
        self.assertEqual(sweep_config.parse(values).population.tuned, section["tuned"])

    def test_cluster_section_belongs_to_the_sweep(self):
        values = _values({"samples": 2}, cluster={"address": "head:6379", "learner_gpus": 0.5})
        config = sweep_config.parse(values)
        self.assertEqual(config.cluster.address, "head:6379")
        self.assertEqual(config.cluster.learner_gpus, 0.5)
        for agent in config.members.values():
            self.assertEqual(agent.cluster, cluster_config.ClusterConfig())

    @parameterized.parameters(
        ({}, {"cluster": {"actors": 2}}, ("config.cluster", "actors", 2)),
        ({}, {"cluster": {"learners": 2}}, ("config.cluster", "learners", 2)),
        ({}, {"cluster": {"adress": "auto"}}, ("adress", "address")),
        ({"grid": {"cluster": {"actors": (1, 2)}}}, {}, ("cluster",)),
        ({"shared_replay": False}, {"run": {"replay_port": 6000}}, ("replay_port", 6000)),
        ({"shared_replay": False}, {"replay": {"address": "a:1"}}, ("address", "a:1")),
        ({}, {"replay": {"address": "a:1"}}, ("address", "a:1")),
        (
            {},
            {"replay": {"priority_exponent": 0.6}},
            ("priority_exponent", 0.6, "shared_replay=false"),
        ),
        (
            {},
            {"agent": {"core": "lstm"}, "replay": {"core_state": "stored"}},
            ("core_state", "stored"),
        ),
    )
    def test_section_that_members_cannot_have_is_rejected(self, sweep, sections, names):
        with messages.raises(ValueError, *names):
            sweep_config.parse(_values(sweep, **sections))


if __name__ == "__main__":
    absltest.main()
