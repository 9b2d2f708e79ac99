"""A run's replay server cannot be reached from outside; where that fails, the run is told."""

import contextlib
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator

from absl.testing import absltest

# Enters (or not), serves a table, uses it through the loopback, and waits to be ended.
_SERVER = """
from laser_tf.runtime import private_network
warning = {enter}
import numpy as np
import reverb
server = reverb.Server([reverb.Table.queue("t", 4)], port={port})
client = reverb.Client("localhost:{port}")
client.insert(np.int32(42), {{"t": 1.0}})
value = next(iter(client.sample("t", 1)))[0].data[0]
print("served", int(value), warning, flush=True)
input()
"""


def _free_port() -> int:
    with socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::", 0))
        return probe.getsockname()[1]


def _own_addresses() -> list[str]:
    addresses = {"127.0.0.1", "::1"}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("192.0.2.1", 9))  # sends nothing; tells the outward address
        addresses.add(probe.getsockname()[0])
    return sorted(addresses)


def _reachable(port: int) -> list[str]:
    found = []
    for address in _own_addresses():
        with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=2):
            found.append(address)
    return found


@contextlib.contextmanager
def _process(code: str) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _served(process: subprocess.Popen) -> str:
    """The warning a server process ends its first line with."""
    line = process.stdout.readline().strip()
    assert line.startswith("served 42 "), line
    return line.removeprefix("served 42 ")


def _run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    ).stdout.strip()


class PrivateNetworkTest(absltest.TestCase):
    def test_without_it_the_server_is_reachable(self):
        port = _free_port()
        with _process(_SERVER.format(enter="None", port=port)) as process:
            _served(process)
            self.assertIn("127.0.0.1", _reachable(port))

    def test_within_it_nobody_outside_reaches_the_server(self):
        port = _free_port()
        with _process(_SERVER.format(enter="private_network.enter()", port=port)) as process:
            warning = _served(process)
            if warning == "None":
                self.assertEmpty(_reachable(port))
            else:  # this system forbids it: the run must say so and work all the same
                self.assertRegex(warning, "no private network .*can be reached from other hosts")
                self.assertNotEmpty(_reachable(port))

    def test_a_process_with_threads_stays_and_says_why(self):
        output = _run("""
            import threading, socket
            from laser_tf.runtime import private_network
            release = threading.Event()
            thread = threading.Thread(target=release.wait)
            thread.start()
            print(private_network.enter())
            release.set()
            with socket.create_server(("127.0.0.1", 0)) as server:
                socket.create_connection(server.getsockname()).close()
            print("loopback works")
        """)
        self.assertRegex(output, r"^no private network \(the process has 2 threads already\)")
        self.assertEndsWith(output, "loopback works")

    def test_a_system_that_forbids_a_later_step_leaves_the_process_untouched(self):
        for step in ("_unshare", "_write", "_start_loopback"):
            output = _run(f"""
                import os
                from laser_tf.runtime import private_network
                def forbidden(*_):
                    raise PermissionError(1, "Operation not permitted")
                private_network.{step} = forbidden
                before = os.readlink("/proc/self/ns/net"), os.readlink("/proc/self/ns/user")
                print(private_network.enter())
                after = os.readlink("/proc/self/ns/net"), os.readlink("/proc/self/ns/user")
                print(before == after)
            """)
            self.assertRegex(output, r"^no private network \(Operation not permitted\)")
            self.assertEndsWith(output, "True")

    def test_files_stay_the_users_own(self):
        output = _run("""
            import os, tempfile
            from laser_tf.runtime import private_network
            before = os.geteuid(), os.getegid()
            private_network.enter()
            with tempfile.NamedTemporaryFile() as file:
                print(before == (os.geteuid(), os.getegid()) == (
                    os.stat(file.name).st_uid, os.stat(file.name).st_gid))
        """)
        self.assertEqual(output, "True")


if __name__ == "__main__":
    absltest.main()
