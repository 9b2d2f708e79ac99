"""Halves the time that the import of TensorFlow takes."""

import functools
import gc
import importlib.abc
import importlib.machinery
import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

_Execute = Callable[[ModuleType], None]  # `exec_module` of a loader

# Modules that TensorFlow and Keras import, but that a run does not need. TensorFlow Lite would
# load jax where it is installed. `distutils` is Python's own: that of setuptools loads setuptools.
_UNUSED = (
    "distutils",
    "pandas",
    "scipy.linalg",
    "scipy.ndimage",
    "tensorflow._api.v2.compat.v1.lite",
    "tensorflow._api.v2.compat.v2.lite",
    "tensorflow._api.v2.lite",
)


def install() -> None:
    """Makes the first import of TensorFlow in this process quick."""
    sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Finds TensorFlow and, while it is imported, the unused modules; removes itself then."""

    def __init__(self):
        self._is_importing = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name == "tensorflow":
            execute = self._execute_tensorflow
        elif self._is_importing and name in _UNUSED:
            execute = _execute_at_first_use
        else:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            # Another loader would lack the methods that give access to data files.
            changed = functools.partial(execute, spec.loader.exec_module)
            spec.loader.exec_module = changed  # type: ignore[method-assign]
        return spec

    def _execute_tensorflow(self, execute: _Execute, module: ModuleType) -> None:
        self._is_importing = True
        gc.disable()  # A million new objects would be searched for garbage again and again.
        try:
            execute(module)
        finally:
            sys.meta_path.remove(self)
            gc.freeze()  # Later collections leave out these objects, too.
            gc.enable()


def _execute_at_first_use(execute: _Execute, module: ModuleType) -> None:
    """Executes a module when one of its attributes is first used, in any thread.

    Unlike with `importlib.util.LazyLoader`, the module may replace itself in `sys.modules`.
    """
    lock, pending = threading.RLock(), [execute]

    def get(name: str) -> Any:
        with lock:
            if pending:
                pending.pop()(module)
                if vars(module)["__getattr__"] is get:
                    del vars(module)["__getattr__"]
        if vars(module).get("__getattr__") is get:  # The module is being executed.
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return getattr(module, name)

    vars(module)["__getattr__"] = get
