"""README.md and the pages of docs/, as tests read them."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
README = "README.md"
PAGES = (README, *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")))

FENCE = re.compile(r"^```.*?^```", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
OUTSIDE = re.compile(r"[a-z]+:")  # what a link begins with that leads elsewhere


def text(page: str) -> str:
    """A file of the repository, by its path from the root."""
    return (ROOT / page).read_text()
