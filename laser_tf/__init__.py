import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laser_tf import callbacks
    from laser_tf.api.config_files import load_config
    from laser_tf.api.policies import export_policy, load_policy
    from laser_tf.api.runs import evaluate, train

# Before any module here imports TensorFlow, which by itself asks oneDNN on processors with AVX-512
# VNNI and newer only: without it an update on Atari takes twice the processor time (AVX2).
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

__all__ = ["callbacks", "evaluate", "export_policy", "load_config", "load_policy", "train"]

# Loaded at their first use, so that the import of a module of this package loads no other.
_MODULES = {
    "evaluate": "runs",
    "export_policy": "policies",
    "load_config": "config_files",
    "load_policy": "policies",
    "train": "runs",
}


def __getattr__(name: str) -> Any:
    if name == "callbacks":
        return importlib.import_module(f"{__name__}.callbacks")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.api.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
