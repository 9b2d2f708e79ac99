"""The report as one HTML page: pictures inside, nothing fetched, readable on a phone."""

import base64
import html
from collections.abc import Sequence
from typing import NamedTuple

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 52rem; margin: auto;
       padding: 0 1rem 3rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; }
figcaption, .note { color: #555; font-size: .9rem; }
.table { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #ddd;
         white-space: nowrap; }
th { border-bottom: 2px solid #888; } .text { text-align: left; }
summary { cursor: pointer; } ul { padding-left: 1.2rem; }
"""


class Picture(NamedTuple):
    """A PNG with what is said below it."""

    png: bytes
    caption: str


class Table(NamedTuple):
    """Rows of cells under a header; `text_columns` at the left are words, the others numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int


class Notes(NamedTuple):
    """Lines, one below the other."""

    lines: Sequence[str]


class Section(NamedTuple):
    """A heading and what stands below it."""

    heading: str
    parts: Sequence[Picture | Table | Notes]


def render(title: str, sections: Sequence[Section]) -> str:
    """The whole page; all texts are escaped here."""
    body = "\n".join(map(_section, sections))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{html.escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    parts = "\n".join(map(_part, section.parts))
    return f"<section>\n<h2>{html.escape(section.heading)}</h2>\n{parts}\n</section>"


def _part(part: Picture | Table | Notes) -> str:
    match part:
        case Picture(png, caption):
            data, caption = base64.b64encode(png).decode(), html.escape(caption)
            return (
                f'<figure><img src="data:image/png;base64,{data}" alt="{caption}">'
                f"<figcaption>{caption}</figcaption></figure>"
            )
        case Table(header, rows, text_columns):
            lines = [_row("th", header, text_columns)]
            lines += [_row("td", row, text_columns) for row in rows]
            return f'<div class="table"><table>\n{"".join(lines)}</table></div>'
        case Notes(lines):
            items = "".join(f"<li>{html.escape(line)}</li>\n" for line in lines)
            return f'<ul class="note">\n{items}</ul>'


def _row(tag: str, cells: Sequence[str], text_columns: int) -> str:
    kinds = ("text" if index < text_columns else "number" for index in range(len(cells)))
    columns = "".join(
        f'<{tag} class="{kind}">{html.escape(cell)}</{tag}>'
        for kind, cell in zip(kinds, cells, strict=True)
    )
    return f"<tr>{columns}</tr>\n"
