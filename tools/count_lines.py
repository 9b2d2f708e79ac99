"""Counts the lines and modules of the project.

python -m tools.count_lines
"""

import ast
import pathlib
from collections.abc import Sequence

from laser_tf.replay.schemes import registry

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_CODE = ("laser_tf", "launch", "configs", "experiments")
_TESTS = ("testing", "tools")
_CHOOSING = ("configs", "experiments")  # folders that may name replay schemes
_MAX_SHORT_LINES = 59
_SCHEMES = pathlib.Path("laser_tf/replay/schemes")


def main() -> None:
    """Prints a Markdown table."""
    code, tests = _modules(_CODE), _modules(_TESTS)
    rows = {
        f"lines of {', '.join(_CODE)}": sum(map(_num_lines, code)),
        f"lines of {', '.join(_TESTS)}": sum(map(_num_lines, tests)),
        f"modules of {', '.join(_CODE)}": len(code),
        f"of these, 1 to {_MAX_SHORT_LINES} lines": sum(
            0 < _num_lines(path) <= _MAX_SHORT_LINES for path in code
        ),
    }
    rows["modules that name a replay scheme outside its package"] = len(_naming_schemes(code))
    print("| measure | number |\n|---|---|")
    for name, number in rows.items():
        print(f"| {name} | {number:,} |")


def _modules(folders: Sequence[str]) -> list[pathlib.Path]:
    """Returns the Python files in folders of the repository, sorted."""
    return sorted(path for folder in folders for path in (_ROOT / folder).rglob("*.py"))


def _num_lines(path: pathlib.Path) -> int:
    return len(path.read_text().splitlines())


def _naming_schemes(paths: Sequence[pathlib.Path]) -> list[pathlib.Path]:
    """Returns the modules outside `_SCHEMES` that hold the name of a replay scheme.

    Configurations and experiments choose schemes and are left out, and so are modules that mention
    no scheme, in which e.g. "episodes" is another name.
    """
    choosing = [_ROOT / folder for folder in _CHOOSING]
    outside = [
        path
        for path in paths
        if not any(map(path.is_relative_to, [_ROOT / _SCHEMES, *choosing]))
        and "scheme" in path.read_text()
    ]
    names = set(registry.names())
    return [path for path in outside if names & _string_constants(path)]


def _string_constants(path: pathlib.Path) -> set[str]:
    """Returns the strings of a module; a docstring never equals the name of a scheme."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return {
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


if __name__ == "__main__":
    main()
