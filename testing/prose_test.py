"""Checks of the style guide (docs/style.md) that a program can make."""

import ast
import re

from absl.testing import absltest

from testing import pages

_CODE = ("laser_tf", "launch", "configs", "experiments", "examples", "tools")
_CLAUSE = re.compile(
    r"(What|Whose|Who|How|Whether|Of|Where|Beside|By|From|Around|Knows|Tells|Says|Has)\b"
)
_FRAGMENT = re.compile(
    r"\s*[`*\w.]+:\s+(of|for|whether|what|whose|how|where|see|in|by|to|that|from|with|at|as|its)\b"
)
_AVOIDED = re.compile(
    r"\b(beside|tell|tells|told|nobody|whoever|whatever|mends?|go on|goes on|anew|of its own"
    r"|of one's own|meanwhile|by way of|hence|film|films)\b",
    re.IGNORECASE,
)
_MAX_COLUMNS = 100
_MAX_CELL = 60
_NOT_CHECKED = ("CHANGELOG.md", "docs/style.md")  # the style guide quotes what it advises against


def _docstrings():
    """Yields (place, docstring) of all modules, classes and functions."""
    for directory in _CODE:
        for path in sorted((pages.ROOT / directory).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                    name = getattr(node, "name", "")
                    yield f"{path.relative_to(pages.ROOT)} {name}", ast.get_docstring(node) or ""


def _fragments(docstring):
    """Yields lines of `Args` and `Attributes` that continue the name of the argument."""
    is_section = False
    for line in docstring.splitlines():
        if re.match(r"(Args|Attributes|Returns|Raises|Yields):", line):
            is_section = line.startswith(("Args", "Attributes"))
        elif is_section and _FRAGMENT.match(line):
            yield line


def _lines(page):
    """Yields the lines of a page outside code blocks."""
    is_code = False
    for line in pages.text(page).splitlines():
        is_code ^= line.startswith("```")
        if not is_code:
            yield line


class ProseTest(absltest.TestCase):
    def test_docstrings_open_with_a_verb_or_noun(self):
        found = [place for place, text in _docstrings() if _CLAUSE.match(text)]
        self.assertEmpty(found)

    def test_arguments_are_described_by_noun_phrases(self):
        found = [(place, line) for place, text in _docstrings() for line in _fragments(text)]
        self.assertEmpty(found)

    def test_docstrings_use_plain_words(self):
        found = [
            (place, match[0]) for place, text in _docstrings() for match in _AVOIDED.finditer(text)
        ]
        self.assertEmpty(found)

    def test_pages_use_plain_words(self):
        checked = [page for page in pages.PAGES if page not in _NOT_CHECKED]
        self.assertIn("README.md", checked)
        found = [
            (page, match[0])
            for page in checked
            for line in _lines(page)
            for match in _AVOIDED.finditer(line)
        ]
        self.assertEmpty(found)

    def test_lines_and_table_cells_of_pages_are_short(self):
        found = []
        for page in pages.PAGES:
            if page in _NOT_CHECKED:
                continue
            for line in _lines(page):
                if line.startswith("|"):
                    cells = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line).strip("|").split("|")
                    found += [(page, cell) for cell in cells if len(cell.strip()) > _MAX_CELL]
                elif len(line) > _MAX_COLUMNS and "](" not in line and "http" not in line:
                    found.append((page, line))
        self.assertEmpty(found)


if __name__ == "__main__":
    absltest.main()
