"""Variables by their way from an attribute of their owner, as in checkpoints."""

from collections.abc import Iterator, Mapping

import numpy as np
import tensorflow as tf

# Not by TensorFlow's names: those are numbered through within a process.


def walk(
    trackable: object, path: str, seen: dict[int, object]
) -> Iterator[tuple[str, tf.Variable]]:
    """Every variable below an object, once, without those of random generators.

    Args:
      trackable: the object.
      path: its name, with which theirs begin.
      seen: what to leave out, by `id`; grows by what is found.
    """
    if id(trackable) in seen or isinstance(trackable, tf.random.Generator):
        return
    seen[id(trackable)] = trackable  # held, or its id could come up again for another
    if isinstance(trackable, tf.Variable):
        yield path, trackable
        return
    for name, child in sorted(tf.train.TrackableView.children(trackable).items()):
        yield from walk(child, f"{path}/{name}", seen)


def differences(
    there: Mapping[str, np.ndarray | tf.Variable], here: Mapping[str, np.ndarray | tf.Variable]
) -> list[str]:
    """What differs in name, shape or dtype between two sets of variables, in words."""
    found = []
    for name in dict.fromkeys([*here, *there]):
        theirs = _describe(there[name]) if name in there else "missing"
        ours = _describe(here[name]) if name in here else "missing"
        if theirs != ours:
            found.append(f"{name} is {theirs} there and {ours} here")
    return found


def _describe(value: np.ndarray | tf.Variable) -> str:
    return f"{np.dtype(getattr(value.dtype, 'as_numpy_dtype', value.dtype))}{list(value.shape)}"
