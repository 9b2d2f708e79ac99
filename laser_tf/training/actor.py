"""The actor: steps a batch of environments and passes each step to writers."""

import collections
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from laser_tf import array_function, types
from laser_tf.agents import base as agents_base
from laser_tf.environments import base, episode_statistics, faults
from laser_tf.replay import client, frame_stacking
from laser_tf.replay import writers as replay_writers

_STOP_TIMEOUT_SECONDS = 30
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
        self._stacker = frame_stacking.FrameStacker(
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
        """Returns the agent's output for the next step of all environments, arrays [N, ...]."""
        stacked = self._stacker.push(env_output.observation, env_output.is_first)
        output, self._state = self._act(env_output._replace(observation=stacked), self._state)
        return output


class Actor:
    """Steps environments with the newest weights and writes each step.

    Attributes:
      seconds: Time spent in each part, in seconds.
      agent_steps: Agent steps of complete unrolls.
      time_steps: Time steps that all environments together have returned.
      part: The current part, a key of `seconds`, or "start".
      replay: Where the learner reads what this actor writes, if the learner is in this process.
    """

    replay: client.ReplayClient

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
          environment: Batch of N environments.
          policy: Policy of all environments.
          writers: Writers of every step.
          max_steps_per_episode: Agent steps of the longest episode; 0 if unknown.
          refresh_steps: Agent steps of an environment from one copy of the weights to the next.
          refresh: Copies the learner's newest weights into the policy and returns the number of
            their updates.
          on_episode: Called with each finished episode.
        """
        self._environment = environment
        self._policy = policy
        self._writers = writers
        self._tracker = episode_statistics.EpisodeTracker(environment)
        self._length_limit = episode_statistics.length_limit(max_steps_per_episode)
        self._has_warned = False  # of a longer episode
        self._refresh_steps = refresh_steps
        self._refresh = refresh
        self._version = 0  # number of updates of the weights
        self._on_episode = on_episode
        self.seconds: dict[str, float] = collections.defaultdict(float)
        self.agent_steps = self.time_steps = 0
        self.part = "start"
        self._stop = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run_in_thread, name="actor", daemon=True)

    def run(self, stop: threading.Event) -> None:
        """Acts until `stop` is set; blocks while the learner's queue is full.

        Raises:
          EnvironmentFailedError: If the environments cannot continue.
        """
        environment = self._environment
        with contextlib.closing(environment):
            self._version = self._refresh()
            with self._timed("environment"):
                env_output = environment.reset()
            action = self._act_on(env_output, stop)
            while not stop.is_set():
                for _ in range(self._refresh_steps):
                    with self._timed("environment"):
                        env_output = environment.step(action)
                    action = self._act_on(env_output, stop)
                with self._timed("waiting"):
                    for writer in self._writers:
                        writer.wait(stop.is_set)
                self.agent_steps += environment.num_envs * self._refresh_steps
                self._version = self._refresh()
            for writer in self._writers:
                writer.close()

    def start(self, replay: client.ReplayClient) -> None:
        """Acts in a thread until `stop` is called.

        Args:
          replay: Where the learner reads what this actor writes.
        """
        self.replay = replay
        self._thread.start()

    def _run_in_thread(self) -> None:
        try:
            self.run(self._stop)
        except Exception as error:  # raised in the learner's thread by `check`
            self._error = error

    def check(self) -> None:
        """Raises the error that ended the thread, if any."""
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Ends the thread after the current step."""
        self._stop.set()
        self._thread.join(_STOP_TIMEOUT_SECONDS)

    def metrics(self) -> dict[str, float]:
        """Returns `faults`, and the agent steps per second spent in each part since the start."""
        return self.faults() | {
            f"throughput/{part}_steps_per_second": self.agent_steps / seconds
            for part, seconds in self.seconds.copy().items()
            if seconds and part != "waiting"
        }

    def faults(self) -> dict[str, float]:
        """Returns the number of each fault of the environments since the start."""
        counts = self._environment.fault_counts()
        return {f"environment/{kind}": float(counts[kind]) for kind in faults.KINDS}

    @property
    def state(self) -> str:
        """Current activity, in words that follow "the actor"."""
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
        step = replay_writers.Step(env_output, agent_output, core_state, self._version)
        with self._timed("writing"):
            for writer in self._writers:
                writer.add(step, stop.is_set)
        return agent_output.action

    def _warn_of_long_episode(self) -> None:
        longest = int(np.argmax(self._tracker.lengths))
        if self._has_warned or self._tracker.lengths[longest] <= self._length_limit:
            return
        self._has_warned = True
        logging.warning(
            "An episode of %s did not end within %s agent steps; evaluations raise an error for "
            "such an episode. Set environment.max_frames_per_episode",
            self._environment.tasks[self._environment.task_ids[longest]],
            f"{self._length_limit:,}",
        )

    @contextlib.contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        self.part, start = part, time.perf_counter()
        yield
        self.seconds[part] += time.perf_counter() - start
