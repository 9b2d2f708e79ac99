"""Does a run on many processes survive what may happen to it?

    python -m tools.chaos --minutes=20 --seed=1 --output=/tmp/chaos
    python -m tools.chaos --minutes=0 --power_cuts=50 --damage=20 --output=/tmp/chaos

A real run of `launch.train` with four actors and an evaluator is hurt in all ways of
`faults.KINDS`, each time when it has recovered from the last one; then its agent is compared with
that of a run which nobody has disturbed. Writes `faults.csv` and the runs' folders, prints a table,
and ends with 1 and a list of what should not be. Needs Linux, and `unshare` for a disk of its own.
"""

import argparse
import os
import pathlib
import sys

from tools.chaos import descendants, disturbed_run, faults, link_cuts, outcomes

_INSIDE = "LASER_TF_CHAOS_INSIDE"  # environment variable: the mounts are this command's own


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.chaos",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=20.0, help="of faults; 0: none")
    parser.add_argument("--seed", type=int, default=1, help="of the faults' order")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="a new folder")
    parser.add_argument("--only", default="", help="faults that match, e.g. 'disk|hub'")
    parser.add_argument("--patience", type=float, default=300.0, help="seconds to recover in")
    parser.add_argument("--baseline", type=pathlib.Path, help="an undisturbed run's folder")
    parser.add_argument("--no_baseline", action="store_true", help="compare with no other run")
    parser.add_argument("--link_cuts", type=int, default=0, help="of a machine with two actors")
    parser.add_argument("--power_cuts", type=int, default=0, help="while a small run saves itself")
    parser.add_argument("--damage", type=int, default=0, help="times that a saved file is damaged")
    return parser.parse_args()


def _enter_own_mounts() -> None:
    """Starts again where a small disk can be mounted that goes with the process."""
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
    output = arguments.output.absolute()
    try:
        output.mkdir(parents=True)
    except FileExistsError:
        print(f"error: {output} is there already: use another --output", file=sys.stderr)
        return 1
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    descendants.adopt_orphans()
    seed, patience = arguments.seed, arguments.patience
    suffered: list[outcomes.Outcome] = []
    violations: list[str] = []
    try:
        if arguments.minutes:
            run = disturbed_run.DisturbedRun(output / "faults", seed, patience)
            run.disturb(faults.draw(seed, arguments.only), 60 * arguments.minutes)
            run.judge(arguments.baseline, compare=not arguments.no_baseline)
            suffered += run.outcomes
            violations += run.violations
        if arguments.link_cuts:
            machines = link_cuts.Machines(output / "machines.log", faults.ACTORS + 1, 2)
            with machines.running():
                run = disturbed_run.DisturbedRun(output / "links", seed, patience, machines)
                run.disturb([faults.LINK_CUT] * arguments.link_cuts)
                run.judge(None, compare=False)
            suffered += run.outcomes
            violations += run.violations
        if arguments.power_cuts or arguments.damage:
            from tools.chaos import saved_states  # TensorFlow

            make = saved_states.SavedStates
            cut = make(output / "power_cuts", seed, patience, saved_states.ALWAYS)
            damaged = make(output / "damage", seed, patience, saved_states.OFTEN)
            cut.cut_power(arguments.power_cuts)
            if arguments.damage:
                damaged.damage(arguments.damage)
            suffered += cut.outcomes + damaged.outcomes
            violations += cut.violations + damaged.violations
    finally:
        descendants.kill_all()
    table = outcomes.rows(suffered)
    outcomes.write(output / "faults.csv", table)
    print(outcomes.markdown(table))
    for violation in violations:
        print(f"VIOLATED: {violation}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
