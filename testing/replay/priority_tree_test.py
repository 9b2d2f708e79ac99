import collections

import numpy as np
from absl.testing import absltest, parameterized
from scipy import stats

from laser_tf.replay import priority_tree

SIZES = (1, 2, 8, 128)


class _Model:
    """Section 3.3 by brute force: cells and estimates are computed for each question."""

    def __init__(self, num_leaves, uniform_share=0.0):
        self._leaves = num_leaves
        self._uniform_share = uniform_share
        self.priorities = {}  # of all keys; None: unknown

    def insert(self, keys):
        self.priorities |= dict.fromkeys(keys)

    def remove(self, keys):
        for key in keys:
            del self.priorities[key]

    def update(self, keys, priorities):
        self.priorities |= dict(zip(keys, priorities, strict=True))

    def probabilities(self):
        estimates = {key: self._estimate(key) for key in self.priorities}
        total, uniform = sum(estimates.values()), 1 / len(estimates)
        return {
            key: (1 - self._uniform_share) * (estimate / total if total > 0 else uniform)
            + self._uniform_share * uniform
            for key, estimate in estimates.items()
        }

    def _estimate(self, key):
        """sum_i w_i p(s_i) / sum_i w_i, of the cells in the smallest block around that has any."""
        if self.priorities[key] is not None:
            return self.priorities[key]
        size, cells = 1, {}
        while not cells and size < self._leaves:
            size *= 2
            first = key // size * size
            cells = self._cells(first, size)
        if not cells:
            return 1.0
        np.testing.assert_allclose(sum(cells.values()), len(self._within(first, size)))
        weighted = [length * self.priorities[known] for known, length in cells.items()]
        return sum(weighted) / sum(cells.values())

    def _cells(self, first, size):
        """Known key -> its cell's length, of the leaves first .. first + size - 1.

        A half without any known key is shared out among the cells of the other one.
        """
        keys = self._within(first, size)
        if size == 1:
            return {key: 1.0 for key in keys if self.priorities[key] is not None}
        cells = {}
        for half, other in ((first, first + size // 2), (first + size // 2, first)):
            own = self._cells(half, size // 2)
            if own and not self._cells(other, size // 2):
                longer = len(keys) / len(self._within(half, size // 2))
                own = {key: longer * length for key, length in own.items()}
            cells |= own
        return cells

    def _within(self, first, size):
        return [key for key in self.priorities if first <= key < first + size]


def _change_at_random(rng, num_leaves, *targets):
    """Makes one insertion, removal or update of random keys, the same for all targets."""
    held = list(targets[0].priorities)
    kind = rng.integers(3)
    if kind == 0:
        free = [key for key in range(num_leaves) if key not in held]
        keys = rng.permutation(free)[: rng.integers(1, 9)].tolist()
        for target in targets:
            target.insert(keys)
        return
    keys = rng.permutation(held)[: rng.integers(1, 5)].astype(int).tolist()
    if kind == 1:
        for target in targets:
            target.remove(keys)
        return
    priorities = (rng.exponential(size=len(keys)) * (rng.uniform(size=len(keys)) < 0.9)).tolist()
    for target in targets:
        target.update(keys, priorities)


class PriorityTreeTest(parameterized.TestCase):
    @parameterized.product(size=SIZES, uniform_share=(0.0, 0.3), seed=(0, 1))
    def test_probabilities_equal_brute_force_after_each_change(self, size, uniform_share, seed):
        rng = np.random.default_rng(seed)
        model = _Model(size, uniform_share)
        tree = priority_tree.PriorityTree(size, uniform_share)
        for _ in range(60):
            _change_at_random(rng, size, model, tree)
            self.assertLen(tree, len(model.priorities))
            known = [p for p in model.priorities.values() if p is not None]
            self.assertEqual(tree.known, len(known))
            given = tree.priorities(list(model.priorities))
            np.testing.assert_array_equal(given[~np.isnan(given)], known)
            if not model.priorities:
                continue
            expected = model.probabilities()
            actual = tree.probabilities(expected)
            np.testing.assert_allclose(actual, list(expected.values()), rtol=1e-10)
            np.testing.assert_allclose(actual.sum(), 1.0, rtol=1e-10)

    @parameterized.product(size=(4, 64), uniform_share=(0.0, 0.3), seed=(3, 4))
    def test_frequencies_equal_brute_force(self, size, uniform_share, seed):
        draws = 4_000
        rng = np.random.default_rng(seed)
        model = _Model(size, uniform_share)
        tree = priority_tree.PriorityTree(size, uniform_share, seed)
        for _ in range(80):
            _change_at_random(rng, size, model, tree)
        if not model.priorities:
            for target in (model, tree):
                target.insert([0])
        expected = model.probabilities()
        keys, probabilities = tree.sample(draws)
        self.assertEqual((keys.dtype, probabilities.dtype), (np.int64, np.float64))
        np.testing.assert_allclose(probabilities, [expected[key] for key in keys.tolist()])
        drawn = collections.Counter(keys.tolist())
        for key, probability in expected.items():
            if probability == 0:
                self.assertNotIn(key, drawn)
        # A chi-square test asks for some draws of each: the rare ones count as one.
        common = [key for key, probability in expected.items() if probability * draws >= 5]
        counts, hopes = [drawn[key] for key in common], [expected[key] * draws for key in common]
        if draws - sum(hopes) >= 5:
            counts, hopes = [*counts, draws - sum(counts)], [*hopes, draws - sum(hopes)]
        hopes = np.array(hopes) * sum(counts) / sum(hopes)
        if len(counts) > 1:
            self.assertGreater(stats.chisquare(counts, hopes).pvalue, 1e-3)

    def test_figure_6_of_the_paper_is_reproduced(self):
        # Figure 6: 4, 5 and 10 are known. 1, 2 and 3 get a third of 4 and two thirds of 5, whose
        # cell holds 6, too; 8, 9 and 11 are in a block with 10.
        places = {1: 0, 2: 1, 3: 2, 4: 4, 5: 6, 6: 7, 8: 16, 9: 17, 10: 18, 11: 19}
        tree = priority_tree.PriorityTree(64)
        tree.insert(places.values())
        tree.update([places[4], places[5], places[10]], [6.0, 3.0, 5.0])
        expected = {1: 4, 2: 4, 3: 4, 4: 6, 5: 3, 6: 3, 8: 5, 9: 5, 10: 5, 11: 5}
        actual = tree.probabilities(places[key] for key in expected)
        np.testing.assert_allclose(actual, np.array([*expected.values()]) / 44.0, rtol=1e-12)

    def test_unknown_or_zero_priorities_are_uniform(self):
        tree = priority_tree.PriorityTree(16)
        tree.insert([0, 1, 5, 8])
        np.testing.assert_array_equal(tree.probabilities(range(10))[[0, 1, 5, 8]], 0.25)
        tree.update([1, 8], [0.0, 0.0])
        np.testing.assert_array_equal(tree.probabilities(range(10))[[0, 1, 5, 8]], 0.25)
        self.assertEqual(set(tree.sample(100)[0].tolist()), {0, 1, 5, 8})

    def test_last_priority_of_a_repeated_key_counts(self):
        tree = priority_tree.PriorityTree(2)
        tree.insert([0, 1])
        tree.update([0, 1, 0], [9.0, 1.0, 3.0])
        np.testing.assert_array_equal(tree.probabilities([0, 1]), [0.75, 0.25])

    def test_seeds_repeat_draws(self):
        draws = []
        for seed in (1, 1, 2):
            tree = priority_tree.PriorityTree(1024, seed=seed)
            tree.insert(range(1000))
            draws.append(tree.sample(20)[0].tolist())
        self.assertEqual(draws[0], draws[1])
        self.assertNotEqual(draws[0], draws[2])


if __name__ == "__main__":
    absltest.main()
