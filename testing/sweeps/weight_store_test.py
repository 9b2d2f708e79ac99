"""Weights on disk: as they were, or refused."""

import io
import pathlib
import tempfile

import numpy as np
from absl.testing import absltest

from laser_tf.sweeps import weight_store
from testing import messages


class WeightStoreTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self._path = folder / "population/member_00.npz"
        weights = {
            "member/_policy_head/bias": np.float32([0, 1, 2]),
            "optimizer/steps": np.int64(7),
        }
        weight_store.write(self._path, weights)
        self._weights = weights

    def test_comes_back_as_it_was(self):
        found = weight_store.read(self._path)
        self.assertEqual(list(found), list(self._weights))
        for name, values in self._weights.items():
            np.testing.assert_array_equal(found[name], values)
            self.assertEqual(found[name].dtype, values.dtype)

    def test_what_is_damaged_or_pickled_is_refused(self):
        good = self._path.read_bytes()
        flipped = bytearray(good)
        flipped[good.index(np.float32(2).tobytes())] ^= 1
        pickled, lone = io.BytesIO(), io.BytesIO()
        np.savez(pickled, a=np.array([{}], dtype=object))
        np.save(lone, np.zeros(3))
        for content in (
            b"", b"weights", good[:-1], good[: len(good) // 2], bytes(flipped),
            pickled.getvalue(), lone.getvalue(),
        ):  # fmt: skip
            self._path.write_bytes(content)
            with messages.raises(weight_store.UnreadableError, self._path):
                weight_store.read(self._path)

    def test_what_is_gone_is_said(self):
        self._path.unlink()
        with messages.raises(weight_store.UnreadableError, self._path, "No such file"):
            weight_store.read(self._path)


if __name__ == "__main__":
    absltest.main()
