"""Ctrl-C and SIGTERM as flags, for loops that then end in order."""

import signal


class Interruption:
    """What the process was asked to do.

    No events: a handler would wait for ever for a lock of theirs that the thread beneath it holds.
    """

    def __init__(self):
        """Takes both signals over."""
        self.stop = False
        self.hurry = False  # do not even wait for what is being saved
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signal_number, self._note)

    def _note(self, signal_number: int, _: object) -> None:
        # A second Ctrl-C is meant. SIGTERM comes several times from a parent that is killed, as
        # Linux sends it with each of the parent's threads (see `supervisor.end_with_parent`).
        if self.stop and signal_number == signal.SIGINT:
            self.hurry = True
        self.stop = True
