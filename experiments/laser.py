"""Figures of LASER: sweeps whose members share one replay or not (Schmitt et al. 2020)."""

import functools
import pathlib

from experiments import base
from laser_tf.plotting import sharing, sweep_report, tables

_OWN_REPLAY: base.Overrides = {"sweep.shared_replay": False}
_NO_TRUST_REGION: base.Overrides = {"agent.trust_region": "none"}
_ONLINE_UNROLLS = 2  # in a batch of `sweeps:minatar`; equal in all conditions
_ONLINE: base.Overrides = {"replay.scheme": "online", "replay.batch_size": _ONLINE_UNROLLS}

_NO_REPLAY = base.Condition("no replay", _OWN_REPLAY | _NO_TRUST_REGION | _ONLINE)
_SHARED_NO_TRUST_REGION = base.Condition("shared replay, no trust region", _NO_TRUST_REGION)
_SHARED = base.Condition("shared replay, trust region")
_SEPARATE = base.Condition("a replay each, trust region", _OWN_REPLAY)


def _draw(runs: tables.Runs, output: pathlib.Path) -> None:
    del runs  # found in the directory above the report
    sweep_report.write(output.parent, output)


def _figure(
    *conditions: base.Condition, overrides: base.Overrides | None = None
) -> base.Experiment:
    return base.Experiment(
        config="sweeps:minatar",
        tasks=("breakout", "space_invaders"),
        conditions=conditions,
        overrides=overrides or {},
        draw=_draw,
    )


def _threshold(b: float) -> base.Overrides:
    return {"agent.trust_region": "implied", "agent.kl_threshold": b}  # nats


# The members with a replay each have no trust region, either: they differ from naive sharing in the
# sharing alone.
_COMPARED: dict[str, base.Overrides] = {
    "a replay each": _NO_TRUST_REGION | _OWN_REPLAY,
    "naive sharing": _NO_TRUST_REGION,
    **{f"sharing, b = {b}": _threshold(b) for b in (0.3, 0.1, 0.03)},
}

EXPERIMENTS = {
    # What online experience in the batch is worth (section 5.3).
    "laser_2_left": _figure(
        base.Condition(
            "all from replay",
            _OWN_REPLAY
            | {
                "agent.entropy_on_replay": True,
                "replay.scheme": "replay_only",
                # One update for each 2 unrolls of 20 agent steps, as in the other conditions.
                "replay.steps_per_update": _ONLINE_UNROLLS * 20,
            },
        ),
        *(
            base.Condition(
                f"{fraction:.1%} replay",
                _OWN_REPLAY
                | {
                    "replay.batch_size": round(_ONLINE_UNROLLS / (1 - fraction)),
                    "replay.replay_fraction": fraction,
                },
            )
            for fraction in (0.875, 0.75, 0.5)
        ),
        base.Condition("0.0% replay", _OWN_REPLAY | _ONLINE),
    ),
    # Capacity of the replay in agent steps (section 5.3).
    "laser_2_right": _figure(
        *(
            base.Condition(f"capacity {capacity:,}", _OWN_REPLAY | {"replay.capacity": capacity})
            for capacity in (10_000, 50_000, 250_000)
        )
    ),
    # Shared experience with and without the trust region (section 5.4).
    "laser_3_left": _figure(_NO_REPLAY, _SHARED_NO_TRUST_REGION, _SHARED),
    # Population-based training with separate and shared replay.
    "laser_3_right": _figure(
        _NO_REPLAY,
        _SEPARATE,
        _SHARED,
        overrides={
            "population.method": "pbt",
            # A copied member may get older than the run: its schedule must not end with the run.
            "learner.learning_rate_schedule": "constant",
        },
    ),
    # Figure 3 on five games at once, with settings that differ a thousandfold. Fixed before the
    # first run: a member's score is the median over its games of the mean return of the last 100
    # training episodes, where random play is 0 and LASER alone on the game is 1. All members are
    # reported. Conditions are compared by each sweep's best and median member, and by the number of
    # members at or below random play, each as the mean over seeds.
    "laser_3_multitask": base.Experiment(
        config="sweeps:minatar_multitask",
        conditions=(
            _NO_REPLAY,
            # Differs from naive sharing in the sharing only.
            base.Condition("a replay each, no trust region", _OWN_REPLAY | _NO_TRUST_REGION),
            _SHARED_NO_TRUST_REGION,
            *(base.Condition(f"shared replay, b = {b}", _threshold(b)) for b in (0.1, 0.03)),
        ),
        draw=_draw,
    ),
    # Larger clips are no substitute for the trust region (section A.1).
    "laser_4_left": _figure(
        _NO_REPLAY,
        *(
            base.Condition(
                f"shared replay, rho_bar {rho_bar}", _NO_TRUST_REGION | {"agent.rho_bar": rho_bar}
            )
            for rho_bar in (1.0, 2.0, 4.0)
        ),
    ),
    # Conditions in which naive sharing should hurt: two normal members next to eight with a
    # learning rate far too high on catch, or to four that get stuck on ViZDoom. On catch, each
    # condition has the environment's own rewards, or 1 more a step, which makes all returns
    # positive.
    #
    # Fixed before the first run: a member's score is its mean return over its last 100 training
    # episodes, without the offset, so that random play is at -0.6 everywhere. A seed counts by the
    # mean of its two normal members. Conditions are compared by their mean over seeds with its
    # bootstrap interval, and by the seeds that failed: below 0 on catch, whose members miss more
    # balls than they catch, and below random play on ViZDoom. All members are reported, and whether
    # the companions did collapse: to an entropy near 0 and the return of random play.
    "sharing": base.Experiment(
        config="sweeps:catch_companions",
        conditions=tuple(
            base.Condition(label + ending, overrides | {"environment.reward_offset": offset})
            for ending, offset in (("", 0.0), (", +1 a step", 1.0))
            for label, overrides in _COMPARED.items()
        ),
        draw=functools.partial(sharing.write, failed_below=0.0),
    ),
    # With a memory, on health_gathering. The companions have hardly an entropy cost, either.
    "sharing_vizdoom": base.Experiment(
        config="sweeps:vizdoom",
        conditions=tuple(base.Condition(*compared) for compared in _COMPARED.items()),
        draw=functools.partial(sharing.write, failed_below=384.0),  # return of 200 random episodes
    ),
}
