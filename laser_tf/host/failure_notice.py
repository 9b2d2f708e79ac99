"""A failure that may repeat is told once, and so is its end."""

import logging


class FailureNotice:
    """Of one thing that is tried again and again."""

    def __init__(self, over: str):
        """`over` is said when it works again."""
        self._over = over
        self._is_failing = False

    def failed(self, message: str) -> None:
        """Warns, unless it failed the last time, too."""
        if not self._is_failing:
            logging.warning("%s", message)
        self._is_failing = True

    def succeeded(self) -> None:
        """Tells, if it failed the last time."""
        if self._is_failing:
            logging.info("%s", self._over)
        self._is_failing = False
