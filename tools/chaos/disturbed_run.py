"""A run on many processes, disturbed, and what has to hold of it."""

import json
import math
import pathlib
import shutil
import sys
import time
from collections.abc import Iterable

from tools.chaos import descendants, faults, link_cuts, memory, outcomes, watched_run

_DISK_BYTES = 512 * 2**20
_START_SECONDS = 600.0
_END_SECONDS = 300.0
_PAUSE_SECONDS = 3.0  # of undisturbed learning between two faults
_MOST_LOST = 0.001  # of all unrolls; and duplicated
_MOST_MEBIBYTES = 1.0  # a minute, after the warm-up
_LEAST_MINUTES = 3.0  # of observation, for a word on memory
_WARM_UP_SECONDS = 120.0
_EPISODES = 200
_MOST_DIFFERENCE = 0.1  # of mean returns from -1 to 1
_UNROLL_LENGTH = 10
_FLAGS = (
    "--config=tools/chaos/hanging_catch_config.py",
    f"--config.cluster.actors={faults.ACTORS}",
    "--config.run.checkpoint_minutes=0.02",
    "--config.run.replay_checkpoint_minutes=0.1",
    "--config.run.metrics_seconds=2",
    "--config.run.evaluation_episodes=0",
    "--config.run.evaluate_every_env_frames=20000",
)


def _on(machines: link_cuts.Machines) -> list[str]:
    return [f"--config.cluster.address={machines.address}", "--config.cluster.wait_minutes=3"]


class DisturbedRun:
    """On a small disk of its own."""

    def __init__(
        self,
        output: pathlib.Path,
        seed: int,
        patience: float,
        machines: link_cuts.Machines | None = None,
    ):
        """Mounts a small disk, where it fills one.

        Args:
          output: a folder.
          seed: of what faults draw.
          patience: seconds that a recovery may take.
          machines: that the run is spread over; None: it has a Ray of its own.
        """
        self.outcomes: list[outcomes.Outcome] = []
        self.violations: list[str] = []
        self._output = output
        self._patience = patience
        disk = output / "disk"
        disk.mkdir(parents=True)
        if not machines:  # whose processes have mounts of their own
            self._command("mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "chaos", str(disk))
        hang_file = output / "hang"
        self._run = watched_run.WatchedRun(
            disk / "run",
            output / "train.log",
            *_FLAGS,
            "--config.run.env_frames=1000000000",
            f"--config.environment.arguments=hang_file='{hang_file}'",
            *(_on(machines) if machines else []),
            python=machines.command() if machines else [sys.executable],
        )
        self._injector = faults.Injector(self._run, hang_file, seed, machines)

    def disturb(self, kinds: Iterable[str], seconds: float = math.inf) -> None:
        """Does faults, each after the recovery from the last one; then ends the run in order.

        Args:
          kinds: of faults.
          seconds: after which no other one is begun.
        """
        run = self._run
        run.start()
        if not run.wait_until(
            lambda: run.is_well() and run.newest_checkpoint() > 0, _START_SECONDS
        ):
            raise TimeoutError(f"the run does not begin: {run.roles()}")
        began = time.monotonic()
        for kind in kinds:
            run.wait_until(lambda: False, _PAUSE_SECONDS)
            if time.monotonic() - began > seconds:
                break
            self._suffer(kind)
        before = run.newest_checkpoint()
        if (code := run.end(_END_SECONDS)) != -15:
            self.violations.append(f"the run ended with {code} when it was told to")
        if run.newest_checkpoint() < before:
            self.violations.append("the run's end has lost updates")

    def _suffer(self, kind: str) -> None:
        run = self._run
        resumed = len(run.resumed_at())
        pace = self._pace()
        before = run.newest_checkpoint()
        outcome = outcomes.Outcome(kind, time.time())
        self.outcomes.append(outcome)
        print(f"{time.strftime('%X')} {kind}: ", end="", flush=True)
        try:
            killed = self._injector.inject(kind)
            ended, saved = time.time(), run.newest_checkpoint()
            age = run.checkpoint_age(saved)

            def goes_on() -> bool:
                learns = run.newest_checkpoint() > saved and run.is_well(since=ended)
                return learns and self._injector.is_replaced(killed)

            if run.wait_until(goes_on, self._patience):
                outcome.seconds = time.time() - ended
            else:
                self.violations.append(
                    f"{kind}: not over after {self._patience:.0f} s: {run.roles()}"
                )
        except (watched_run.EndedError, LookupError) as error:
            self.violations.append(f"{kind}: {error}")
            if run.has_ended:
                descendants.kill_all()
                run.start()
                run.wait_until(run.is_well, _START_SECONDS)
            return
        for number in run.resumed_at()[resumed:]:
            outcome.lost_updates = max(outcome.lost_updates, pace * age)
            if number < before:
                self.violations.append(
                    f"{kind}: the learner resumed at {number} updates, {before} were saved"
                )
        took = "never" if outcome.seconds is None else f"{outcome.seconds:.1f} s"
        print(f"{took}, resumed at {run.resumed_at()[resumed:]}, saved {saved}", flush=True)

    def _pace(self) -> float:
        """Updates a second, over some seconds."""
        before, began = self._run.newest_checkpoint(), time.monotonic()
        self._run.wait_until(lambda: False, 4.0)
        return (self._run.newest_checkpoint() - before) / (time.monotonic() - began)

    def judge(self, baseline: pathlib.Path | None, *, compare: bool) -> None:
        """Looks at what the run has left; keeps it, less its checkpoints of replay."""
        kept = self._output / "run"
        shutil.copytree(self._run.workdir, kept)
        self._judge_curves(kept)
        self._judge_memory()
        if compare:
            frames = self._evaluate(kept)["env_frames"]
            folder = baseline or self._undisturbed(frames)
            ours, theirs = (self._evaluate(path)["mean_return"] for path in (kept, folder))
            print(f"mean return {ours:.3f}, undisturbed {theirs:.3f}, after {frames:,} frames")
            if ours < theirs - _MOST_DIFFERENCE:
                self.violations.append(f"mean return {ours:.3f}, undisturbed {theirs:.3f}")

    def _judge_curves(self, folder: pathlib.Path) -> None:
        from tools.chaos import measurements  # TensorFlow

        curves = measurements.Curves(folder / "tensorboard")
        outcomes.attribute(self.outcomes, curves.steps)
        unrolls = curves.env_frames / _UNROLL_LENGTH
        for name in curves.steps:
            total = curves.total(name)
            print(f"{name}: {total:.0f} of {unrolls:,.0f} ({total / max(1, unrolls):.4%})")
            if total > _MOST_LOST * unrolls:
                self.violations.append(f"{name}: {total:.0f} of {unrolls:.0f}")
        if curves.not_finite:
            self.violations.append(f"not finite: {', '.join(sorted(curves.not_finite))}")
        if curves.dropped_updates:
            self.violations.append(f"{curves.dropped_updates:.0f} updates were not finite")

    def _judge_memory(self) -> None:
        slopes = memory.slopes(self._run.memory, _WARM_UP_SECONDS)
        for role, (slope, minutes) in slopes.items():
            print(f"memory of {role}: {slope:+.2f} MiB a minute over {minutes:.1f} minutes")
            if slope > _MOST_MEBIBYTES and minutes > _LEAST_MINUTES:
                self.violations.append(f"{role} grows by {slope:.2f} MiB a minute")

    def _undisturbed(self, frames: int) -> pathlib.Path:
        folder = self._output / "undisturbed"
        run = watched_run.WatchedRun(
            folder,
            self._output / "undisturbed.log",
            *_FLAGS,
            f"--config.run.env_frames={frames}",
        )
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
        if code := descendants.run(command, log):
            raise RuntimeError(f"{command[0]} ended with {code}, see {log}")
