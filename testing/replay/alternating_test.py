"""Online batches and replayed ones in turn: how many, in which order, and each unroll once."""

import itertools
import math
from unittest import mock

import numpy as np
import tensorflow as tf
import tree
from absl.testing import absltest, parameterized

from laser_tf.replay import batch_sources, client, resilient_writer, server, stored_unroll
from laser_tf.replay.schemes import alternating, base
from testing import fakes, folders

T = 5
SIGNATURE = fakes.signature(
    fakes.image_spec((2, 2, 1), 3), (tf.zeros([1, 2]),), unroll_length=T, frame_stack=2
)
CONFIG = alternating.Alternating(
    unroll_length=T, frame_stack=2, batch_size=2, replay_ratio=2.0,
    capacity=1000, queue_capacity=100,
)  # fmt: skip


def _counts(ratio: float, seed: tuple[int, ...], number: int) -> np.ndarray:
    """Returns how many replayed batches followed each of the first online batches."""
    online, replayed = itertools.repeat("online"), itertools.repeat("replayed")
    kinds = alternating.alternate(online, replayed, ratio, seed)
    assert next(kinds) == "online"
    return np.array([len(list(itertools.takewhile("online".__ne__, kinds))) for _ in range(number)])


class CountsTest(parameterized.TestCase):
    @parameterized.parameters(0.25, 1.0, 4.0, 8.0)
    def test_counts_are_poisson_distributed(self, ratio):
        number = 4_000
        counts = _counts(ratio, (1, 0), number)
        # Five standard deviations of the mean, of the variance, and of each frequency.
        self.assertAlmostEqual(counts.mean(), ratio, delta=5 * math.sqrt(ratio / number))
        spread = math.sqrt((ratio + 2 * ratio**2) / number)  # the fourth moment is r + 3 r^2
        self.assertAlmostEqual(counts.var(), ratio, delta=5 * spread)
        for count in range(int(ratio) + 3):
            expected = math.exp(-ratio) * ratio**count / math.factorial(count)
            delta = 5 * math.sqrt(expected / number)
            self.assertAlmostEqual(np.mean(counts == count), expected, delta=delta)

    def test_counts_depend_on_the_seed_alone(self):
        counts = _counts(4.0, (1, 0), 50).tolist()
        self.assertEqual(_counts(4.0, (1, 0), 50).tolist(), counts)
        for seed in ((2, 0), (1, 400)):  # another run's, a resumed run's
            self.assertNotEqual(_counts(4.0, seed, 50).tolist(), counts)


class AlternatingBatchesTest(folders.FolderTest):
    """On a real server."""

    def setUp(self):
        super().setUp()
        served = server.ReplayServer(CONFIG, SIGNATURE, self._folder / "r")
        self.addCleanup(served.stop)
        self._replay = served.connect()

    def _write(self, *numbers: int) -> None:
        target = resilient_writer.UnrollStream(self._replay, CONFIG.unroll_tables(base.QUEUE))
        zeros = stored_unroll.blank(SIGNATURE)
        for number in numbers:
            unroll = zeros._replace(new_steps=np.int64(T), number=np.int64(number))
            target.write([unroll], fakes.never)
        target.wait(fakes.never)
        target.close()

    def _stream(self) -> batch_sources.BatchSource:
        stream = fakes.make_batches(CONFIG, self._replay, SIGNATURE, seed=(1, 0))
        self.addCleanup(stream.close)
        return stream

    def test_unroll_enters_replay_before_the_queue(self):
        self.assertEqual(
            list(CONFIG.unroll_tables("queue").items()), [("replay", True), ("queue", True)]
        )
        self.assertEqual((CONFIG.online_entries, CONFIG.replayed_entries), (2, 2))
        self.assertEqual(CONFIG.steps_per_update, 2 * T)
        self.assertAlmostEqual(CONFIG.mean_steps_per_update, 2 * T / 3)

    def test_every_unroll_is_online_once(self):
        self._write(*range(40))
        stream = self._stream()
        shapes, online, steps = None, [], 0
        for count in np.random.default_rng((1, 0)).poisson(2.0, 20):
            for is_online in [True] + [False] * count:
                batch = stream.get(fakes.never)
                self.assertEqual(batch.is_online.tolist(), [is_online] * 2)
                self.assertEqual(batch.new_steps, 2 * T if is_online else 0)
                # The compiled update takes both kinds.
                described = tree.map_structure(lambda leaf: (leaf.shape, leaf.dtype), batch)
                shapes = shapes or described
                self.assertEqual(described, shapes)
                online.extend(batch.unrolls.number[batch.is_online].tolist())
                self.assertContainsSubset(batch.unrolls.number.tolist(), range(40))
                steps += int(batch.new_steps)
        self.assertEqual(online, list(range(40)))
        self.assertEqual(steps, 40 * T)
        self.assertEqual(set(stream.metrics().values()), {0.0})

    def test_empty_queue_can_be_interrupted(self):
        stream = self._stream()
        looks = iter([False, True])
        self.assertIsNone(stream.get(lambda: next(looks)))  # No actor has written yet.
        self._write(0, 1)
        self.assertTrue(stream.get(fakes.never).is_online.all())
        for _ in range(int(np.random.default_rng((1, 0)).poisson(2.0))):
            self.assertFalse(stream.get(fakes.never).is_online.any())
        looks = iter([False, True])
        self.assertIsNone(stream.get(lambda: next(looks)))

    def test_online_entries_have_no_priorities(self):
        with mock.patch.object(self._replay, "update_priorities") as update:
            for is_online in ([True, True], [False, False]):
                unrolls = tree.map_structure(
                    lambda array: np.stack([array] * 2), stored_unroll.blank(SIGNATURE)
                )
                batch = stored_unroll.unweighted(unrolls, np.array(is_online))
                client.ReplayClient(self._replay).update_priorities(batch, np.ones(2))
        update.assert_called_once()


if __name__ == "__main__":
    absltest.main()
