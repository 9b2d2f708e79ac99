"""Two machines, simulated by network namespaces whose connection can be cut."""

import contextlib
import os
import pathlib
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

from tools.chaos import processes

_NEAR, _FAR = "chaos_near", "chaos_far"
_ADDRESSES = {_NEAR: "10.93.0.1", _FAR: "10.93.0.2"}
_PORT = 6399
_RAY_SECONDS = 180.0


class Machines:
    """A near machine with Ray's head, and a far one whose Ray is restarted after its end."""

    address = f"{_ADDRESSES[_NEAR]}:{_PORT}"

    def __init__(self, log: pathlib.Path, near_cpus: int, far_cpus: int):
        """Creates nothing yet; `log` gets the output of Ray's processes."""
        self._log = log
        self._cpus = {_NEAR: near_cpus, _FAR: far_cpus}
        self._is_closed = threading.Event()
        # For all later processes.
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Runs Ray on both machines."""
        try:
            self._connect()
            self._start_ray(_NEAR, "--head", f"--port={_PORT}", "--include-dashboard=false")
            self._wait_for_head()
            threading.Thread(target=self._keep_far, name="far machine", daemon=True).start()
            yield
        finally:
            self._is_closed.set()
            for name in _ADDRESSES:
                processes.run(["ip", "netns", "delete", name], self._log)

    def _connect(self) -> None:
        for name in _ADDRESSES:
            self._ip("netns", "add", name)
        ends = [["name", name, "netns", name] for name in (_NEAR, _FAR)]
        self._ip("link", "add", *ends[0], "type", "veth", "peer", *ends[1])
        for name, address in _ADDRESSES.items():
            self._ip("-n", name, "address", "add", f"{address}/24", "dev", name)
            for device in ("lo", name):
                self._ip("-n", name, "link", "set", device, "up")

    def _ip(self, *arguments: str) -> None:
        if code := processes.run(["ip", *arguments], self._log):
            raise OSError(f"ip {' '.join(arguments)} ended with {code}, see {self._log}")

    def _start_ray(self, name: str, *arguments: str) -> subprocess.Popen:
        return processes.start(
            [
                *self.command(name), "-m", "ray.scripts.scripts", "start", "--block",
                "--disable-usage-stats",
                f"--node-ip-address={_ADDRESSES[name]}", f"--num-cpus={self._cpus[name]}",
                "--object-store-memory=300000000", *arguments,
            ],
            self._log,
        )  # fmt: skip

    def _wait_for_head(self) -> None:
        connect = f"import socket; socket.create_connection(('{_ADDRESSES[_NEAR]}', {_PORT}))"
        deadline = time.monotonic() + _RAY_SECONDS
        while processes.run([*self.command(), "-c", connect], self._log):
            if time.monotonic() > deadline:
                raise TimeoutError(f"Ray's head does not answer, see {self._log}")
            time.sleep(1)

    def _keep_far(self) -> None:
        """Restarts Ray like systemd or Kubernetes: Ray ends a machine that it regards as dead."""
        while not self._is_closed.is_set():
            process = self._start_ray(_FAR, f"--address={self.address}")
            while process.poll() is None and not self._is_closed.is_set():
                time.sleep(0.5)
            time.sleep(2)

    @staticmethod
    def command(name: str = _NEAR) -> list[str]:
        """Returns the command that starts Python on a machine."""
        return ["ip", "netns", "exec", name, sys.executable]

    def cut(self, seconds: float) -> None:
        """Cuts the connection for some seconds."""
        self._ip("-n", _FAR, "link", "set", _FAR, "down")
        time.sleep(seconds)
        self._ip("-n", _FAR, "link", "set", _FAR, "up")
