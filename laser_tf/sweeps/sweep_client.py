"""The client of a sweep's coordinator: equal speed, and the population's decisions."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from laser_tf import errors
from laser_tf.monitoring import reporting
from laser_tf.sweeps import coordinator
from laser_tf.training import learner as learner_module
from laser_tf.training import membership, named_variables

_REPORT_PERIOD_SECONDS = 0.5


class SweepClient(membership.Membership):
    """A member's connection to its sweep."""

    def __init__(
        self,
        name: str,
        index: int,
        call: Callable[..., Any],
        find_replay_address: Callable[[], str] | None,
    ):
        """Joins the sweep.

        The member's index counts from 0. Methods of the `coordinator.Coordinator` are called by
        name through `call`, which raises their errors. The function `find_replay_address` returns
        "host:port" of the shared replay; it is None for a member with a separate replay.
        """
        self.name = name
        self.index = index
        self.find_replay_address = find_replay_address
        self._call = call
        self._next_decision_at: int | None = None  # Env frames; None without a population.
        self._limit = 0.0  # Env frames; 0 before the first report.
        self._lost: Exception | None = None
        self._env_frames = 0
        self._returns: reporting.EpisodeReturns
        self._closed = threading.Event()
        call("join", name)

    def resume(
        self, learner: learner_module.Learner, env_frames: int, returns: reporting.EpisodeReturns
    ) -> int:
        """Applies a missed decision of the population; see `Membership`."""
        self._env_frames, self._returns = env_frames, returns
        missed: coordinator.Decision = self._call("resume", self.name, env_frames)
        self._apply(learner, missed)
        return missed.last_copied_at

    def _apply(self, learner: learner_module.Learner, decided: coordinator.Decision) -> bool:
        """Applies a decision; returns whether weights changed."""
        self._next_decision_at = decided.next_decision_at
        learner.set_hyperparameters(decided.hyperparameters)
        if decided.weights is None:
            return False
        logging.info("%s becomes a copy of %s", self.name, decided.parent)
        set_state(learner, decided.weights)
        self._returns.clear()  # Of another policy.
        return True

    def start(self) -> None:
        """Starts reporting progress in a thread and returns."""
        threading.Thread(target=self._report, name="sweep", daemon=True).start()

    def _report(self) -> None:
        while not self._closed.is_set():
            mean_return, fitness = self._returns.mean_return(), self._returns.fitness()
            try:
                report = self.name, self._env_frames, mean_return, fitness
                self._limit = self._call("report", *report)
            except Exception as error:  # Raised by `check` in the learner's thread.
                self._lost = error
                return
            self._closed.wait(_REPORT_PERIOD_SECONDS)

    def check(self) -> None:
        """Raises the error that ended the connection, if any."""
        if self._lost:
            raise self._lost

    def throttle(self, env_frames: int, should_stop: Callable[[], bool]) -> None:
        """Blocks while the member is too far ahead of the others."""
        self._env_frames = env_frames
        while env_frames >= self._limit and not should_stop():
            time.sleep(0.02)

    def apply_decisions(self, learner: learner_module.Learner, env_frames: int) -> bool:
        """Applies a decision of the population if one is due; returns whether weights changed.

        Raises:
          NonFiniteWeightsError: If a weight of the member is not finite.
        """
        self._env_frames = env_frames
        if self._next_decision_at is None or env_frames < self._next_decision_at:
            return False
        fitness, values = self._returns.fitness(), learner.hyperparameters()
        state = get_state(learner)
        decided = self._call("decide", self.name, env_frames, fitness, values, state)
        return self._apply(learner, decided)

    def close(self, *, finished: bool = False) -> None:
        """Stops reporting; the others continue without a member that has finished."""
        self._closed.set()
        if finished:
            self._call("finish", self.name)


def get_state(source: learner_module.Learner) -> dict[str, np.ndarray]:
    """Returns what a copy of an agent gets, by name (Jaderberg et al. 2017).

    This is the agent's variables, with PopArt's moments, and the optimiser's state. Counters,
    random generators and hyper-parameters are left out. Call it between two updates.

    Raises:
      NonFiniteWeightsError: If a variable is not finite, so that no member copies it.
    """
    arrays = {name: variable.numpy() for name, variable in _variables(source).items()}
    if non_finite := named_variables.find_non_finite(arrays.items()):
        raise named_variables.NonFiniteWeightsError(
            f"{non_finite} is not finite: no member may copy these weights"
        )
    return arrays


def set_state(target: learner_module.Learner, state: Mapping[str, np.ndarray]) -> None:
    """Assigns the `get_state` of a learner with the same architecture, between two updates.

    Raises:
      ConfigError: If the learner has another architecture; nothing is assigned.
    """
    variables = _variables(target)
    if differing := named_variables.differences(state, variables):
        raise errors.ConfigError(
            f"All members of a population must have the same network, environment and optimiser, "
            f"but {differing[0]}."
        )
    for name, variable in variables.items():
        variable.assign(state[name])


def _variables(source: learner_module.Learner) -> dict[str, tf.Variable]:
    """Returns variables by their path from the learner's attributes, as in checkpoints."""
    seen = {id(variable): variable for variable in source.hyperparameter_variables.values()}
    return {
        **dict(named_variables.walk(source.agent, "agent", seen)),
        **dict(named_variables.walk(source.optimizer, "optimizer", seen)),
    }
