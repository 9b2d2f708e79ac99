"""The order of the test files, and what they inherit."""

import pathlib
import signal

import pytest

# The longest first: what comes last is short, and no process of pytest is left to wait for another.
# Files that start many processes take turns with those of one, which leaves each a core.
_FIRST = (
    "launch/sweep_test.py",
    "training/training_test.py",
    "cluster/recovery_test.py",
    "agents/reactor_test.py",
    "launch/launch_test.py",
    "launch/full_disk_test.py",
    "training/several_learners_test.py",
    "launch/replay_server_test.py",
    "launch/own_environment_test.py",
    "environments/python_environments_test.py",
    "launch/export_test.py",
    "launch/hangup_test.py",
    "examples/examples_test.py",
    "training/vectors_test.py",
    "training/learner_test.py",
    "training/lost_server_test.py",
    "replay/external_server_test.py",
    "evaluation/continuous_evaluator_test.py",
    "export/saved_model_test.py",
)
_FOLDER = pathlib.Path(__file__).parent

# As in the foreground: a shell has its background jobs ignore Ctrl-C, and nohup a closed terminal,
# and what tests start would, too.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest files first; all others keep their order."""
    places = {_FOLDER / path: place for place, path in enumerate(_FIRST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
