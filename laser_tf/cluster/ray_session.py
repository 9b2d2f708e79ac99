"""A Ray to run in: one of the run's own on this machine, or a cluster that is there already."""

import contextlib
import logging
import os
import pathlib
import re
import secrets
import signal
import socket
import tempfile
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from laser_tf import errors

# Before Ray is imported: it reads them then.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_raylet_start_wait_time_s", "60")  # of a busy machine

import grpc
import ray

from laser_tf.cluster import ray_folder
from laser_tf.host import interruption
from laser_tf.training import cluster_config

_CONNECT_SECONDS = 10.0
_ATTEMPTS = 3  # to start an own Ray: it gives a process of its own 15 s, fixed, to load
_STORE_BYTES = 512 * 2**20  # of an own Ray's object store: some copies of the weights
_MOST_SAID = 300  # characters, of an error of Ray's
_REFUSED = b"InvalidAuthToken"
_FOLDERS = "/tmp"  # Linux takes no path of a socket above 107 characters, and Ray's are long
_WORKER_NICENESS = 0  # beyond the command's; with Ray's 15 any other program would go first
_LOST_SECONDS = 20  # without Ray's head, after which an own Ray's processes end


class ClusterError(errors.UserError):
    """There is no Ray to run in; the message says why and what to do."""


@contextlib.contextmanager
def session(
    config: cluster_config.ClusterConfig,
    cpus: float,
    gpus: float,
    interrupted: interruption.Interruption | None = None,
) -> Iterator[None]:
    """Joins a cluster or starts a Ray of one's own, and leaves or ends it.

    Args:
      config: of the cluster.
      cpus: that the run's processes ask for together.
      gpus: the same.
      interrupted: what a signal is noted in; while Ray starts or answers, one raises instead.

    Raises:
      Stopped: for such a signal.
      ClusterError: if no Ray answers there, it refuses the token, it has another version, or it
        has fewer GPUs or CPUs than asked for.
    """
    logging.getLogger("ray").setLevel(logging.ERROR)
    # Of an own Ray: in the common one its address would pass for that of a cluster.
    own_folder = contextlib.nullcontext() if config.address else ray_folder.opened(_FOLDERS)
    on_sigterm = signal.getsignal(signal.SIGTERM)
    with own_folder as folder:
        try:
            with interrupted.raising() if interrupted else contextlib.nullcontext():
                if folder:
                    _start(cpus, folder)
                else:
                    _join(config.address)
            signal.signal(signal.SIGTERM, on_sigterm)  # for which Ray has put a handler of its own
            if not config.wait_minutes:
                _check_resources(config.address, {"CPU": cpus, "GPU": gpus})
            yield
        finally:
            ray.shutdown()


def _start(cpus: float, folder: str) -> None:
    # Logical CPUs: processes of a laptop share the real ones.
    logical = max(int(-(-cpus // 1)), len(os.sched_getaffinity(0)))
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            make_token()
            with _quiet(), _shielded_children():
                ray.init(
                    address="local",
                    num_cpus=logical,
                    include_dashboard=False,
                    object_store_memory=_STORE_BYTES,
                    log_to_driver=False,
                    configure_logging=False,
                    _node_ip_address="127.0.0.1",
                    _temp_dir=folder,
                    _system_config={
                        "gcs_rpc_server_reconnect_timeout_s": _LOST_SECONDS,
                        "worker_niceness": _WORKER_NICENESS,
                    },
                )
            return
        except Exception as error:  # whatever a process of Ray's that does not start makes of it
            ray.shutdown()
            ray_folder.end_processes(folder)
            said = errors.one_line(error, _MOST_SAID)
            if attempt == _ATTEMPTS:
                raise ClusterError(
                    f"cannot start Ray on this machine: {said}; its logs are in {folder}"
                ) from None
            logging.warning("Ray has not started (%s): once more", said)


@contextlib.contextmanager
def _shielded_children() -> Iterator[None]:
    """Blocks signals in child processes that start in this context.

    A terminal and `timeout` signal the command's whole process group. Ray's processes must survive
    that until all roles have saved their state.
    """
    signals = {signal.SIGHUP, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def make_token() -> None:
    """Makes the token that Ray would make, but as a file that only its user can read.

    Whoever has it can run anything as the user.
    """
    if {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
        return
    path = pathlib.Path.home() / ".ray/auth_token"
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(32))


@contextlib.contextmanager
def _quiet() -> Iterator[BinaryIO]:
    """Keeps from the terminal what Ray's C++ and its processes print; yields what it goes to."""
    shown = os.dup(2)
    try:
        with tempfile.TemporaryFile() as instead:
            os.dup2(instead.fileno(), 2)
            yield instead
    finally:
        os.dup2(shown, 2)
        os.close(shown)


def _join(address: str) -> None:
    if address == "auto":
        address = _find()
    _check_answers(address)
    with _quiet() as printed:
        try:
            ray.init(address=address, log_to_driver=False, configure_logging=False)
        except Exception as error:  # another version's is a RuntimeError
            printed.seek(0)
            # Of a wrong token Ray only prints.
            if isinstance(error, ray.exceptions.AuthenticationError) or _REFUSED in printed.read():
                raise ClusterError(
                    f"the Ray at {address} refuses this machine's token: copy the head's (ray "
                    "get-auth-token prints it) to ~/.ray/auth_token here, or set RAY_AUTH_TOKEN"
                ) from None
            raise ClusterError(
                f"cannot join the Ray at {address}: {errors.one_line(error, _MOST_SAID)}"
            ) from None


def _find() -> str:
    """The address of this machine's Ray, as Ray itself finds it."""
    path = pathlib.Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"
    given = os.environ.get("RAY_ADDRESS")
    try:
        address = given or path.read_text().strip()
    except OSError:
        raise ClusterError(
            "cluster.address is auto, but there is no Ray on this machine: use ray start first, "
            "give host:port of a head, or nothing for a Ray of the run's own"
        ) from None
    if not re.fullmatch(r"\S+:\d+", address):
        raise ClusterError(
            f"cluster.address is auto, but {'RAY_ADDRESS' if given else path} is {address!r}: let "
            "it be host:port of a head, or give that as cluster.address"
        )
    return address


def _check_answers(address: str) -> None:
    """Raises ClusterError where no Ray listens: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        if os.environ.get("RAY_USE_TLS") != "1":
            _check_speaks(address)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ClusterError(
            f"no Ray answers at {address}, the cluster.address ({reason}): start it with ray start "
            "--head, or correct the address"
        ) from None


def _check_speaks(address: str) -> None:
    """Raises OSError where something else than Ray listens, such as Ray's own dashboard."""
    with grpc.insecure_channel(address, (("grpc.enable_http_proxy", 0),)) as channel:
        try:
            grpc.channel_ready_future(channel).result(_CONNECT_SECONDS)
        except grpc.FutureTimeoutError:
            raise OSError("what listens there is something else") from None


def _check_resources(address: str, asked: Mapping[str, float]) -> None:
    there = ray.cluster_resources()
    for kind, amount in asked.items():
        if amount > there.get(kind, 0):
            where = f"the Ray at {address}" if address else "this machine"
            raise ClusterError(
                f"the run asks for {amount:g} {kind}s, but {where} has {there.get(kind, 0):g}: "
                "lower cluster.learner_gpus, cluster.learners, cluster.actors or "
                "cluster.actor_cpus, or set cluster.wait_minutes for machines that will join"
            )
