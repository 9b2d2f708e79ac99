"""Files of evaluations: all are kept, and the newest result has a fixed name."""

import json
from unittest import mock

from absl.testing import absltest, parameterized

from laser_tf.evaluation import evaluation_files
from laser_tf.workdir import atomic
from testing import folders

SAMPLED = {"action_selection": "sampled", "episodes_per_task": 3}


class EvaluationFilesTest(folders.FolderTest):
    def _contents(self) -> dict[str, dict]:
        return {
            str(path.relative_to(self._folder)): json.loads(path.read_text())
            for path in self._folder.rglob("*.json")
        }

    def test_each_result_is_kept(self):
        for k in range(3):
            path = evaluation_files.add(self._folder, {"k": k})
        self.assertEqual(path, self._folder / "evaluations/evaluation_003.json")
        evaluation_files.add(self._folder, {"k": 3}, history_length=10)
        self.assertEqual(
            self._contents(),
            {
                "evaluations/evaluation_001.json": {"k": 0},
                "evaluations/evaluation_002.json": {"k": 1},
                "evaluations/evaluation_003.json": {"k": 2},
                "evaluation.json": {"k": 2},
                "evaluations/evaluation_history_10_001.json": {"k": 3},
                "evaluation_history_10.json": {"k": 3},
            },
        )

    def test_failure_leaves_no_empty_file_and_the_last_result(self):
        evaluation_files.add(self._folder, {"k": 1})
        before = self._contents()
        with mock.patch.object(atomic, "write", side_effect=OSError("No space left on device")):
            with self.assertRaises(OSError):
                evaluation_files.add(self._folder, {"k": 2})
        self.assertEqual(self._contents(), before)

    def test_lists_of_numbers_stay_on_one_line(self):
        summary = {"returns": [1.0, -2.5e-07, 3.0], "empty": [], "text": ["[1  2]", "a\n[\n1 ]"]}
        path = evaluation_files.add(self._folder, summary)
        self.assertIn('"returns": [1.0, -2.5e-07, 3.0],\n', path.read_text())
        self.assertEqual(json.loads(path.read_text()), summary)

    @parameterized.parameters(
        ({"env_frames": 1_000, "protocol": SAMPLED}, True),
        ({"env_frames": 900, "protocol": SAMPLED}, False),
        ({"env_frames": 1_000, "protocol": SAMPLED | {"action_selection": "greedy"}}, False),
        ({"env_frames": 1_000, "protocol": SAMPLED | {"changed_environment": {"k": 1}}}, False),
        ({"env_frames": 1_000, "protocol": SAMPLED | {"weights": "best"}}, False),
        ({"env_frames": 1_000, "protocol": SAMPLED | {"episodes_per_task": 2}}, False),
        ({"unknown": "file"}, False),
        (None, False),
    )
    def test_only_standard_evaluations_count(self, result, expected):
        if result is not None:
            evaluation_files.result_file(self._folder).write_text(json.dumps(result))
        found = evaluation_files.standard_evaluation(self._folder, 1_000, episodes=3)
        self.assertEqual(found, result if expected else None)

    def test_standard_evaluation_is_found_before_later_ones(self):
        standard = {"env_frames": 1_000, "protocol": SAMPLED}
        greedy = standard | {"protocol": SAMPLED | {"action_selection": "greedy"}}
        for length in (0, 1):
            for result in (greedy, standard, greedy):
                evaluation_files.add(self._folder, result | {"k": length}, length)
            found = evaluation_files.standard_evaluation(self._folder, 1_000, length)
            self.assertEqual(found, standard | {"k": length})
        self.assertIsNone(evaluation_files.standard_evaluation(self._folder, 1_001))


if __name__ == "__main__":
    absltest.main()
