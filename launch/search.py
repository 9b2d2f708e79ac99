"""A search of launch.sweep: launch.train runs each trial, launch.evaluate the best one."""

import collections
import dataclasses
import json
import logging
import pathlib
import shlex
import signal
from collections.abc import Iterator, Mapping
from typing import Any

from laser_tf import errors
from laser_tf.environments import factory
from laser_tf.evaluation import evaluation_files
from laser_tf.monitoring import evaluation_log, progress
from laser_tf.sweeps import optuna_search, search, search_space, sweep_config
from laser_tf.training import run_config
from laser_tf.workdir import atomic, run_directory, versions
from launch import command_line, config_flag, subcommand

METHODS = ("random", "optuna")
Search = search.RandomSearch | optuna_search.OptunaSearch
BEST_FILE = "best_trial.json"
_PERIOD = "run.evaluate_every_env_frames"
_EVALUATIONS = 10  # of a trial during training, if the configuration has none
_MAX_FAILURES = 3  # of trials, one after another


def run(
    flag: config_flag.ConfigFlag,
    values: Mapping[str, dict[str, Any]],
    method: str,
    at_once: int,
    workdir: pathlib.Path,
) -> None:
    """Runs or resumes a search and prints its best trial; after a signal it does not return.

    Args:
      flag: The flag `--config`, whose arguments are those of all trials.
      values: Values of a run, and `sweep` with search space and `samples`, the number of trials.
      method: One of `METHODS`.
      at_once: Max number of trials at the same time.
      workdir: Directory of the search.

    Raises:
      UserError: For a configuration or directory that does not fit, or if trials fail.
    """
    search_space.check_keys(flag.given())
    base = {name: keys for name, keys in values.items() if name != "sweep"}
    space = run_config.parse_section("sweep", sweep_config.Config, values)
    config = run_config.parse(base)
    search_space.check_trials(space, base)
    _check(config, at_once)
    arguments = {key: text for key, text in flag.overrides.items() if not key.startswith("sweep.")}
    period = config.run.evaluate_every_env_frames
    if method == "optuna":
        optuna_search.import_optuna()
        if not (period or _PERIOD in arguments):
            unroll_frames = config.replay.unroll_length * config.environment.action_repeat
            period = max(config.run.env_frames // _EVALUATIONS, unroll_frames)
            arguments[_PERIOD] = str(period)
    # A smaller --trials than before does not discard trials.
    number = max(space.samples, len(list(workdir.glob("trial_*/config.json"))))
    space = dataclasses.replace(space, samples=number)
    spec = factory.environment_spec(config.environment)
    config.agent.check_actions(spec.action)
    config.replay.check_observation(spec.observation)
    # Without the number of trials, which may grow.
    recorded = {key: value for key, value in values["sweep"].items() if key != "samples"}
    resumed = run_directory.open_directory(
        workdir / run_directory.SEARCH_FILE,
        {**base, "sweep": recorded, "search": {"method": method}},
        {
            "versions": versions.recorded(),
            run_directory.COMMAND: command_line.given_command("sweep", workdir),
        },
        defaults=run_config.defaults(base, sweep=sweep_config.Config),
        extend=None,
    )
    logging.info("%s %s", "Resuming" if resumed else "Starting a search in", workdir)
    searching: Search = (
        optuna_search.OptunaSearch(space, workdir, config.run.env_frames // max(period, 1))
        if method == "optuna"
        else search.RandomSearch(space)
    )
    trials = Trials(searching, workdir, config.run.env_frames, period, flag.file, arguments)
    subcommand.run_all(trials.commands(), at_once, trials.start)
    trials.report_best()


def _check(config: run_config.RunConfig, at_once: int) -> None:
    """Raises ConfigError for a run that cannot be a trial."""
    if not config.run.evaluation_episodes:
        raise errors.ConfigError(
            "config.run: evaluation_episodes must be above 0 with --search, which compares "
            "evaluations, got 0."
        )
    if address := config.replay.address:
        raise errors.ConfigError(
            f"config.replay: address must be empty with --search, because each trial has its own "
            f"replay, got {address!r}."
        )
    if at_once > 1 and (port := config.run.replay_port):
        raise errors.ConfigError(
            f"config.run: replay_port must be 0 with --parallel_trials={at_once}, got {port}."
        )


@dataclasses.dataclass
class Trials:
    """The trials of a search as commands."""

    searching: Search
    workdir: pathlib.Path  # of the search
    env_frames: int  # of a trial
    period: int  # env frames between evaluations during training; 0: none
    config_file: str  # value of `--config`
    arguments: Mapping[str, str]  # `section.key` -> text, of all trials
    _proposed: dict[subcommand.Command, search.Trial] = dataclasses.field(default_factory=dict)
    _failures: int = 0  # since a trial has ended with another state

    def commands(self) -> Iterator[subcommand.Command]:
        """Yields the command of each proposed trial that has no result."""
        for trial in self.searching.propose():
            if self._result(trial) is not None:
                self._record(trial, is_pruned=False)  # The search ended before it read the result.
                continue
            title = f"{trial.name}: {_describe(trial.values)}"
            arguments = (*self._train_arguments(trial), f"--workdir={self.workdir / trial.name}")
            log = self.workdir / "logs" / f"{trial.name}.log"
            command = subcommand.Command("train", arguments, title, log)
            self._proposed[command] = trial
            yield command

    def start(self, command: subcommand.Command) -> "_TrialProcess":
        """Starts a trial."""
        return _TrialProcess(self, self._proposed.pop(command), command)

    def _train_arguments(self, trial: search.Trial) -> list[str]:
        texts = {**self.arguments} | {key: str(value) for key, value in trial.values.items()}
        return [f"--config={self.config_file}", *(f"--config.{k}={v}" for k, v in texts.items())]

    def _result(self, trial: search.Trial) -> float | None:
        """Returns the mean return of the evaluation at the end, or None."""
        # The first one, because the best trial is evaluated once more.
        summary = evaluation_files.first_standard_evaluation(
            self.workdir / trial.name, self.env_frames
        )
        return summary["mean_return"] if summary else None

    def should_prune(self, trial: search.Trial) -> bool:
        """Reports new evaluations of a running trial; returns whether to stop it."""
        # Number of an evaluation -> mean return of each task.
        returns: dict[int, list[float]] = collections.defaultdict(list)
        for row in evaluation_log.EvaluationLog(self.workdir / trial.name).read():
            returns[row.env_frames // self.period].append(row.mean_return)
        evaluations = {number: sum(means) / len(means) for number, means in returns.items()}
        return bool(evaluations) and self.searching.should_prune(trial.number, evaluations)

    def end(
        self, trial: search.Trial, command: subcommand.Command, code: int, is_pruned: bool
    ) -> int:
        """Records the end of a trial; returns an exit code above 0 if the search must end."""
        if self._record(trial, is_pruned) != search.FAILED:
            self._failures = 0
            return 0
        self._failures += 1
        logging.warning("%s", subcommand.describe_failure(command, code))
        return (code or 1) if self._failures >= _MAX_FAILURES else 0

    def _record(self, trial: search.Trial, is_pruned: bool) -> str:
        mean_return = self._result(trial)
        unfinished = search.PRUNED if is_pruned else search.FAILED
        state = unfinished if mean_return is None else search.COMPLETE
        self.searching.end(trial.number, state, mean_return)
        trials = self.searching.trials()
        search.write_table(self.workdir, trials)
        best = search.best(trials)
        logging.info(
            "%s: %s%s%s", trial.name, state,
            "" if mean_return is None else f", mean return {progress.number(mean_return, 2)}",
            f"; best: {best.name}, {progress.number(best.mean_return, 2)}" if best else "",
        )  # fmt: skip
        return state

    def report_best(self) -> None:
        """Evaluates the best trial, writes `best_trial.json` and prints its command."""
        trials = self.searching.trials()
        best = search.best(trials)
        if best is None:
            raise command_line.UsageError(
                f"no trial of {self.workdir} is complete; see its logs. Use a larger --trials."
            )
        path = self.workdir / BEST_FILE
        try:
            content = json.loads(path.read_text()) if path.exists() else {"trial": ""}
            is_known = content["trial"] == best.name
        except (ValueError, TypeError, KeyError) as error:
            raise command_line.UsageError(
                f"cannot read {path}: {error}. Delete it to evaluate the best trial again."
            ) from None
        if not is_known:
            content = self._evaluate(best)
            atomic.write(path, json.dumps(content, indent=2) + "\n")
        states = collections.Counter(trial.state for trial in trials)
        counts = ", ".join(f"{number} {state}" for state, number in states.items())
        print(f"trials        {counts}")
        print(f"best trial    {best.name}: {_describe(best.values)}")
        print(f"mean return   {content['mean_return']:.2f} in {content['episodes']} episodes")
        print(f"its command   {content['command']}")

    def _evaluate(self, best: search.Trial) -> dict[str, Any]:
        """Evaluates a trial with another seed, because the best of many results is partly luck."""
        folder = self.workdir / best.name
        # The command names the environment's code.
        arguments = (f"--workdir={folder}", "--trust_config")
        log = self.workdir / "logs" / "evaluation.log"
        subcommand.run_all(
            [subcommand.Command("evaluate", arguments, f"Evaluating {best.name}", log)]
        )
        summary = json.loads(evaluation_files.result_file(folder).read_text())
        return {
            "trial": best.name,
            "values": dict(best.values),
            "mean_return": summary["mean_return"],
            "episodes": summary["episodes"],
            "command": shlex.join(["python", "-m", "launch.train", *self._train_arguments(best)]),
        }


class _TrialProcess:
    """The process of a trial, which ends it once it is pruned; a `subcommand.Process`."""

    def __init__(self, trials: Trials, trial: search.Trial, command: subcommand.Command):
        self._trials = trials
        self._trial = trial
        self._command = command
        self._process = subcommand.start_here(command)
        self._is_pruned = self._is_interrupted = False

    def poll(self) -> int | None:
        """See `subcommand.Process`; a failed trial does not end the search."""
        code = self._process.poll()
        if code is None:
            if not self._is_pruned and self._trials.should_prune(self._trial):
                self._is_pruned = True
                self._process.send_signal(signal.SIGTERM)
            return None
        if self._is_interrupted:  # The same command resumes the trial.
            return code
        return self._trials.end(self._trial, self._command, code, self._is_pruned)

    def send_signal(self, signal_number: int) -> None:
        """See `subcommand.Process`."""
        self._is_interrupted = True
        self._process.send_signal(signal_number)


def _describe(values: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{key}={format(value, '.4g') if isinstance(value, float) else value}"
        for key, value in values.items()
    )
