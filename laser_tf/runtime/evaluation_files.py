"""Where a run's evaluations lie."""

import pathlib


def result_file(workdir: pathlib.Path, history_length: int = 0) -> pathlib.Path:
    """An evaluation's result; each length of history, 0 for all, has a file of its own."""
    return workdir / f"evaluation{history_suffix(history_length)}.json"


def history_suffix(history_length: int) -> str:
    """What tells the files of restricted evaluations from the unrestricted one's."""
    return f"_history_{history_length}" if history_length else ""
