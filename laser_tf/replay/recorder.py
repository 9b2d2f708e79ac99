"""What takes the steps that an actor sees."""

import abc
from collections.abc import Callable
from typing import Any

from laser_tf import types


class Recorder(abc.ABC):
    """Cuts the steps of N games into what tables of replay hold."""

    @abc.abstractmethod
    def add(
        self,
        env_output: types.EnvOutput,
        agent_output: types.AgentOutput,
        core_state: Any,
        learner_update: int,
        should_stop: Callable[[], bool],
    ) -> None:
        """Takes the next step of every game, arrays [N, ...].

        Args:
          env_output: with single frames.
          agent_output: what the agent answered there: the action and what is stored beside it.
          core_state: the agent's, before the step.
          learner_update: updates behind the weights that acted.
          should_stop: whether to give up waiting for the server.
        """

    @abc.abstractmethod
    def wait(self, should_stop: Callable[[], bool]) -> None:
        """Blocks until what was cut is in its tables: a full queue holds the actor."""

    @abc.abstractmethod
    def close(self) -> None:
        """Closes the streams without waiting; what is not complete is lost."""
