"""The picture of learning curves says in words what it shows."""

import csv
import pathlib
import tempfile

from absl.testing import absltest

from laser_tf.environments import episode_statistics
from laser_tf.runtime import episode_log
from testing import commands


class PlotTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)
        for seed in range(3):
            log = episode_log.EpisodeLog(self._folder / str(seed), ["pong"])
            (self._folder / str(seed)).mkdir()
            log.resume(None)
            for frames in range(0, 1_000, 100):
                log.add(frames, episode_statistics.Episode(0, 0, float(seed), 9))
            log.flush()

    def test_axes_in_words_and_all_numbers_beside_the_picture(self):
        one, two, three = (str(self._folder / str(seed)) for seed in range(3))
        output = self._folder / "curves.svg"
        code, _, errors = commands.run(
            "plot", f"--curve=LASER={one},{two},{three}", f"--curve=IMPALA={two},{three}",
            f"--output={output}", "--title=Pong",
        )  # fmt: skip
        self.assertEqual(code, 0, errors)
        picture = output.read_text()
        for words in (
            "Pong", "Million environment frames", "Episode return, mean of 100 episodes",
            "LASER (3 seeds)", "IMPALA (2 seeds)",
            "shaded: 95% bootstrap interval of the mean; thin: single seeds",
        ):  # fmt: skip
            self.assertIn(f"<!-- {words} -->", picture)  # Matplotlib's, beside the drawn letters
        with output.with_suffix(".csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertLen(rows, 400)
        self.assertEqual(
            rows[-1],
            {
                "label": "IMPALA", "env_frames": "900", "mean": "1.500", "interval_low": "",
                "interval_high": "", "min": "1.000", "max": "2.000", "seeds": "2",
            },
        )  # fmt: skip
        # With three seeds one draw in 27 holds nothing but the worst: the interval is the range.
        self.assertEqual((rows[0]["interval_low"], rows[0]["interval_high"]), ("0.000", "2.000"))


if __name__ == "__main__":
    absltest.main()
