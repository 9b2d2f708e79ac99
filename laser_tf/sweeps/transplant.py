"""What one learner hands over to another when its agent is copied (Jaderberg et al. 2017).

That is the state of the weights: the agent's variables, PopArt's moments with them, and the
optimiser's. It is not the state of the run: counters, random generators, replay and the
hyper-parameters stay each learner's own.
"""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from laser_tf import errors
from laser_tf.training import finiteness, learner, named_variables


def get_state(source: learner.Learner) -> dict[str, np.ndarray]:
    """The weights and the optimiser's state, by their names.

    Call it between two updates, or it mixes variables from before and after one.

    Raises:
      NonFiniteWeightsError: if a variable is not finite: nobody should go on from it.
    """
    arrays = {name: variable.numpy() for name, variable in _variables(source).items()}
    _check_finite(arrays, "this agent's weights are handed over to nobody")
    return arrays


def set_state(target: learner.Learner, handed_over: Mapping[str, np.ndarray]) -> None:
    """Makes a learner go on from what another one handed over; call it between two updates.

    Args:
      target: a learner of the same architecture.
      handed_over: from `get_state`.

    Raises:
      ValueError: if it is of another architecture; the message names the first difference, and
        nothing has been assigned.
      NonFiniteWeightsError: if a value is not finite, in the same way.
    """
    variables = _variables(target)
    if differing := named_variables.differences(handed_over, variables):
        raise errors.ConfigError(
            f"cannot take over the copied agent: {differing[0]}; "
            "give all agents of a population the same network, environment and optimiser"
        )
    _check_finite(handed_over, "the copied agent's weights are not taken over")
    for name, variable in variables.items():
        variable.assign(handed_over[name])


def _check_finite(arrays: Mapping[str, np.ndarray], consequence: str) -> None:
    non_finite = finiteness.find_non_finite(arrays.items())
    if non_finite:
        raise finiteness.NonFiniteWeightsError(f"{non_finite} is not finite: {consequence}")


def _variables(source: learner.Learner) -> dict[str, tf.Variable]:
    """What is handed over, by its way from the learner's attributes, as in checkpoints."""
    seen = {id(variable): variable for variable in source.hyperparameter_variables.values()}
    return {
        **dict(named_variables.walk(source.agent, "agent", seen)),
        **dict(named_variables.walk(source.optimizer, "optimizer", seen)),
    }
