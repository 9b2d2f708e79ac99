"""The server of a sweep: the common replay, and where its agents meet.

    python -m launch.replay_server --workdir=runs/sweep --port=5000

`launch.sweep` starts it. A server that was killed goes on from its replay's last checkpoint.
"""

from laser_tf.host import interruption, versions

if __name__ == "__main__":
    interruption.before_imports()
    versions.check()  # a wrong TensorFlow fails while Reverb is imported

import logging
import pathlib
import time

from absl import flags

from laser_tf.environments import factory
from laser_tf.host import failure_notice, folder_lock, run_folder, supervisor
from laser_tf.replay import server
from laser_tf.sweeps import coordinator, rpc, sweep_config
from laser_tf.training import assembly
from launch import command_line

_WORKDIR = flags.DEFINE_string("workdir", None, "the sweep's folder")
_PORT = flags.DEFINE_integer("port", 0, "where agents join; 0 takes a free one")

_LOCK = "server_lock"  # the sweep's own is held by launch.sweep


def main() -> None:
    """Serves until it is told to end, then saves the replay and leaves with exit code 75."""
    if not _WORKDIR.value:
        raise command_line.UsageError("--workdir is missing: name the folder of a sweep")
    workdir = pathlib.Path(_WORKDIR.value).absolute()
    config = sweep_config.parse(run_folder.read_config(workdir, run_folder.SWEEP))
    folder_lock.hold(workdir / _LOCK, folder_lock.LEAVING_SECONDS)
    command_line.divert_native_messages(workdir / "native.log")
    interrupted = interruption.Interruption()
    replay = _start_replay(config, workdir) if config.sweep.shared_replay else None
    meeting = coordinator.Coordinator(
        config, workdir, replay.port if replay else None, run_folder.read_sweep_id(workdir)
    )
    has_population = config.population.method != "none"
    listening = rpc.Server(
        meeting.methods,
        _PORT.value,
        rpc.own_secret(workdir),
        max_bytes=rpc.WEIGHTS_BYTES if has_population else rpc.MESSAGE_BYTES,
    )
    logging.info("agents join at port %d", listening.port)
    period = 60 * config.first.run.replay_checkpoint_minutes
    notice = failure_notice.FailureNotice("replay can be saved again")
    next_save = time.monotonic() + period
    while not interrupted.stop:
        time.sleep(0.5)
        if replay and time.monotonic() >= next_save:
            next_save = time.monotonic() + period
            _save(replay, notice)
    listening.stop()
    if replay:
        _save(replay, notice)
        replay.stop()
    command_line.leave(supervisor.TRY_AGAIN)  # whoever needs a server starts it again


def _start_replay(config: sweep_config.SweepConfig, workdir: pathlib.Path) -> server.EmbeddedReplay:
    """Starts Reverb with a queue for each agent, from its last checkpoint where there is one."""
    first = config.first
    spec = factory.environment_spec(first.environment)
    agent = assembly.build_agent(first, spec, "float32", seed=0)
    signature = assembly.unroll_signature(first, spec, agent)
    replay = server.EmbeddedReplay(
        first.replay,
        signature,
        workdir / "replay",
        first.run.replay_port,
        queues=sweep_config.queues(config),
    )
    replay.check(signature)  # of a restored table, which keeps its own
    logging.info("replay holds %.0f%% of its capacity", 100 * replay.fill())
    return replay


def _save(replay: server.EmbeddedReplay, notice: failure_notice.FailureNotice) -> None:
    try:
        replay.checkpoint()
    except RuntimeError as error:
        notice.failed(f"cannot save replay: {error}; the sweep goes on and tries again")
    else:
        notice.succeeded()


if __name__ == "__main__":
    command_line.run(main, (ValueError, ImportError))
