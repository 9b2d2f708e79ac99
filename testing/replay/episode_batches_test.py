"""Online unrolls beside whole episodes, of which replay may have none."""

import numpy as np
import tensorflow as tf
import tree
from absl.testing import absltest

from laser_tf.replay import episode_replay, stored_unroll
from laser_tf.replay.schemes import episodes
from testing import fakes

T = 5
SIGNATURE = fakes.signature(
    fakes.image_spec((2, 2, 1), 3), (tf.zeros([1, 2]),), unroll_length=T, frame_stack=2
)
CONFIG = episodes.Episodes(
    unroll_length=T, frame_stack=2, batch_size=2, replay_fraction=0.5, capacity=1000
)


class _Online:
    def __init__(self, unrolls: stored_unroll.StoredUnroll):
        self._unrolls, self._number = unrolls, 0

    def get(self, should_stop):
        self._number += 1
        number = np.full_like(self._unrolls.number, self._number)
        unrolls = self._unrolls._replace(number=number)
        return stored_unroll.unweighted(unrolls, np.array([True]), T)

    def close(self):
        pass


class _Episodes:
    """Has episodes now and then; notes how long it was waited for."""

    def __init__(self, episodes):
        self._episodes, self.waited = iter(episodes), []

    def poll(self, seconds: float):
        self.waited.append(seconds)
        return next(self._episodes, None)

    def close(self):
        pass


class EpisodeBatchesTest(absltest.TestCase):
    def test_a_replay_that_came_back_empty_does_not_stall_the_learner(self):
        blank = stored_unroll.blank(SIGNATURE)
        one = tree.map_structure(lambda leaf: leaf[None], blank)
        episode = one._replace(core_state=())
        source = _Episodes([None, episode, episode, None, None, episode])
        stream = episode_replay.EpisodeBatches(
            _Online(one), source, CONFIG, SIGNATURE, lambda unrolls: unrolls.core_state
        )
        self.addCleanup(stream.close)
        for _ in range(9):
            batch = stream.get(lambda: False)
            self.assertEqual(batch.is_online.tolist(), [True, False])
        # At once until there is an episode, and from when there is none again.
        some = episode_replay._EPISODE_TIMEOUT_SECONDS
        self.assertEqual(source.waited[:8], [0, 0, some, some, 0, 0, some, 0])
        self.assertGreater(some, 0)


if __name__ == "__main__":
    absltest.main()
