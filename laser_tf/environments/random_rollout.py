"""Random steps of environments, recorded for reports and comparisons."""

import time
import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tree

from laser_tf.environments import base


class Rollout(NamedTuple):
    """Random steps: arrays of T + 1 steps of the first environment."""

    observation: np.ndarray  # Checksums.
    reward: np.ndarray
    discount: np.ndarray
    is_first: np.ndarray
    previous_action: np.ndarray
    maxima: np.ndarray  # Of each array of the observation.
    steps_per_second: float  # Of all environments.

    @property
    def num_steps(self) -> int:
        """Returns T."""
        return len(self.reward) - 1

    def episodes(self) -> list[tuple[int, float, float]]:
        """Returns length, return and last discount of each complete episode."""
        starts = np.flatnonzero(self.is_first).tolist()
        starts += [len(self.is_first)] * int(self.discount[-1] == 0)
        return [
            (end - start - 1, float(self.reward[start:end].sum()), float(self.discount[end - 1]))
            for start, end in zip(starts[:-1], starts[1:], strict=True)
        ]


def roll_out(
    environment: base.BatchedEnvironment,
    steps: float,
    seconds: float,
    seed: int,
    on_progress: Callable[[str], None],
    repeated: np.ndarray | None = None,
) -> Rollout:
    """Takes random steps until `steps` or `seconds`, but at least one.

    The first environment takes the actions `repeated[1:]` if they are given. `on_progress` gets a
    short description at every step.
    """
    generator = base.action_generator(seed)
    env_output, rows = environment.reset(), []
    begin, step, step_seconds = time.perf_counter(), 0, 0.0
    while True:
        columns = [column[0] for column in env_output[1:]]  # From reward to previous_action.
        leaves = [leaf[0] for leaf in tree.flatten(env_output.observation)]
        checksum = zlib.crc32(b"".join(leaf.tobytes() for leaf in leaves))
        rows.append((checksum, *columns, [leaf.max(initial=0) for leaf in leaves]))
        on_progress(f"random steps, step {step:,} of {steps:,}")
        start = time.perf_counter()
        if step == steps or (step and start - begin >= seconds):
            break
        actions = environment.random_actions(generator)
        if repeated is not None:
            actions[0] = repeated[step + 1]
        env_output = environment.step(actions)
        step_seconds += time.perf_counter() - start
        step += 1
    sums, rewards, discounts, firsts, previous, maxima = map(np.array, zip(*rows, strict=True))
    speed = step * environment.num_envs / step_seconds
    return Rollout(sums, rewards, discounts, firsts, previous, maxima.max(axis=0), speed)
