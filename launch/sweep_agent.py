"""One agent of a sweep, on this machine or another one than the sweep's server.

    python -m launch.sweep_agent --server=HOST:PORT --name=agent_03 --secret_file=secret

`launch.sweep` starts those of its own machine. What the agent trains and how comes from the server.
Exit code 75: stopped, or the server has gone; everything is saved, and the same command goes on.
"""

from laser_tf.host import interruption, versions

if __name__ == "__main__":
    interruption.before_imports()
    versions.check()  # a wrong TensorFlow fails while Reverb is imported

import dataclasses
import logging
import pathlib
import time

from absl import flags

from laser_tf.environments import factory
from laser_tf.host import folder_lock, run_folder, supervisor
from laser_tf.sweeps import rpc, sweep_member
from laser_tf.training import run_config, strategies, training
from launch import command_line, session

_SERVER = flags.DEFINE_string("server", None, "HOST:PORT of the sweep's server")
_NAME = flags.DEFINE_string("name", None, "which agent of the sweep, e.g. agent_03")
_WORKDIR = flags.DEFINE_string("workdir", None, "the agent's folder [runs/<name>]")
_SECRET_FILE = flags.DEFINE_string(
    "secret_file",
    None,
    f"a copy of {rpc.SECRET_FILE} in the sweep's folder, which others cannot read",
)
_SWEEP_ID = flags.DEFINE_string("sweep_id", None, "of sweep.json: which sweep it must be [any]")

_PATIENCE_SECONDS = 120.0  # for a server that is starting


def main() -> None:
    """Joins, trains and evaluates."""
    if not _SERVER.value:
        raise command_line.UsageError("--server is missing: give HOST:PORT of the sweep's server")
    try:
        rpc.check_address(_SERVER.value)
    except ValueError as error:
        raise command_line.UsageError(f"--server={_SERVER.value}: {error}") from None
    if not _NAME.value:
        raise command_line.UsageError("--name is missing: give an agent of the sweep")
    if not _SECRET_FILE.value:
        raise command_line.UsageError(
            f"--secret_file is missing: give a copy of {rpc.SECRET_FILE} in the sweep's folder"
        )
    member = _join(rpc.read_secret(pathlib.Path(_SECRET_FILE.value)))
    try:
        _run(member, pathlib.Path(_WORKDIR.value or f"runs/{_NAME.value}").absolute())
    finally:
        member.close()


def _join(secret: str) -> sweep_member.SweepMember:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return sweep_member.SweepMember(_SERVER.value, _NAME.value, secret, _SWEEP_ID.value)
        except rpc.UnreachableError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(1.0)


def _run(member: sweep_member.SweepMember, workdir: pathlib.Path) -> None:
    config = run_config.parse(member.config)
    strategy = strategies.make(config.learner)
    run_folder.open_workdir(
        workdir,
        dataclasses.asdict(config),
        {"versions": versions.recorded()},
        sweep_id=member.sweep_id,
        patience_seconds=folder_lock.LEAVING_SECONDS,
        extend=True,  # what the sweep has taken
    )
    command_line.divert_native_messages(workdir / "native.log")
    spec = factory.environment_spec(config.environment)
    run = training.Training(config, workdir, spec, member, strategy=strategy)
    if run.finished:
        member.close(finished=True)  # nobody has to wait while the agent is evaluated
    try:
        session.run_to_the_end(run, config, workdir)
    except Exception as error:  # whatever a lost server breaks first: writer, dataset or call
        if not member.has_lost_server():
            raise
        logging.warning(
            "the sweep's server is lost (%s); saved at %s frames, the same command goes on",
            command_line.one_line(error), f"{run.env_frames:,}",
        )  # fmt: skip
        command_line.leave(supervisor.TRY_AGAIN)
    if not (run.finished and member.has_left):  # stopped, or the server does not know the end yet
        command_line.leave(supervisor.TRY_AGAIN)


if __name__ == "__main__":
    command_line.run(main, (ValueError, ImportError, ConnectionError))
