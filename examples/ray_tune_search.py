"""Searches LASER's learning rate with Ray Tune: python -m examples.ray_tune_search runs/tune.

Needs `make tune`. ASHA stops trials whose evaluations are worse than those of others.
"""

import pathlib
import sys
from typing import Any

from ray import tune

import laser_tf
from laser_tf import callbacks

CARTPOLE = {
    "environment.task": "CartPole-v1",
    "environment.num_workers": 1,
    "run.env_frames": 60_000,
    "run.evaluate_every_env_frames": 10_000,
    "run.evaluation_episodes": 0,  # The last periodic evaluation is the result.
}


class Report(callbacks.Callback):
    """Reports periodic evaluations to Ray Tune, which may end the trial."""

    def on_evaluation(self, run: callbacks.Run, evaluation: callbacks.Evaluation) -> None:
        """See `Callback`."""
        tune.report({"mean_return": evaluation.mean_return, "env_frames": evaluation.env_frames})


def train(values: dict[str, Any]) -> None:
    """Trains a trial in a process of Ray."""
    config = laser_tf.load_config("laser:gymnasium", values)
    workdir = pathlib.Path(tune.get_context().get_trial_dir()) / "run"
    laser_tf.train(config, workdir, callbacks=[Report()], progress=False)


def search(folder: pathlib.Path, fixed: dict[str, Any], num_trials: int) -> tune.Result:
    """Returns the best trial of a search.

    Args:
      folder: New directory for all trials.
      fixed: Values of all trials, "section.key" -> value.
      num_trials: Number of trials.
    """
    space = {"learner.learning_rate": tune.loguniform(1e-4, 1e-2)}
    tuner = tune.Tuner(
        tune.with_resources(train, {"cpu": 1}),
        param_space=fixed | space,
        tune_config=tune.TuneConfig(
            metric="mean_return",
            mode="max",
            num_samples=num_trials,
            scheduler=tune.schedulers.ASHAScheduler(
                time_attr="env_frames",
                grace_period=fixed["run.env_frames"] // 3,
                max_t=2 * fixed["run.env_frames"],  # Above the budget, which ends trials.
            ),
        ),
        run_config=tune.RunConfig(name=folder.name, storage_path=str(folder.parent)),
    )
    return tuner.fit().get_best_result()


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else "runs/tune"
    best = search(pathlib.Path(folder).absolute(), CARTPOLE, num_trials=8)
    print(f"{best.config['learner.learning_rate']:.2g}: {best.metrics['mean_return']:.1f}")
