"""The actor: plays a batch of environments and writes what it saw as unrolls."""

import collections
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from laser_tf import array_function, types
from laser_tf.agents import base as agents_base
from laser_tf.environments import base, episode_statistics, faults
from laser_tf.replay import frame_stacking
from laser_tf.replay import writers as replay_writers

_STATES = {
    "start": "has not begun to act",
    "environment": "waits for the environment, whose reset or step has not returned",
    "inference": "computes actions",
    "writing": "writes to replay, which takes nothing",
    "waiting": "waits for replay to take what it wrote",
}


class ActingPolicy:
    """An agent's `act`, compiled, for environments that show single frames."""

    def __init__(
        self, agent: agents_base.Agent, environment: base.BatchedEnvironment, frame_stack: int
    ):
        """Creates the policy of one batch of environments; `frame_stack` is K."""
        self._act = array_function.ArrayFunction(agent.act)
        self._stacker = frame_stacking.ObservationStacker(
            environment.num_envs, environment.observation_spec(), frame_stack
        )
        self._state = tf.nest.map_structure(
            lambda tensor: tensor.numpy(), agent.initial_state(environment.num_envs)
        )

    @property
    def core_state(self) -> Any:
        """The core state before the next step, [N, ...]."""
        return self._state

    def __call__(self, env_output: types.EnvOutput) -> types.AgentOutput:
        """Acts on the next step of all environments; NumPy arrays [N, ...] in and out."""
        stacked = self._stacker.push(env_output.observation, env_output.is_first)
        output, self._state = self._act(env_output._replace(observation=stacked), self._state)
        return output


class Actor:
    """Fills unrolls with the newest weights until it is told to stop."""

    def __init__(
        self,
        environment: base.BatchedEnvironment,
        policy: ActingPolicy,
        writers: Sequence[replay_writers.Writer],
        *,
        max_steps_per_episode: int,
        refresh_steps: int,
        refresh: Callable[[], int],
        on_episode: Callable[[episode_statistics.Episode], None],
    ):
        """Creates the actor.

        Args:
          environment: N of them.
          policy: acts for all of them at once.
          writers: Take every step.
          max_steps_per_episode: Agent steps of the longest episode; 0 if unknown.
          refresh_steps: agent steps of an environment from one copy of the weights to the next.
          refresh: copies the learner's newest weights into the policy and returns how many updates
            are behind them.
          on_episode: called with each finished episode.
        """
        self._environment = environment
        self._policy = policy
        self._writers = writers
        self._tracker = episode_statistics.EpisodeTracker(environment)
        self._length_limit = episode_statistics.length_limit(max_steps_per_episode)
        self._has_warned = False  # about an episode that is longer
        self._refresh_steps = refresh_steps
        self._refresh = refresh
        self._version = 0  # updates behind the weights
        self._on_episode = on_episode
        self.seconds: dict[str, float] = collections.defaultdict(float)  # spent in each part
        self.agent_steps = 0
        self.time_steps = 0  # of all environments at once, that have been returned
        self.part = "start"  # what it is at now, of `seconds`

    def run(self, stop: threading.Event) -> None:
        """Acts until `stop` is set; blocks while the learner's queue is full.

        Raises:
          EnvironmentFailedError: if the environments cannot go on.
        """
        try:
            self._act(stop)
        finally:
            self._environment.close()

    def _act(self, stop: threading.Event) -> None:
        self._version = self._refresh()
        with self._timed("environment"):
            env_output = self._environment.reset()
        action = self._act_on(env_output, stop)
        while not stop.is_set():
            for _ in range(self._refresh_steps):
                with self._timed("environment"):
                    env_output = self._environment.step(action)
                action = self._act_on(env_output, stop)
            with self._timed("waiting"):
                for writer in self._writers:
                    writer.wait(stop.is_set)
            self.agent_steps += self._environment.num_envs * self._refresh_steps
            self._version = self._refresh()
        for writer in self._writers:
            writer.close()

    def fault_metrics(self) -> dict[str, float]:
        """How often each kind of fault has happened in the environments, since the start."""
        counts = self._environment.fault_counts()
        return {f"environment/{kind}": float(counts[kind]) for kind in faults.KINDS}

    def pace_metrics(self) -> dict[str, float]:
        """Agent steps a second spent in each part, since the start."""
        return {
            f"throughput/{part}_steps_per_second": self.agent_steps / seconds
            for part, seconds in self.seconds.copy().items()
            if seconds and part != "waiting"
        }

    @property
    def state(self) -> str:
        """What it is at now, in words that follow "the actor"."""
        return _STATES[self.part]

    def _act_on(self, env_output: types.EnvOutput, stop: threading.Event) -> np.ndarray:
        """Records a step and returns the actions int32 [N] taken there."""
        self.time_steps += 1
        for episode in self._tracker.update(env_output):
            self._on_episode(episode)
        self._warn_of_long_episode()
        core_state = self._policy.core_state
        with self._timed("inference"):
            agent_output = self._policy(env_output)
        with self._timed("writing"):
            for writer in self._writers:
                writer.add(env_output, agent_output, core_state, self._version, stop.is_set)
        return agent_output.action

    def _warn_of_long_episode(self) -> None:
        """Logs, once, that an episode has passed the length limit."""
        longest = int(np.argmax(self._tracker.lengths))
        if self._has_warned or self._tracker.lengths[longest] <= self._length_limit:
            return
        self._has_warned = True
        logging.warning(
            "an episode of %s did not end within %s agent steps; evaluations raise an error for "
            "such an episode. Set environment.max_frames_per_episode",
            self._environment.tasks[self._environment.task_ids[longest]],
            f"{self._length_limit:,}",
        )

    @contextlib.contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        self.part, start = part, time.perf_counter()
        yield
        self.seconds[part] += time.perf_counter() - start


class ActorThread:
    """Runs an actor beside the learner and keeps the error that ended it."""

    def __init__(self, acting: Actor):
        """Starts acting."""
        self._acting = acting
        self._stop = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="actor", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._acting.run(self._stop)
        except Exception as error:  # handed over to the learner's thread by `check`
            self._error = error

    def check(self) -> None:
        """Raises the error that ended the actor, if one did."""
        if self._error is not None:
            raise self._error

    def metrics(self) -> dict[str, float]:
        """Each part's agent steps a second spent in it, and the faults, since the start."""
        return self._acting.pace_metrics() | self.faults()

    def faults(self) -> dict[str, float]:
        """How often each kind of fault has happened in the environments, by its metric's name."""
        return self._acting.fault_metrics()

    @property
    def time_steps(self) -> int:
        """How often the environments have returned, all at once."""
        return self._acting.time_steps

    @property
    def state(self) -> str:
        """See `Actor.state`."""
        return self._acting.state

    def stop(self) -> None:
        """Ends the actor at its next look at the stop flag."""
        self._stop.set()
        self._thread.join(timeout=30)


class Watched(Protocol):
    """What `StallWatch` reads of an actor."""

    @property
    def time_steps(self) -> int:
        """How often its environments have returned."""

    @property
    def state(self) -> str:
        """What it is at now, in words that follow "the actor"."""


class StallWatch:
    """Tells, once each time, that a learner which waits for experience gets none."""

    def __init__(self, acting: "Watched", seconds: float):
        """Watches an actor.

        Args:
          acting: the one that the learner waits for.
          seconds: without a step of its environments, after which the learner says so.
        """
        self._acting = acting
        self._seconds = seconds
        self.fed()

    def fed(self) -> None:
        """Takes that the learner has got what it waited for."""
        self._time_steps = -1

    def beside(self, should_stop: Callable[[], bool]) -> Callable[[], bool]:
        """What the learner, while it waits, is to ask again and again in place of `should_stop`."""

        def look_and_ask() -> bool:
            self._look()
            return should_stop()

        return look_and_ask

    def _look(self) -> None:
        now, time_steps = time.monotonic(), self._acting.time_steps
        if time_steps != self._time_steps:
            self._time_steps, self._since, self._is_told = time_steps, now, False
        elif now - self._since >= self._seconds and not self._is_told:
            self._is_told = True
            logging.warning(
                "no experience has arrived for %.0f s: the actor %s; Ctrl-C saves the run",
                now - self._since, self._acting.state,
            )  # fmt: skip
