"""Counts of unrolls that were lost or came twice."""

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.replay import batch_sources


class UnrollCounterTest(parameterized.TestCase):
    @parameterized.parameters(
        ([0, 1, 2, 3], 0, 0),
        ([5, 6, 7], 0, 0),  # earlier unrolls came to another learner process
        ([0, 1, 4, 5], 2, 0),
        ([0, 3, 1, 2], 0, 0),  # overtaken, not lost
        ([0, 1, 1, 2, 2], 0, 2),
        ([2, 1, 0], 0, 0),
    )
    def test_gaps_and_repetitions_are_counted(self, numbers, lost, duplicated):
        counter = batch_sources.UnrollCounter()
        for number in numbers:
            counter.add(np.array([7, 8]), np.array([number, number]))
        self.assertEqual(
            counter.metrics(),
            {
                "replay/lost_unrolls": 2.0 * lost,
                "replay/duplicated_unrolls": 2.0 * duplicated,
            },
        )


if __name__ == "__main__":
    absltest.main()
