"""Lost and doubled unrolls against what random sequences of tags were made of."""

from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.training import unroll_accounting

_LATE = 20  # by how many places a tag of the sequences below comes too early or too late


def _add(accounting: unroll_accounting.UnrollAccounting, tags: list[tuple[int, int]]) -> list[int]:
    """Takes tags in batches of 7; returns the places of the doubled ones."""
    doubled = []
    for start in range(0, len(tags), 7):
        actors, numbers = np.array(tags[start : start + 7], np.int64).T
        doubled.extend(start + np.flatnonzero(accounting.add(actors, numbers)))
    return doubled


def _settle(accounting: unroll_accounting.UnrollAccounting) -> None:
    """As many unrolls as one is waited for come from another actor."""
    first = accounting.received
    _add(accounting, [(-1, number) for number in range(first, first + unroll_accounting.PATIENCE)])
    _add(accounting, [(-1, first + unroll_accounting.PATIENCE)])


class UnrollAccountingTest(parameterized.TestCase):
    @parameterized.parameters(*range(20))
    def test_random_sequences(self, seed):
        generator = np.random.default_rng(seed)
        expected, lost = [], 0
        for actor in generator.integers(2**62, size=5):  # one after the other: restarts
            length = int(generator.integers(60, 400))
            kept = generator.random(length) > 0.1
            # What was before an actor's first unroll, and behind its last, nobody can know.
            kept[:_LATE] = kept[-_LATE:] = True
            lost += int((~kept).sum())
            expected.extend((int(actor), int(number)) for number in np.flatnonzero(kept))
        twice = [tag for tag in expected if generator.random() < 0.05]
        sent = expected + twice
        places = np.array([*range(len(expected)), *map(expected.index, twice)], float)
        order = np.argsort(places + generator.uniform(0, _LATE, len(sent)))
        sent = [sent[place] for place in order]
        accounting = unroll_accounting.UnrollAccounting()
        doubled = _add(accounting, sent)
        self.assertCountEqual([sent[place] for place in doubled], twice)
        seen = set()
        for place, tag in enumerate(sent):  # the later of two is the doubled one
            self.assertEqual(tag in seen, place in set(doubled))
            seen.add(tag)
        self.assertEqual(accounting.doubled, len(twice))
        self.assertEqual(accounting.received, len(expected))
        _settle(accounting)
        self.assertEqual(accounting.lost, lost)
        self.assertEqual(
            accounting.metrics(),
            {"replay/lost_unrolls": lost, "replay/doubled_unrolls": len(twice)},
        )

    def test_what_is_overtaken_is_not_lost_at_once(self):
        accounting = unroll_accounting.UnrollAccounting()
        self.assertEmpty(_add(accounting, [(1, 0), (1, 3), (1, 1)]))
        self.assertEqual(accounting.lost, 0)
        _settle(accounting)
        self.assertEqual(accounting.lost, 1)

    def test_what_comes_very_late_is_not_lost_after_all(self):
        accounting = unroll_accounting.UnrollAccounting()
        _add(accounting, [(1, 0), (1, 4)])
        _settle(accounting)
        self.assertEqual(accounting.lost, 3)
        self.assertEmpty(_add(accounting, [(1, 2)]))
        self.assertEqual(accounting.lost, 2)
        self.assertEqual(_add(accounting, [(1, 2)]), [0])
        self.assertEqual((accounting.lost, accounting.doubled), (2, 1))

    def test_a_learner_that_joins_late_misses_nothing(self):
        accounting = unroll_accounting.UnrollAccounting()
        _add(accounting, [(1, 10**12), (2, 7), (1, 10**12 + 1), (2, 6)])
        _settle(accounting)
        self.assertEqual((accounting.lost, accounting.doubled), (0, 0))

    @mock.patch.object(unroll_accounting, "MOST_MISSING", 10)
    def test_memory_for_missing_numbers_is_bounded(self):
        accounting = unroll_accounting.UnrollAccounting()
        for number in range(0, 10**4, 100):
            _add(accounting, [(1, number)])
        self.assertLen(accounting._streams[1].missing, 10)
        _settle(accounting)
        self.assertEqual(accounting.lost, 99 * 99)
        self.assertEmpty(accounting._gaps)
        _add(accounting, [(1, 2 * 10**15)])  # at once, whatever the gap
        self.assertLen(accounting._streams[1].missing, 10)

    @mock.patch.object(unroll_accounting, "MOST_ACTORS", 3)
    def test_memory_for_actors_is_bounded(self):
        accounting = unroll_accounting.UnrollAccounting()
        for actor in range(100):
            _add(accounting, [(actor, 5), (actor, 7), (0, actor)])
        self.assertLen(accounting._streams, 3)
        _settle(accounting)
        self.assertEqual(accounting.lost, 99)  # of each actor but 0 one, whose numbers all came


if __name__ == "__main__":
    absltest.main()
