"""Checks of installed versions, with the standard library only: called before other imports."""

import hashlib
import importlib.metadata
import pathlib
import platform
from collections.abc import Mapping

# dm-reverb's compiled ops load into exactly one TensorFlow; any other fails at import with an
# undefined symbol.
_REQUIRED = {"dm-reverb": "0.14.0", "tensorflow": "2.15."}
_PYTHON = "3.11"
_RECORDED = ("tensorflow", "keras", "dm-reverb", "ale-py", "minatar", "numpy", "protobuf", "ray")


class VersionError(SystemExit):
    """Installed packages are incompatible. Uncaught, it ends the process with one line."""


def check() -> None:
    """Checks that Python is 3.11 and TensorFlow is the one that Reverb was built against.

    Raises:
      VersionError: If a version differs. The message states the remedy.
    """
    python = ".".join(platform.python_version_tuple()[:2])
    if python != _PYTHON:
        raise VersionError(
            f"error: Python must be {_PYTHON}, got {platform.python_version()}: dm-reverb 0.14.0 "
            f"and TensorFlow 2.15 are used on Python {_PYTHON}. Create an environment with "
            f"python{_PYTHON} and install laser_tf there"
        )
    for package, required in _REQUIRED.items():
        installed = _version(package) or (
            _version("tensorflow-cpu") if package == "tensorflow" else None
        )
        if installed is None or not installed.startswith(required):
            raise VersionError(
                f"error: {package} is {installed or 'not installed'}, not {required.rstrip('.')}: "
                "pip install tensorflow==2.15.1 dm-reverb==0.14.0"
            )


def recorded() -> dict[str, str]:
    """Returns the versions that a run directory records, by package."""
    versions = {package: _version(package) for package in _RECORDED}
    return {"python": platform.python_version(), **{k: v for k, v in versions.items() if v}}


def of_machine() -> dict[str, str]:
    """Returns what all machines of a run must share: versions and a hash of this package."""
    return recorded() | {"laser_tf": f"with sources {_sources()}"}


def differing(expected: Mapping[str, str]) -> str:
    """Describes how this machine differs from the `of_machine` of another; "" if it does not."""
    here = of_machine()
    return ", ".join(
        f"{package} {here.get(package, 'is missing')} instead of {version}"
        for package, version in expected.items()
        if here.get(package) != version
    )


def _sources() -> str:
    """Returns a hash of the text of all modules of this package."""
    package = pathlib.Path(__file__).resolve().parents[1]
    digest = hashlib.sha1(usedforsecurity=False)
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:10]


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
