"""Further variants of agents learn catch, see `training_test`."""

import pytest
from absl.testing import absltest, parameterized

from laser_tf.evaluation import run_evaluation
from laser_tf.training import run_config
from testing import fakes, folders, runs

pytestmark = pytest.mark.long

_RUN = {"env_frames": 30_000}
_CONTEXTUAL = {"scheme": "contextual", "uniform_share": 0.05}
_PRIORITISED = {"priority_exponent": 0.6, "importance_exponent": 0.5}
_ND = {"core": "none", "distributional": False}
_TRUST_TIS = {"importance": "truncated", "trust_region": True}


class VariantsTest(folders.FolderTest):
    @parameterized.named_parameters(
        ("prioritised_laser", fakes.catch_config(replay=_PRIORITISED, run={"env_frames": 60_000})),
        (
            "recurrent_laser",
            fakes.catch_config(
                agent={"core": "lstm", "core_size": 32},
                replay={"scheme": "episodes"},
                run={"env_frames": 60_000},
            ),
        ),
        (
            "feed_forward_r2d2",
            fakes.r2d2_catch_config(agent={"core": "none"}, replay={"burn_in": 0}, run=_RUN),
        ),
        ("contextual_r2d2", fakes.r2d2_catch_config(replay=_CONTEXTUAL, run=_RUN)),
        ("recurrent_reactor", fakes.reactor_catch_config(run=_RUN)),
        ("reactor_nd", fakes.reactor_catch_config(agent=_ND, run=_RUN)),
        ("trust_tis", fakes.acer_catch_config("a3c", agent=_TRUST_TIS, run=_RUN)),
    )
    def test_variant_learns_catch(self, config: run_config.RunConfig):
        runs.train(config, self._workdir)
        summary = run_evaluation.evaluate(self._workdir, episodes=50, seed=2, video=False)
        self.assertGreater(summary["mean_return"], 0.7)


if __name__ == "__main__":
    absltest.main()
