"""Measures the learner's store of sequences: memory by compression, and the pace of its operations.

python -m tools.sequence_store_benchmark
python -m tools.sequence_store_benchmark --keys=1000000 --task=breakout

The store is in the state of a long run: full, and half of its sequences have a priority. All
sequences refer to the same few unrolls, which saves memory and changes no time. Processor time
excludes other work of the machine.
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
from laser_tf.replay import sequence_store, stored_unroll
from laser_tf.replay.schemes import contextual
from laser_tf.training import config_choices, run_config
from tools import unrolls as tools_unrolls

_KEYS = flags.DEFINE_list("keys", ["100000", "1000000"], "sequences in the store")
_REPEATS = flags.DEFINE_integer("repeats", 300, "repetitions of each operation")
_TASK = flags.DEFINE_string("task", "pong", "an Atari game")

_UNROLLS_PER_ENVIRONMENT = 20
_LEVELS = (1, 3, 6)  # Of zlib.


def main(_: list[str]) -> None:
    """Prints a JSON object for each level of compression and each number of sequences."""
    values = r2d2.get_config("atari").to_dict()
    values["environment"]["task"] = _TASK.value
    changes = {"replay.scheme": "contextual", "replay.priority_exponent": 0.9}
    values = config_choices.override(values, changes)
    config = run_config.parse(values)
    signature, generated = tools_unrolls.generate(config)
    parts = [tree.map_structure(np.copy, next(generated)) for _ in range(_UNROLLS_PER_ENVIRONMENT)]
    unrolls = [unroll for of_environment in zip(*parts, strict=True) for unroll in of_environment]
    for level in _LEVELS:
        print(json.dumps(_packing(unrolls, level, config.replay.unroll_length)), flush=True)
    for keys in map(int, _KEYS.value):
        print(json.dumps(_operations(values, signature, unrolls, keys)), flush=True)


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
    """Returns the microseconds of processor time of each operation for a sequence."""
    values["replay"]["capacity"] = keys * 10
    config = run_config.parse(values).replay
    assert isinstance(config, contextual.Contextual)
    size = config.steps_per_entry // config.unroll_length
    store = sequence_store.SequenceStore(config, signature)
    _fill(store, unrolls, keys, size)
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
            stream=np.zeros(size, np.int64), number=np.arange(number, number + size)
        )
        timed("add", store.add, new)
        sampled = timed("sample", store.sample, config.batch_size)
        priorities = rng.exponential(size=config.batch_size)
        timed("new priority", store.update, sampled.key, priorities)
    row: dict[str, Any] = {"sequences": keys, "steps_per_sequence": config.steps_per_entry}
    for name, total in seconds.items():
        row[name] = round(total / _REPEATS.value / (name == "add" or config.batch_size) * 1e6, 2)
    row["draws_and_updates_per_second"] = round(1e6 / (row["sample"] + row["new priority"]))
    return row


def _fill(
    store: sequence_store.SequenceStore,
    unrolls: Sequence[stored_unroll.StoredUnroll],
    keys: int,
    size: int,
) -> None:
    """Stores sequences of `size` unrolls with the given number of keys."""
    packed = [zlib.compress(content) for content in _contents(unrolls)]
    rng = np.random.default_rng(0)
    priorities = np.where(rng.random(keys) < 0.5, rng.exponential(size=keys), np.nan)
    sequences = []
    for key in range(keys):
        places = [(key + place) % len(packed) for place in range(size)]
        parts = tuple(packed[place] for place in places)
        sequences.append(sequence_store.StoredSequence(key, 1 + key // 1_000, tuple(places), parts))
    layout = store.contents().layout
    store.restore(sequence_store.Contents(layout, priorities, sequences))


if __name__ == "__main__":
    app.run(main)
