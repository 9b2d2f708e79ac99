"""A run on many processes that suffers faults, and the conditions that must hold for it."""

import json
import math
import pathlib
import shutil
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
_MAX_MEBIBYTES_PER_MINUTE = 1.0  # After the warm-up.
_MIN_OBSERVED_MINUTES = 3.0  # For a judgement of memory.
_WARM_UP_SECONDS = 120.0
_EPISODES = 200
_MAX_RETURN_LOSS = 0.1  # Of mean returns from -1 to 1.
_UNROLL_LENGTH = 10
_FLAGS = (
    "--config=tools/chaos/hanging_catch.py",
    f"--config.cluster.actors={faults.ACTORS}",
    "--config.run.checkpoint_minutes=0.02",
    "--config.run.replay_checkpoint_minutes=0.1",
    "--config.run.metrics_seconds=2",
    "--config.run.evaluation_episodes=0",
    "--config.run.evaluate_every_env_frames=20000",
)


class DisturbedRun:
    """A run on a small disk."""

    def __init__(self, output: pathlib.Path, seed: int, machines: link_cuts.Machines | None = None):
        """Mounts the disk.

        Args:
          output: Directory.
          seed: Seed of the faults.
          machines: Machines of the run; None: it has its own Ray.
        """
        self.outcomes: list[results.Outcome] = []
        self.violations: list[str] = []
        self._output = output
        disk = output / "disk"
        disk.mkdir(parents=True)
        hang_file = output / "hang"
        flags = [*_FLAGS, f"--config.environment.arguments=hang_file='{hang_file}'"]
        if machines:  # Their processes have their own mounts.
            flags += [f"--config.cluster.address={machines.address}"]
            flags += ["--config.cluster.wait_minutes=3"]
        else:
            self._command("mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "chaos", str(disk))
        self._run = watched_run.WatchedRun(
            disk / "run",
            output / "train.log",
            *flags,
            "--config.run.env_frames=1000000000",
            python=machines.command() if machines else [sys.executable],
        )
        self._injector = faults.Injector(self._run, hang_file, seed, machines)

    def disturb(self, kinds: Iterable[str], seconds: float = math.inf) -> None:
        """Injects faults, each after the recovery from the last one; then stops the run.

        Args:
          kinds: Kinds of faults.
          seconds: Time after which no fault is injected.
        """
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
        if (code := run.end(_END_SECONDS)) != -15:
            self.violations.append(f"SIGTERM: the run ended with {code}")
        if run.newest_checkpoint() < before:
            self.violations.append("SIGTERM: the run has lost updates")

    def _inject(self, kind: str) -> None:
        run = self._run
        num_resumed = len(run.resumed_at())
        pace, before = self._pace(), run.newest_checkpoint()
        outcome = results.Outcome(kind, time.time())
        self.outcomes.append(outcome)
        print(f"{time.strftime('%X')} {kind}: ", end="", flush=True)
        try:
            killed = self._injector.inject(kind)
            ended, saved = time.time(), run.newest_checkpoint()
            age = run.checkpoint_age(saved)

            def has_recovered() -> bool:
                learns = run.newest_checkpoint() > saved and run.is_well(since=ended)
                return learns and self._injector.is_replaced(killed)

            if run.wait_until(has_recovered, PATIENCE_SECONDS):
                outcome.seconds = time.time() - ended
            else:
                self.violations.append(f"{kind}: no recovery: {run.roles()}")
        except (watched_run.EndedError, LookupError) as error:
            self.violations.append(f"{kind}: {error}")
            if run.has_ended:
                processes.kill_all()
                run.start()
                run.wait_until(run.is_well, _START_SECONDS)
            return
        resumed = run.resumed_at()[num_resumed:]
        for number in resumed:
            outcome.lost_updates = max(outcome.lost_updates, pace * age)
            if number < before:
                self.violations.append(f"{kind}: resumed at {number} of {before} saved updates")
        took = "never" if outcome.seconds is None else f"{outcome.seconds:.1f} s"
        print(f"{took}, resumed at {resumed}, saved {saved}", flush=True)

    def _pace(self) -> float:
        """Returns updates per second, measured over some seconds."""
        before, began = self._run.newest_checkpoint(), time.monotonic()
        self._run.wait_until(lambda: False, 4.0)
        return (self._run.newest_checkpoint() - before) / (time.monotonic() - began)

    def judge(self, *, compare: bool) -> None:
        """Checks the run's files and, if `compare`, its agent against that of another run."""
        kept = self._output / "run"
        shutil.copytree(self._run.workdir, kept)
        self._judge_curves(kept)
        slopes = results.memory_slopes(self._run.memory, _WARM_UP_SECONDS)
        for role, (slope, minutes) in slopes.items():
            print(f"memory of {role}: {slope:+.2f} MiB per minute over {minutes:.1f} minutes")
            if slope > _MAX_MEBIBYTES_PER_MINUTE and minutes > _MIN_OBSERVED_MINUTES:
                self.violations.append(f"{role} grows by {slope:.2f} MiB per minute")
        if compare:
            frames = self._evaluate(kept)["env_frames"]
            folders = kept, self._run_undisturbed(frames)
            ours, theirs = (self._evaluate(folder)["mean_return"] for folder in folders)
            print(f"mean return {ours:.3f}, undisturbed {theirs:.3f}, after {frames:,} frames")
            if ours < theirs - _MAX_RETURN_LOSS:
                self.violations.append(f"mean return {ours:.3f}, undisturbed {theirs:.3f}")

    def _judge_curves(self, folder: pathlib.Path) -> None:
        curves = results.Curves(folder / "tensorboard")
        results.attribute(self.outcomes, curves.steps)
        unrolls = curves.env_frames / _UNROLL_LENGTH
        for name, total in curves.totals().items():
            print(f"{name}: {total:.0f} of {unrolls:,.0f} ({total / max(1, unrolls):.4%})")
            if total > _MAX_LOST_FRACTION * unrolls:
                self.violations.append(f"{name}: {total:.0f} of {unrolls:.0f}")
        if curves.not_finite:
            self.violations.append(f"not finite: {', '.join(sorted(curves.not_finite))}")
        if curves.dropped_updates:
            self.violations.append(f"{curves.dropped_updates:.0f} updates were not finite")

    def _run_undisturbed(self, frames: int) -> pathlib.Path:
        folder = self._output / "undisturbed"
        log = self._output / "undisturbed.log"
        run = watched_run.WatchedRun(folder, log, *_FLAGS, f"--config.run.env_frames={frames}")
        run.start()
        if code := run.wait(7_200):
            raise RuntimeError(f"the undisturbed run ended with {code}")
        return folder

    def _evaluate(self, folder: pathlib.Path) -> dict:
        path = folder / "evaluation.json"
        if not path.exists():
            self._command(
                sys.executable, "-m", "launch.evaluate", f"--workdir={folder}",
                f"--episodes={_EPISODES}",
            )  # fmt: skip
        return json.loads(path.read_text())

    def _command(self, *command: str) -> None:
        log = self._output / "commands.log"
        if code := processes.run(command, log):
            raise RuntimeError(f"{command[0]} ended with {code}, see {log}")
