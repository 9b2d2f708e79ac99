"""The figures' conditions: valid sweeps that differ in what the figure compares."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from absl.testing import absltest, parameterized

from configs import sweep_laser_atari, sweep_laser_minatar
from laser_tf.runtime import sweep_config
from launch import reproduce


def _sweep(config: dict, condition: reproduce.Condition, game: str) -> sweep_config.SweepConfig:
    values = {section: dict(keys) for section, keys in config.items()}
    for key, value in reproduce.overrides(config, condition, game, 2).items():
        section, name = key.split(".")
        assert name in values[section], key  # else no flag could set it
        values[section][name] = value
    return sweep_config.parse(values)


# In place of launch.sweep: saves for a second when it is asked to end.
SWEEP = f"""#!{sys.executable}
import pathlib, signal, sys, time
def save(signal_number, _):
    time.sleep(1)
    with pathlib.Path(sys.argv[-1]).open("a") as file:
        file.write(f"saved after {{signal_number}}\\n")
    sys.exit(0)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, save)
pathlib.Path(sys.argv[-1]).write_text("started\\n")
time.sleep(100)
"""
PROGRAM = """
import logging, sys
from launch import reproduce
logging.basicConfig(level=logging.INFO, format="%(message)s")
sys.executable = sys.argv[1]
reproduce._run("sweep", sys.argv[2])
print("went on")
"""


class ReproduceTest(parameterized.TestCase):
    @parameterized.product(
        figure=list(reproduce.FIGURES),
        config_and_game=[(sweep_laser_minatar, "breakout"), (sweep_laser_atari, "pong")],
    )
    def test_every_curve_is_a_sweep_with_equally_many_updates(self, figure, config_and_game):
        module, game = config_and_game
        config = module.get_config().to_dict()
        sweeps = [_sweep(config, c, game) for c in reproduce.FIGURES[figure]]
        self.assertLen({sweep.first.replay.steps_per_update for sweep in sweeps}, 1)
        self.assertLen({sweep.sweep.label for sweep in sweeps}, len(sweeps))
        for sweep in sweeps:
            self.assertEqual(sweep.first.environment.task, game)
            self.assertEqual(sweep.first.run.seed, 1_001)

    def test_what_figure_3_compares(self):
        config = sweep_laser_minatar.get_config().to_dict()
        none, naive, trusted = (_sweep(config, c, "breakout") for c in reproduce.FIGURES["3_left"])
        self.assertEqual(none.first.replay.replay_rows, 0)
        self.assertEqual([s.sweep.shared_replay for s in (naive, trusted)], [True, True])
        self.assertEqual(naive.first.replay, trusted.first.replay)
        self.assertEqual([s.first.agent.relevance for s in (naive, trusted)], ["none", "implied"])

    @parameterized.parameters(signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
    def test_whoever_ends_it_ends_its_sweep_in_order(self, signal_number):
        with tempfile.TemporaryDirectory() as folder:
            command, record = pathlib.Path(folder) / "command", pathlib.Path(folder) / "record"
            command.write_text(SWEEP)
            command.chmod(0o700)
            process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, command, record],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            self._wait_for(record, "started")
            os.killpg(process.pid, signal_number)  # as Ctrl-C does: all of the terminal's group
            output, errors = process.communicate(timeout=60)
            self._wait_for(record, "saved")
            self.assertLen(record.read_text().splitlines(), 2)
        self.assertEmpty(output)
        if signal_number != signal.SIGKILL:
            self.assertEqual(process.returncode, 0)
            self.assertEqual(errors.splitlines()[-1], "stopped; the same command goes on")
            self.assertNotIn("Traceback", errors)

    def _wait_for(self, path: pathlib.Path, text: str) -> None:
        deadline = time.monotonic() + 60
        while not (path.exists() and text in path.read_text()):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)


if __name__ == "__main__":
    absltest.main()
