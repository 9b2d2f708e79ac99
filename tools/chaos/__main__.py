"""Checks that a run on many processes survives faults.

    python -m tools.chaos --minutes=20 --seed=1 --output=/tmp/chaos
    python -m tools.chaos --minutes=0 --power_cuts=50 --damage=20 --output=/tmp/chaos

A run of `launch.train` with four actors and an evaluator suffers all faults of `faults.KINDS`, each
after the recovery from the last one. Its agent is then compared with the agent of an undisturbed
run. Writes `faults.csv` and the run directories, prints a table, and exits with 1 and a list of
violations, if any. Requires Linux, and `unshare` for a small disk.
"""

import argparse
import os
import pathlib
import sys
from collections.abc import Iterator

from tools.chaos import disturbed_run, faults, link_cuts, processes, results, saved_states

_INSIDE = "LASER_TF_CHAOS_INSIDE"  # Environment variable of a command with its own mounts.


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.chaos",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=20.0, help="time for faults; 0: none")
    parser.add_argument("--seed", type=int, default=1, help="seed of the order of faults")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="new directory")
    parser.add_argument(
        "--link_cuts", type=int, default=0, help="cuts of a machine with two actors"
    )
    parser.add_argument("--power_cuts", type=int, default=0, help="kills while a run saves itself")
    parser.add_argument("--damage", type=int, default=0, help="damages of a saved file")
    return parser.parse_args()


def _enter_own_mounts() -> None:
    """Restarts this command in a mount namespace, in which it can mount a small disk."""
    if _INSIDE in os.environ:
        return
    os.environ[_INSIDE] = "1"
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    command = ["unshare", "--mount", "--propagation=private", *rights]
    os.execvp(command[0], [*command, sys.executable, "-m", "tools.chaos", *sys.argv[1:]])


def main() -> int:
    """Runs all parts; returns the exit code."""
    arguments = _parse()
    _enter_own_mounts()
    arguments.output.mkdir(parents=True)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    processes.adopt_orphans()
    try:
        parts = list(_run(arguments, arguments.output.absolute(), arguments.seed))
    finally:
        processes.kill_all()
    table = results.summarise([outcome for part in parts for outcome in part.outcomes])
    table.to_csv(arguments.output / "faults.csv", index=False)
    print(table.to_string(index=False))
    violations = [violation for part in parts for violation in part.violations]
    for violation in violations:
        print(f"VIOLATED: {violation}")
    return 1 if violations else 0


def _run(
    arguments: argparse.Namespace, output: pathlib.Path, seed: int
) -> Iterator[disturbed_run.DisturbedRun | saved_states.SavedStates]:
    """Runs all parts; yields each at its end."""
    if arguments.minutes:
        run = disturbed_run.DisturbedRun(output / "faults", seed)
        run.disturb(faults.shuffle(seed), 60 * arguments.minutes)
        run.judge(compare=True)
        yield run
    if arguments.link_cuts:
        machines = link_cuts.Machines(output / "machines.log", faults.ACTORS + 1, 2)
        with machines.running():
            run = disturbed_run.DisturbedRun(output / "links", seed, machines)
            run.disturb([faults.LINK_CUT] * arguments.link_cuts)
            run.judge(compare=False)
        yield run
    if arguments.power_cuts:
        states = saved_states.SavedStates(output / "power_cuts", seed, saved_states.ALWAYS)
        states.cut_power(arguments.power_cuts)
        yield states
    if arguments.damage:
        states = saved_states.SavedStates(output / "damage", seed, saved_states.OFTEN)
        states.damage(arguments.damage)
        yield states


if __name__ == "__main__":
    sys.exit(main())
