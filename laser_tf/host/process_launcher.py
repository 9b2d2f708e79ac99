"""Starts worker processes in the host's network and ends them with their owner.

A run moves into a private network, see `private_network`, but its environments may call simulators
and servers. A launcher process that was started before the move therefore starts their workers,
also for descendants of the run. This module is itself the launcher's program.
"""

import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence

# Path of the socket of a launcher for this process and the processes that it starts.
SOCKET_VARIABLE = "LASER_TF_LAUNCHER"

_TEMPORARY_FOLDER = "/tmp"  # A longer path might not fit the address of a socket (108 bytes).
_MAX_FILES = 16
_NUMBER = struct.Struct("!q")
_lock = threading.Lock()
_own_path = ""  # Socket of this process's own launcher.
_launched: "weakref.WeakSet[LaunchedProcess]" = weakref.WeakSet()  # By this process.


def start() -> str:
    """Starts a launcher, which ends with this process, and returns the path of its socket."""
    parent = _TEMPORARY_FOLDER if os.access(_TEMPORARY_FOLDER, os.W_OK) else None
    folder = tempfile.mkdtemp(prefix="laser_tf_launcher_", dir=parent)
    lifeline, _ = os.pipe()  # The write end stays open as long as this process.
    try:
        with socket.socket(socket.AF_UNIX) as listener, os.fdopen(lifeline):
            listener.bind(f"{folder}/socket")
            listener.listen()
            files = (listener.fileno(), lifeline)
            subprocess.run(
                [sys.executable, "-IS", __file__, folder, *map(str, files)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                pass_fds=files,
                start_new_session=True,
                check=True,
            )
    except BaseException:
        shutil.rmtree(folder)
        raise
    return f"{folder}/socket"


def _connect() -> socket.socket:
    """Connects to the inherited launcher, or else to this process's own launcher."""
    global _own_path
    connection = socket.socket(socket.AF_UNIX)
    if path := os.environ.get(SOCKET_VARIABLE):
        connection.connect(path)
        return connection
    with _lock:
        try:
            connection.connect(_own_path)
        except OSError:  # The launcher is not started yet, or was killed.
            _own_path = start()
            connection.connect(_own_path)
    return connection


class LaunchedProcess:
    """A process with a separate session, in the network of the launcher.

    Its process group, whose id is `pid`, is killed by `end`, at the end of the process, and at any
    end of the process that holds this object.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], files: Sequence[int]
    ):
        """Starts the process in the current folder, with the priority of this process.

        Args:
          command: Program and arguments. The launcher adds its process id and the numbers of the
            inherited files.
          environment: Environment variables.
          files: Descriptor of the standard output and error stream, then those that are inherited.

        Raises:
          OSError: If there is no launcher, or it cannot start the process.
        """
        self._lock = threading.Lock()
        self._exit_code: int | None = None
        self._connection = _connect()
        priority = os.getpriority(os.PRIO_PROCESS, 0)
        folder = str(pathlib.Path.cwd())
        request = json.dumps([list(command), dict(environment), folder, priority]).encode()
        socket.send_fds(self._connection, [_NUMBER.pack(len(request))], list(files))
        self._connection.sendall(request)
        answer = self._connection.recv(_NUMBER.size)
        self.pid = _NUMBER.unpack(answer)[0] if answer else 0
        if self.pid <= 0:
            self._connection.close()
            raise OSError(-self.pid, f"cannot start a process: {os.strerror(-self.pid)}")
        _launched.add(self)

    def wait(self, seconds: float | None = None) -> int | None:
        """Waits for the end of the process and returns its exit code; None after `seconds`."""
        with self._lock:
            if self._exit_code is None:
                self._connection.settimeout(seconds)
                try:
                    answer = self._connection.recv(_NUMBER.size)
                except (TimeoutError, BlockingIOError):
                    return None
                except ConnectionError:
                    answer = b""
                # Without its launcher, the process was killed.
                self._exit_code = _NUMBER.unpack(answer)[0] if answer else -signal.SIGKILL
                self._connection.close()
            return self._exit_code

    def end(self, seconds: float) -> None:
        """Waits up to `seconds` for the process to end, then kills its process group."""
        if not seconds or self.wait(seconds) is None:
            with contextlib.suppress(OSError):  # The process has ended already.
                self._connection.shutdown(socket.SHUT_WR)
            self.wait()


def launched() -> list[int]:
    """Returns the ids of the processes that this process has launched and not yet seen end."""
    return [process.pid for process in list(_launched) if process._exit_code is None]


def _serve(connection: socket.socket) -> None:
    """Starts the process that a client asks for, and ends it with the client."""
    with connection:
        header, files, _, _ = socket.recv_fds(connection, _NUMBER.size, _MAX_FILES)
        try:
            with connection.makefile("rb") as stream:
                request = stream.read(_NUMBER.unpack(header)[0])
            command, environment, folder, priority = json.loads(request)
            output, *inherited = files
            process = subprocess.Popen(
                [*command, str(os.getpid()), *map(str, inherited)],
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=inherited,
                start_new_session=True,
            )
            os.setpriority(os.PRIO_PROCESS, process.pid, priority)
        except OSError as error:
            connection.sendall(_NUMBER.pack(-(error.errno or 1)))
            return
        finally:
            for file in files:
                os.close(file)
        with contextlib.suppress(OSError):  # The client has ended.
            connection.sendall(_NUMBER.pack(process.pid))
        threading.Thread(target=_shut_down_at_exit, args=(process.pid, connection)).start()
        with contextlib.suppress(ConnectionError):
            connection.recv(1)  # Returns when the client closes the connection, too.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        with contextlib.suppress(OSError):
            connection.sendall(_NUMBER.pack(code))


def _shut_down_at_exit(pid: int, connection: socket.socket) -> None:
    """Ends the reception of a connection when a process has ended."""
    # WNOWAIT: the id must belong to the process until its group is killed.
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RD)


def _run(folder: str, listener: int, lifeline: int) -> None:
    """Serves clients until the process that has started the launcher ends."""
    # Not a child of that process, because Ray kills all children of a process.
    if os.fork():
        return
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        # Not SIG_IGN, which workers would inherit.
        signal.signal(number, lambda *_: None)
    with socket.socket(fileno=listener) as server:
        while lifeline not in select.select([listener, lifeline], [], [])[0]:
            connection, _ = server.accept()
            threading.Thread(target=_serve, args=(connection,)).start()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
