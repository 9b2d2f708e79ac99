"""Where a learner's experience comes from: a replay, and whoever fills it."""

import pathlib
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import numpy as np

from laser_tf.agents import base as agents_base
from laser_tf.environments import base, episode_statistics, factory
from laser_tf.replay import client, connection, stored_unroll
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.training import actor, assembly, learner, run_config, weights


class Acting(Protocol):
    """Actors that play for a learner: in this process (`LocalActing`), or in others."""

    replay: client.ReplayClient  # where the learner reads what they write

    def check(self) -> None:
        """Raises the error that ended acting, if one did."""

    def metrics(self) -> dict[str, float]:
        """For TensorBoard, `faults` among them."""

    def faults(self) -> Mapping[str, float]:
        """How often each kind of fault has happened in the environments, by its metric's name."""

    @property
    def time_steps(self) -> int:
        """How many time steps environments have returned, to see whether there are new ones."""

    @property
    def state(self) -> str:
        """What acting is at now, in words that follow "the actor"."""

    def stop(self) -> None:
        """Ends acting."""


class LocalActing(actor.ActorThread):
    """An actor in a thread of the learner's process."""

    def __init__(
        self,
        config: run_config.RunConfig,
        replay: client.ReplayClient,
        signature: stored_unroll.StoredUnroll,
        trained: learner.Learner,
        *,
        dtype: str,
        workdir: pathlib.Path,
        member: int,
        on_episode: Callable[[episode_statistics.Episode], None],
    ):
        """Begins to act.

        Args:
          config: of the run.
          replay: where to write.
          signature: of an unroll.
          trained: whose newest weights act.
          dtype: compute dtype, "float32" or "bfloat16".
          workdir: the run's folder, for what is told of environments that fail, and for
            sequences that the learner keeps.
          member: index of the run in its sweep.
          on_episode: called with each finished episode, in another thread.
        """
        self.replay = config.replay.learner_replay(replay, signature, workdir)
        # A resumed run goes on with fresh randomness instead of repeating its first episodes.
        seeds = draw_seeds(config.run.seed, int(trained.counters.agent_steps.numpy()))
        environment = factory.make_environment(
            config.environment, seed=seeds.environment, fault_folder=workdir
        )
        agent = assembly.build_agent(config, environment.spec(), dtype, seeds.actions)
        copier = weights.WeightCopier(trained.agent, agent, trained.counters.learner_updates)
        super().__init__(
            make_actor(
                config,
                environment,
                agent,
                replay.connection,
                signature,
                member=member,
                refresh=copier.refresh,
                on_episode=on_episode,
            )
        )


class Seeds(NamedTuple):
    """What an actor draws from."""

    environment: int
    actions: int


def draw_seeds(*entropy: int) -> Seeds:
    """Seeds that any other entropy, numbers from 0, gives differently."""
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
    """Makes an actor of a run.

    Args:
      config: of the run.
      environment: what it plays.
      agent: what acts.
      replay: where to write.
      signature: of an unroll.
      member: index of the run in its sweep.
      refresh: see `actor.Actor`.
      on_episode: see `actor.Actor`.
    """
    context = schemes_base.ActorContext(
        replay,
        signature,
        agent,
        environment.task_ids,
        member,
        config.max_unrolls_per_episode,
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
