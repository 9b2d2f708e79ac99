"""Counts the lines of the project, and lists the path of experience to the learner.

python -m tools.count_lines
"""

import ast
import pathlib

from laser_tf.replay.schemes import registry

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_CODE = ("laser_tf", "launch", "configs", "experiments")
_TESTS = ("testing", "tools")
_CHOOSING = ("configs/", "experiments/", "laser_tf/replay/schemes/")  # Each names its schemes.
_SHORT_LINES = 60
# Functions that pass on a step, an unroll or a batch with `replay.scheme=mixed`, from
# `environment.step` to the learner, as in docs/design.md. Helpers with one caller are left out.
_PATH = {
    "training/actor.py": ("Actor._act_on",),
    "replay/writers.py": ("UnrollWriter.add", "UnrollBuffer.write", "UnrollBuffer.take_unroll"),
    "replay/resilient_writer.py": (
        "UnrollStream.write",
        "ResilientWriter.append",
        "ResilientWriter.create_item",
    ),
    "replay/dataset.py": ("items", "online_batches", "replayed_batches"),
    "replay/schemes/mixed.py": ("Mixed.mixed_batches",),
    "replay/unroll_check.py": ("UnrollCheck.mask",),
    "replay/batch_sources.py": (
        "ServerIterator.__next__",
        "BackgroundSource._fetch",
        "BatchSource.get",
    ),
}


def main() -> None:
    """Prints two Markdown tables."""
    code, tests = _texts(_CODE), _texts(_TESTS)
    rows = {
        f"lines of {', '.join(_CODE)}": sum(map(_num_lines, code.values())),
        f"lines of {', '.join(_TESTS)}": sum(map(_num_lines, tests.values())),
        f"modules of {', '.join(_CODE)}": len(code),
        f"of these, below {_SHORT_LINES} lines": sum(
            0 < _num_lines(text) < _SHORT_LINES for text in code.values()
        ),
        "modules that name a replay scheme outside its package": sum(
            _names_scheme(text) for path, text in code.items() if not path.startswith(_CHOOSING)
        ),
        "functions from environment.step to the batch": sum(map(len, _PATH.values())),
        "files of these functions": len(_PATH),
    }
    print("| measure | number |\n|---|---|")
    for name, number in rows.items():
        print(f"| {name} | {number:,} |")
    print("\n| function | file |\n|---|---|")
    for path, functions in _PATH.items():
        for function in functions:
            if f"def {function.rpartition('.')[2]}(" not in code[f"laser_tf/{path}"]:
                raise ValueError(f"{path} has no function {function}")
            print(f"| `{function}` | `{path}` |")


def _texts(folders: tuple[str, ...]) -> dict[str, str]:
    """Returns path -> text of the Python files in folders of the repository."""
    paths = (path for folder in folders for path in (_ROOT / folder).rglob("*.py"))
    return {str(path.relative_to(_ROOT)): path.read_text() for path in paths}


def _num_lines(text: str) -> int:
    return len(text.splitlines())


def _names_scheme(text: str) -> bool:
    """Returns whether a module that mentions schemes holds the name of one as a string."""
    constants = {n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant)}
    return "scheme" in text and bool(constants & set(registry.names()))


if __name__ == "__main__":
    main()
