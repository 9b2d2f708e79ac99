"""Members next to companions that collapse, from small sweeps with results by hand."""

import json

from absl.testing import absltest

from laser_tf import errors
from laser_tf.monitoring import episode_log, tensorboard
from laser_tf.plotting import sharing
from laser_tf.workdir import run_directory
from testing import folders, messages
from testing.plotting import run_logs

RATES = {"member_00": 1e-3, "member_01": 1e-3, "member_02": 0.5}
STEPS = 9  # of an episode


def _write_sweep(folder, label, seed, offset, returns):
    """Writes members whose 150 episodes return -1 at first, and `returns` from the 51st on."""
    config = {
        "environment": {"suite": "catch", "task": "catch", "reward_offset": offset},
        "run": {"env_frames": 1_500},
    }
    folder.mkdir(parents=True)
    agents = {name: {"learner.learning_rate": rate} for name, rate in RATES.items()}
    content = {"label": label, "seed_index": seed, "members": agents, "config": config}
    (folder / "sweep.json").write_text(json.dumps(content))
    for name, last in returns.items():
        run_directory.open_workdir(folder / name, config, {})
        log = episode_log.EpisodeLog(folder / name, ["catch"])
        log.resume(None)
        for number in range(150):
            value = (last if number >= 50 else -1.0) + offset * STEPS
            log.add(episode_log.Row(10 * (number + 1), "catch", value, STEPS))
        log.flush()
        writer = tensorboard.MetricsWriter(folder / name / "tensorboard")
        writer.write(500, {"policy/entropy": 1.0, "vtrace/advantage_own": 4.0})
        writer.write(1_500, {"policy/entropy": 0.25, "vtrace/advantage_own": 2.0})


class SharingTest(folders.FolderTest):
    def setUp(self):
        super().setUp()
        self._sweeps = {}
        for ending, offset in (("", 0.0), (", +1 a step", 1.0)):
            for condition in ("a replay each", "naive sharing"):
                label = condition + ending
                self._sweeps[label] = [self._folder / label / str(seed) for seed in (1, 2)]
                for seed, path in enumerate(self._sweeps[label], 1):
                    mean = -0.5 if label == "naive sharing, +1 a step" and seed == 2 else 0.5
                    returns = {
                        "member_00": mean - 0.25,
                        "member_01": mean + 0.25,
                        "member_02": -0.75,
                    }
                    _write_sweep(path, label, seed, offset, returns)

    def test_each_condition_and_kind_has_returns(self):
        sharing.write({"catch": self._sweeps}, self._folder, 0.0)
        self.assertEqual((self._folder / "sharing.png").read_bytes()[:4], b"\x89PNG")
        rows = run_logs.read_csv(self._folder / "conditions.csv")
        columns = ("condition", "reward_offset", "kind", "mean", "min", "seeds", "seeds_below_0")
        self.assertCountEqual(
            [tuple(row[column] for column in columns) for row in rows],
            [
                ("a replay each", "0", "normal", "0.5", "0.5", "2", "0"),
                ("a replay each", "0", "companion", "-0.75", "-0.75", "2", "2"),
                ("naive sharing", "0", "normal", "0.5", "0.5", "2", "0"),
                ("naive sharing", "0", "companion", "-0.75", "-0.75", "2", "2"),
                ("a replay each", "1", "normal", "0.5", "0.5", "2", "0"),
                ("a replay each", "1", "companion", "-0.75", "-0.75", "2", "2"),
                ("naive sharing", "1", "normal", "0", "-0.5", "2", "1"),
                ("naive sharing", "1", "companion", "-0.75", "-0.75", "2", "2"),
            ],
        )

    def test_every_member_has_a_row(self):
        sharing.write({"catch": self._sweeps}, self._folder, 0.0)
        rows = run_logs.read_csv(self._folder / "members.csv")
        self.assertLen(rows, 4 * 2 * 3)
        self.assertEqual(
            list(rows[-3].values()),
            ["naive sharing", "1", "2", "member_00", "normal", "0.001", "1500", "150", "-0.75"]
            + ["0.25", "3", "", "", ""],  # entropy, advantages; the rest was not logged
        )

    def test_member_without_episodes_is_named(self):
        folder = self._sweeps["naive sharing"][1]
        (folder / "member_01/episodes.csv").unlink()
        with messages.raises(errors.UserError, folder / "member_01"):
            sharing.write({"catch": self._sweeps}, self._folder, 0.0)


if __name__ == "__main__":
    absltest.main()
