"""Plans of experiments: every experiment is valid, and bad input is rejected before training."""

import dataclasses
import pathlib

from absl.testing import absltest, parameterized

from experiments import base, plan
from laser_tf import errors
from laser_tf.plotting import curves
from testing import folders, messages

WORKDIR = pathlib.Path("/nonexistent")


def _make(name, **others):
    return plan.make(name, base.load(name), workdir=WORKDIR, **others)


# These suites are optional.
_OPTIONAL = {"acer_2", "acer_3", "lunar_lander", "sharing_vizdoom"}


class PlanTest(folders.FolderTest):
    @parameterized.parameters(*sorted(set(base.find()) - _OPTIONAL))
    def test_every_experiment_has_valid_runs_that_differ(self, name):
        runs = _make(name, seeds=2)
        experiment = base.load(name)
        tasks = len(experiment.tasks) or 1
        self.assertLen(runs, 2 * tasks * len(experiment.conditions))
        self.assertLen({run.workdir for run in runs}, len(runs))
        one_seed = {repr(run.parsed) for run in runs if run.seed == 1}
        self.assertLen(one_seed, len(runs) // 2)

    def test_seeds_differ_by_a_thousand(self):
        first, second = _make("continuous_control", seeds=2, tasks=("Pendulum-v1",))
        self.assertEqual(second.parsed.run.seed - first.parsed.run.seed, 1_000)

    def test_overrides_apply_to_all_runs(self):
        runs = _make("reactor_3", seeds=1, overrides={"run.env_frames": 1_234})
        self.assertEqual({run.parsed.run.env_frames for run in runs}, {1_234})

    def test_seed_and_evaluation_episodes_can_be_overridden(self):
        overrides = {"run.seed": 777, "run.evaluation_episodes": 5}
        runs = _make("reactor_3", seeds=2, tasks=("breakout",), overrides=overrides)
        self.assertEqual({(run.seed, run.parsed.run.seed) for run in runs}, {(1, 777), (2, 1_777)})
        self.assertEqual({run.parsed.run.evaluation_episodes for run in runs}, {5})

    @parameterized.parameters(("sweep.label", "mine"), ("sweep.seed_index", 7))
    def test_override_of_a_sweeps_condition_is_rejected(self, key, value):
        with messages.raises(errors.UserError, key, value):
            _make("laser_3_left", overrides={key: value})

    def test_runs_of_one_process_spread_over_a_ray_cluster(self):
        (run, *_) = _make("reactor_3", seeds=1, overrides={"cluster.address": "auto"})
        self.assertEqual(run.ray_address, "auto")
        self.assertNotIn("cluster.address", str(run.command(extend=False, has_log=True)))

    def test_runs_of_several_processes_use_ray_themselves(self):
        overrides = {"cluster.address": "auto", "cluster.actors": 2}
        (run, *_) = _make("agents_pong", seeds=1, overrides=overrides)
        self.assertEqual((run.ray_address, run.parsed.cluster.address), ("", "auto"))

    def test_laser_conditions_have_equally_many_online_unrolls(self):
        for name in ("laser_2_left", "laser_3_left", "laser_4_left"):
            for run in _make(name, seeds=1, tasks=("breakout",)):
                replay = run.parsed.first.replay
                steps = replay.steps_per_update
                self.assertEqual(steps, 2 * replay.unroll_length, run.title)

    def test_atari5_differs_in_replay_and_trust_region_only(self):
        laser, impala, *others = _make("atari5", seeds=1, tasks=("phoenix",))
        self.assertEqual(
            laser.parsed.replay.steps_per_update, impala.parsed.replay.steps_per_update
        )
        self.assertEqual(impala.parsed.replay.replay_fraction, 0)
        self.assertEqual(laser.parsed.learner, impala.parsed.learner)
        self.assertEqual(
            dataclasses.replace(laser.parsed.agent, trust_region="none"), impala.parsed.agent
        )
        for run in (laser, impala, *others):
            environment = run.parsed.environment
            self.assertEqual(environment.life_loss_is_end, run.label != "R2D2", run.label)
            dopamine = dataclasses.replace(environment, life_loss_is_end=False)
            self.assertEqual(dopamine.protocol()["protocol"], "dopamine")

    def test_labels_select_conditions(self):
        runs = _make("atari5", labels=("R2D2", "LASER"), tasks=("phoenix",), seeds=1)
        self.assertEqual([run.label for run in runs], ["LASER", "R2D2"])

    def test_tasks_of_several_names_are_one(self):
        runs = _make("reactor_3", seeds=1, tasks=("breakout", "MinAtar/Breakout-v1"))
        self.assertEqual(list(plan.directories(runs)), ["breakout"])
        self.assertLen(runs, 4)

    def test_configuration_without_seed_and_environment_has_defaults(self):
        path = self._folder / "own.py"
        path.write_text(
            "import ml_collections\n"
            "def get_config():\n"
            "    return ml_collections.ConfigDict({'agent': {'name': 'laser'}})\n"
        )
        experiment = base.Experiment(str(path), (base.Condition("own"),), draw=curves.write)
        runs = plan.make("own", experiment, workdir=WORKDIR, seeds=2)
        self.assertEqual([run.parsed.run.seed for run in runs], [1, 1_001])
        self.assertEqual({run.task for run in runs}, {"pong"})

    @parameterized.parameters(
        ({"overrides": {"environment.task": "breakout"}}, ("environment.task",)),
        ({"overrides": {"agent.policy_gradient": "tislr"}}, ("agent.policy_gradient",)),
        ({"overrides": {"agent.n_stps": 3}}, ("n_stps",)),
        ({"overrides": {"agent.bins": -1}}, ("bins", -1)),
        ({"overrides": {"run.seed": "one"}}, ("seed", "one")),
        ({"tasks": ("brakout",)}, ("brakout", "breakout")),
        ({"labels": ("LSER",)}, ("--label", "LSER")),
        ({"config": "reactor:minatr"}, ("reactor:minatr",)),
        ({"config": "sweeps:minatar"}, ("sweeps:minatar", "reactor:minatar")),
    )
    def test_bad_input_is_rejected(self, arguments, named):
        with messages.raises(errors.UserError, *named):
            _make("reactor_3", **arguments)

    def test_compared_evaluations_need_episodes(self):
        with messages.raises(errors.UserError, "run.evaluation_episodes", 0, "r2d2_5"):
            _make("r2d2_5", seeds=1, overrides={"run.evaluation_episodes": 0})

    def test_unknown_experiment_is_rejected_with_close_names(self):
        with messages.raises(errors.UserError, "reactor_4", "reactor_3"):
            base.load("reactor_4")


if __name__ == "__main__":
    absltest.main()
