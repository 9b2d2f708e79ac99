"""A Ray to run in: one of the run's own on this machine, or a cluster that is there already."""

import contextlib
import logging
import os
import pathlib
import socket
from collections.abc import Iterator, Mapping

from laser_tf import errors

# Before Ray is imported: it reads them then.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")  # of a busy machine

import ray
from ray.util import scheduling_strategies

from laser_tf.host import versions
from laser_tf.training import cluster_config

_CONNECT_SECONDS = 10.0
_STORE_BYTES = 512 * 2**20  # of an own Ray's object store: some copies of the weights
_LOST_SECONDS = 10  # without Ray's head, after which an own Ray's processes end


class ClusterError(errors.UserError):
    """There is no Ray to run in; the message says why and what to do."""


@contextlib.contextmanager
def session(config: cluster_config.ClusterConfig, cpus: float, gpus: float) -> Iterator[None]:
    """Joins a cluster or starts a Ray of one's own, and leaves or ends it.

    Args:
      config: of the cluster.
      cpus: that the run's processes ask for together.
      gpus: the same.

    Raises:
      ClusterError: if no Ray answers there, it refuses the token, it has another version, or it
        has fewer GPUs or CPUs than asked for.
    """
    logging.getLogger("ray").setLevel(logging.ERROR)
    try:
        if config.address:
            _join(config.address)
        else:
            _start(cpus)
        if not config.wait_minutes:
            _check_resources(config.address, {"CPU": cpus, "GPU": gpus})
        yield
    finally:
        ray.shutdown()


def _start(cpus: float) -> None:
    # Logical CPUs: processes of a laptop share the real ones.
    logical = max(int(-(-cpus // 1)), len(os.sched_getaffinity(0)))
    try:
        with _quiet():
            ray.init(
                address="local",
                num_cpus=logical,
                include_dashboard=False,
                object_store_memory=_STORE_BYTES,
                log_to_driver=False,
                configure_logging=False,
                _node_ip_address="127.0.0.1",
                _system_config={"gcs_rpc_server_reconnect_timeout_s": _LOST_SECONDS},
            )
    except Exception as error:  # whatever a process of Ray's that does not start makes of it
        raise ClusterError(
            f"cannot start Ray on this machine: {_first_line(error)}; its logs are in /tmp/ray"
        ) from None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps what Ray's processes print from the terminal: they have logs of their own."""
    shown = os.dup(2)
    try:
        with pathlib.Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(shown, 2)
        os.close(shown)


def _join(address: str) -> None:
    if address != "auto":
        _check_answers(address)
    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    except ray.exceptions.AuthenticationError:
        raise ClusterError(
            f"the Ray at {address} refuses this machine's token: copy the head's (ray "
            "get-auth-token prints it) to ~/.ray/auth_token here, or set RAY_AUTH_TOKEN"
        ) from None
    except ConnectionError as error:
        raise ClusterError(
            f"cluster.address is {address!r}, but there is no Ray ({_first_line(error)}): start it "
            "with ray start --head, give host:port of a head, or nothing for a Ray of the run's own"
        ) from None
    except Exception as error:  # another version's is a RuntimeError
        raise ClusterError(f"cannot join the Ray at {address}: {_first_line(error)}") from None


def _check_answers(address: str) -> None:
    """Raises ClusterError where nobody listens: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ClusterError(
            f"no Ray answers at {address}, the cluster.address ({reason}): start it with ray start "
            "--head, or correct the address"
        ) from None


def _first_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


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


def check_versions() -> None:
    """Checks that all machines of the cluster have this one's versions and sources.

    Raises:
      ClusterError: for the first that has not.
    """
    here = versions.of_machine()
    look = ray.remote(num_cpus=0)(versions.differing)
    for node in ray.nodes():
        if not node["Alive"]:
            continue
        place = scheduling_strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        try:
            differing = ray.get(look.options(scheduling_strategy=place).remote(here))
        except ray.exceptions.RayError as error:
            differing = f"no such project to import ({_first_line(error)})"
        if differing:
            raise ClusterError(
                f"{node['NodeManagerHostname']} has {differing}: install the same "
                "requirements.lock and the same laser_tf on all machines"
            )
