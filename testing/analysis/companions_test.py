"""Agents beside companions that collapse, from small sweeps' files with hand-computed results."""

import csv
import json
import pathlib
import tempfile
from collections.abc import Mapping

from absl.testing import absltest

from laser_tf import errors
from laser_tf.analysis import companions, figures_sharing
from laser_tf.environments import episode_statistics
from laser_tf.monitoring import episode_log, tensorboard
from laser_tf.workdir import run_directory

RATES = {"agent_00": 1e-3, "agent_01": 1e-3, "agent_02": 0.5}
STEPS = 9  # of an episode


def _read(path: pathlib.Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _write_sweep(
    folder: pathlib.Path, label: str, replica: int, offset: float, returns: Mapping[str, float]
) -> None:
    """Agents whose 150 episodes return -1 at first, and `returns` from the 51st one on."""
    config = {
        "environment": {"suite": "catch", "task": "catch", "reward_offset": offset},
        "run": {"env_frames": 1_500},
    }
    folder.mkdir(parents=True)
    agents = {name: {"learner.learning_rate": rate} for name, rate in RATES.items()}
    content = {"label": label, "replica": replica, "agents": agents, "config": config}
    (folder / "sweep.json").write_text(json.dumps(content))
    for name, last in returns.items():
        run_directory.open_workdir(folder / name, config, {})
        log = episode_log.EpisodeLog(folder / name, ["catch"])
        log.resume(None)
        for number in range(150):
            value = (last if number >= 50 else -1.0) + offset * STEPS
            log.add(10 * (number + 1), episode_statistics.Episode(0, 0, value, STEPS))
        log.flush()
        with tensorboard.MetricsWriter(folder / name / "tensorboard") as writer:
            writer.write(500, {"policy/entropy": 1.0, "vtrace/advantage_own": 4.0})
            writer.write(1_500, {"policy/entropy": 0.25, "vtrace/advantage_own": 2.0})


class CompanionsTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder = pathlib.Path(folder.name)
        conditions = [
            condition
            for condition in figures_sharing.FIGURES["sharing"].conditions
            if condition.label.startswith(("a replay each", "naive sharing"))
        ]
        self._runs = {"catch": {}}
        for condition in conditions:
            folders = [condition.folder(self._folder, "catch", n) for n in (1, 2)]
            self._runs["catch"][condition.label] = folders
            hurt = condition.label == "naive sharing, +1 a step"
            for replica, path in enumerate(folders, 1):
                mean = -0.5 if hurt and replica == 2 else 0.5
                returns = {"agent_00": mean - 0.25, "agent_01": mean + 0.25, "agent_02": -0.75}
                offset = condition.overrides["environment.reward_offset"]
                _write_sweep(path, condition.label, replica, offset, returns)

    def test_the_games_own_returns_of_each_condition_and_kind(self):
        companions.write(self._runs, self._folder, 0.0)
        self.assertEqual((self._folder / "sharing.png").read_bytes()[:4], b"\x89PNG")
        rows = _read(self._folder / "conditions.csv")
        self.assertEqual(
            [
                (r["condition"], r["reward_offset"], r["kind"], float(r["mean"]), float(r["min"]))
                + (r["seeds"], r["replicas_below_0"])
                for r in rows
            ],
            [
                ("a replay each", "0.0", "normal", 0.5, 0.5, "2", "0"),
                ("a replay each", "0.0", "companion", -0.75, -0.75, "2", "2"),
                ("naive sharing", "0.0", "normal", 0.5, 0.5, "2", "0"),
                ("naive sharing", "0.0", "companion", -0.75, -0.75, "2", "2"),
                ("a replay each", "1.0", "normal", 0.5, 0.5, "2", "0"),
                ("a replay each", "1.0", "companion", -0.75, -0.75, "2", "2"),
                ("naive sharing", "1.0", "normal", 0.0, -0.5, "2", "1"),
                ("naive sharing", "1.0", "companion", -0.75, -0.75, "2", "2"),
            ],
        )

    def test_a_game_without_an_offset_has_one_column_and_a_bound_of_its_own(self):
        of_game = {label: self._runs["catch"][label] for label in ("a replay each",)}
        for folder in of_game["a replay each"]:
            for path in folder.glob("agent_*/config.json"):
                config = json.loads(path.read_text())
                del config["config"]["environment"]["reward_offset"]
                path.write_text(json.dumps(config))
        companions.write({"catch": of_game}, self._folder, 0.6)
        normal, companion = _read(self._folder / "conditions.csv")
        self.assertEqual(normal["replicas_below_0.6"], "2")
        self.assertEqual((companion["reward_offset"], companion["mean"]), ("0.0", "-0.75"))

    def test_every_agent_has_a_row(self):
        companions.write(self._runs, self._folder, 0.0)
        rows = _read(self._folder / "agents.csv")
        self.assertLen(rows, 4 * 2 * 3)
        last = rows[-3]  # naive sharing with an offset, second replica
        self.assertEqual(
            list(last.values()),
            ["naive sharing", "1.0", "2", "agent_00", "normal", "0.001", "1500", "150", "-0.75"]
            + ["0.25", "3", "", "", ""],  # entropy, advantages; the rest was not logged
        )
        self.assertEqual([row["kind"] for row in rows[-2:]], ["normal", "companion"])

    def test_an_agent_without_episodes_is_named(self):
        folder = self._runs["catch"]["naive sharing"][1]
        (folder / "agent_01/episodes.csv").unlink()
        with self.assertRaisesRegex(errors.UserError, "replica_2/catch/agent_01 holds no finished"):
            companions.write(self._runs, self._folder, 0.0)


if __name__ == "__main__":
    absltest.main()
