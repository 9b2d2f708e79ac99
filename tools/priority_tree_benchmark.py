"""Measures the contextual priority tree: processor time of each operation by the number of keys.

python -m tools.priority_tree_benchmark
python -m tools.priority_tree_benchmark --output=results/priority_tree.csv \
    --plot=results/priority_tree.png

The tree is in the state of a long run: full, and half of its keys have a priority. The time of a
batch is divided by its keys. Processor time excludes other work of the machine.
"""

import collections
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from absl import app, flags

from laser_tf.replay import priority_tree

_KEYS = flags.DEFINE_list("keys", ["1000", "10000", "100000", "1000000"], "keys in the tree")
_REPEATS = flags.DEFINE_integer("repeats", 2_000, "repetitions of each operation")
_OUTPUT = flags.DEFINE_string("output", None, "CSV file of the results")
_PLOT = flags.DEFINE_string("plot", None, "PNG file of a plot of the results")

_BATCH = 4  # Of Reactor.
_UNROLL = 32  # Keys that are inserted and removed together.


def main(_: list[str]) -> None:
    """Prints a JSON object for each number of keys, and writes and plots all of them."""
    table = pd.DataFrame([_measure(int(keys)) for keys in _KEYS.value])
    if _OUTPUT.value:
        table.to_csv(_OUTPUT.value, index=False)
    if _PLOT.value:
        axes = table.plot(
            x="keys", style="o-", logx=True, ylim=(0, None), figsize=(6, 4),
            xlabel="keys in the tree", ylabel="microseconds of processor time per key",
            title="Contextual priority tree",
        )  # fmt: skip
        axes.figure.savefig(_PLOT.value, dpi=150, bbox_inches="tight")


def _measure(keys: int) -> dict[str, float]:
    """Returns the microseconds of processor time of each operation for a key."""
    num_leaves = 1 << (2 * keys + _UNROLL).bit_length()
    tree = priority_tree.PriorityTree(num_leaves, uniform_share=0.01, seed=0)
    tree.insert(range(keys))
    rng = np.random.default_rng(0)
    known = rng.permutation(keys)[: keys // 2].tolist()
    tree.update(known, rng.exponential(size=len(known)).tolist())
    microseconds: dict[str, float] = collections.defaultdict(float)

    def timed(name: str, num_keys: int, operation: Callable[..., Any], *args: Any) -> Any:
        start = time.process_time()
        result = operation(*args)
        seconds = time.process_time() - start
        microseconds[name] += 1e6 * seconds / (num_keys * _REPEATS.value)
        return result

    oldest = 0
    for _ in range(_REPEATS.value):
        for name, size in (("one", 1), (f"{_UNROLL} in a row", _UNROLL)):
            leaves = np.arange(oldest, oldest + size)
            timed(f"remove {name}", size, tree.remove, (leaves % num_leaves).tolist())
            timed(f"insert {name}", size, tree.insert, ((leaves + keys) % num_leaves).tolist())
            oldest += size
        sampled = timed("draw", _BATCH, tree.sample, _BATCH)[0].tolist()
        priorities = rng.exponential(size=_BATCH).tolist()
        timed("probability", _BATCH, tree.probabilities, sampled)
        timed("new priority", _BATCH, tree.update, sampled, priorities)
    row = {"keys": keys} | {name: round(value, 2) for name, value in microseconds.items()}
    print(json.dumps(row), flush=True)
    return row


if __name__ == "__main__":
    app.run(main)
