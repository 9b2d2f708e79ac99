"""The numbers in R2D2's figures, from small runs' files with hand-computed results."""

import csv
import json
import pathlib
import tempfile
from collections.abc import Sequence

from absl.testing import absltest

from laser_tf import errors
from laser_tf.analysis import (
    figures_r2d2,
    game_curves,
    r2d2_memory,
    r2d2_staleness,
    seed_curves,
)
from laser_tf.environments import episode_statistics
from laser_tf.evaluation import evaluation_files
from laser_tf.monitoring import episode_log, tensorboard
from laser_tf.workdir import run_directory
from testing import commands

FIRST, LAST = "staleness/delta_q_first", "staleness/delta_q_last"


def _read(path: pathlib.Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _write_run(folder: pathlib.Path, rows: Sequence[tuple[int, float, float, float]]) -> None:
    """Rows are env frames, both discrepancies, and the return of the episode that ended there."""
    run_directory.open_workdir(folder, {"run": {"env_frames": 100}}, {})
    log = episode_log.EpisodeLog(folder, ["game"])
    log.resume(None)
    with tensorboard.MetricsWriter(folder / "tensorboard") as writer:
        for frames, first, last, episode_return in rows:
            writer.write(frames, {FIRST: first, LAST: last})
            log.add(frames, episode_statistics.Episode(0, 0, episode_return, 9))
    log.flush()


def _write_evaluation(folder: pathlib.Path, length: int, *values: float) -> None:
    names = ("mean_return", "greedy_match_fraction", "max_logit_difference")
    summary = dict(zip(names, values, strict=False))
    folder.mkdir(parents=True, exist_ok=True)
    evaluation_files.result_file(folder, length).write_text(json.dumps(summary))


class DrawR2D2Test(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)

    def _assert_is_picture(self, name: str) -> None:
        self.assertEqual((self._folder / name).read_bytes()[:4], b"\x89PNG")

    def _staleness_runs(self):
        runs = figures_r2d2.FIGURES["r2d2_1"].runs(self._folder, ("breakout", "asterix"), 2)
        for game, of_game in runs.items():
            for k, of_label in enumerate(of_game.values()):
                scale = (k + 1) * (1 if game == "breakout" else 10)
                # Second halves: 2 and 4 at first states, 1 and 2 at last ones, at scale 1.
                _write_run(
                    of_label[0],
                    [(10, 9, 9, 0), (50, 9, 9, 4 * scale), (60, scale, scale, 5 * scale)]
                    + [(100, 3 * scale, scale, 9 * scale)],
                )
                _write_run(of_label[1], [(20, 7, 7, 0), (120, 4 * scale, 2 * scale, 100 * scale)])
        return runs

    def test_discrepancies_are_means_over_the_second_half_and_over_seeds(self):
        r2d2_staleness.write_discrepancies(self._staleness_runs(), self._folder)
        self._assert_is_picture("delta_q.png")
        rows = _read(self._folder / "delta_q.csv")
        self.assertLen(rows, 2 * 4 * 2)
        picked = {
            (row["game"], row["strategy"], row["state"]): [
                float(row[name]) for name in ("mean", "min", "max", "seeds")
            ]
            for row in rows
        }
        self.assertEqual(picked["breakout", "zero state", "first"], [3, 2, 4, 2])
        self.assertEqual(picked["breakout", "burn-in", "last"], [3, 2, 4, 2])
        self.assertEqual(picked["asterix", "stored state, burn-in", "last"], [60, 40, 80, 2])

    def test_curves_are_of_the_frames_that_all_seeds_came_to(self):
        game_curves.write_by_frames(self._staleness_runs(), self._folder, "strategy")
        self._assert_is_picture("curves.png")
        rows = _read(self._folder / "curves.csv")
        of_run = [r for r in rows if (r["game"], r["strategy"]) == ("asterix", "zero state")]
        self.assertEqual(len(rows), 8 * len(of_run))
        self.assertEqual((of_run[0]["env_frames"], of_run[-1]["env_frames"]), ("20", "100"))
        # At frame 20 both have had an episode of return 0; at 100 the one has the mean of 0, 40,
        # 50 and 90, and the other, whose next one ends at 120, that of 0 still.
        self.assertEqual([float(of_run[0][n]) for n in ("mean", "min", "max")], [0, 0, 0])
        self.assertEqual([float(of_run[-1][n]) for n in ("mean", "min", "max")], [22.5, 0, 45])
        self.assertEqual({row["interval_low"] for row in of_run}, {""})  # of two seeds

    def test_a_run_without_values_is_named_and_left_out(self):
        runs = figures_r2d2.FIGURES["r2d2_1"].runs(self._folder, ("breakout",), 2)
        for k, run in enumerate(run for of_label in runs["breakout"].values() for run in of_label):
            # The first run of each strategy has values in the first half only.
            _write_run(run, [(40, 5, 5, 0), (90, 1, 1, 0) if k % 2 else (50, 8, 8, 0)])
        with self.assertLogs(level="WARNING") as logs:
            r2d2_staleness.write_discrepancies(runs, self._folder)
        self.assertLen(logs.output, 8)
        self.assertRegex(
            logs.output[0], "zero_state/replica_1/breakout holds no .*delta_q_first after 50 frames"
        )
        rows = _read(self._folder / "delta_q.csv")
        self.assertEqual(
            {tuple(row[name] for name in ("mean", "min", "max", "seeds")) for row in rows},
            {("1", "1", "1", "1")},
        )
        for of_label in runs["breakout"].values():
            of_label.pop()
        r2d2_staleness.write_discrepancies(runs, self._folder)
        self.assertEqual({row["mean"] for row in _read(self._folder / "delta_q.csv")}, {""})
        with self.assertRaisesRegex(errors.UserError, "breakout holds no values of some"):
            seed_curves.read(runs["breakout"]["burn-in"], "some/metric")

    def test_memory_by_length_of_history(self):
        runs = figures_r2d2.FIGURES["r2d2_5"].runs(self._folder, ("tmaze",), 2)
        for label, of_label in runs["tmaze"].items():
            worse = 0.5 * (label == "zero state")
            for seed, run in enumerate(of_label):
                _write_evaluation(run, 0, 1 - worse)
                _write_evaluation(run, 40, 0.5 - worse, 0.75 + 0.25 * seed, 2 + seed)
                _write_evaluation(run, 2, -1 - worse + seed, 0.25, 3)
        r2d2_memory.write(runs, (2, 40), self._folder)
        self._assert_is_picture("memory.png")
        rows = _read(self._folder / "memory.csv")
        self.assertEqual(list(rows[0]), [
            "game", "strategy", "history_length",
            *(
                f"{quantity}_{part}"
                for quantity in ("return", "greedy_match_percent", "max_q_difference")
                for part in ("mean", "interval_low", "interval_high", "min", "max")
            ),
            "seeds",
        ])  # fmt: skip
        self.assertEqual(
            # Of two seeds there are no intervals.
            [",".join(v for k, v in row.items() if "interval" not in k) for row in rows],
            [
                "tmaze,zero state,all,0.5,0.5,0.5,,,,,,,2",
                "tmaze,zero state,40,0,0,0,87.5,75,100,2.5,2,3,2",
                "tmaze,zero state,2,-1,-1.5,-0.5,25,25,25,3,3,3,2",
                "tmaze,stored state,all,1,1,1,,,,,,,2",
                "tmaze,stored state,40,0.5,0.5,0.5,87.5,75,100,2.5,2,3,2",
                "tmaze,stored state,2,-0.5,-1,0,25,25,25,3,3,3,2",
            ],
        )

    def test_evaluations_that_do_not_compare_are_refused_in_one_line(self):
        run = self._folder / "run"
        run.mkdir()
        for length, text, message in (
            (0, '{"env_frames": 100}', "cannot read .*/evaluation_history_2.json: "),
            (2, "[1]", "cannot read .*/evaluation_history_2.json: it holds no evaluation"),
            (2, '{"env_fra', "cannot read .*/evaluation_history_2.json: "),
            (2, '{"env_frames": 300}', "run has evaluations after 100 and 300 env frames, which"),
        ):
            evaluation_files.result_file(run, length).write_text(text)
            with self.assertRaisesRegex(errors.UserError, message):
                r2d2_memory.read([run], (0, 2))

    def test_several_games_of_a_figure_of_one_task_are_refused_in_one_line(self):
        code, _, said = commands.run(
            "draw_figure", "--figure=sharing", f"--workdir={self._folder}",
            "--game=catch", "--game=breakout",
        )  # fmt: skip
        self.assertEqual(code, 1)
        self.assertEqual(
            said, "error: --figure=sharing is of one task, not of catch, breakout: name one\n"
        )


if __name__ == "__main__":
    absltest.main()
