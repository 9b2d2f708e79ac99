"""The learner's store of sequences: what is drawn, how often, what leaves, what is saved."""

import os
import pathlib
import tempfile
from unittest import mock

import numpy as np
import tree
from absl.testing import absltest, parameterized

from laser_tf.replay import contextual_replay, dataset, memory, sequence_store, stored_unroll
from testing import folders, messages, numbered_sequences, processes

S, U = numbered_sequences.S, numbered_sequences.U  # unrolls of a sequence, steps of an unroll
SIGNATURE = numbered_sequences.SIGNATURE


def _contents(store: sequence_store.SequenceStore) -> list[tuple[int, int]]:
    """Environment and newest number of all that is held, oldest first."""
    return [(s.stream, max(s.numbers)) for s in store.contents().sequences]


def _key_array(store: sequence_store.SequenceStore) -> np.ndarray:
    """Keys of all that is held, uint64 [n], oldest first."""
    return np.array([one.key for one in store.contents().sequences], np.uint64)


def _keys(store: sequence_store.SequenceStore) -> dict[tuple[int, int], int]:
    return dict(zip(_contents(store), _key_array(store).tolist(), strict=True))


def _newest(drawn: stored_unroll.ReplaySample) -> list[tuple[int, int]]:
    """Environment and newest number of what was drawn."""
    tags = drawn.unrolls.stream[:, -1], drawn.unrolls.number[:, -1]
    return list(zip(*(tag.tolist() for tag in tags), strict=True))


def _filled(config=None, sequences: int = 50, environments: int = 2):
    store = sequence_store.SequenceStore(config or numbered_sequences.config(), SIGNATURE)
    store.seed([1])
    for number in range(sequences // environments):
        for environment in range(environments):
            store.add(numbered_sequences.make(environment, number + S))
    return store


class SequenceStoreTest(parameterized.TestCase):
    def test_samples_equal_added_sequences(self):
        store = _filled()
        drawn = store.sample(200)
        for row, (environment, number) in enumerate(_newest(drawn)):
            tree.map_structure(
                np.testing.assert_array_equal,
                tree.map_structure(lambda column, row=row: column[row], drawn.unrolls),
                numbered_sequences.make(environment, number),
            )
        self.assertGreater(len(set(_newest(drawn))), 40)
        np.testing.assert_allclose(drawn.probability, 1 / 50)
        np.testing.assert_array_equal(drawn.table_size, 50)

    def test_blank_unrolls_at_both_ends_are_kept(self):
        store = sequence_store.SequenceStore(numbered_sequences.config(), SIGNATURE)
        added = numbered_sequences.make(7, 0, blanks=(1, 1))
        self.assertTrue(store.add(added))
        self.assertFalse(store.add(added))
        drawn = tree.map_structure(lambda column: column[0], store.sample(1).unrolls)
        tree.map_structure(np.testing.assert_array_equal, drawn, added)

    def test_priority_is_set_for_the_sampled_sequence(self):
        store = _filled(numbered_sequences.config(priority_exponent=0.5))
        drawn = store.sample(400)  # all 50, each several times
        wanted = {name: 1.0 + place for place, name in enumerate(sorted(set(_newest(drawn))))}
        store.update(drawn.key, np.array([wanted[name] for name in _newest(drawn)]))
        total = sum(value**0.5 for value in wanted.values())
        again = store.sample(100)
        for name, probability in zip(_newest(again), again.probability, strict=True):
            self.assertAlmostEqual(probability, wanted[name] ** 0.5 / total)

    def test_unknown_priority_is_estimated_in_its_stream(self):
        # Sequences of two environments alternate, so that neighbours differ in arrival order.
        store = _filled(sequences=60)
        keys = _keys(store)
        for name, key in keys.items():
            if (
                name[1] % 3 == 0
            ):  # each third sequence is known: 9 of environment 0, 1 of environment 1
                store.update(np.array([key], np.uint64), np.array([9.0 - 8 * name[0]]))
        drawn = store.sample(2_000)
        for (environment, number), probability in zip(
            _newest(drawn), drawn.probability, strict=True
        ):
            self.assertAlmostEqual(
                probability, (9 - 8 * environment) / (30 * 9 + 30), msg=f"{number}"
            )
        self.assertAlmostEqual(store.metrics()["replay/unknown_priorities"], 40 / 60)

    def test_new_stream_starts_its_own_block(self):
        store = _filled(sequences=10, environments=1)
        store.add(numbered_sequences.make(environment=5, newest=3))
        keys = _keys(store)
        self.assertEqual(keys[5, 3] % sequence_store.BLOCK, 0)
        self.assertNotEqual(keys[5, 3] // sequence_store.BLOCK, keys[0, 3] // sequence_store.BLOCK)

    def test_oldest_of_all_streams_leave_first(self):
        store = sequence_store.SequenceStore(numbered_sequences.config(capacity=20 * U), SIGNATURE)
        added = []
        for number in range(200):
            # Environment 1 is five times as slow, and environment 2 stops.
            for environment in (
                0,
                *((1,) if number % 5 == 0 else ()),
                *((2,) if number < 3 else ()),
            ):
                added.append((environment, number + S))
                store.add(numbered_sequences.make(*added[-1]))
                self.assertEqual(_contents(store), added[-20:])
        self.assertContainsSubset(_newest(store.sample(300)), added[-20:])

    def test_removed_sequence_gets_no_priority(self):
        store = _filled(numbered_sequences.config(capacity=20 * U), sequences=20)
        drawn = store.sample(50)
        for number in range(100, 120):
            store.add(numbered_sequences.make(0, number))
        store.update(drawn.key, np.full(50, 100.0))
        self.assertEqual(store.metrics()["replay/unknown_priorities"], 1.0)
        np.testing.assert_allclose(store.sample(10).probability, 1 / 20)

    def test_slow_stream_does_not_block_others(self):
        leaves = 4 * sequence_store.BLOCK
        self.enter_context(mock.patch.object(sequence_store, "SPARE_LEAVES", leaves))
        store = sequence_store.SequenceStore(numbered_sequences.config(capacity=20 * U), SIGNATURE)
        for number in range(1_000):
            store.add(numbered_sequences.make(0, number + S))
            if number % 15 == 0:  # one of its sequences is always there, so its block never empties
                store.add(numbered_sequences.make(1, number + S))
        held = _contents(store)
        self.assertBetween(len(held), 18, 20)
        self.assertEqual(held[-1], (0, 999 + S))
        self.assertContainsSubset(_newest(store.sample(200)), held)

    def test_adjacent_sequences_share_unrolls(self):
        store = sequence_store.SequenceStore(numbered_sequences.config(), SIGNATURE)
        store.add(numbered_sequences.make(0, 1, blanks=(1, 0)))
        store.add(numbered_sequences.make(0, 2))
        store.add(numbered_sequences.make(1, 2))  # the same numbers of another environment
        store.add(numbered_sequences.make(0, 3))
        parts = {(s.stream, max(s.numbers)): s.unrolls for s in store.contents().sequences}
        self.assertIs(parts[0, 2][0], parts[0, 1][1])
        self.assertIs(parts[0, 2][1], parts[0, 1][2])
        self.assertIs(parts[0, 3][1], parts[0, 2][2])
        self.assertNotIn(parts[0, 2][0], parts[1, 2])

    def test_repeated_sequence_is_stored_once(self):
        store = sequence_store.SequenceStore(numbered_sequences.config(), SIGNATURE)
        for number, is_new in ((5, True), (7, True), (7, False), (5, False), (8, True)):
            self.assertEqual(store.add(numbered_sequences.make(3, number)), is_new)
        self.assertTrue(store.add(numbered_sequences.make(4, 5)))  # of another environment
        for number in range(9, 200):
            store.add(numbered_sequences.make(3, number))
        self.assertFalse(store.add(numbered_sequences.make(3, 7)))  # that has left since

    def test_invalid_priorities_are_ignored(self):
        store = _filled(sequences=10)
        keys = _key_array(store)
        values = np.array([1, np.nan, np.inf, -1, 2, 0, 1, 1, 1, 1], np.float32)
        store.update(keys, values)
        known = store.contents().priorities
        np.testing.assert_array_equal(np.isnan(known), ~np.isfinite(values) | (values < 0))
        np.testing.assert_array_equal(known[~np.isnan(known)], [1, 2, 0, 1, 1, 1, 1])

    def test_without_memory_left_the_oldest_are_removed(self):
        free = mock.Mock(side_effect=[True, False, False, *[True] * 10])
        config = numbered_sequences.config(capacity=10_000 * U)
        held = int(0.95 * 511)  # 511 were there at the first look, 485 at the second
        with (
            mock.patch.object(memory, "has_room", free),
            messages.warns(f"{held * U:,}", "40,000", "replay.capacity"),
        ):
            store = _filled(config, sequences=2_000, environments=1)
        self.assertLen(store, int(0.95 * held))

    def test_batch_weights_follow_probabilities(self):
        config = numbered_sequences.config(importance_exponent=0.6, batch_size=8)
        store = _filled(config)
        drawn = store.sample(50)
        store.update(drawn.key, np.random.default_rng(2).exponential(size=50))
        drawn = store.sample(8)
        batch = dataset.replayed_batch(drawn, config)
        weights = (1 / (50 * drawn.probability)) ** 0.6
        np.testing.assert_allclose(batch.importance_weight, weights / weights.max(), rtol=1e-5)
        np.testing.assert_array_equal(batch.key, drawn.key)
        self.assertFalse(batch.is_online.any())
        self.assertEqual(batch.unrolls.env_output.reward.shape, (8, S * U + 1))

    @parameterized.parameters(
        ({"priority_exponent": 0.0}, "priority_exponent", 0.0),
        ({"capacity": 10**11}, "capacity", 10**11, 40_000_000),
        ({"uniform_share": 1.5}, "uniform_share", 1.5),
        ({"uniform_share": -0.1}, "uniform_share", -0.1),
    )
    def test_bad_value_is_rejected(self, overrides, *named):
        with messages.raises(ValueError, *named):
            numbered_sequences.config(**overrides)

    def test_container_limit_excludes_cached_files(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for file, content in (("max", "1000"), ("current", "990"), ("stat", "anon 9\nfile 5")):
                (folder / f"memory.{file}").write_text(content)
            with mock.patch.object(memory, "CGROUP", folder):
                self.assertFalse(memory.has_room())
                (folder / "memory.stat").write_text("anon 9\nfile 900\nshmem 5")
                self.assertTrue(memory.has_room())
                (folder / "memory.stat").write_text("anon 9\nfile 900\nshmem 895")
                self.assertFalse(memory.has_room())


class CheckpointTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._path = self._folder / "run/checkpoints/sequences.zip"

    def _restored(self, config=None) -> sequence_store.SequenceStore:
        config = config or numbered_sequences.config()
        return contextual_replay.restore_store(
            self._path, lambda: sequence_store.SequenceStore(config, SIGNATURE)
        )

    def _assert_same(
        self, one: sequence_store.SequenceStore, other: sequence_store.SequenceStore
    ) -> None:
        one, other = one.contents(), other.contents()
        self.assertEqual(one.layout, other.layout)
        np.testing.assert_array_equal(one.priorities, other.priorities)
        self.assertEqual(one.sequences, other.sequences)

    def _names(self) -> list[str]:
        return sorted(path.name for path in self._path.parent.iterdir())

    def test_restored_store_continues_identically(self):
        config = numbered_sequences.config(capacity=60 * U, uniform_share=0.1)
        store = _filled(config, sequences=150, environments=3)
        store.update(_key_array(store)[::3], np.random.default_rng(3).exponential(size=20))
        contextual_replay.save_store(self._path, store.contents())
        again = self._restored(config)
        self._assert_same(store, again)
        for one in (store, again):
            one._tree._random = np.random.default_rng(5)
        tree.map_structure(np.testing.assert_array_equal, store.sample(300), again.sample(300))
        self.assertFalse(again.add(numbered_sequences.make(2, 49 + S)))  # which is there already
        for number in range(50, 90):  # Both receive equal next sequences.
            for environment in range(3):
                for one in (store, again):
                    one.add(numbered_sequences.make(environment, number + S))
        np.testing.assert_array_equal(_key_array(store), _key_array(again))
        tree.map_structure(np.testing.assert_array_equal, store.sample(300), again.sample(300))

    def test_shared_unrolls_are_saved_once(self):
        store = _filled(sequences=100, environments=1)
        contextual_replay.save_store(self._path, store.contents())
        unique = {id(u): len(u) for s in store.contents().sequences for u in s.unrolls}
        self.assertLen(unique, 100 + S - 1)
        self.assertLess(self._path.stat().st_size, sum(unique.values()) + 100 * 100)
        parts = [s.unrolls for s in self._restored().contents().sequences]
        self.assertLen({id(unroll) for unrolls in parts for unroll in unrolls}, 100 + S - 1)

    def test_empty_store_is_saved_and_restored(self):
        contextual_replay.save_store(self._path, _filled(sequences=0).contents())
        self.assertEmpty(self._restored())

    @parameterized.parameters(*np.linspace(0, 1, 4))
    def test_changed_bit_restores_a_valid_checkpoint(self, where):
        contextual_replay.save_store(self._path, _filled(sequences=10).contents())
        store = _filled(sequences=20)
        contextual_replay.save_store(self._path, store.contents())
        content = bytearray(self._path.read_bytes())
        content[int(where * (len(content) - 1))] ^= 1
        self._path.write_bytes(content)
        again = self._restored()  # a bit of an archive's own fields, e.g. of a date, is no damage
        is_whole = len(again) == 20
        other = store if is_whole else _filled(sequences=10)
        self._assert_same(again, other)
        self.assertEqual(is_whole, not (self._path.parent / "sequences_damaged.zip").exists())

    @parameterized.named_parameters(
        ("empty", lambda path: path.write_bytes(b"")),
        ("cut", lambda path: os.truncate(path, path.stat().st_size // 2)),
        ("without_its_end", lambda path: os.truncate(path, path.stat().st_size - 1)),
        ("zeros", lambda path: path.write_bytes(bytes(path.stat().st_size))),
        ("missing", lambda path: path.unlink()),
        ("in_the_data", lambda path: _flip(path, 500)),
        # The compression method and the flags of the first entry in the archive's directory.
        ("unknown_compression", lambda path: _flip(path, _directory(path) + 10)),
        ("encrypted", lambda path: _flip(path, _directory(path) + 8)),
    )
    def test_damaged_checkpoint_restores_the_previous(self, damage):
        contextual_replay.save_store(self._path, _filled(sequences=10).contents())
        contextual_replay.save_store(self._path, _filled(sequences=20).contents())
        damage(self._path)
        with messages.warns():
            store = self._restored()
        self.assertLen(store, 10)
        for path in self._path.parent.iterdir():
            if path != self._path:
                path.unlink()
        damage(self._path)
        self.assertEmpty(self._restored())

    def test_checkpoint_of_other_unrolls_starts_empty(self):
        contextual_replay.save_store(self._path, _filled().contents()._replace(layout="others"))
        with self.assertLogs(level="WARNING"):
            self.assertEmpty(self._restored())

    def test_full_disk_keeps_the_previous_checkpoint(self):
        contextual_replay.save_store(self._path, _filled(sequences=10).contents())
        before = self._path.read_bytes()
        with (
            processes.full_disk(len(before) + 1_000),
            messages.raises(RuntimeError, "sequences.zip", "File too large"),
        ):
            contextual_replay.save_store(self._path, _filled(sequences=100).contents())
        self.assertEqual(self._names(), ["sequences.zip"])
        self.assertEqual(self._path.read_bytes(), before)


def _flip(path: pathlib.Path, where: int) -> None:
    content = bytearray(path.read_bytes())
    content[where] ^= 1
    path.write_bytes(content)


def _directory(path: pathlib.Path) -> int:
    """Offset of an archive's central directory."""
    return path.read_bytes().index(b"PK\x01\x02")


if __name__ == "__main__":
    absltest.main()
