"""The actor: plays a batch of environments and writes what it saw as unrolls."""

import collections
import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from laser_tf import types
from laser_tf.agents import base as agents_base
from laser_tf.environments import base, episode_statistics
from laser_tf.replay import frame_stacking, recorder
from laser_tf.runtime import array_function


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
        """The core state before the next row, [N, ...]."""
        return self._state

    def __call__(self, env_output: types.EnvOutput) -> types.AgentOutput:
        """Acts on the next row of all environments; NumPy arrays [N, ...] in and out."""
        stacked = self._stacker.push(env_output.observation, env_output.is_first)
        output, self._state = self._act(env_output._replace(observation=stacked), self._state)
        return output


class Actor:
    """Fills unrolls with the newest weights until it is told to stop."""

    def __init__(
        self,
        environment: base.BatchedEnvironment,
        policy: ActingPolicy,
        recorders: Sequence[recorder.Recorder],
        *,
        refresh_steps: int,
        refresh: Callable[[], int],
        on_episode: Callable[[episode_statistics.Episode], None],
    ):
        """Creates the actor.

        Args:
          environment: N games.
          policy: acts for all of them at once.
          recorders: take every row.
          refresh_steps: agent steps of a game from one copy of the weights to the next.
          refresh: copies the learner's newest weights into the policy and returns how many updates
            are behind them.
          on_episode: called with each finished episode.
        """
        self._environment = environment
        self._policy = policy
        self._recorders = recorders
        self._tracker = episode_statistics.EpisodeTracker(environment)
        self._refresh_steps = refresh_steps
        self._refresh = refresh
        self._version = 0  # updates behind the weights
        self._on_episode = on_episode
        self.seconds: collections.Counter[str] = collections.Counter()  # spent in each part
        self.agent_steps = 0

    def run(self, stop: threading.Event) -> None:
        """Acts until `stop` is set; blocks while the learner's queue is full."""
        self._version = self._refresh()
        action = self._act_on(self._environment.reset(), stop)
        while not stop.is_set():
            for _ in range(self._refresh_steps):
                with self._timed("environment"):
                    env_output = self._environment.step(action)
                action = self._act_on(env_output, stop)
            with self._timed("waiting"):
                for recorder_ in self._recorders:
                    recorder_.wait(stop.is_set)
            self.agent_steps += self._environment.num_envs * self._refresh_steps
            self._version = self._refresh()
        for recorder_ in self._recorders:
            recorder_.close()
        self._environment.close()

    def _act_on(self, env_output: types.EnvOutput, stop: threading.Event) -> np.ndarray:
        """Records a row and returns the actions int32 [N] taken there."""
        for episode in self._tracker.update(env_output):
            self._on_episode(episode)
        core_state = self._policy.core_state
        with self._timed("inference"):
            agent_output = self._policy(env_output)
        with self._timed("writing"):
            for recorder_ in self._recorders:
                recorder_.add(env_output, agent_output, core_state, self._version, stop.is_set)
        return agent_output.action

    @contextlib.contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        start = time.perf_counter()
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

    def throughput(self) -> dict[str, float]:
        """For each part, agent steps over the seconds spent in it, since the start."""
        steps = self._acting.agent_steps
        return {
            f"throughput/{part}_steps_per_second": steps / seconds
            for part, seconds in self._acting.seconds.copy().items()
            if seconds and part != "waiting"
        }

    def stop(self) -> None:
        """Ends the actor at its next look at the stop flag."""
        self._stop.set()
        self._thread.join(timeout=30)
