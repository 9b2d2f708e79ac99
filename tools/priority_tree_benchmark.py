"""Measures the contextual priority tree: processor time of each operation by the number of keys.

python -m tools.priority_tree_benchmark
python -m tools.priority_tree_benchmark --output=results/priority_tree.csv \
    --picture=results/priority_tree.png

The tree is as a long run leaves it: full, half of its keys with a priority. Of batches the time is
that of one key. Processor time, not the wall's, so that other work does not count.
"""

import collections
import csv
import json
import pathlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from absl import app, flags

from laser_tf.replay import priority_tree

_KEYS = flags.DEFINE_list("keys", ["1000", "10000", "100000", "1000000"], "keys in the tree")
_REPEATS = flags.DEFINE_integer("repeats", 2_000, "times that each operation is done")
_OUTPUT = flags.DEFINE_string("output", None, "a CSV file")
_PICTURE = flags.DEFINE_string("picture", None, "where to draw the times, .png")

_BATCH = 4  # Reactor's
_UNROLL = 32  # keys that come and go at once


def main(_: list[str]) -> None:
    """Prints a JSON object for each number of keys, and writes and draws all of them."""
    rows = [_measure(int(keys)) for keys in _KEYS.value]
    if _OUTPUT.value:
        with pathlib.Path(_OUTPUT.value).open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    if _PICTURE.value:
        _draw(rows, _PICTURE.value)


def _measure(keys: int) -> dict[str, float]:
    """Microseconds of processor time that each operation takes for a key."""
    tree = priority_tree.PriorityTree(span=keys, uniform_share=0.01, seed=0)
    tree.insert(range(keys))
    rng = np.random.default_rng(0)
    known = rng.permutation(keys)[: keys // 2].tolist()
    tree.update(known, rng.exponential(size=len(known)).tolist())
    seconds = collections.defaultdict(float)

    def timed(name: str, operation: Callable[..., Any], *args: Any) -> Any:
        start = time.process_time()
        result = operation(*args)
        seconds[name] += time.process_time() - start
        return result

    oldest = 0
    for _ in range(_REPEATS.value):
        timed("remove one", tree.remove_before, oldest + 1)
        timed("insert one", tree.insert, [oldest + keys])
        oldest += 1 + _UNROLL
        timed("remove 32 in a row", tree.remove_before, oldest)
        timed("insert 32 in a row", tree.insert, range(oldest + keys - _UNROLL, oldest + keys))
        drawn = timed("draw", tree.sample, _BATCH)[0].tolist()
        timed("probability", tree.probabilities, drawn)
        timed("new priority", tree.update, drawn, rng.exponential(size=_BATCH).tolist())
    of_keys = collections.defaultdict(lambda: _BATCH) | {
        "remove one": 1,
        "insert one": 1,
        "remove 32 in a row": _UNROLL,
        "insert 32 in a row": _UNROLL,
    }
    times = {
        name: round(total / (_REPEATS.value * of_keys[name]) * 1e6, 2)
        for name, total in seconds.items()
    }
    row = {"keys": keys, **times}
    print(json.dumps(row), flush=True)
    return row


def _draw(rows: list[dict[str, float]], path: str) -> None:
    from matplotlib import figure

    picture = figure.Figure(figsize=(6, 4), layout="constrained")
    axes = picture.subplots()
    for name in rows[0]:
        if name != "keys":
            axes.plot([row["keys"] for row in rows], [row[name] for row in rows], "o-", label=name)
    axes.set(
        xscale="log",
        ylim=(0, None),
        xlabel="keys in the tree",
        ylabel="microseconds of processor time per key",
        title="Contextual priority tree",
    )
    axes.legend()
    picture.savefig(path, dpi=150)


if __name__ == "__main__":
    app.run(main)
