"""Importable modules, such as those that docs/extending.md shows."""

import contextlib
import pathlib
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from unittest import mock

from testing import pages

_MODULE = re.compile(r"`(my_\w+)\.py`[^\n]*(?:\n[^\n]+)?:\n\n```python\n(.*?)```", re.S)


@contextlib.contextmanager
def importable(code: Mapping[str, str] | None = None) -> Iterator[None]:
    """Makes modules, name -> code, importable; by default those of the page."""
    modules = code or dict(_MODULE.findall(pages.text("docs/extending.md")))
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(sys, "path", [folder, *sys.path]),
    ):
        for name, text in modules.items():
            (pathlib.Path(folder) / f"{name}.py").write_text(text)
        try:
            yield
        finally:
            for name in modules:
                sys.modules.pop(name, None)
