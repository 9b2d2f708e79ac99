"""Joins an existing Ray cluster or starts a Ray instance on this machine."""

import contextlib
import logging
import os
import pathlib
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from typing import BinaryIO

import psutil

from laser_tf import errors

# Ray reads both when it is imported.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_raylet_start_wait_time_s", "60")  # For a busy machine.

import grpc
import ray

from laser_tf.host import interruption
from laser_tf.training import cluster_config
from laser_tf.workdir import lock, run_directory

_CONNECT_TIMEOUT_SECONDS = 10.0
_MAX_ATTEMPTS = 3  # To start Ray: Ray waits only 15 s for some of its processes to load.
_STORE_BYTES = 512 * 2**20  # Object store of a new Ray instance: some copies of the weights.
_MAX_ERROR_LENGTH = 300
_TOKEN_REJECTED = b"InvalidAuthToken"
# Added to the niceness of this command. With Ray's default, 15, other programs have priority.
_WORKER_NICENESS = 0
_HEAD_TIMEOUT_SECONDS = 20  # After this time, Ray's processes end if their head has ended.


class ClusterError(errors.UserError):
    """No Ray instance is available; the message states the reason and a remedy."""


@contextlib.contextmanager
def session(
    config: cluster_config.ClusterConfig,
    cpus: float,
    gpus: float,
    signals: interruption.Interruption | None = None,
    parent: str = "/tmp",
) -> Iterator[None]:
    """Joins a Ray cluster or starts a Ray instance; leaves or stops it after the context.

    Args:
      config: Configuration of the cluster.
      cpus: CPUs that the run's processes request together.
      gpus: GPUs that the run's processes request together.
      signals: Signals of this process, which raise `Stopped` until Ray has started or is joined.
      parent: Parent of a new Ray's folder; short, because a socket's path has max 107 characters.

    Raises:
      ClusterError: If no Ray answers, it rejects the token, it has another version, or it has fewer
        GPUs or CPUs than requested.
    """
    logging.getLogger("ray").setLevel(logging.ERROR)
    on_sigterm = signal.getsignal(signal.SIGTERM)
    with contextlib.ExitStack() as stack:
        folder = "" if config.address else stack.enter_context(_new_folder(parent))
        stack.callback(ray.shutdown)
        with signals.raising() if signals else contextlib.nullcontext():
            if folder:
                _start(cpus, folder)
            else:
                _join(config.address)
        signal.signal(signal.SIGTERM, on_sigterm)  # Ray has installed its own handler.
        if not (config.address and config.wait_minutes):
            _check_resources(config.address, {"CPU": cpus, "GPU": gpus})
        yield


@contextlib.contextmanager
def _new_folder(parent: str) -> Iterator[str]:
    """Creates a folder for Ray and removes it at the end, unless an error makes its logs useful.

    Not in Ray's common folder, where commands with `cluster.address=auto` would join this Ray.
    """
    folder = tempfile.mkdtemp(prefix="laser_tf_ray_", dir=parent)
    try:
        yield folder
        shutil.rmtree(folder, ignore_errors=True)
    except (interruption.Stopped, run_directory.WorkdirError, lock.InUseError):
        _end_processes(folder)
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _end_processes(folder: str) -> None:
    """Kills the Ray in this folder; `ray.shutdown` does so only if its start was completed."""
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):  # The process has just ended.
            if any(folder in argument for argument in child.cmdline()):
                child.suspend()  # So that it starts no other process.
                for process in (*child.children(recursive=True), child):
                    process.kill()


def _start(cpus: float, folder: str) -> None:
    # May exceed the real CPUs: Ray only subtracts the requests of roles from this number.
    counted_cpus = max(int(-(-cpus // 1)), len(os.sched_getaffinity(0)))
    for attempt in range(1, _MAX_ATTEMPTS + 1):
        try:
            make_token()
            with _silenced_stderr(), _shielded_children():
                ray.init(
                    address="local",
                    num_cpus=counted_cpus,
                    include_dashboard=False,
                    object_store_memory=_STORE_BYTES,
                    log_to_driver=False,
                    configure_logging=False,
                    _node_ip_address="127.0.0.1",
                    _temp_dir=folder,
                    _system_config={
                        "gcs_rpc_server_reconnect_timeout_s": _HEAD_TIMEOUT_SECONDS,
                        "worker_niceness": _WORKER_NICENESS,
                    },
                )
            return
        except Exception as error:  # Any of Ray's processes may fail in its own way.
            ray.shutdown()
            _end_processes(folder)
            reason = errors.one_line(error, _MAX_ERROR_LENGTH).rstrip(".")
            if attempt == _MAX_ATTEMPTS:
                raise ClusterError(
                    f"Cannot start Ray on this machine: {reason}. See its logs in {folder}, "
                    "then repeat the command."
                ) from None
            logging.warning("Ray has not started (%s). Trying again", reason)


@contextlib.contextmanager
def _shielded_children() -> Iterator[None]:
    """Blocks signals in child processes that start in this context.

    A closing terminal and the command `timeout` send signals to the whole process group, but Ray's
    processes must survive until all roles have saved their state.
    """
    signals = {signal.SIGHUP, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def make_token() -> None:
    """Creates a private file with Ray's token, whose holder can run any code as this user."""
    if {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
        return
    path = pathlib.Path.home() / ".ray/auth_token"
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        path.touch(0o600, exist_ok=False)
        path.write_text(secrets.token_hex(32))


@contextlib.contextmanager
def _silenced_stderr() -> Iterator[BinaryIO]:
    """Redirects standard error, also of Ray's C++ code and processes; yields the new file."""
    shown = os.dup(2)
    try:
        with tempfile.TemporaryFile() as file:
            os.dup2(file.fileno(), 2)
            yield file
    finally:
        os.dup2(shown, 2)
        os.close(shown)


def _join(address: str) -> None:
    if address == "auto":
        address = _find()
    _check_reachable(address)
    with _silenced_stderr() as printed:
        try:
            ray.init(address=address, log_to_driver=False, configure_logging=False)
        except Exception as error:  # E.g. RuntimeError for another version.
            printed.seek(0)
            # Ray may only print that a token is wrong, and raise another error.
            is_rejected = _TOKEN_REJECTED in printed.read()
            if is_rejected or isinstance(error, ray.exceptions.AuthenticationError):
                raise ClusterError(
                    f"The Ray at {address} rejects the token of this machine. Copy the token "
                    "that ray get-auth-token prints on the head to ~/.ray/auth_token, or set "
                    "RAY_AUTH_TOKEN to it."
                ) from None
            raise ClusterError(
                f"Cannot join the Ray at {address}: {errors.one_line(error, _MAX_ERROR_LENGTH)}"
            ) from None


def _find() -> str:
    """Returns the address of this machine's Ray, as Ray finds it."""
    path = pathlib.Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"
    try:
        return os.environ.get("RAY_ADDRESS") or path.read_text().strip()
    except OSError:
        raise ClusterError(
            "cluster.address is auto, but this machine has no Ray. Use ray start first, set "
            "cluster.address to the host:port of a head, or leave it empty for a new Ray."
        ) from None


def _check_reachable(address: str) -> None:
    """Raises ClusterError if no Ray answers: Ray itself would try for minutes."""
    if os.environ.get("RAY_USE_TLS") == "1":
        return
    try:
        with grpc.insecure_channel(address, (("grpc.enable_http_proxy", 0),)) as channel:
            grpc.channel_ready_future(channel).result(_CONNECT_TIMEOUT_SECONDS)
    except grpc.FutureTimeoutError:
        raise ClusterError(
            f"No Ray answers at {address} within {_CONNECT_TIMEOUT_SECONDS:g} s. Start it with ray "
            "start --head, or correct cluster.address or RAY_ADDRESS."
        ) from None


def _check_resources(address: str, requested: Mapping[str, float]) -> None:
    available = ray.cluster_resources()
    for kind, amount in requested.items():
        if amount > available.get(kind, 0):
            where, remedy = "this machine", ""
            if address:
                where = f"the Ray at {address}"
                remedy = ", or set cluster.wait_minutes for machines that will join"
            raise ClusterError(
                f"The run requests {amount:g} {kind}s, but {where} has {available.get(kind, 0):g}. "
                "Lower cluster.learner_gpus, cluster.learners, cluster.actors or "
                f"cluster.actor_cpus{remedy}."
            )
