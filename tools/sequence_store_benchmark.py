"""Measures the learner's store of sequences: memory by compression, and the pace of its operations.

python -m tools.sequence_store_benchmark
python -m tools.sequence_store_benchmark --keys=1000000 --task=breakout

Unrolls are those of random play. The store is as a long run leaves it: full, half of its sequences
with a priority; all of them refer to the few unrolls that were played, which saves memory and
changes no time. Processor time, not the wall's, so that other work does not count.
"""

import collections
import json
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tree
from absl import app, flags

from configs import r2d2
from laser_tf.agents import base as agents_base
from laser_tf.environments import base as env_base
from laser_tf.environments import factory
from laser_tf.replay import (
    sequence_store,
    stored_unroll,
    writers,
)
from laser_tf.replay.schemes import contextual
from laser_tf.replay.schemes import registry as schemes
from laser_tf.training import actor, assembly, run_config

_KEYS = flags.DEFINE_list("keys", ["100000", "1000000"], "sequences in the store")
_REPEATS = flags.DEFINE_integer("repeats", 300, "times that each operation is done")
_TASK = flags.DEFINE_string("task", "pong", "an Atari game")

_PLAYED = 20  # unrolls of each game
_LEVELS = (1, 3, 6)  # of zlib


def main(_: list[str]) -> None:
    """Prints a JSON object for each level of compression and each number of sequences."""
    values = r2d2.get_config("atari").to_dict()
    values["environment"]["task"] = _TASK.value
    values["replay"] = schemes.switched(values["replay"], "contextual") | {"priority_exponent": 0.9}
    config = run_config.parse(values)
    environment = factory.make_environment(config.environment, seed=1)
    agent = assembly.build_agent(config, environment.spec(), "float32", seed=1)
    signature = assembly.unroll_signature(config, environment.spec(), agent)
    unrolls = _play(config, environment, agent, signature)
    for level in _LEVELS:
        print(json.dumps(_packing(unrolls, level, config.replay.unroll_length)), flush=True)
    for keys in map(int, _KEYS.value):
        print(json.dumps(_operations(values, signature, unrolls, keys)), flush=True)


def _play(
    config: run_config.RunConfig,
    environment: env_base.BatchedEnvironment,
    agent: agents_base.Agent,
    signature: stored_unroll.StoredUnroll,
) -> list[stored_unroll.StoredUnroll]:
    """Unrolls in a row, those of each game behind each other."""
    policy = actor.ActingPolicy(agent, environment, config.replay.frame_stack)
    buffer = writers.UnrollBuffer(signature, environment.task_ids)
    games: list[list[stored_unroll.StoredUnroll]] = [[] for _ in range(environment.num_envs)]
    env_output, first = environment.reset(), 0
    for _ in range(_PLAYED):
        for _ in range(first, buffer.last_step + 1):
            state = policy.core_state
            answer = policy(env_output)
            buffer.write(writers.Step(env_output, answer, state, 0))
            env_output = environment.step(answer.action)
        for game, played in enumerate(games):
            played.append(tree.map_structure(np.copy, buffer.unroll(game, 0)))
        first = 1
    return [unroll for played in games for unroll in played]


def _packing(unrolls: list[stored_unroll.StoredUnroll], level: int, steps: int) -> dict[str, Any]:
    contents = _contents(unrolls)
    start = time.process_time()
    packed = [zlib.compress(content, level) for content in contents]
    middle = time.process_time()
    for one in packed:
        zlib.decompress(one)
    end = time.process_time()
    number = steps * len(unrolls)
    return {
        "zlib_level": level,
        "bytes_per_agent_step": round(sum(map(len, packed)) / number, 1),
        "uncompressed_bytes_per_agent_step": round(sum(map(len, contents)) / number, 1),
        "packing_microseconds_per_agent_step": round((middle - start) / number * 1e6, 2),
        "unpacking_microseconds_per_agent_step": round((end - middle) / number * 1e6, 2),
    }


def _contents(unrolls: Sequence[stored_unroll.StoredUnroll]) -> list[bytes]:
    return [b"".join(leaf.tobytes() for leaf in tree.flatten(one)) for one in unrolls]


def _operations(
    values: dict[str, Any],
    signature: stored_unroll.StoredUnroll,
    unrolls: Sequence[stored_unroll.StoredUnroll],
    keys: int,
) -> dict[str, Any]:
    """Microseconds of processor time that each operation takes for a sequence."""
    values["replay"]["capacity"] = keys * 10
    config = run_config.parse(values).replay
    assert isinstance(config, contextual.Contextual)
    size = config.steps_per_entry // config.unroll_length
    store = _full(config, signature, unrolls, keys, size)
    seconds: collections.defaultdict[str, float] = collections.defaultdict(float)

    def timed(name: str, operation: Callable[..., Any], *arguments: Any) -> Any:
        start = time.process_time()
        result = operation(*arguments)
        seconds[name] += time.process_time() - start
        return result

    rng = np.random.default_rng(0)
    for number in range(size, size + _REPEATS.value):
        parts = [unrolls[(number + place) % len(unrolls)] for place in range(size)]
        new = tree.map_structure(lambda *columns: np.stack(columns), *parts)._replace(
            actor=np.zeros(size, np.int64), number=np.arange(number, number + size)
        )
        timed("add", store.add, new)
        drawn = timed("draw", store.draw, config.batch_size)
        priorities = rng.exponential(size=config.batch_size)
        timed("new priority", store.update, drawn.key, priorities)
        timed("draw, keys alone", store._tree.sample, config.batch_size)
    row: dict[str, Any] = {"sequences": keys, "steps_per_sequence": config.steps_per_entry}
    for name, total in seconds.items():
        row[name] = round(total / _REPEATS.value / (name == "add" or config.batch_size) * 1e6, 2)
    of_tree = row["draw, keys alone"] + row["new priority"]
    row["draws_and_updates_per_second"] = round(1e6 / (row["draw"] + row["new priority"]))
    row["draws_and_updates_per_second_of_the_tree"] = round(1e6 / of_tree)
    return row


def _full(
    config: contextual.Contextual,
    signature: stored_unroll.StoredUnroll,
    unrolls: Sequence[stored_unroll.StoredUnroll],
    keys: int,
    size: int,
) -> sequence_store.SequenceStore:
    packed = [zlib.compress(content) for content in _contents(unrolls)]
    store = sequence_store.SequenceStore(config, signature, seed=0)
    rng = np.random.default_rng(0)
    priorities = np.where(rng.random(keys) < 0.5, rng.exponential(size=keys), np.nan)
    sequences = []
    for key in range(keys):
        places = [(key + place) % len(packed) for place in range(size)]
        parts = tuple(packed[place] for place in places)
        sequences.append(sequence_store.StoredSequence(key, 1 + key // 1_000, tuple(places), parts))
    layout = store.contents().layout
    store.restore(sequence_store.Contents(layout, priorities, sequences))
    return store


if __name__ == "__main__":
    app.run(main)
