"""Actors of a learner, in its process or in others, and the replay that they fill."""

import logging
import pathlib
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import numpy as np

from laser_tf.agents import base as agents_base
from laser_tf.environments import base, episode_statistics, factory
from laser_tf.replay import client, connection, stored_unroll
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.training import actor, assembly, learner, named_variables, run_config


class Acting(Protocol):
    """Actors of a learner: in this process (`actor.Actor`), or in others."""

    replay: client.ReplayClient  # where the learner reads what they write

    def check(self) -> None:
        """Raises the error that ended acting, if any."""

    def metrics(self) -> dict[str, float]:
        """Returns metrics for TensorBoard, `faults` among them."""

    def faults(self) -> Mapping[str, float]:
        """Returns the number of each fault of the environments, by metric name."""

    @property
    def time_steps(self) -> int:
        """Number of time steps that environments have returned."""

    @property
    def state(self) -> str:
        """Current activity, in words that follow "the actor"."""

    def stop(self) -> None:
        """Ends acting."""


def act_locally(
    config: run_config.RunConfig,
    replay: client.ReplayClient,
    signature: stored_unroll.StoredUnroll,
    learner: learner.Learner,
    *,
    dtype: str,
    workdir: pathlib.Path,
    member: int,
    on_episode: Callable[[episode_statistics.Episode], None],
) -> actor.Actor:
    """Starts an actor with the newest weights of a learner in this process.

    Args:
      config: Configuration of the run.
      replay: Where the actor writes.
      signature: Signature of an unroll.
      learner: The learner.
      dtype: Compute dtype, "float32" or "bfloat16".
      workdir: The run directory, for errors of environments and sequences that the learner stores.
      member: Index of the run in its sweep.
      on_episode: Called with each finished episode, in another thread.
    """
    learner_replay = config.replay.learner_replay(replay, signature, workdir)
    # A resumed run continues with fresh randomness instead of repeating its first episodes.
    seeds = draw_seeds(config.run.seed, int(learner.counters.agent_steps.numpy()))
    environment = factory.make_environment(
        config.environment, seed=seeds.environment, fault_folder=workdir
    )
    agent = assembly.build_agent(config, environment.spec(), dtype, seeds.actions)
    copier = named_variables.WeightCopier(learner.agent, agent, learner.counters.learner_updates)
    acting = make_actor(
        config,
        environment,
        agent,
        replay.connection,
        signature,
        member=member,
        refresh=copier.refresh,
        on_episode=on_episode,
    )
    acting.start(learner_replay)
    return acting


class Seeds(NamedTuple):
    """Seeds of an actor."""

    environment: int
    actions: int


def draw_seeds(*entropy: int) -> Seeds:
    """Returns seeds that differ for any other entropy, numbers from 0."""
    drawn = np.random.SeedSequence(entropy).generate_state(2)
    return Seeds(*(int(seed) >> 2 for seed in drawn))


def make_actor(
    config: run_config.RunConfig,
    environment: base.BatchedEnvironment,
    agent: agents_base.Agent,
    replay: connection.ReplayConnection,
    signature: stored_unroll.StoredUnroll,
    *,
    member: int,
    refresh: Callable[[], int],
    on_episode: Callable[[episode_statistics.Episode], None],
) -> actor.Actor:
    """Creates an actor of a run.

    Args:
      config: Configuration of the run.
      environment: Environments of the actor.
      agent: Agent that acts.
      replay: Where the actor writes.
      signature: Signature of an unroll.
      member: Index of the run in its sweep.
      refresh: See `actor.Actor`.
      on_episode: See `actor.Actor`.
    """
    context = schemes_base.ActorContext(
        replay, signature, agent, environment.task_ids, member, config.max_unrolls_per_episode
    )
    return actor.Actor(
        environment,
        actor.ActingPolicy(agent, environment, config.replay.frame_stack),
        config.replay.make_writers(context),
        max_steps_per_episode=config.environment.max_steps_per_episode,
        refresh_steps=config.replay.unroll_length,
        refresh=refresh,
        on_episode=on_episode,
    )


class StallDetector:
    """Logs, once per stall, that a learner which waits for experience gets none."""

    def __init__(self, acting: Acting, seconds: float):
        """Starts with no stall.

        Args:
          acting: The actors that the learner waits for.
          seconds: Time without a step of their environments, in seconds, that is a stall.
        """
        self._acting = acting
        self._seconds = seconds
        self.reset()

    def reset(self) -> None:
        """Resets the stall timer. Call when experience has arrived."""
        self._time_steps = -1

    def wrap(self, should_stop: Callable[[], bool]) -> Callable[[], bool]:
        """Returns a function that looks for a stall before it calls `should_stop`."""

        def check_and_should_stop() -> bool:
            self._check()
            return should_stop()

        return check_and_should_stop

    def _check(self) -> None:
        now, time_steps = time.monotonic(), self._acting.time_steps
        if time_steps != self._time_steps:
            self._time_steps, self._since, self._is_logged = time_steps, now, False
        elif now - self._since >= self._seconds and not self._is_logged:
            self._is_logged = True
            logging.warning(
                "No experience has arrived for %.0f s: the actor %s; Ctrl-C saves the run",
                now - self._since, self._acting.state,
            )  # fmt: skip
