"""Access of a role to replay: the replay role of the run, or servers outside the run."""

from laser_tf.cluster import role_process
from laser_tf.replay import (
    client,
    connection,
    replay_config,
    several_servers,
    stored_unroll,
)


class StoppedError(RuntimeError):
    """The role is stopped before it can start."""


def for_learner(
    context: role_process.Context,
    config: replay_config.ReplayConfig,
    signature: stored_unroll.StoredUnroll,
    *,
    is_chief: bool,
    is_new: bool,
) -> client.ReplayClient:
    """Waits for replay and watches it.

    Args:
      context: of the role.
      config: of the tables.
      signature: of an unroll.
      is_chief: whether it claims servers that are no part of the run; the other learners follow.
      is_new: see `several_servers.open_connection`.

    Raises:
      StoppedError: if the role is to stop before replay is there.
      ValueError: if replay takes other unrolls or serves another run.
    """
    if not config.servers:
        return client.LearnerReplay(_of_run(context, config, signature))
    for index in range(len(config.servers)):
        _wait_for(context, several_servers.open_for_writing(config, index))
    run = several_servers.name_of_run(context.workdir) if is_chief else None
    return several_servers.open_connection(config, signature, run, is_new=is_new)


def for_actor(
    context: role_process.Context,
    config: replay_config.ReplayConfig,
    signature: stored_unroll.StoredUnroll,
    actor: int,
) -> connection.ReplayConnection:
    """Waits for the server that an actor writes to, and watches it.

    Args:
      context: of the role.
      config: of the tables.
      signature: of an unroll.
      actor: its index.

    Raises:
      StoppedError: if the role is to stop before replay is there.
      ValueError: if replay takes other unrolls.
    """
    if not config.servers:
        return _of_run(context, config, signature)
    replay = several_servers.open_for_writing(config, actor)
    _wait_for(context, replay)
    return _watched(replay, signature)


def _of_run(
    context: role_process.Context,
    config: replay_config.ReplayConfig,
    signature: stored_unroll.StoredUnroll,
) -> connection.ReplayConnection:
    if context.find_replay() is None:
        raise StoppedError
    return _watched(connection.ReplayConnection(context.newest_replay_address, config), signature)


def _wait_for(context: role_process.Context, replay: connection.ReplayConnection) -> None:
    context.state = f"waits for the replay server at {replay.address}"
    if not replay.wait(context.stop.is_set):
        raise StoppedError


def _watched(
    replay: connection.ReplayConnection, signature: stored_unroll.StoredUnroll
) -> connection.ReplayConnection:
    replay.check(signature)
    replay.start_polling()
    return replay
