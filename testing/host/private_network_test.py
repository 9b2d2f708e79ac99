"""Tests of the private network of a replay server."""

import contextlib
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest
from absl.testing import absltest, parameterized

from laser_tf import callbacks
from laser_tf.host import private_network
from testing import commands, messages, processes

# What the tests' processes begin with. Everything is imported before a user is given up who may be
# the only one to read it.
_START = """
import contextlib, ctypes, os, socket, tempfile, threading
from laser_tf.host import private_network, process_launcher

ALONE, WITH_USER = 0x40000000, 0x50000000  # CLONE_NEWNET, and with CLONE_NEWUSER

def become_plain_user():
    with contextlib.suppress(OSError):  # a plain user already, or root of a container of one user
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        process_launcher.start = lambda: ""  # Perhaps only root can execute the interpreter.
        ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE, as after an exec: /proc/self is the user's

def namespaces():
    return [os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "user")]

before = namespaces()

def look_around():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.settimeout(5)
        client.connect(server.getsockname())
    print("unmoved" if namespaces() == before else "moved", "with loopback")
"""

# Enters (or not), serves a table, uses it through the loopback, and waits to be ended.
_SERVER = """
from laser_tf.host import private_network
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


def _reachable(port: int) -> list[str]:
    found = []
    for address in ("127.0.0.1", "::1"):
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
    return commands.run_program(_START + textwrap.dedent(code), check=True).stdout.strip()


class PrivateNetworkTest(parameterized.TestCase):
    @parameterized.parameters(
        ((), None),
        (("--callbacks=laser_tf.callbacks:KeepBest",), None),
        (("--callbacks", "laser_tf.callbacks:StopAfter(hours=2)"), None),
        (("--callbacks=laser_tf.callbacks:WandbCallback",), "laser_tf.callbacks:WandbCallback"),
        (("--callbacks=laser_tf.callbacks:KeepBest", "-callbacks=a:B(c=1)"), "a:B(c=1)"),
    )
    def test_only_callbacks_without_network_allow_a_private_one(self, flags, found):
        self.assertEqual(private_network.find_network_callback(("train", *flags)), found)
        if found:
            messages.assert_names(private_network.enter(("train", *flags)), found)

    def test_callbacks_without_network_exist(self):
        self.assertContainsSubset(private_network._LOCAL_CALLBACKS, callbacks.__all__)

    @pytest.mark.long
    def test_unmoved_server_is_reachable(self):
        port = processes.free_port()
        with _process(_SERVER.format(enter="None", port=port)) as process:
            _served(process)
            self.assertIn("127.0.0.1", _reachable(port))

    def test_moved_server_is_not_reachable(self):
        port = processes.free_port()
        with _process(_SERVER.format(enter="private_network.enter()", port=port)) as process:
            warning = _served(process)
            if warning == "None":
                self.assertEmpty(_reachable(port))
            else:  # this system forbids it: the run must say so and work all the same
                messages.assert_names(warning, "network")
                self.assertNotEmpty(_reachable(port))

    def test_plain_user_has_a_working_loopback(self):
        output = _run("""
            become_plain_user()
            owner = os.geteuid(), os.getegid()
            print(None in [private_network._try_in_child(f, owner) for f in (ALONE, WITH_USER)])
            print(private_network.enter())
            look_around()
        """)
        self.assertRegex(output, "^(True\nNone\nmoved|False\n.+\nunmoved) with loopback$")

    def test_privileged_process_keeps_its_user_namespace(self):
        output = _run("""
            owner = os.geteuid(), os.getegid()
            may = private_network._try_in_child(ALONE, owner) is None
            moved = private_network.enter() is None
            print(not moved or may == (namespaces()[1] == before[1]))
        """)
        self.assertEqual(output, "True")

    def test_files_keep_their_owner(self):
        output = _run("""
            become_plain_user()
            owner = os.geteuid(), os.getegid()
            private_network.enter()
            with tempfile.NamedTemporaryFile() as file:
                status = os.stat(file.name)
            print((os.geteuid(), os.getegid()) == owner == (status.st_uid, status.st_gid))
        """)
        self.assertEqual(output, "True")

    def test_process_with_threads_stays(self):
        output = _run("""
            release = threading.Event()
            threading.Thread(target=release.wait).start()
            print(private_network.enter())
            look_around()
            release.set()
        """)
        messages.assert_names(output, 2)
        self.assertEndsWith(output, "\nunmoved with loopback")

    @parameterized.parameters("_unshare", "_use_loopback")
    def test_forbidden_step_leaves_the_process_untouched(self, step):
        output = _run(f"""
            def forbidden(*_):
                raise PermissionError(1, 'Operation not permitted')
            private_network.{step} = forbidden
            private_network._WAYS = (WITH_USER,)  # the one that takes every step
            print(private_network.enter())
            look_around()
        """)
        # Two lines: no copy of the process has run on.
        self.assertRegex(output, r"^(?!None).+\nunmoved with loopback$")
        self.assertNotIn("was killed", output)

    def test_namespace_limit_leaves_the_process_untouched(self):
        output = _run("""
            def used_up(_):
                raise OSError(28, "No space left on device", "unshare:")
            private_network._try_in_child = lambda *_: None
            private_network._unshare = used_up
            print(private_network.enter())
            look_around()
        """)
        messages.assert_names(output, "No space left on device")
        self.assertEndsWith(output, "\nunmoved with loopback")


if __name__ == "__main__":
    absltest.main()
