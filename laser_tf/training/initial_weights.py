"""Where a new run begins from another's newest weights (fine-tuning).

Taken over is what was learnt: the weights, target networks with them, and the moments of PopArt and
of normalised observations. Optimiser, counters, schedules, hyper-parameters and replay start anew.
"""

import pathlib
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from laser_tf import errors, types
from laser_tf.agents import base as agents_base
from laser_tf.environments import factory, user_modules
from laser_tf.training import assembly, named_variables, run_config, trained
from laser_tf.workdir import layout, run_directory

_NAMED = 3  # differences that a refusal names


class InitialWeights(NamedTuple):
    """Another run's."""

    source: pathlib.Path  # its folder
    learner_updates: int  # behind them
    arrays: dict[str, np.ndarray]  # by `named_variables`

    def record(self) -> dict[str, dict[str, object]]:
        """What a run's `config.json` notes of where it began."""
        origin = {"workdir": str(self.source), "learner_updates": self.learner_updates}
        return {run_directory.ORIGIN: origin}


def find(
    workdir: pathlib.Path,
    wanted: pathlib.Path | None,
    named: Collection[str] = (),
    trust_config: bool = False,
) -> InitialWeights | None:
    """The weights that a run has to begin from; None for fresh ones, or where it has its own.

    Args:
      workdir: the run's folder, which need not be there yet.
      wanted: the other run's folder; None: the one that the run began from, if any.
      named: Tasks with code that the user named, see `EnvironmentConfig.user_code`.
      trust_config: Whether the other run's `config.json` may name other tasks with code.

    Raises:
      WorkdirError: if the run began from another one, or there are no such weights.
      UntrustedError, ValueError, ImportError, EnvironmentFailedError: see `read`.
    """
    if (workdir / run_directory.CONFIG_FILE).exists():
        origin = run_directory.read_origin(workdir)
        if wanted and str(wanted) != origin:
            raise run_directory.WorkdirError(
                f"{workdir} holds a run that began from {origin or 'fresh weights'}, not from "
                f"{wanted}: leave --init_from out to resume it, or use another --workdir"
            )
        if layout.has_checkpoint(workdir):
            return None
        wanted = pathlib.Path(origin) if origin else None
    return read(wanted, named, trust_config) if wanted else None


def read(
    source: pathlib.Path, named: Collection[str] = (), trust_config: bool = False
) -> InitialWeights:
    """Another run's newest usable weights.

    Args:
      source: The other run's directory.
      named: See `find`.
      trust_config: See `find`.

    Raises:
      WorkdirError: if its folder holds no run or no usable checkpoint.
      UntrustedError: If its `config.json` names tasks with code that are not in `named`.
      ValueError, ImportError, EnvironmentFailedError: if its environment cannot be made.
    """
    config = run_config.parse(run_directory.read_config(source))
    if not trust_config:
        user_modules.check_trusted(
            source / run_directory.CONFIG_FILE, config.environment.user_code(), named
        )
    restored = trained.restore_learner(source, config, factory.environment_spec(config.environment))
    arrays = {name: variable.numpy() for name, variable in learnt(restored.agent).items()}
    return InitialWeights(source, int(restored.counters.learner_updates), arrays)


def check(
    initial: InitialWeights, config: run_config.RunConfig, spec: types.EnvironmentSpec
) -> None:
    """Checks that a run of a configuration can begin from these weights, before it leaves a trace.

    Raises:
      ValueError: if they do not fit; it names variables with both shapes.
    """
    _check(initial, learnt(assembly.build_agent(config, spec, "float32", seed=0)))


def assign(initial: InitialWeights, agent: agents_base.Agent) -> None:
    """Gives an agent these weights.

    Raises:
      ValueError: if they do not fit, as `check` does; nothing has been assigned.
    """
    variables = learnt(agent)
    _check(initial, variables)
    for name, variable in variables.items():
        variable.assign(initial.arrays[name])


def _check(initial: InitialWeights, variables: dict[str, tf.Variable]) -> None:
    differing = named_variables.differences(initial.arrays, variables)
    if differing:
        more = f" and {len(differing) - _NAMED} more" if len(differing) > _NAMED else ""
        raise errors.ConfigError(
            f"--init_from={initial.source} has weights of other shapes: "
            f"{', '.join(differing[:_NAMED])}{more}; use the network, the observations and the "
            "actions of that run, or begin without --init_from"
        )


def learnt(agent: agents_base.Agent) -> dict[str, tf.Variable]:
    """What is taken over of an agent, by its names of `named_variables`."""
    seen = {id(variable): variable for variable in agent.hyperparameters.values()}
    named = named_variables.walk(agent, "agent", seen)
    # Counts of updates and the like are integers.
    return {name: variable for name, variable in named if variable.dtype.is_floating}
