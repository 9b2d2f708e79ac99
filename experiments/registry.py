"""All experiments by name: the modules of this package that define `EXPERIMENT`."""

import importlib
import pathlib

from experiments import base
from laser_tf import config_values, errors

_INFRASTRUCTURE = ("__init__", "base", "plan", "registry", "run", "sweep_conditions")


def names() -> list[str]:
    """Returns the names of all experiments."""
    files = pathlib.Path(__file__).parent.glob("*.py")
    return sorted(path.stem for path in files if path.stem not in _INFRASTRUCTURE)


def load(name: str) -> base.Experiment:
    """Returns an experiment.

    Raises:
      UserError: If there is no such experiment.
    """
    if name not in names():
        close = config_values.close_names(name, names()) or names()
        raise errors.UserError(
            f"--experiment must be one of {', '.join(names())}, got {name!r}. Use "
            f"{' or '.join(close[:3])}."
        )
    return importlib.import_module(f"experiments.{name}").EXPERIMENT
