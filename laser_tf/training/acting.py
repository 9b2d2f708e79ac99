"""Actors of a learner, in its process or in others, and the replay that they fill."""

import contextlib
import logging
import pathlib
import time
from collections.abc import Callable
from typing import Protocol

import numpy as np

from laser_tf.agents import base as agents_base
from laser_tf.environments import base, factory
from laser_tf.host import hardware
from laser_tf.replay import client, connection, server, stored_unroll
from laser_tf.replay import turn_taking as turn_taking_module
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.training import actor, assembly, membership, named_variables, run_config
from laser_tf.training import learner as learner_module
from laser_tf.workdir import run_directory

_STALL_SECONDS = 60.0


class Actors(Protocol):
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


# Starts or finds the actors of a learner, given the learner, the signature of an unroll, a consumer
# of finished episodes and whether the run is new.
ConnectActors = Callable[
    [learner_module.Learner, stored_unroll.StoredUnroll, actor.OnEpisode, bool], Actors
]


def derive_seeds(*entropy: int) -> tuple[int, int]:
    """Returns seeds of an actor's environments and actions from numbers of at least 0."""
    one, other = np.random.SeedSequence(entropy).generate_state(2)
    return int(one) >> 2, int(other) >> 2


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


def start_actor(
    config: run_config.RunConfig,
    workdir: pathlib.Path,
    member: membership.Membership,
    turn_taking: turn_taking_module.TurnTaking | None,
    learner: learner_module.Learner,
    signature: stored_unroll.StoredUnroll,
    on_episode: actor.OnEpisode,
    is_new: bool,
) -> actor.Actor:
    """Opens replay and starts an actor in a thread of this process; see `ConnectActors`."""
    actors_client = _open_replay(config, workdir, member, signature, is_new)
    with contextlib.ExitStack() as on_error:
        on_error.callback(actors_client.stop)
        learner_client = config.replay.make_learner_client(actors_client, signature, workdir)
        # A resumed run continues with fresh randomness instead of repeating its first episodes.
        agent_steps = int(learner.counters.agent_steps.numpy())
        environment_seed, action_seed = derive_seeds(config.run.seed, agent_steps)
        environment = factory.make_environment(
            config.environment, seed=environment_seed, traceback_directory=workdir
        )
        on_error.callback(environment.close)
        dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
        agent = assembly.build_agent(config, environment.spec(), dtype, action_seed)
        made = make_actor(
            config,
            environment,
            agent,
            actors_client.connection,
            signature,
            member_index=member.index,
            refresh=named_variables.weight_copier(
                learner.agent, agent, learner.counters.learner_updates
            ),
            on_episode=on_episode,
            turn_taking=turn_taking,
        )
        made.start(learner_client)
        on_error.pop_all()
    return made


def _open_replay(
    config: run_config.RunConfig,
    workdir: pathlib.Path,
    member: membership.Membership,
    signature: stored_unroll.StoredUnroll,
    is_new: bool,
) -> client.ReplayClient:
    """Connects to replay; starts its server, unless replay is shared or external."""
    if member.find_replay_address is not None:
        queue = schemes_base.queue_name(member.name)
        replay = connection.ReplayConnection(member.find_replay_address, config.replay, queue)
        replay.check(signature)
        replay.start_polling()
        return client.ReplayClient(replay)
    if config.replay.address:
        return client.connect_external(config.replay, signature, workdir, is_new=is_new)
    checkpoint = workdir / run_directory.REPLAY_CHECKPOINT
    replay_server = server.ReplayServer(
        config.replay, signature, checkpoint, config.run.replay_port
    )
    replay_server.guard_memory()
    if not is_new and config.replay.replay_table and not replay_server.is_restored:
        is_expected = not config.replay.in_checkpoints
        logging.log(
            logging.INFO if is_expected else logging.WARNING,
            "Found no usable replay checkpoint: the run resumes with empty replay",
        )
    return client.ReplayClient(replay_server.connect(), replay_server)


class StallDetector:
    """Logs each stall once: a minute in which environments return no step."""

    def __init__(self, actors: Actors):
        self._actors = actors
        self.reset()

    def reset(self) -> None:
        """Resets the stall timer. Call when experience has arrived."""
        self._env_calls = -1

    def check(self) -> None:
        """Logs a new stall. Call repeatedly while no experience arrives."""
        now, env_calls = time.monotonic(), self._actors.env_calls
        if env_calls != self._env_calls:
            self._env_calls, self._since, self._is_logged = env_calls, now, False
        elif now - self._since >= _STALL_SECONDS and not self._is_logged:
            self._is_logged = True
            logging.warning(
                "No experience has arrived for %.0f s: the actor %s; Ctrl-C saves the run",
                now - self._since, self._actors.activity,
            )  # fmt: skip
