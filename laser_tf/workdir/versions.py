"""Checks of installed versions, with the standard library only: called before other imports."""

import hashlib
import importlib.metadata
import pathlib
import platform
from collections.abc import Mapping

# dm-reverb's compiled ops load into exactly one TensorFlow; any other fails at import with an
# undefined symbol.
_REQUIRED = {"python": "3.11.", "dm-reverb": "0.14.0", "tensorflow": "2.15."}
_RECORDED = ("tensorflow", "keras", "dm-reverb", "ale-py", "minatar", "numpy", "protobuf", "ray")


class VersionError(SystemExit):
    """Incompatible packages; ends the process with one line."""


def check() -> None:
    """Raises VersionError unless Python and TensorFlow fit Reverb."""
    installed = recorded()
    installed.setdefault("tensorflow", _version("tensorflow-cpu") or "not installed")
    for name, required in _REQUIRED.items():
        version = installed.get(name, "not installed")
        if not version.startswith(required):
            raise VersionError(
                f"error: {name} must be {required.rstrip('.')}, got {version}. Create an "
                "environment with python3.11, and pip install tensorflow==2.15.1 dm-reverb==0.14.0"
            )


def recorded() -> dict[str, str]:
    """Returns the versions that a run directory records, by package."""
    versions = {package: _version(package) for package in _RECORDED}
    return {"python": platform.python_version(), **{k: v for k, v in versions.items() if v}}


def of_machine() -> dict[str, str]:
    """Returns what all machines of a run must share: versions and a hash of this package."""
    return recorded() | {"laser_tf": f"with sources {_sources()}"}


def of_package() -> str:
    """Returns the version of this package and a hash of its sources."""
    return f"{_version('laser-tf') or 'checkout'}, sources {_sources()}"


def differing(expected: Mapping[str, str]) -> str:
    """Describes how this machine differs from the `of_machine` of another; "" if it does not."""
    here = of_machine()
    return ", ".join(
        f"{package} {here.get(package, 'is missing')} instead of {version}"
        for package, version in expected.items()
        if here.get(package) != version
    )


def _sources() -> str:
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
