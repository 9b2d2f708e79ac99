"""What ends a command with one line instead of a traceback."""


class UserError(RuntimeError):
    """The user can act on it: the message, one line, says what was refused, why and what to do."""
