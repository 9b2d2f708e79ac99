"""Which rows of a batch have an age, and what it is."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from laser_tf import types
from laser_tf.replay import stored_unroll
from laser_tf.runtime import experience_age


class ExperienceAgeTest(absltest.TestCase):
    def _batch(self, *rows: tuple[int, int, bool, bool]) -> stored_unroll.Batch:
        """Rows of (agent, learner_update, is_online, is_blank)."""
        agents, updates, online, blank = map(np.array, zip(*rows, strict=True))
        spec = types.EnvironmentSpec(frame_shape=(2, 2, 1), num_actions=3)
        signature = stored_unroll.signature(spec, (), unroll_length=4, frame_stack=2)
        one = stored_unroll.blank(signature)
        unrolls = tf.nest.map_structure(lambda array: np.stack([array] * len(rows)), one)
        unrolls.is_first[~blank, 1:] = False  # an episode's start at most
        unrolls = unrolls._replace(agent=agents, learner_update=updates)
        return stored_unroll.unweighted(unrolls, online)

    def test_online_and_replayed_rows_apart(self):
        batch = self._batch((1, 99, True, False), (1, 60, False, False), (1, 70, False, False))
        self.assertEqual(
            experience_age.metrics(batch, 100, agent_index=1),
            {"replay/policy_lag_updates": 1.0, "replay/age_updates": 35.0},
        )

    def test_other_agents_rows_and_blank_ones_have_none(self):
        batch = self._batch(
            (1, 90, False, False), (0, 5_000, False, False), (2, 1, False, False),
            (1, 0, False, True), (0, 0, False, True),
        )  # fmt: skip
        self.assertEqual(
            experience_age.metrics(batch, 100, agent_index=1), {"replay/age_updates": 10.0}
        )
        self.assertEqual(experience_age.metrics(batch, 100, agent_index=3), {})


if __name__ == "__main__":
    absltest.main()
