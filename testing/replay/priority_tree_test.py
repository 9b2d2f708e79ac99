import collections

import numpy as np
from absl.testing import absltest, parameterized
from scipy import stats

from laser_tf.replay import priority_tree

SPANS = (1, 2, 3, 5, 8, 13, 32, 61)


class _Model:
    """Section 3.3 by brute force: cells and estimates made anew for each question, no tree kept."""

    def __init__(self, span, uniform_share=0.0):
        self._span = span
        self._uniform_share = uniform_share
        self._leaves = 1
        while self._leaves < 2 * span:
            self._leaves *= 2
        self.oldest = 0
        self.priorities = {}  # of all keys; None: unknown

    def insert(self, keys):
        for key in keys:
            assert self.oldest <= key < self.oldest + self._span and key not in self.priorities
            self.priorities[key] = None

    def remove_before(self, oldest):
        self.oldest = max(oldest, self.oldest)
        self.priorities = {k: p for k, p in self.priorities.items() if k >= self.oldest}

    def remove(self, keys):
        for key in keys:
            self.priorities.pop(key, None)

    def update(self, keys, priorities):
        for key, priority in zip(keys, priorities, strict=True):
            if key in self.priorities:
                self.priorities[key] = priority

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
            first = key % self._leaves // size * size
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
        return [key for key in self.priorities if first <= key % self._leaves < first + size]


def _change_at_random(rng, span, next_key, *targets):
    """One insertion, removal or update, alike of all targets; returns the next new key."""
    oldest = targets[0].oldest
    kind = rng.integers(5)
    if kind == 0:
        keys = next_key + np.flatnonzero(rng.uniform(size=rng.integers(1, 9)) < 0.8)
        keys = [int(key) for key in keys if key < oldest + span]
        for target in targets:
            target.insert(keys)
        return max([next_key, *(key + 1 for key in keys)])
    if kind == 1:
        bound = int(oldest + rng.integers(-1, max(2, span // 3)))
        for target in targets:
            target.remove_before(bound)
        return max(next_key, bound)
    keys = rng.integers(oldest - 2, next_key + 2, size=rng.integers(1, 5)).tolist()
    if kind == 2:
        for target in targets:
            target.remove(keys)
        return next_key
    priorities = (rng.exponential(size=len(keys)) * (rng.uniform(size=len(keys)) < 0.9)).tolist()
    for target in targets:
        target.update(keys, priorities)
    return next_key


def _random_history(seed, span, changes, uniform_share=0.0):
    """A tree and the model of it, with a key at least."""
    rng = np.random.default_rng(seed)
    model = _Model(span, uniform_share)
    tree = priority_tree.PriorityTree(span, uniform_share, seed)
    next_key = 0
    for _ in range(changes):
        next_key = _change_at_random(rng, span, next_key, model, tree)
    if not model.priorities:
        for target in (model, tree):
            target.insert([model.oldest])
    return model, tree


class PriorityTreeTest(parameterized.TestCase):
    @parameterized.product(span=SPANS, uniform_share=(0.0, 0.3), seed=(0, 1, 2))
    def test_probabilities_equal_brute_force_after_each_change(self, span, uniform_share, seed):
        rng = np.random.default_rng(seed)
        model = _Model(span, uniform_share)
        tree = priority_tree.PriorityTree(span, uniform_share)
        next_key = 0
        for _ in range(60):
            next_key = _change_at_random(rng, span, next_key, model, tree)
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

    @parameterized.product(span=(3, 13, 32, 61), uniform_share=(0.0, 0.3), seed=(3, 4, 5))
    def test_draws_are_as_frequent_as_brute_force_says(self, span, uniform_share, seed):
        draws = 4_000
        model, tree = _random_history(seed, span, 80, uniform_share)
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

    def test_the_papers_example(self):
        # Figure 6: 4, 5 and 10 are known. 1, 2 and 3 get a third of 4 and two thirds of 5, whose
        # cell holds 6, too; 8, 9 and 11 are in a block with 10.
        places = {1: 0, 2: 1, 3: 2, 4: 4, 5: 6, 6: 7, 8: 16, 9: 17, 10: 18, 11: 19}
        tree = priority_tree.PriorityTree(span=20)
        tree.insert(places.values())
        tree.update([places[4], places[5], places[10]], [6.0, 3.0, 5.0])
        expected = {
            1: 4.0,
            2: 4.0,
            3: 4.0,
            4: 6.0,
            5: 3.0,
            6: 3.0,
            8: 5.0,
            9: 5.0,
            10: 5.0,
            11: 5.0,
        }
        actual = tree.probabilities(places[key] for key in expected)
        np.testing.assert_allclose(actual, np.array([*expected.values()]) / 44.0, rtol=1e-12)

    @parameterized.parameters(1, 2, 7, 50)
    def test_is_proportional_once_all_is_known(self, keys):
        tree = priority_tree.PriorityTree(span=50)
        tree.insert(range(keys))
        priorities = np.random.default_rng(0).exponential(size=keys)
        tree.update(np.random.default_rng(1).permutation(keys), priorities)
        by_key = np.zeros(keys)
        by_key[np.random.default_rng(1).permutation(keys)] = priorities
        np.testing.assert_allclose(tree.probabilities(range(keys)), by_key / by_key.sum())

    def test_is_uniform_while_nothing_is_known_and_while_all_is_zero(self):
        tree = priority_tree.PriorityTree(span=10)
        tree.insert([0, 1, 5, 8])
        np.testing.assert_array_equal(tree.probabilities(range(10))[[0, 1, 5, 8]], 0.25)
        tree.update([1, 8], [0.0, 0.0])
        np.testing.assert_array_equal(tree.probabilities(range(10))[[0, 1, 5, 8]], 0.25)
        self.assertEqual(set(tree.sample(100)[0].tolist()), {0, 1, 5, 8})

    def test_a_key_of_priority_zero_is_drawn_uniformly_at_most(self):
        for share in (0.0, 0.5):
            tree = priority_tree.PriorityTree(span=4, uniform_share=share, seed=0)
            tree.insert(range(4))
            tree.update(range(4), [0.0, 1.0, 1.0, 2.0])
            np.testing.assert_allclose(tree.probabilities([0]), [share / 4])
            self.assertEqual(0 in tree.sample(500)[0], share > 0)

    @parameterized.parameters(*range(0, 130, 3))
    def test_the_newest_are_not_estimated_by_the_oldest(self, shift):
        # The oldest half has priority 1, the next quarter 9, the newest quarter none.
        tree = priority_tree.PriorityTree(span=32)
        tree.remove_before(shift)
        tree.insert(range(shift, shift + 32))
        tree.update(range(shift, shift + 24), [1.0] * 16 + [9.0] * 8)
        estimates = tree.probabilities(range(shift, shift + 32))
        relative = estimates[24:] / estimates[0]
        self.assertTrue(((relative > 2.9) & (relative < 9.1)).all(), relative)

    def test_keys_that_are_gone_are_passed_over(self):
        tree = priority_tree.PriorityTree(span=4)
        tree.insert(range(4))
        tree.remove_before(2)
        tree.insert([4, 5])
        tree.update([0, 1, 2, 3, 8, 10], [100.0, 100.0, 1.0, 3.0, 100.0, 100.0])
        np.testing.assert_array_equal(tree.probabilities(range(2, 6)), [0.125, 0.375, 0.25, 0.25])
        np.testing.assert_array_equal(tree.probabilities([-2, 0, 1, 6, 7, 8, 10]), 0.0)
        self.assertNotIn(1, tree)
        self.assertIn(5, tree)

    def test_the_last_priority_of_a_key_counts(self):
        tree = priority_tree.PriorityTree(span=2)
        tree.insert([0, 1])
        tree.update([0, 1, 0], [9.0, 1.0, 3.0])
        np.testing.assert_array_equal(tree.probabilities([0, 1]), [0.75, 0.25])

    def test_new_keys_have_no_priority_in_an_old_ones_place(self):
        tree = priority_tree.PriorityTree(span=2)
        for key in range(0, 100, 2):
            tree.remove_before(key)
            tree.insert([key, key + 1])
            np.testing.assert_array_equal(tree.probabilities([key, key + 1]), [0.5, 0.5])
            tree.update([key, key + 1], [1.0, 3.0])

    def test_the_bound_never_moves_back_and_may_skip_all(self):
        tree = priority_tree.PriorityTree(span=4)
        tree.insert([0, 3])
        tree.remove_before(10**12)
        self.assertEmpty(tree)
        tree.remove_before(5)
        with self.assertRaisesRegex(ValueError, "key 5 is not within the 4 from 1000000000000 on"):
            tree.insert([5])
        tree.insert([10**12 + 3])
        self.assertEqual(tree.sample(1)[0].tolist(), [10**12 + 3])

    @parameterized.parameters(
        ([4], "key 4 is not within the 3 from 1 on"),
        ([3, 0], "key 0 is not within the 3 from 1 on"),
        ([3, 1], "key 1 is in the tree already"),
        ([3, 3], "key 3 is named twice"),
    )
    def test_refuses_keys_that_have_no_place(self, keys, message):
        tree = priority_tree.PriorityTree(span=3)
        tree.remove_before(1)
        tree.insert([1])
        with self.assertRaisesRegex(ValueError, message):
            tree.insert(keys)
        self.assertLen(tree, 1)
        np.testing.assert_array_equal(tree.probabilities([1, 3]), [1.0, 0.0])

    @parameterized.parameters(np.nan, np.inf, -1.0, -1e-9)
    def test_refuses_what_is_no_priority(self, priority):
        tree = priority_tree.PriorityTree(span=3)
        tree.insert([0, 1])
        with self.assertRaisesRegex(ValueError, f"the priority of key 1 is {priority}"):
            tree.update([0, 1], [5.0, priority])
        np.testing.assert_array_equal(tree.probabilities([0, 1]), [0.5, 0.5])

    def test_refuses_to_draw_from_nothing(self):
        with self.assertRaisesRegex(ValueError, "the tree is empty"):
            priority_tree.PriorityTree(span=3).sample(1)

    @parameterized.parameters((0, 0.0, "span is 0"), (3, -0.1, "is -0.1"), (3, 1.1, "is 1.1"))
    def test_refuses_sizes_and_shares_out_of_range(self, span, uniform_share, message):
        with self.assertRaisesRegex(ValueError, message):
            priority_tree.PriorityTree(span, uniform_share)

    def test_seeds_repeat_draws(self):
        draws = []
        for seed in (1, 1, 2):
            tree = priority_tree.PriorityTree(span=1000, seed=seed)
            tree.insert(range(1000))
            draws.append(tree.sample(20)[0].tolist())
        self.assertEqual(draws[0], draws[1])
        self.assertNotEqual(draws[0], draws[2])

    def test_reads_and_writes_few_nodes(self):
        # Of a tree with 2^20 keys at most a few hundred, whatever is asked.
        tree = priority_tree.PriorityTree(span=1 << 20, uniform_share=0.1)
        tree.insert(range(1 << 20))
        tree.update(range(0, 1 << 20, 1 << 10), [1.0] * (1 << 10))
        counts, masses = _Counted(tree._counts), _Counted(tree._masses)
        tree._counts, tree._masses = counts, masses
        for change in (
            lambda: tree.sample(1),
            lambda: tree.probabilities([12_345]),
            lambda: tree.update([54_321], [2.0]),
            lambda: tree.remove_before(1),
            lambda: tree.insert([1 << 20]),
        ):
            counts.touched = masses.touched = 0
            change()
            self.assertLess(counts.touched + masses.touched, 300)


class _Counted:
    """An array that counts how often it is read or written."""

    def __init__(self, values):
        self._values, self.touched = values, 0

    def __getitem__(self, index):
        self.touched += 1
        return self._values[index]

    def __setitem__(self, index, value):
        self.touched += 1
        self._values[index] = value


if __name__ == "__main__":
    absltest.main()
