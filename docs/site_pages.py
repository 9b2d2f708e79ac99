"""What the site has beside docs/: the README, files that pages link to, and the API reference.

A hook of mkdocs, see mkdocs.yml. Pages link to files of the repository as they lie there, so that
links work wherever the repository is shown. On the site

    README.md, CONTRIBUTING.md, ...     become pages
    laser_tf/ops/vtrace.py#vtrace       becomes the API reference of that function
    laser_tf/ops                        becomes the page of that room in it
    any other source, e.g. of configs/  becomes a page with its text, a folder one with all of them
    pictures and tables                 are copied
"""

import pathlib
import posixpath
import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = "laser_tf"
COPIED = (".png", ".csv", ".gz")

_LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds what is not in docs/."""
    pages = {"README.md": "index.md"}
    pending = ["README.md", *(f"docs/{file.src_uri}" for file in files.documentation_pages())]
    while pending:  # pages that are linked from pages may link to more
        for target in _links(pending.pop()):
            if target in pages or target.startswith("docs/") or not (ROOT / target).exists():
                continue  # a link to nothing is left as it is, for mkdocs to refuse
            uri = _uri(target)
            if uri.startswith("api/"):
                continue
            pages[target] = uri
            if target.endswith(".md"):
                pending.append(target)
    for source, uri in pages.items():
        if source.endswith(COPIED):
            files.append(File.generated(config, uri, abs_src_path=str(ROOT / source)))
        else:
            files.append(File.generated(config, uri, content=_page(source)))
    for uri, content in _api_pages().items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Points links to files of the repository at what the site has of them."""
    source = _source(page.file.src_uri)
    if source is None:
        return markdown
    here = posixpath.dirname(page.file.src_uri)

    def point(match: re.Match) -> str:
        start, path, anchor, end = match.groups()
        target = _resolve(source, path)
        if not target.startswith("docs/") and not (ROOT / target).exists():
            return match[0]
        uri = _uri(target)
        if uri.startswith("api/"):
            anchor = _api_anchor(target, anchor)
        elif not target.endswith(".md"):
            anchor = ""
        return f"{start}{posixpath.relpath(uri, here or '.')}{anchor or ''}{end}"

    return _LINK.sub(point, markdown)


def _links(source: str) -> set[str]:
    """The files of the repository that one of its pages links to."""
    path = ROOT / source
    text = path.read_text() if path.exists() else ""
    return {_resolve(source, match[2]) for match in _LINK.finditer(text)}


def _resolve(source: str, path: str) -> str:
    """A link on a page of the repository -> a path from the repository's root."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), path))


def _uri(target: str) -> str:
    """Where the site has a file of the repository."""
    parts = target.split("/")
    if target == "README.md":
        return "index.md"
    if parts[0] == "docs":
        return posixpath.relpath(target, "docs")
    if target.endswith((".md", *COPIED)):
        return target
    if parts[0] == PACKAGE and parts[-1] != "__init__.py":
        is_room = len(parts) > 1 and (ROOT / PACKAGE / parts[1]).is_dir()
        return f"api/{parts[1] if is_room else PACKAGE}.md"
    return f"source/{target}.md"


def _source(uri: str) -> str | None:
    """The file of the repository that a page of the site is made of; None for generated ones."""
    if uri == "index.md":
        return "README.md"
    if uri.startswith(("api/", "source/")):
        return None
    return f"docs/{uri}" if (ROOT / "docs" / uri).exists() else uri


def _api_anchor(target: str, anchor: str | None) -> str:
    """The heading of a module, or of a public name in it; a private one's is its class's."""
    if not target.endswith(".py"):
        return ""
    names = []
    for name in (anchor or "").removeprefix("#").split("."):
        if not name or name.startswith("_"):
            break
        names.append(name)
    return "#" + ".".join([target.removesuffix(".py").replace("/", "."), *names])


def _page(source: str) -> str:
    path = ROOT / source
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file() and file.stat().st_size)
        return "\n".join(_page(str(file.relative_to(ROOT))) for file in files)
    text = path.read_text()
    if source.endswith(".md"):
        return text
    language = "python" if source.endswith(".py") else "text"
    return f"# {source}\n\n````{language}\n{text}````\n"


def _api_pages() -> dict[str, str]:
    """A page a room, with every module's docstrings."""
    rooms = {PACKAGE: sorted((ROOT / PACKAGE).glob("*.py"))}
    for folder in sorted(path.parent for path in (ROOT / PACKAGE).glob("*/__init__.py")):
        rooms[folder.name] = sorted(folder.rglob("*.py"))
    pages = {}
    for room, paths in rooms.items():
        modules = [
            ".".join(path.relative_to(ROOT).with_suffix("").parts)
            for path in paths
            if path.name != "__init__.py"
        ]
        body = "\n".join(f"::: {module}\n" for module in modules)
        title = room if room == PACKAGE else f"{PACKAGE}.{room}"
        pages[f"api/{room}.md"] = f"# {title}\n\n{body}"
    listed = "\n".join(
        f"- [{room if room == PACKAGE else f'{PACKAGE}.{room}'}]({room}.md)" for room in rooms
    )
    pages["api/index.md"] = (
        f"# API reference\n\nOut of the docstrings, a page a room.\n\n{listed}\n"
    )
    return pages
