"""A watcher that kills process groups when the process that created it is killed."""

import contextlib
import os
import subprocess
from collections.abc import Iterable

# The background subshell is no child of this process: whatever kills all children of this process,
# as Ray does, leaves the watcher alive. `exec` keeps the pipe, because a shell connects the
# standard input of background commands to /dev/null.
_SCRIPT = """
trap '' INT HUP TERM
exec 3<&0
(
  while read -r line; do groups=$line; done
  [ -z "$groups" ] || kill -s KILL -- $groups
) <&3 &
"""


class GroupWatcher:
    """Kills the given process groups when this process ends without closing the watcher.

    The watcher is a shell in a session of its own, which reads a pipe. Only this process holds the
    write end of the pipe, so that its end, by any signal, ends the input of the shell.
    """

    def __init__(self):
        source, self._pipe = os.pipe()
        try:
            subprocess.run(
                ["/bin/sh", "-c", _SCRIPT],
                stdin=source,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
                check=True,
            )
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(source)
        self._is_open = True

    def watch(self, groups: Iterable[int]) -> None:
        """Replaces the watched groups."""
        line = " ".join(f"-{group}" for group in groups)
        with contextlib.suppress(BrokenPipeError):  # The watcher was killed.
            os.write(self._pipe, f"{line}\n".encode())

    def close(self) -> None:
        """Ends the watcher, which kills nothing; further calls do nothing."""
        if self._is_open:
            self.watch([])
            self._is_open = False
            os.close(self._pipe)
