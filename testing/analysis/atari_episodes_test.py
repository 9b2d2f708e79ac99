"""Episodes of a comparison, kept in one file and joined with others."""

import gzip
import pathlib
import tempfile

import numpy as np
from absl.testing import absltest

from laser_tf import errors
from laser_tf.analysis import atari_episodes


def _run(*returns: float, first: int = 1_000, trained: int = 4_000_000) -> atari_episodes.Run:
    frames = first + 500 * np.arange(len(returns))
    return atari_episodes.Run(frames, np.array(returns), trained)


class FileTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self._path = folder / atari_episodes.FILE

    def test_what_is_written_is_read(self):
        games = {"pong": [_run(-21, -20.5), _run(3.25, trained=4_000_160)], "qbert": [_run(1e5)]}
        atari_episodes.write(self._path, games)
        read = atari_episodes.read(self._path)
        self.assertEqual(list(read), ["pong", "qbert"])
        for game, runs in games.items():
            self.assertLen(read[game], len(runs))
            for run, other in zip(runs, read[game], strict=True):
                np.testing.assert_array_equal(other.env_frames, run.env_frames)
                np.testing.assert_array_equal(other.returns, run.returns)
                self.assertEqual(other.trained_env_frames, run.trained_env_frames)

    def test_large_returns_keep_all_digits(self):
        atari_episodes.write(self._path, {"qbert": [_run(1_234_575.0)]})
        self.assertEqual(atari_episodes.read(self._path)["qbert"][0].returns, [1_234_575.0])

    def test_the_same_episodes_make_the_same_bytes(self):
        games = {"pong": [_run(-21)]}
        atari_episodes.write(self._path, games)
        first = self._path.read_bytes()
        atari_episodes.write(self._path, games)
        self.assertEqual(self._path.read_bytes(), first)

    def _refused(self, text: str, message: str) -> None:
        self._path.write_bytes(gzip.compress(text.encode()))
        with self.assertRaisesRegex(errors.UserError, message):
            atari_episodes.read(self._path)

    def test_a_file_with_other_runs_is_kept(self):
        kept = [self._path.with_name(f"{number}_{self._path.name}") for number in (1, 2, 3)]
        begun, whole, other = _run(1, trained=2_000), _run(1, 2, 3), _run(7)
        atari_episodes.write(self._path, {"pong": [begun], "qbert": [other]})
        atari_episodes.write(self._path, {"pong": [whole], "qbert": [other]})  # it went on
        self.assertFalse(kept[0].exists())
        for path, games in (
            (kept[0], {"pong": [whole]}),  # without qbert
            (kept[1], {"pong": [_run(4, 5)]}),  # trained anew
            (kept[2], {"pong": [_run(4, trained=2_000)]}),  # an older copy of it
        ):
            before = self._path.read_bytes()
            with self.assertLogs(level="WARNING"):
                atari_episodes.write(self._path, games)
            self.assertEqual(path.read_bytes(), before)

    def test_other_files_are_refused_in_one_line(self):
        header = "game,run,trained_env_frames,env_frames,return\n"
        self._refused("", "holds no episodes of a comparison: name the episodes.csv.gz")
        self._refused(header, "holds no episodes of a comparison")
        self._refused("env_frames,task,return,length\n", "holds no episodes of a comparison")
        self._refused(header + "pong,1,4000000,2000\n", "is damaged: its rows are not game, run")
        self._refused(header + "pong,1,4000000,2000,much\n", "is damaged")
        self._refused(header + "chess,1,4000000,2000,1\n", "chess, of which Dopamine has no")
        with self.assertRaisesRegex(errors.UserError, "cannot read .*no.csv.gz: "):
            atari_episodes.read(self._path.with_name("no.csv.gz"))
        self._path.write_text(header)  # not compressed
        with self.assertRaisesRegex(errors.UserError, f"cannot read {self._path}: "):
            atari_episodes.read(self._path)

    def test_torn_and_damaged_files_are_refused_in_one_line(self):
        atari_episodes.write(self._path, {"pong": [_run(*range(100))]})
        whole = self._path.read_bytes()
        middle = len(whole) // 2
        for damaged in (whole[:-9], whole[:12] + b"\xff" + whole[13:], whole[:middle], b"\x1f\x8b"):
            self._path.write_bytes(damaged)
            with self.assertRaisesRegex(errors.UserError, f"cannot read {self._path}: "):
                atari_episodes.read(self._path)


class JoinTest(absltest.TestCase):
    def test_runs_of_a_game_are_its_seeds(self):
        joined = atari_episodes.join([{"pong": [_run(1)]}, {"pong": [_run(2)]}])
        self.assertEqual([run.returns[0] for run in joined["pong"]], [1, 2])
        joined = atari_episodes.join([{"pong": [_run(1)]}, {"qbert": [_run(1)]}])
        self.assertEqual(list(joined), ["pong", "qbert"])

    def test_seeds_that_return_the_same_are_two(self):
        joined = atari_episodes.join([{"pong": [_run(1)]}, {"pong": [_run(1, first=1_001)]}])
        self.assertLen(joined["pong"], 2)

    def test_a_run_is_not_counted_twice(self):
        whole, begun = _run(1, 2, 3), _run(1, 2, trained=2_000)
        for run in (whole, begun):
            with self.assertRaisesRegex(errors.UserError, "a run of pong is given twice"):
                atari_episodes.join([{"pong": [_run(5), whole]}, {"pong": [run]}])

    def test_games_have_as_many_runs(self):
        with self.assertRaisesRegex(errors.UserError, "pong has 2 runs and qbert 1"):
            atari_episodes.join([{"pong": [_run(1), _run(2)]}, {"qbert": [_run(1)]}])


if __name__ == "__main__":
    absltest.main()
