"""No evaluation overwrites another one, and the newest lies where it always did."""

import json
import pathlib
import tempfile
from unittest import mock

from absl.testing import absltest

from laser_tf.evaluation import evaluation_files


class EvaluationFilesTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._workdir = pathlib.Path(folder.name)

    def _held(self) -> dict[str, dict]:
        paths = self._workdir.rglob("*")
        return {
            str(path.relative_to(self._workdir)): json.loads(path.read_text())
            for path in paths
            if path.is_file()
        }

    def test_each_keeps_a_file_of_its_own(self):
        for k in range(3):
            path = evaluation_files.add(self._workdir, {"k": k})
        self.assertEqual(path, self._workdir / "evaluations/evaluation_003.json")
        evaluation_files.add(self._workdir, {"k": 3}, history_length=10)
        self.assertEqual(
            self._held(),
            {
                "evaluations/evaluation_001.json": {"k": 0},
                "evaluations/evaluation_002.json": {"k": 1},
                "evaluations/evaluation_003.json": {"k": 2},
                "evaluation.json": {"k": 2},
                "evaluations/evaluation_history_10_001.json": {"k": 3},
                "evaluation_history_10.json": {"k": 3},
            },
        )

    def test_one_from_before_they_were_kept_is_kept(self):
        evaluation_files.result_file(self._workdir).write_text('{"k": "old"}')
        evaluation_files.add(self._workdir, {"k": 1})
        held = self._held()
        self.assertEqual(held["evaluations/evaluation_000.json"], {"k": "old"})
        self.assertEqual(held["evaluation.json"], {"k": 1})

    def test_a_number_that_another_process_took_meanwhile_is_left_to_it(self):
        folder = self._workdir / evaluation_files.FOLDER
        folder.mkdir()
        with mock.patch.object(evaluation_files, "_numbers", return_value=[1]):
            (folder / "evaluation_002.json").write_text('{"k": "other"}')
            path = evaluation_files.add(self._workdir, {"k": 1})
        self.assertEqual(path.name, "evaluation_003.json")
        self.assertEqual(self._held()["evaluations/evaluation_002.json"], {"k": "other"})

    def test_a_failure_leaves_no_empty_file_and_the_last_result(self):
        evaluation_files.add(self._workdir, {"k": 1})
        with mock.patch.object(
            evaluation_files, "_render", side_effect=OSError("No space left on device")
        ):
            with self.assertRaises(OSError):
                evaluation_files.add(self._workdir, {"k": 2})
        self.assertEqual(
            self._held(),
            dict.fromkeys(["evaluations/evaluation_001.json", "evaluation.json"], {"k": 1}),
        )

    def test_films_of_tasks_whose_names_have_a_slash_lie_in_the_same_folder(self):
        for task, name in (("", "a_1.mp4"), ("walker/run", "a_1_walker_run.mp4")):
            path = evaluation_files.film_file(self._workdir, "a_1", task)
            self.assertEqual(path, self._workdir / "videos" / name)

    def test_numbers_stay_on_a_line_and_text_is_left_alone(self):
        summary = {"returns": [1.0, -2.5e-07, 3.0], "empty": [], "text": ["[1  2]", "a\n[\n1 ]"]}
        path = evaluation_files.add(self._workdir, summary)
        self.assertIn('"returns": [1.0, -2.5e-07, 3.0],\n', path.read_text())
        self.assertEqual(json.loads(path.read_text()), summary)


if __name__ == "__main__":
    absltest.main()
