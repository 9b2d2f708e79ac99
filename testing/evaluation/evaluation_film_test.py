"""Films of evaluated episodes: what they show, and evaluations that go without."""

import pathlib
import tempfile
from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.environments import base, faults
from laser_tf.evaluation import episode_player, evaluation_film, evaluator
from laser_tf.training import run_config
from launch import command_line


def _environment():
    values = command_line.read_config_file("configs/laser_catch.py").to_dict()
    return run_config.parse(values).environment


class FilmTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))

    @parameterized.parameters((0.0, False), (5.0, True))
    def test_a_film_of_another_episode_is_told(self, added, is_told):
        played = _environment()
        actions = [np.zeros([1], np.int32)] * 40
        # The ball falls for nine steps; left alone, the paddle misses it unless it is at the left.
        with mock.patch.object(evaluation_film.logging, "warning") as warning:
            returns = [-1.0 + added, 1.0 + added]
            for value in returns:
                game = episode_player.Game(0, 0, 0, value, 9)
                evaluation_film.film(self._folder / "film.mp4", played, 3, game, actions)
        self.assertEqual(warning.call_count, 2 if is_told else 1)
        self.assertTrue((self._folder / "film.mp4").exists())

    @parameterized.parameters(
        base.NoPictureError("no display"),
        ValueError("no display"),
        ImportError("no display"),
        OSError("no display"),
        faults.EnvironmentFailedError("no display"),
    )
    def test_an_evaluation_goes_without_a_film(self, error):
        game = episode_player.Game(0, 0, 0, 1.0, 9)
        with mock.patch.object(evaluation_film, "film", side_effect=error):
            with self.assertLogs(level="WARNING") as logs:
                film = evaluator._film(self._folder, _environment(), 1, game, [], ("a", "b"), 100)
        self.assertIsNone(film)
        self.assertRegex(logs.output[0], "no film: no display")


if __name__ == "__main__":
    absltest.main()
