"""Writing whole episodes to replay.

An episode is stored as the unrolls that cut it from its start: [n, T + 1, ...], each one's last row
the next one's first. The rows after its end have `is_first`, so that losses mask them.

Reverb counts items, the capacity is given in agent steps: an episode of n unrolls takes n items.
The first is the whole episode and has priority 1. The others only mark the room that it takes: each
refers to one of its unrolls, which costs no memory, and has priority 0, with which it is never
drawn. The first is also the first to be removed, so that replay never holds more than its capacity.
"""

from collections.abc import Callable

import numpy as np
import reverb
import tree

from laser_tf import types
from laser_tf.replay import stored_unroll, tables

_TIMEOUT_MS = 500


class EpisodeWriter:
    """Gathers the rows of N games and writes each game's episode when it is over."""

    def __init__(
        self,
        client: reverb.Client,
        buffer: stored_unroll.UnrollBuffer,
        max_unrolls: int,
    ):
        """Opens a stream for each game.

        Args:
          client: of the replay server.
          buffer: where unrolls without core states are filled.
          max_unrolls: n of the longest episode.
        """
        self._writers = [client.trajectory_writer(max_unrolls) for _ in range(buffer.num_envs)]
        self._buffer = buffer
        self._rows = np.zeros(buffer.num_envs, int)  # filled in each game's buffer
        self._unrolls = np.zeros(buffer.num_envs, int)  # appended of each game's episode

    def add(
        self,
        env_output: types.EnvOutput,
        agent_output: types.AgentOutput,
        learner_update: int,
        should_stop: Callable[[], bool],
    ) -> None:
        """Takes the next row of every game, arrays [N, ...], and what the agent answered there.

        Args:
          env_output: with single frames.
          agent_output: actions and behaviour logits.
          learner_update: updates behind the weights that acted.
          should_stop: whether to give up waiting for the server.
        """
        for game in np.flatnonzero(env_output.is_first):
            self._finish_episode(game, learner_update, should_stop)
        self._buffer.write_environment(self._rows, env_output)
        self._buffer.write_agent(self._rows, agent_output)
        self._rows += 1
        for game in np.flatnonzero(self._rows > self._buffer.last_row):
            self._append(game, learner_update)
            self._buffer.carry_over_game(game)
            self._rows[game] = 1

    def _append(self, game: int, learner_update: int) -> None:
        self._writers[game].append(self._buffer.unroll(game, learner_update))
        self._unrolls[game] += 1

    def _finish_episode(
        self, game: int, learner_update: int, should_stop: Callable[[], bool]
    ) -> None:
        """Writes the episode that ended in the row before, if there was one."""
        if self._rows[game] > 1:  # a single row is an end that the last unroll has already
            self._buffer.end_episode(game, self._rows[game])
            self._append(game, learner_update)
        if self._unrolls[game]:
            self._create_items(game, self._unrolls[game])
            self._wait(self._writers[game], should_stop)
        self._rows[game] = self._unrolls[game] = 0

    def _create_items(self, game: int, unrolls: int) -> None:
        writer = self._writers[game]
        parts = [slice(-unrolls, None), *(slice(index, index + 1) for index in range(-unrolls, -1))]
        for number, part in enumerate(parts):
            trajectory = tree.map_structure(lambda column, part=part: column[part], writer.history)
            writer.create_item(tables.EPISODES, float(number == 0), trajectory)

    def _wait(self, writer: reverb.TrajectoryWriter, should_stop: Callable[[], bool]) -> None:
        while not should_stop():
            try:
                writer.end_episode(timeout_ms=_TIMEOUT_MS)
                return
            except reverb.DeadlineExceededError:
                continue

    def close(self) -> None:
        """Closes the streams; episodes that are not over are lost."""
        for writer in self._writers:
            writer.close()
