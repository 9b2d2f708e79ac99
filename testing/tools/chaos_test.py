"""The order of faults, and their results; `tools.chaos` itself takes minutes and is run by hand."""

import itertools
import math
import os
from unittest import mock

from absl.testing import absltest

from laser_tf.monitoring import tensorboard
from testing import folders
from tools.chaos import faults, results


class ChaosTest(folders.FolderTest):
    def test_faults_repeat_after_all_kinds(self):
        kinds = list(itertools.islice(faults.shuffle(seed=3), 2 * len(faults.KINDS)))
        for half in (kinds[: len(faults.KINDS)], kinds[len(faults.KINDS) :]):
            self.assertCountEqual(half, faults.KINDS)
        self.assertEqual(kinds, list(itertools.islice(faults.shuffle(seed=3), len(kinds))))

    def test_counts_are_attributed_to_the_newest_fault(self):
        outcomes = [results.Outcome("a", 10.0, 2.0), results.Outcome("b", 20.0)]
        outcomes.append(results.Outcome("a", 30.0, 6.0))
        counts = [("lost_unrolls", *count) for count in ((5, 9), (12, 1), (29, 2), (31, 4))]
        results.attribute(outcomes, counts)
        a, b = results.summarise(outcomes).to_dict("records")
        self.assertEqual((a["lost_unrolls"], b["lost_unrolls"]), (5, 2))
        self.assertEqual(a["recovered_median_seconds"], 4.0)
        self.assertEqual((a["recovered_max_seconds"], b["recovered_max_seconds"]), ("6.0", "never"))

    def test_curves_count_over_processes_and_dropped_rows(self):
        self.assertEqual(results.read_curves(self._folder).env_frames, 0)
        for process, rows in ((1, ((100, 0), (300, 2), (400, 5))), (2, ((200, 1), (500, 1)))):
            with mock.patch.object(os, "getpid", return_value=process):
                writer = tensorboard.MetricsWriter(self._folder)
                for env_frames, lost in rows:
                    writer.write(env_frames, {"replay/lost_unrolls": lost, "loss/total": math.inf})
        curves = results.read_curves(self._folder)
        self.assertEqual([count for _, _, count in curves.steps], [0, 2, 3, 1, 0])
        self.assertEqual(curves.totals, {"lost_unrolls": 6, "duplicated_unrolls": 0})
        self.assertEqual((curves.env_frames, curves.dropped_updates), (600, 0))
        self.assertEqual(curves.not_finite, {"loss/total"})


if __name__ == "__main__":
    absltest.main()
