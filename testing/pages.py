"""Access to README.md and the pages of docs/ for tests."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
README = "README.md"
PAGES = (README, *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")))

FENCE = re.compile(r"^```.*?^```", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
OUTSIDE = re.compile(r"[a-z]+:")  # Start of a link to another site.


def text(page: str) -> str:
    """Returns the content of a file by its path from the root."""
    return (ROOT / page).read_text()
