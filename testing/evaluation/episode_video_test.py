"""Videos of evaluated episodes."""

from unittest import mock

import imageio.v2 as imageio
import imageio_ffmpeg
import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.environments import base, faults, suites
from laser_tf.evaluation import episode_runner, episode_video
from laser_tf.workdir import atomic
from testing import fakes, folders


class VideoTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._path = self._folder / "video.mp4"

    @parameterized.parameters((0.0, 1), (5.0, 2))
    def test_another_episode_is_logged(self, added, expected):
        config = fakes.catch_config().environment
        actions = [np.zeros([1], np.int32)] * 40
        with mock.patch.object(episode_video.logging, "warning") as warning:
            # The ball falls for nine steps; the paddle stays at the left and misses it or not.
            for value in (-1.0 + added, 1.0 + added):
                episode = episode_runner.Episode(0, 0, 0, value, 9)
                episode_video.write(self._path, config, 3, episode, actions)
        self.assertEqual(warning.call_count, expected)
        self.assertTrue(self._path.exists())

    def _write_rendered(self, kind):
        """Writes the video of an episode that leaves the corridor at the right."""
        config = suites.config_class("gymnasium")(
            task="testing.environments.small_environments:Rendered-v0",
            arguments={"kind": kind},
            num_workers=1,
        )
        episode = episode_runner.Episode(0, 0, 0, 1.0, 3)
        episode_video.write(self._path, config, 1, episode, [np.ones([1], np.int32)] * 3)

    @parameterized.parameters("rgba", "odd and smaller", "odd and larger")
    def test_images_of_other_kinds_become_a_video(self, kind):
        with mock.patch.object(imageio_ffmpeg._io.logger, "warning") as warning:
            self._write_rendered(kind)
        warning.assert_not_called()
        with imageio.get_reader(self._path) as reader:
            self.assertEqual(reader.get_meta_data()["size"], (56, 8))
            frames = np.array(list(reader.iter_data()))
        # The corridor has seven cells of 8x8 pixels: the lit one moves from the middle to the end.
        lit = frames.mean(axis=(1, 3)).reshape([4, 7, 8]).mean(axis=2).argmax(axis=1)
        np.testing.assert_array_equal(lit, [3, 4, 5, 6])

    def test_video_has_its_name_once_it_is_complete(self):
        with mock.patch.object(atomic, "replace") as replace:
            self._write_rendered("rgba")
        self.assertFalse(self._path.exists())
        replace.assert_called_once_with(mock.ANY, self._path)
        self._write_rendered("rgba")
        self.assertEqual(list(self._folder.iterdir()), [self._path])

    def test_render_that_fails_later_leaves_no_video(self):
        with self.assertRaises(base.RenderError):
            self._write_rendered("none at step 2")
        self.assertEmpty(list(self._folder.iterdir()))

    def _write_medians(self):
        config = suites.config_class("gymnasium")(task="a/One-v0,a/Two-v0")
        episodes = [
            episode_runner.Episode(0, task, 0, value, 9)
            for task in range(2)
            for value in (1.0, 7.0, 2.0)
        ]
        return episode_video.write_medians(self._folder, "evaluation_002", config, 1, episodes, [])

    def test_each_task_has_the_video_of_its_median(self):
        with mock.patch.object(episode_video, "write", return_value=b"GIF") as write:
            videos = self._write_medians()
        names = [f"evaluation_002_a_{task}-v0.mp4" for task in ("One", "Two")]
        self.assertEqual([video.path for video in videos], [self._folder / n for n in names])
        medians = [call.args[3] for call in write.call_args_list]
        self.assertEqual([median.episode_return for median in medians], [2.0, 2.0])
        self.assertEqual((videos[1].suffix, videos[1].gif), ("_a/Two-v0", b"GIF"))

    @parameterized.parameters(
        base.RenderError, ValueError, ImportError, OSError, faults.EnvironmentFailedError
    )
    def test_video_that_cannot_be_written_is_logged(self, error):
        with mock.patch.object(episode_video, "write", side_effect=error("no display")):
            with self.assertLogs(level="WARNING") as logs:
                self.assertEqual(self._write_medians(), [])
        self.assertIn("no display", logs.output[0])


if __name__ == "__main__":
    absltest.main()
