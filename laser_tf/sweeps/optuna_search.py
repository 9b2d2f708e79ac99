"""A search with Optuna (Akiba et al. 2019): tree-structured Parzen estimator, median pruning."""

import pathlib
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from laser_tf import config_values, errors
from laser_tf.sweeps import search, sweep_config

STUDY_FILE = "study.log"
STUDY_NAME = "laser_tf"


def import_optuna() -> ModuleType:
    """Imports Optuna, an optional package; raises MissingPackageError."""
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise errors.MissingPackageError(
            f"--search=optuna needs the package {error.name!r}: run make tune, or pip install "
            "optuna==5.0.0"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


class OptunaSearch:
    """A search with the methods of `search.RandomSearch`.

    Its study is the file `study.log` of a directory, in Optuna's journal format.
    """

    def __init__(self, space: sweep_config.Config, workdir: pathlib.Path, num_evaluations: int):
        """Creates the study, or opens that of an earlier process.

        No trial is pruned in the first third of its `num_evaluations` periodic evaluations, as in
        RL Baselines3 Zoo.
        """
        self._optuna = optuna = import_optuna()
        self._space = space
        self._states = {
            search.COMPLETE: optuna.trial.TrialState.COMPLETE,
            search.PRUNED: optuna.trial.TrialState.PRUNED,
            search.FAILED: optuna.trial.TrialState.FAIL,
        }
        backend = optuna.storages.journal.JournalFileBackend(str(workdir / STUDY_FILE))
        self._study = optuna.create_study(
            study_name=STUDY_NAME,
            storage=optuna.storages.JournalStorage(backend),
            pruner=optuna.pruners.MedianPruner(n_warmup_steps=num_evaluations // 3 + 1),
            direction="maximize",
            load_if_exists=True,
        )
        # A resumed search must not sample the values of its first trials again.
        seed = space.seed + len(self._study.trials)
        self._study.sampler = optuna.samplers.TPESampler(seed=seed)
        flat = config_values.flatten(space.choices)
        # Optuna stores texts of any value.
        self._choices = {key: {str(value): value for value in flat[key]} for key in flat}
        kinds = optuna.distributions
        self._distributions = {
            key: kinds.FloatDistribution(*bounds)
            for key, bounds in config_values.flatten(space.uniform).items()
        }
        for key, bounds in config_values.flatten(space.log_uniform).items():
            self._distributions[key] = kinds.FloatDistribution(*bounds, log=True)
        for key, texts in self._choices.items():
            self._distributions[key] = kinds.CategoricalDistribution(tuple(texts))
        self._running: dict[int, Any] = {}  # Number -> Optuna's trial.

    def trials(self) -> Sequence[search.Trial]:
        """Returns all trials; a pruned trial keeps its last evaluation."""
        names = {state: name for name, state in self._states.items()}
        return [
            search.Trial(
                t.number, self._values(t.params), names.get(t.state, search.RUNNING), t.value
            )
            for t in self._study.trials
        ]

    def propose(self) -> Iterator[search.Trial]:
        """Yields trials to run: interrupted ones, then new ones until the budget is spent.

        A new trial is chosen when it is requested, from all results at this time.
        """
        for known in self._study.trials:
            if not known.state.is_finished():
                trial = self._optuna.trial.Trial(self._study, known._trial_id)
                yield self._start(trial)
        while len(self._study.trials) < self._space.samples:
            yield self._start(self._study.ask(self._distributions))

    def _start(self, trial: Any) -> search.Trial:
        self._running[trial.number] = trial
        return search.Trial(trial.number, self._values(trial.params))

    def _values(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: self._choices[key][value] if key in self._choices else value
            for key, value in parameters.items()
        }

    def should_prune(self, number: int, evaluations: Mapping[int, float]) -> bool:
        """Returns whether the median of earlier trials is better; see `search.RandomSearch`."""
        trial = self._running[number]
        known = self._study.trials[number].intermediate_values
        for step, mean_return in evaluations.items():
            if step not in known:
                trial.report(mean_return, step)
        return trial.should_prune()

    def end(self, number: int, state: str, mean_return: float | None) -> None:
        """Records the end of a trial in the study."""
        value = mean_return if state == search.COMPLETE else None
        self._study.tell(number, value, state=self._states[state])
        del self._running[number]
