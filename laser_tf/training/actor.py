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

OnEpisode = Callable[[episode_statistics.Episode], None]  # a consumer of finished episodes

_STOP_TIMEOUT_SECONDS = 30
_ACTIVITIES = {
    "start": "has not started",
    "environment": "is resetting or stepping the environment",
    "inference": "is computing actions",
    "writing": "is writing to replay",
    "waiting": "is waiting for replay to confirm its items",
}


class ActingPolicy:
    """Compiled `act` of an agent; stacks frames and keeps the core state of N environments."""

    def __init__(
        self, agent: agents_base.Agent, environment: base.BatchedEnvironment, frame_stack: int
    ):
        self._act = array_function.ArrayFunction(agent.act)
        self._stacker = frame_stacking.FrameStacker(
            environment.num_envs, environment.observation_spec(), frame_stack
        )
        # Before the next step, [N, ...].
        self.core_state: Any = tf.nest.map_structure(
            lambda tensor: tensor.numpy(), agent.initial_state(environment.num_envs)
        )

    def __call__(self, env_output: types.EnvOutput) -> types.AgentOutput:
        """Returns the agent's output for the next step of all environments, arrays [N, ...]."""
        stacked = self._stacker.push(env_output.observation, env_output.is_first)
        env_output = env_output._replace(observation=stacked)
        output, self.core_state = self._act(env_output, self.core_state)
        return output


class Actor:
    """Steps environments with the newest weights and writes each step."""

    learner_client: client.ReplayClient  # client of the learner in this process; set by `start`

    def __init__(
        self,
        environment: base.BatchedEnvironment,
        policy: ActingPolicy,
        writers: Sequence[replay_writers.Writer],
        *,
        max_steps_per_episode: int,
        unroll_length: int,
        refresh: Callable[[], int],
        on_episode: OnEpisode,
    ):
        """Creates the actor of a batch of N environments, which `run` closes.

        `max_steps_per_episode` is 0 if unknown. `refresh` copies the learner's newest weights at
        the start and after each unroll, and returns their number of updates.
        """
        self._environment = environment
        self._policy = policy
        self._writers = writers
        self._tracker = episode_statistics.EpisodeTracker(environment)
        self._length_limit = episode_statistics.length_limit(max_steps_per_episode)
        self._has_warned = False  # Whether a longer episode was logged.
        self._unroll_length = unroll_length
        self._refresh = refresh
        self._learner_update = 0  # Number of updates of the weights.
        self._on_episode = on_episode
        self.seconds: dict[str, float] = collections.defaultdict(float)  # Spent in each phase.
        self.agent_steps = 0  # Number of agent steps in complete unrolls.
        self.env_calls = 0  # Number of calls of reset and step.
        self.phase = "start"
        self._stop = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run_in_thread, name="actor", daemon=True)

    def run(self, stop: threading.Event) -> None:
        """Acts until `stop` is set, then closes the environment and the writers.

        Blocks while the learner's queue is full. Raises EnvironmentFailedError if the environments
        cannot continue. After an error, only the environment is closed.
        """
        environment = self._environment
        with contextlib.closing(environment):
            self._learner_update = self._refresh()
            with self._timed("environment"):
                env_output = environment.reset()
            action = self._act_on(env_output, stop)
            while not stop.is_set():
                for _ in range(self._unroll_length):
                    with self._timed("environment"):
                        env_output = environment.step(action)
                    action = self._act_on(env_output, stop)
                with self._timed("waiting"):
                    for writer in self._writers:
                        writer.wait(stop.is_set)
                self.agent_steps += environment.num_envs * self._unroll_length
                self._learner_update = self._refresh()
            for writer in self._writers:
                writer.close()

    def start(self, learner_client: client.ReplayClient) -> None:
        """Acts in a thread until `stop` is called."""
        self.learner_client = learner_client
        self._thread.start()

    def _run_in_thread(self) -> None:
        try:
            self.run(self._stop)
        except Exception as error:  # Raised in the learner's thread by `check`.
            self._error = error

    def check(self) -> None:
        """Raises the error that ended the thread, if any."""
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Asks the thread to end after the current step and waits up to 30 s for its end.

        A blocked environment keeps the thread alive. Never raises an error.
        """
        self._stop.set()
        self._thread.join(_STOP_TIMEOUT_SECONDS)

    def metrics(self) -> dict[str, float]:
        """Returns the number of faults, and the agent steps per second in each phase."""
        counts = self._environment.fault_counts()
        return {f"environment/{kind}": float(counts[kind]) for kind in faults.KINDS} | {
            f"throughput/{phase}_steps_per_second": self.agent_steps / seconds
            for phase, seconds in self.seconds.copy().items()
            if seconds and phase != "waiting"
        }

    @property
    def activity(self) -> str:
        """Current activity, in words that follow "the actor"."""
        return _ACTIVITIES[self.phase]

    def _act_on(self, env_output: types.EnvOutput, stop: threading.Event) -> np.ndarray:
        """Records a step and returns its actions, int32 [N] or float32 [N, D]."""
        self.env_calls += 1
        for episode in self._tracker.update(env_output):
            self._on_episode(episode)
        self._warn_of_long_episode()
        core_state = self._policy.core_state
        with self._timed("inference"):
            agent_output = self._policy(env_output)
        step = replay_writers.Step(env_output, agent_output, core_state, self._learner_update)
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
    def _timed(self, phase: str) -> Iterator[None]:
        self.phase, start = phase, time.perf_counter()
        yield
        self.seconds[phase] += time.perf_counter() - start
