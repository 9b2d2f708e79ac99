"""What takes the rows that an actor sees."""

import abc
from collections.abc import Callable
from typing import Any

from laser_tf import types


class Recorder(abc.ABC):
    """Cuts the rows of N games into what tables of replay hold."""

    @abc.abstractmethod
    def add(
        self,
        env_output: types.EnvOutput,
        agent_output: types.AgentOutput,
        core_state: Any,
        learner_update: int,
        should_stop: Callable[[], bool],
    ) -> None:
        """Takes the next row of every game, arrays [N, ...].

        Args:
          env_output: with single frames.
          agent_output: what the agent answered there: actions and behaviour logits.
          core_state: the agent's, before the row.
          learner_update: updates behind the weights that acted.
          should_stop: whether to give up waiting for the server.
        """

    @abc.abstractmethod
    def wait(self, should_stop: Callable[[], bool]) -> None:
        """Blocks until what was cut is in its tables: a full queue holds the actor."""

    @abc.abstractmethod
    def close(self) -> None:
        """Closes the streams without waiting; what is not complete is lost."""
