"""The evaluation that ends a run: made once, whatever the user has evaluated meanwhile."""

import json
import pathlib
import tempfile
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.evaluation import after_training, evaluator
from testing import fakes


class AfterTrainingTest(parameterized.TestCase):
    @parameterized.parameters(
        ({"env_frames": 1_000}, 0),
        ({"env_frames": 1_000, "protocol": {"action_selection": "sampled"}}, 0),
        ({"env_frames": 900}, 1),
        ({"env_frames": 1_000, "protocol": {"action_selection": "greedy"}}, 1),
        ({"env_frames": 1_000, "protocol": {"changed_environment": {"rows": 9}}}, 1),
        ({"no": "evaluation of ours"}, 1),
        (None, 1),
    )
    def test_what_the_run_lacks_is_played(self, there, times):
        config = fakes.catch_config(run={"env_frames": 1_000, "evaluation_episodes": 3})
        made = {"episodes": 3, "mean_return": 0.5}
        with tempfile.TemporaryDirectory() as folder:
            if there is not None:
                (pathlib.Path(folder) / "evaluation.json").write_text(json.dumps(there))
            with mock.patch.object(evaluator, "evaluate", return_value=made) as evaluate:
                after_training.evaluate(pathlib.Path(folder), config)
        self.assertEqual(evaluate.call_count, times)


if __name__ == "__main__":
    absltest.main()
