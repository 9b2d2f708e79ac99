"""Adds the README, linked files and the API reference to the site.

A hook of mkdocs, see mkdocs.yml. Pages link to files by their path in the repository, so that links
also work there. On the site

    README.md, CONTRIBUTING.md, ...     become pages
    laser_tf/ops/vtrace.py#vtrace       becomes the API reference of that function
    laser_tf/ops                        becomes the page of that package
    any other source, e.g. of configs/  becomes a page with its text
    a directory                         becomes a page with the text of its files
    images and CSV files                are copied
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
_IMAGE = re.compile(r"^!\[([^\]]+)\]\(\S+\)$", re.M)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds files that are not in docs/."""
    pages = {"README.md": "index.md"}
    pending = ["README.md", *(f"docs/{file.src_uri}" for file in files.documentation_pages())]
    while pending:  # Linked pages may link to further files.
        for target in _links(pending.pop()):
            if target in pages or target.startswith("docs/") or not (ROOT / target).exists():
                continue  # mkdocs reports a dead link.
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
    """Replaces links to files of the repository by links to their pages on the site."""
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

    caption = r'<figure markdown="span">\g<0><figcaption>\1</figcaption></figure>\n'
    return _IMAGE.sub(caption, _LINK.sub(point, markdown))


def _links(source: str) -> set[str]:
    """Returns the files of the repository that a page links to."""
    path = ROOT / source
    text = path.read_text() if path.exists() else ""
    return {_resolve(source, match[2]) for match in _LINK.finditer(text)}


def _resolve(source: str, path: str) -> str:
    """Returns the path from the repository's root of a link on a page."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), path))


def _uri(target: str) -> str:
    """Returns the URI of a file of the repository on the site."""
    parts = target.split("/")
    if target == "README.md":
        return "index.md"
    if parts[0] == "docs":
        return posixpath.relpath(target, "docs")
    if target.endswith((".md", *COPIED)):
        return target
    if parts[0] == PACKAGE and parts[-1] != "__init__.py":
        is_package = len(parts) > 1 and (ROOT / PACKAGE / parts[1]).is_dir()
        return f"api/{parts[1] if is_package else PACKAGE}.md"
    return f"source/{target}.md"


def _source(uri: str) -> str | None:
    """Returns the source file of a page of the site; None for generated pages."""
    if uri == "index.md":
        return "README.md"
    if uri.startswith(("api/", "source/")):
        return None
    return f"docs/{uri}" if (ROOT / "docs" / uri).exists() else uri


def _api_anchor(target: str, anchor: str | None) -> str:
    """Returns the heading of a module or a public name; for a private name, that of its class."""
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
    """Returns one page per package with the docstrings of its modules."""
    packages = {PACKAGE: sorted((ROOT / PACKAGE).glob("*.py"))}
    for folder in sorted(path.parent for path in (ROOT / PACKAGE).glob("*/__init__.py")):
        packages[folder.name] = sorted(folder.rglob("*.py"))
    pages = {}
    for package, paths in packages.items():
        modules = [
            ".".join(path.relative_to(ROOT).with_suffix("").parts)
            for path in paths
            if path.name != "__init__.py"
        ]
        body = "\n".join(f"::: {module}\n" for module in modules)
        title = package if package == PACKAGE else f"{PACKAGE}.{package}"
        pages[f"api/{package}.md"] = f"# {title}\n\n{body}"
    listed = "\n".join(
        f"- [{package if package == PACKAGE else f'{PACKAGE}.{package}'}]({package}.md)"
        for package in packages
    )
    pages["api/index.md"] = (
        f"# API reference\n\nGenerated from the docstrings, one page per package.\n\n{listed}\n"
    )
    return pages
