"""Compares the environment workers of this project with gymnasium's `AsyncVectorEnv`.

    python -m tools.environment_workers_benchmark --runs=5 --seconds=2

Prints the median of agent steps per second over alternating runs. Both sides use shared memory,
reset an environment in the step after its end, and return copies of the observations.
"""

import contextlib
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from absl import app, flags
from gymnasium import spaces

from laser_tf.environments import base, factory, gymnasium_suite

_RUNS = flags.DEFINE_integer("runs", 5, "runs of each side")
_SECONDS = flags.DEFINE_float("seconds", 2.0, "seconds of a run, after 20 steps of warm-up")

_WARM_UP_STEPS = 20
_MODULE = "tools.environment_workers_benchmark"


class Images(gymnasium.Env):
    """Returns images of 84x84x3 bytes; a step takes `seconds`."""

    def __init__(self, seconds: float = 0.0):
        self.observation_space = spaces.Box(0, 255, [84, 84, 3], np.uint8)
        self.action_space = spaces.Discrete(4)
        self._images = np.random.default_rng(0).integers(0, 256, [8, 84, 84, 3], np.uint8)
        self._seconds = seconds

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        """Starts an episode of 200 steps."""
        super().reset(seed=seed)
        self._steps = 0
        return self._images[0], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        """Returns the next image."""
        if self._seconds:
            time.sleep(self._seconds)
        self._steps += 1
        return self._images[self._steps % 8], 1.0, self._steps >= 200, False, {}


gymnasium.register("Images-v0", Images)
gymnasium.register("SlowImages-v0", Images, kwargs={"seconds": 0.02})


class _Case(NamedTuple):
    name: str
    task: str  # Id of gymnasium.
    num_envs: int
    num_workers: int  # Of this project; 0: as many as cores.


_CASES = (
    _Case("16 environments, 84x84x3 bytes", "Images-v0", 16, 0),
    _Case("32 x CartPole", "CartPole-v1", 32, 0),
    _Case("32 x CartPole, one worker", "CartPole-v1", 32, 1),
    _Case("16 environments, 20 ms a step", "SlowImages-v0", 16, 16),
)


def _workers(case: _Case) -> base.BatchedEnvironment:
    """Returns environments in this project's workers."""
    task = case.task if case.task == "CartPole-v1" else f"{_MODULE}:{case.task}"
    config = gymnasium_suite.GymnasiumConfig(
        task=task, num_envs=case.num_envs, num_workers=case.num_workers
    )
    return factory.make_environment(config, seed=0)


def _async_vector_env(case: _Case) -> gymnasium.vector.AsyncVectorEnv:
    """Returns environments in gymnasium's processes, one for each."""
    return gymnasium.vector.AsyncVectorEnv(
        [lambda: gymnasium.make(case.task, disable_env_checker=True)] * case.num_envs,
        shared_memory=True,
        autoreset_mode=gymnasium.vector.AutoresetMode.NEXT_STEP,
    )


def _steps_per_second(make: Callable[[_Case], Any], case: _Case) -> float:
    actions = np.random.default_rng(1).integers(2, size=[64, case.num_envs], dtype=np.int32)
    with contextlib.closing(make(case)) as environment:
        environment.reset()
        for index in range(_WARM_UP_STEPS):
            environment.step(actions[index % 64])
        start, steps = time.perf_counter(), 0
        while time.perf_counter() - start < _SECONDS.value:
            environment.step(actions[steps % 64])
            steps += 1
        return steps * case.num_envs / (time.perf_counter() - start)


def main(_: list[str]) -> None:
    """Measures all cases and prints one line for each."""
    print(f"{'agent steps/s':34} {'workers':>10} {'AsyncVectorEnv':>15} {'ratio':>6}")
    for case in _CASES:
        rates: dict[Callable, list[float]] = {_workers: [], _async_vector_env: []}
        for _run in range(_RUNS.value):
            for make, measured in rates.items():
                measured.append(_steps_per_second(make, case))
        own, other = (statistics.median(measured) for measured in rates.values())
        print(f"{case.name:34} {own:10,.0f} {other:15,.0f} {other / own:6.2f}", flush=True)


if __name__ == "__main__":
    app.run(main)
