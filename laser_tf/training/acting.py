"""Actors of a learner, in its process or in others, and the replay that they fill."""

import logging
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from laser_tf.agents import base as agents_base
from laser_tf.environments import base
from laser_tf.replay import client, connection, stored_unroll
from laser_tf.replay import turn_taking as turn_taking_module
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.training import actor, run_config


class Acting(Protocol):
    """Actors of a learner: in this process (`actor.Actor`), or in others."""

    learner_client: client.ReplayClient  # the learner's client of the actors' replay

    def check(self) -> None:
        """Raises the error that ended acting, if any."""

    def metrics(self) -> dict[str, float]:
        """Returns metrics for TensorBoard; names of fault counts start with `environment/`."""

    @property
    def env_calls(self) -> int:
        """Number of calls of reset and step."""

    @property
    def activity(self) -> str:
        """Current activity, in words that follow "the actor"."""

    def stop(self) -> None:
        """Stops acting."""


class Seeds(NamedTuple):
    """Seeds of an actor."""

    environment: int
    actions: int


def derive_seeds(*entropy: int) -> Seeds:
    """Returns seeds that depend on all given numbers, each of which is at least 0."""
    states = np.random.SeedSequence(entropy).generate_state(2)
    return Seeds(*(int(state) >> 2 for state in states))


def make_actor(
    config: run_config.RunConfig,
    environment: base.BatchedEnvironment,
    agent: agents_base.Agent,
    replay: connection.ReplayConnection,
    signature: stored_unroll.StoredUnroll,
    *,
    member_index: int,
    refresh: Callable[[], int],
    on_episode: actor.OnEpisode,
    turn_taking: turn_taking_module.TurnTaking | None = None,
) -> actor.Actor:
    """Creates an actor, which takes turns with the learner if `turn_taking` is given."""
    context = schemes_base.ActorContext(
        replay, signature, agent, environment.task_ids, member_index, config.max_unrolls_per_episode
    )
    made = config.replay.make_writers(context)
    if turn_taking:
        made.append(turn_taking)
    return actor.Actor(
        environment,
        actor.ActingPolicy(agent, environment, config.replay.frame_stack),
        made,
        max_steps_per_episode=config.environment.max_steps_per_episode,
        unroll_length=config.replay.unroll_length,
        refresh=refresh,
        on_episode=on_episode,
    )


class StallDetector:
    """Logs each stall once: a period of `seconds` in which environments return no step."""

    def __init__(self, acting: Acting, seconds: float):
        self._acting = acting
        self._seconds = seconds
        self.reset()

    def reset(self) -> None:
        """Resets the stall timer. Call when experience has arrived."""
        self._env_calls = -1

    def check(self) -> None:
        """Logs a new stall. Call repeatedly while no experience arrives."""
        now, env_calls = time.monotonic(), self._acting.env_calls
        if env_calls != self._env_calls:
            self._env_calls, self._since, self._is_logged = env_calls, now, False
        elif now - self._since >= self._seconds and not self._is_logged:
            self._is_logged = True
            logging.warning(
                "No experience has arrived for %.0f s: the actor %s; Ctrl-C saves the run",
                now - self._since, self._acting.activity,
            )  # fmt: skip
