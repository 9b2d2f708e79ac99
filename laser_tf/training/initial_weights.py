"""Weights of another run from which a new run starts (fine-tuning).

They include target networks and the moments of PopArt and of normalised observations, but neither
optimiser, counters nor hyper-parameters.
"""

import pathlib
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from laser_tf import errors, types
from laser_tf.agents import base as agents_base
from laser_tf.environments import factory
from laser_tf.training import assembly, learner_checkpoints, named_variables, run_config
from laser_tf.workdir import run_directory

_MAX_NAMED = 3  # differences in an error message


class InitialWeights(NamedTuple):
    """Weights of another run."""

    source: pathlib.Path  # directory of that run
    learner_updates: int  # updates behind the weights
    arrays: dict[str, np.ndarray]  # values by their names in `named_variables`

    def record(self) -> dict[str, dict[str, object]]:
        """Returns the entry of `config.json` for the origin of a run."""
        origin = {"workdir": str(self.source), "learner_updates": self.learner_updates}
        return {run_directory.ORIGIN: origin}


def read(
    source: pathlib.Path, named: Collection[str] = (), trust_config: bool = False
) -> InitialWeights:
    """Reads the newest usable weights of another run.

    Raises:
      WorkdirError: If the directory holds no run or no usable checkpoint.
      UntrustedError: See `run_config.read_trusted`.
      ValueError, ImportError, EnvironmentFailedError: If its environment cannot be created.
    """
    config = run_config.read_trusted(source, trust_config, named)
    spec = factory.environment_spec(config.environment)
    restored = learner_checkpoints.restore_learner(source, config, spec)
    arrays = {name: variable.numpy() for name, variable in select_variables(restored.agent).items()}
    return InitialWeights(source, int(restored.counters.learner_updates), arrays)


def check(
    initial: InitialWeights, config: run_config.RunConfig, spec: types.EnvironmentSpec
) -> None:
    """Raises ConfigError, which names variables with both shapes, if weights do not fit a run."""
    _find_variables(initial, assembly.build_agent(config, spec, "float32", seed=0))


def assign(initial: InitialWeights, agent: agents_base.Agent) -> None:
    """Assigns weights to an agent, or raises ConfigError and assigns none, see `check`."""
    for name, variable in _find_variables(initial, agent).items():
        variable.assign(initial.arrays[name])


def _find_variables(initial: InitialWeights, agent: agents_base.Agent) -> dict[str, tf.Variable]:
    """Returns the agent's variables by name; raises ConfigError if the weights do not fit."""
    variables = select_variables(agent)
    if differing := named_variables.differences(initial.arrays, variables):
        others = len(differing) - _MAX_NAMED
        more = f" and {others} more" if others > 0 else ""
        raise errors.ConfigError(
            f"--init_from={initial.source} has weights of other shapes: "
            f"{', '.join(differing[:_MAX_NAMED])}{more}. Use the agent, network, "
            "observations and actions of that run, or leave out --init_from."
        )
    return variables


def select_variables(agent: agents_base.Agent) -> dict[str, tf.Variable]:
    """Selects the variables of an agent that a new run copies from another run, by name."""
    seen = {id(variable): variable for variable in agent.hyperparameters.values()}
    named = named_variables.walk(agent, "agent", seen)
    # Integers are counts, e.g. of updates.
    return {name: variable for name, variable in named if variable.dtype.is_floating}
