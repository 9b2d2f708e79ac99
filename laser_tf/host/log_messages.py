"""What a process logs: this project's messages, and its libraries' warnings."""

import logging
import sys


def show(message_format: str = "%(message)s") -> None:
    """Sends messages to standard error, in place of where they went before.

    This project logs by the root logger, a library by its own. What libraries tell below a warning
    is left out, such as that matplotlib has found the fonts, and of that also that it takes long.

    Args:
      message_format: of `logging.Formatter`; times have no fraction of a second.
    """
    logging.basicConfig(
        level=logging.INFO,
        format=message_format,
        datefmt="%F %T",
        stream=sys.stderr,
        force=True,
    )
    for handler in logging.getLogger().handlers:
        handler.addFilter(_is_ours_or_a_warning)
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)


def _is_ours_or_a_warning(record: logging.LogRecord) -> bool:
    return record.name == "root" or record.levelno >= logging.WARNING
