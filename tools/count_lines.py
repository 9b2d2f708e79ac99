"""Counts the lines and modules of the project.

python -m tools.count_lines
"""

import pathlib
import re
from collections.abc import Sequence

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_CODE = ("laser_tf", "launch", "configs", "experiments")
_TESTS = ("testing", "tools")
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
    if (_ROOT / _SCHEMES).exists():
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
    """Returns the modules outside `_SCHEMES` that hold the quoted name of a replay scheme."""
    own = (_ROOT / _SCHEMES).glob("*.py")
    names = {path.stem for path in own} - {"__init__", "base", "registry"}
    pattern = re.compile(rf"[\"'](?:{'|'.join(sorted(names))})[\"']")
    outside = [path for path in paths if not path.is_relative_to(_ROOT / _SCHEMES)]
    return [path for path in outside if pattern.search(path.read_text())]


if __name__ == "__main__":
    main()
