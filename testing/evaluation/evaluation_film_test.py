"""Films of evaluated episodes: what they show, and evaluations that go without."""

import pathlib
import tempfile
from unittest import mock

import imageio.v2 as imageio
import imageio_ffmpeg
import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.environments import base, faults, suites
from laser_tf.evaluation import episode_player, evaluation_film, evaluator
from laser_tf.training import run_config
from launch import command_line


def _environment():
    values = command_line.read_config_file("configs/laser.py:catch").to_dict()
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

    def _film_of_rendered(self, kind):
        """Returns the path of the video of one episode that leaves the corridor at the right."""
        played = suites.config_class("gymnasium")(
            task="testing.environments.small_environments:Rendered-v0",
            arguments={"kind": kind},
            num_workers=1,
        )
        game = episode_player.Game(0, 0, 0, 1.0, 3)
        path = self._folder / "film.mp4"
        evaluation_film.film(path, played, 1, game, [np.ones([1], np.int32)] * 3)
        return path

    @parameterized.parameters("rgba", "odd and smaller", "odd and larger")
    def test_images_of_other_kinds_become_a_video(self, kind):
        with mock.patch.object(imageio_ffmpeg._io.logger, "warning") as warning:
            path = self._film_of_rendered(kind)
        warning.assert_not_called()
        with imageio.get_reader(path) as reader:
            self.assertEqual(reader.get_meta_data()["size"], (56, 8))
            frames = np.array(list(reader.iter_data()))
        # The corridor has seven cells of 8x8 pixels: the lit one moves from the middle to the end.
        lit = frames.mean(axis=(1, 3)).reshape([4, 7, 8]).mean(axis=2).argmax(axis=1)
        np.testing.assert_array_equal(lit, [3, 4, 5, 6])

    def test_a_render_that_fails_later_leaves_no_video(self):
        with self.assertRaises(base.RenderError):
            self._film_of_rendered("none at step 2")
        self.assertEmpty(list(self._folder.iterdir()))

    @parameterized.parameters(
        base.RenderError("no display"),
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
