"""What `make tune` installs: Optuna and Ray Tune."""

import json

import optuna
from absl.testing import absltest

from examples import ray_tune_search
from laser_tf.sweeps import optuna_search, search, sweep_config
from testing import commands, folders

SPACE = sweep_config.Config(
    samples=12,
    log_uniform={"learner": {"learning_rate": (1e-4, 1e-2)}},
    uniform={"agent": {"discount": (0.9, 0.99)}},
    choices={"agent": {"mlp_units": ((32,), (64, 64))}},
)


class OptunaSearchTest(commands.CommandTest):
    def setUp(self):
        super().setUp()
        self.workdir.mkdir()

    def _open(self, space=SPACE):
        return optuna_search.OptunaSearch(space, self.workdir, num_evaluations=3)

    def test_interrupted_trial_is_proposed_again_before_new_ones(self):
        first = self._open()
        proposed = first.propose()
        trials = [next(proposed) for _ in range(3)]
        first.end(0, search.COMPLETE, 1.5)
        first.should_prune(1, {1: 0.5})
        first.end(2, search.FAILED, None)
        second = self._open()
        states = [trial.state for trial in second.trials()]
        self.assertEqual(states, [search.COMPLETE, search.RUNNING, search.FAILED])
        proposed = second.propose()
        self.assertEqual(next(proposed), trials[1])
        second.should_prune(1, {1: 0.5, 2: 0.7})  # The first evaluation is known.
        second.end(1, search.COMPLETE, 3.0)
        self.assertEqual(search.best(second.trials()).values, trials[1].values)
        rest = list(proposed)
        self.assertEqual([trial.number for trial in rest], list(range(3, 12)))
        rates = {trial.values["learner.learning_rate"] for trial in (*trials, *rest)}
        self.assertLen(rates, 12)
        self.assertTrue(all(1e-4 <= rate <= 1e-2 for rate in rates))
        self.assertTrue(all(0.9 <= trial.values["agent.discount"] <= 0.99 for trial in rest))
        self.assertEqual({trial.values["agent.mlp_units"] for trial in rest}, {(32,), (64, 64)})

    def test_trial_below_the_median_is_pruned_after_warm_up(self):
        searching = self._open()
        proposed = searching.propose()
        for number, _ in zip(range(5), proposed, strict=False):  # Optuna prunes none before.
            self.assertFalse(searching.should_prune(number, {1: 10.0, 2: 10.0 + number}))
            searching.end(number, search.COMPLETE, 12.0)
        next(proposed)
        self.assertFalse(searching.should_prune(5, {1: 9.0}))
        self.assertTrue(searching.should_prune(5, {1: 9.0, 2: 9.0}))
        searching.end(5, search.PRUNED, None)
        self.assertEqual(searching.trials()[5].state, search.PRUNED)
        self.assertEqual(search.best(searching.trials()).mean_return, 12.0)


class CommandTest(commands.CommandTest):
    def test_study_of_a_search_is_resumed_and_kept_apart(self):
        flags = (
            "--config=laser:catch", "--search=optuna", "--config.run.env_frames=2000",
            "--config.run.evaluation_episodes=2", f"--workdir={self.workdir}",
        )  # fmt: skip
        space = "--search_space=learner.learning_rate=log_uniform(1e-4, 1e-2)"
        self.succeed("sweep", *flags, space, "--trials=1")
        self.succeed("sweep", *flags, space, "--trials=2")
        backend = optuna.storages.journal.JournalFileBackend(str(self.workdir / "study.log"))
        storage = optuna.storages.JournalStorage(backend)
        study = optuna.load_study(study_name=optuna_search.STUDY_NAME, storage=storage)
        self.assertTrue(all(trial.intermediate_values for trial in study.trials))
        best = json.loads((self.workdir / "best_trial.json").read_text())
        self.assertEqual(best["trial"], f"trial_{study.best_trial.number:03d}")
        other = space.replace("1e-2", "1e-3")
        self.assert_rejected(("learning_rate", 0.001, "--workdir"), "sweep", *flags, other)
        (self.workdir / "search.json").unlink()
        self.assert_rejected(("study.log", "search.json"), "sweep", *flags, space)


class RayTuneTest(folders.FolderTest):
    def test_best_trial_of_two_is_returned(self):
        fixed = ray_tune_search.CARTPOLE | {
            "run.env_frames": 1_500,
            "run.evaluate_every_env_frames": 500,
            "run.periodic_evaluation_episodes": 1,
        }
        folder = self._folder / "tune"
        best = ray_tune_search.search(folder, fixed, num_trials=2)
        self.assertGreater(best.metrics["mean_return"], 5.0)
        self.assertBetween(best.config["learner.learning_rate"], 1e-4, 1e-2)


if __name__ == "__main__":
    absltest.main()
