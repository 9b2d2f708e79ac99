"""Order of the test files, and signal handlers that they inherit."""

import pathlib
import signal

import pytest

# The longest files come first, so that parallel processes of pytest end at the same time. Files
# that start many processes alternate with files of one process.
_FIRST = (
    "training/training_test.py",
    "launch/launch_test.py",
    "training/resumed_run_test.py",
    "launch/sweep_test.py",
    "environments/python_environments_test.py",
    "launch/own_environment_test.py",
    "training/lost_server_test.py",
    "cluster/recovery_test.py",
    "export/exporter_test.py",
    "launch/export_test.py",
    "training/several_learners_test.py",
    "api/runs_test.py",
    "launch/replay_server_test.py",
    "api/policies_test.py",
    "examples/examples_test.py",
    "agents/reactor_test.py",
    "package_test.py",
    "training/vectors_test.py",
    "cluster/remote_command_test.py",
    "replay/replay_test.py",
    "launch/hangup_test.py",
    "training/invalid_experience_test.py",
    "launch/full_disk_test.py",
    "environments/convention_test.py",
    "training/learner_test.py",
    "evaluation/evaluator_process_test.py",
)
_FOLDER = pathlib.Path(__file__).parent

# As in the foreground: background jobs of a shell ignore SIGINT, nohup ignores SIGHUP, and child
# processes inherit it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest files first; all others keep their order."""
    places = {_FOLDER / path: place for place, path in enumerate(_FIRST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
