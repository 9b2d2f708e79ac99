"""Writing whole episodes to replay.

An episode is stored as the unrolls that cut it from its start: [n, T + 1, ...], each one's last row
the next one's first.

Reverb counts items, the capacity is given in agent steps: an episode of n unrolls takes n items.
The first is the whole episode and has priority 1. The others only mark the room that it takes: each
refers to one of its unrolls, which costs no memory, and has priority 0, with which it is never
drawn. The first is also the first to be removed, so that replay never holds more than its capacity.
"""

import tree

from laser_tf.replay import game_writer, replay_config, stored_unroll


class EpisodeWriter(game_writer.GameWriter):
    """Writes each game's episode when it is over; unrolls are kept until then.

    An episode whose stream is lost is left out: it could not be replayed from its start.
    """

    def _append(self, game: int, unroll: stored_unroll.StoredUnroll) -> None:
        if not self._unrolls[game] and not stored_unroll.begins_episode(unroll):
            return
        self._streams[game].append(unroll)
        self._unrolls[game] += 1

    def _end(self, game: int) -> None:
        stream, unrolls = self._streams[game], self._unrolls[game]
        parts = [slice(-unrolls, None), *(slice(index, index + 1) for index in range(-unrolls, -1))]
        for number, part in enumerate(parts):
            trajectory = tree.map_structure(lambda column, part=part: column[part], stream.history)
            stream.create_item(replay_config.EPISODES, float(number == 0), trajectory)
