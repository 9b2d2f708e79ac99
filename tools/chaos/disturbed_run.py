"""A run on many processes that suffers faults, and the conditions that must hold for it."""

import json
import math
import pathlib
import random
import shutil
import signal
import sys
import time
from collections.abc import Iterable

from tools.chaos import faults, link_cuts, processes, results, watched_run

PATIENCE_SECONDS = 300.0  # Limit of a recovery.
_DISK_BYTES = 512 * 2**20
_START_SECONDS = 600.0
_END_SECONDS = 300.0
_PAUSE_SECONDS = 3.0  # Of undisturbed learning between two faults.
_MAX_LOST_FRACTION = 0.001  # Of all unrolls; also of duplicated ones.
_EPISODES = 200
_MAX_RETURN_LOSS = 0.1  # Of mean returns from 0 to 1.
_UNROLL_LENGTH = 20
_FLAGS = (
    "--config=laser:gymnasium",
    "--config.environment.task=examples.own_environment:Corridor-v0",
    "--config.environment.num_workers=1",
    "--config.environment.reply_seconds=10",
    f"--config.cluster.actors={faults.ACTORS}",
    "--config.run.checkpoint_minutes=0.02",
    "--config.run.replay_checkpoint_minutes=0.1",
    "--config.run.evaluation_episodes=0",
    "--config.run.evaluate_every_env_frames=20000",
)


class DisturbedRun:
    """A run on a small disk, or on several machines."""

    def __init__(self, output: pathlib.Path, seed: int, machines: link_cuts.Machines | None = None):
        """Mounts the disk; without machines, the run has its own Ray."""
        self.outcomes: list[results.Outcome] = []
        self.violations: list[str] = []
        self._output = output
        self._stream = random.Random(seed)
        self._machines = machines
        disk = output / "disk"
        disk.mkdir(parents=True)
        flags = [*_FLAGS, "--config.run.env_frames=1000000000"]
        if machines:  # Their processes have their own mounts.
            flags += [f"--config.cluster.address={machines.address}"]
            flags += ["--config.cluster.wait_minutes=3"]
        else:
            self._command("mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "chaos", str(disk))
        python = machines.command() if machines else [sys.executable]
        log = output / "train.log"
        self._run = watched_run.WatchedRun(disk / "run", log, *flags, python=python)

    def disturb(self, kinds: Iterable[str], seconds: float = math.inf) -> None:
        """Injects faults for some seconds, each after the last recovery; then stops the run."""
        run = self._run
        run.start()
        if not run.wait_until(
            lambda: run.is_well() and run.newest_checkpoint() > 0, _START_SECONDS
        ):
            raise TimeoutError(f"the run does not start: {run.roles()}")
        began = time.monotonic()
        for kind in kinds:
            run.wait_until(lambda: False, _PAUSE_SECONDS)
            if time.monotonic() - began > seconds:
                break
            self._inject(kind)
        before = run.newest_checkpoint()
        run.process.send_signal(signal.SIGTERM)
        if (code := run.process.wait(_END_SECONDS)) != -signal.SIGTERM:
            self.violations.append(f"SIGTERM: the run ended with {code}")
        if run.newest_checkpoint() < before:
            self.violations.append("SIGTERM: the run has lost updates")

    def _inject(self, kind: str) -> None:
        run = self._run
        num_resumed, before = len(run.resumed_at()), run.newest_checkpoint()
        outcome = results.Outcome(kind, time.time())
        self.outcomes.append(outcome)
        print(f"{time.strftime('%X')} {kind}: ", end="", flush=True)
        try:
            killed = faults.inject(kind, run, self._stream, self._machines)
            ended, saved = time.time(), run.newest_checkpoint()

            def has_recovered() -> bool:
                is_replaced = not killed or run.process_of(killed[0]) not in (0, killed[1])
                learns = run.newest_checkpoint() > saved and run.is_well(since=ended)
                return learns and is_replaced

            if run.wait_until(has_recovered, PATIENCE_SECONDS):
                outcome.seconds = time.time() - ended
            else:
                self.violations.append(f"{kind}: no recovery: {run.roles()}")
        except (watched_run.EndedError, LookupError) as error:
            self.violations.append(f"{kind}: {error}")
            if run.process.poll() is not None:
                processes.kill_all()
                run.start()
                run.wait_until(run.is_well, _START_SECONDS)
            return
        resumed = run.resumed_at()[num_resumed:]
        if min(resumed, default=before) < before:
            self.violations.append(f"{kind}: resumed at {resumed} of {before} saved updates")
        took = "never" if outcome.seconds is None else f"{outcome.seconds:.1f} s"
        print(f"{took}, resumed at {resumed}, saved {saved}", flush=True)

    def judge(self, *, compare: bool) -> None:
        """Checks the run's files and, if `compare`, its agent against that of another run."""
        kept = self._output / "run"
        shutil.copytree(self._run.workdir, kept)
        self._judge_curves(kept)
        if compare:
            frames = self._evaluate(kept)["env_frames"]
            folders = kept, self._run_undisturbed(frames)
            ours, theirs = (self._evaluate(folder)["mean_return"] for folder in folders)
            print(f"mean return {ours:.3f}, undisturbed {theirs:.3f}, after {frames:,} frames")
            if ours < theirs - _MAX_RETURN_LOSS:
                self.violations.append(f"mean return {ours:.3f}, undisturbed {theirs:.3f}")

    def _judge_curves(self, folder: pathlib.Path) -> None:
        curves = results.read_curves(folder / "tensorboard")
        results.attribute(self.outcomes, curves.steps)
        unrolls = curves.env_frames / _UNROLL_LENGTH
        for name, total in curves.totals.items():
            print(f"{name}: {total:.0f} of {unrolls:,.0f} ({total / max(1, unrolls):.4%})")
            if total > _MAX_LOST_FRACTION * unrolls:
                self.violations.append(f"{name}: {total:.0f} of {unrolls:.0f}")
        if curves.not_finite:
            self.violations.append(f"not finite: {', '.join(sorted(curves.not_finite))}")
        if curves.dropped_updates:
            self.violations.append(f"{curves.dropped_updates:.0f} updates were not finite")

    def _run_undisturbed(self, frames: int) -> pathlib.Path:
        folder = self._output / "undisturbed"
        flags = *_FLAGS, f"--config.run.env_frames={frames}"
        run = watched_run.WatchedRun(folder, self._output / "undisturbed.log", *flags)
        run.start()
        if code := run.process.wait(7_200):
            raise RuntimeError(f"the undisturbed run ended with {code}")
        return folder

    def _evaluate(self, folder: pathlib.Path) -> dict:
        path = folder / "evaluation.json"
        if not path.exists():
            flags = f"--workdir={folder}", f"--episodes={_EPISODES}", "--trust_config"
            self._command(sys.executable, "-m", "launch.evaluate", *flags)
        return json.loads(path.read_text())

    def _command(self, *command: str) -> None:
        log = self._output / "commands.log"
        if code := processes.run(command, log):
            raise RuntimeError(f"{command[0]} ended with {code}, see {log}")
