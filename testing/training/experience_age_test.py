"""Which entries of a batch have an age, and what it is."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from laser_tf.replay import stored_unroll
from laser_tf.training import experience_age
from testing import fakes


class ExperienceAgeTest(absltest.TestCase):
    def _batch(self, *entries: tuple[int, int, bool, bool]) -> stored_unroll.Batch:
        """Entries of (member, learner_update, is_online, is_blank)."""
        members, updates, online, blank = map(np.array, zip(*entries, strict=True))
        spec = fakes.image_spec((2, 2, 1), 3)
        signature = fakes.signature(spec, (), unroll_length=4, frame_stack=2)
        one = stored_unroll.blank(signature)
        unrolls = tf.nest.map_structure(lambda array: np.stack([array] * len(entries)), one)
        unrolls.env_output.is_first[~blank, 1:] = False  # an episode's start at most
        unrolls = unrolls._replace(member=members, learner_update=updates)
        return stored_unroll.unweighted(unrolls, online)

    def test_online_and_replayed_entries_apart(self):
        batch = self._batch((1, 99, True, False), (1, 60, False, False), (1, 70, False, False))
        self.assertEqual(
            experience_age.metrics(batch, 100, member=1),
            {"replay/policy_lag_updates": 1.0, "replay/age_updates": 35.0},
        )

    def test_other_members_entries_and_blank_ones_have_none(self):
        batch = self._batch(
            (1, 90, False, False), (0, 5_000, False, False), (2, 1, False, False),
            (1, 0, False, True), (0, 0, False, True),
        )  # fmt: skip
        self.assertEqual(experience_age.metrics(batch, 100, member=1), {"replay/age_updates": 10.0})
        self.assertEqual(experience_age.metrics(batch, 100, member=3), {})


if __name__ == "__main__":
    absltest.main()
