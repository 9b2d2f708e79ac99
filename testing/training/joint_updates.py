"""Learners that train on known batches: one alone, or one of several in separate processes.

    python -m testing.training.joint_updates --output=FILE --cases=laser,r2d2 ...

writes the results of `learn` by case. With --addresses=A,B and --index=0 or 1 the process is one of
two learners; without addresses the learners are two devices.
"""

import argparse
import pathlib
import pickle
import sys
import time
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from dm_env import specs

from laser_tf import errors, observations, types
from laser_tf.agents import base, registry
from laser_tf.replay import stored_unroll
from laser_tf.training import (
    learner,
    learner_checkpoints,
    learner_config,
    named_variables,
    strategies,
)

BATCH, STEPS, UPDATES, TASKS = 8, 5, 5, 3
BURN_IN, PARTS = 2, 2  # of R2D2's sequences
NEW_STEPS = 48
LEARNERS = 2
SPEC = types.EnvironmentSpec(
    {"image": observations.image_spec(4, 3, 1), "vector": specs.Array([3], np.float32, "vector")},
    specs.DiscreteArray(3, name="action"),
    TASKS,
)


class Case(NamedTuple):
    """An agent, its optimiser and what is wrong with its batches."""

    agent: dict[str, Any]
    learner: dict[str, Any] = {}  # noqa: RUF012 (never changed)
    nan_at: tuple[int, ...] = ()  # updates in whose batch the last entry's rewards are NaN


_Q_NETWORK = {
    "torso": "flat",
    "mlp_units": (8,),
    "core_size": 6,
    "hidden_units": 8,
    "target_period": 2,
}
_LASER = {
    "name": "laser",
    "torso": "flat",
    "mlp_units": (8,),
    "trust_region": "implied",
    "kl_threshold": 0.5,
}
CASES = {
    "laser": Case(
        _LASER | {"core": "lstm", "core_size": 6, "popart": True, "popart_step": 0.1},
        nan_at=(1, 2),
    ),
    "clipped": Case(
        _LASER | {"normalise_vectors": False},
        {"gradient_clip": 0.5, "rmsprop_epsilon": 1.0, "learning_rate": 1.0},
    ),
    "r2d2": Case(
        {"name": "r2d2"} | _Q_NETWORK,
        {"optimizer": "adam", "gradient_clip": 40.0},
    ),
    "reactor": Case(
        {"name": "reactor", "bins": 7} | _Q_NETWORK,
        {"optimizer": "adam", "adam_beta1": 0.0},
    ),
}


def make(
    case: Case,
    strategy: tf.distribute.Strategy | None = None,
    *,
    dtype: str = "float32",
    jit: bool = False,
) -> learner.Learner:
    """Returns a learner with the same initial weights in every process."""
    tf.keras.utils.set_random_seed(1)
    kind = case.agent["name"]
    context = base.AgentContext(SPEC, dtype=dtype, burn_in=BURN_IN if kind == "r2d2" else 0)
    settings = {"learning_rate": 1e-2} | case.learner
    with strategies.variables(strategy):
        return learner.Learner(
            registry.make(registry.config_class(kind)(**case.agent), context),
            learner_config.LearnerConfig(**settings),
            total_agent_steps=10 * NEW_STEPS * UPDATES,
            jit=jit,
            strategy=strategy,
        )


def batch(case: Case, made: learner.Learner, number: int) -> stored_unroll.Batch:
    """Returns the joint batch of an update, with random and different entries."""
    generator = np.random.default_rng([7, number])
    size = (BATCH, STEPS + 1)
    reward = generator.normal(1, 2, size).astype(np.float32)
    reward *= np.linspace(0.1, 5, BATCH, dtype=np.float32)[:, None]
    if number in case.nan_at:
        reward[-1] = np.nan
    is_first = generator.uniform(size=size) < 0.15
    vector = generator.normal(3, 2, (*size, 3)) + np.arange(BATCH)[:, None, None]
    logits = generator.normal(0, 0.5, (*size, 3)).astype(np.float32)
    env_output = types.EnvOutput(
        {
            "image": generator.integers(0, 256, (*size, 4, 3, 1)).astype(np.uint8),
            "vector": vector.astype(np.float32),
        },
        reward,
        (generator.uniform(size=size) < 0.9).astype(np.float32),
        is_first,
        generator.integers(0, 3, size).astype(np.int32),
    )
    agent_output = types.AgentOutput(generator.integers(0, 3, size).astype(np.int32), logits)
    is_r2d2 = case.agent["name"] == "r2d2"
    if is_r2d2:
        agent_output = agent_output._replace(policy=(), extras=logits)

    def states(*leading: int) -> Any:
        return tf.nest.map_structure(
            lambda zeros: generator.normal(0, 1, (*leading, zeros.shape[-1])).astype(np.float32),
            made.agent.initial_state(1),
        )

    unrolls = stored_unroll.StoredUnroll(
        env_output,
        agent_output,
        core_state=states(BATCH),
        next_core_state=(),
        task=(np.arange(BATCH) % 2 * 2).astype(np.int32),  # a task is absent
        member=np.zeros(BATCH, np.int32),
        learner_update=np.zeros(BATCH, np.int64),
        new_steps=np.zeros(BATCH, np.int64),
        stream=np.zeros(BATCH, np.int64),
        number=np.arange(BATCH),
    )
    # The second half has no online entries.
    whole = stored_unroll.unweighted(unrolls, np.arange(BATCH) < 3, NEW_STEPS)
    weights = generator.uniform(0.2, 1, BATCH).astype(np.float32)
    stored = states(BATCH, PARTS + 1) if is_r2d2 else ()
    return whole._replace(importance_weight=weights, stored_states=stored)


def part(whole: stored_unroll.Batch, index: int, processes: int) -> stored_unroll.Batch:
    """Returns the entries of a joint batch for one of several processes."""
    size = BATCH // processes
    entries = tf.nest.map_structure(
        lambda leaf: leaf[index * size : (index + 1) * size], whole._replace(new_steps=())
    )
    return entries._replace(new_steps=np.int64(NEW_STEPS // processes))


def learn(
    case: Case, strategy: tf.distribute.Strategy | None, index: int = 0, processes: int = 1
) -> dict[str, Any]:
    """Takes `UPDATES` updates; returns metrics, priorities, variables and differing copies."""
    made = make(case, strategy)
    updates, metrics = [], []
    for number in range(UPDATES):
        whole = batch(case, made, number)
        updates.append(made.update(part(whole, index, processes) if processes > 1 else whole))
        assert updates[-1].new_steps == NEW_STEPS, updates[-1]
        metrics.append(made.metrics())
    return {
        "metrics": metrics,
        "priorities": np.array([update.priorities for update in updates]),
        "variables": arrays(made),
        "copies_differ": differing_copies(made),
    }


def arrays(made: learner.Learner) -> dict[str, np.ndarray]:
    """Returns the values of a checkpoint by name."""
    return {name: value.numpy() for name, value in named_variables.walk(made, "learner", {})}


def differing_copies(made: learner.Learner) -> list[str]:
    """Returns names of variables whose copies on the replicas are not bit-identical."""
    return [
        name
        for name, variable in named_variables.walk(made, "learner", {})
        for copy in getattr(variable, "values", ())
        if not np.array_equal(copy.numpy(), variable.numpy())
    ]


def _exchange(made: learner.Learner, index: int, output: pathlib.Path) -> dict[str, Any]:
    """Resumes the chief from one learner's checkpoint, and the other learner from the chief."""
    if index == 0:
        learner_checkpoints.LearnerCheckpoints(output.parent / "one", made).restore()
    before = arrays(made)
    made.broadcast_from_chief()
    taken = arrays(made)
    made.update(part(batch(CASES["r2d2"], made, UPDATES), index, 2))
    if index == 0:
        made.counters.wall_seconds.assign_add(1.5)
        learner_checkpoints.LearnerCheckpoints(output.parent / "several", made).save(7)
    agree = [made.all_agree(True), made.all_agree(index == 0), made.all_agree(False)]
    return {"before": before, "taken": taken, "agree": agree, "after": arrays(made)}


def _learn_endlessly(made: learner.Learner, index: int, processes: int) -> None:
    case = CASES["clipped"]
    for number in range(10**9):
        made.update(part(batch(case, made, number), index, processes))
        print(f"update {number}", flush=True)
        time.sleep(0.01)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--cases", default="")
    parser.add_argument("--addresses", default="")
    parser.add_argument("--index", type=int, default=0)
    parser.add_argument("--endless", action="store_true")
    arguments = parser.parse_args()
    addresses = arguments.addresses.split(",") if arguments.addresses else []
    processes, index = max(1, len(addresses)), arguments.index
    try:
        config = learner_config.LearnerConfig(num_devices=LEARNERS // processes)
        strategy = strategies.make(config, addresses, index)
        if arguments.endless:
            _learn_endlessly(make(CASES["clipped"], strategy), index, processes)
        results = {
            name: learn(CASES[name], strategy, index, processes)
            for name in arguments.cases.split(",")
        }
        if processes > 1:
            made = make(CASES["r2d2"], strategy)
            results["exchange"] = _exchange(made, index, arguments.output)
    except errors.UserError as error:
        sys.exit(str(error))
    arguments.output.write_bytes(pickle.dumps(results))


if __name__ == "__main__":
    main()
