"""The site of `make docs`: its contents and the targets of links, without mkdocs itself."""

import importlib.util
import posixpath
import re
import sys
import types
from unittest import mock

from absl.testing import absltest, parameterized

from testing import pages

DOCS = [page.removeprefix("docs/") for page in pages.PAGES if page != pages.README]


class _Files(list):
    """The part of mkdocs' class `Files` that the hook uses."""

    def documentation_pages(self):
        return list(self)


def _load_hook():
    """Loads docs/site_pages.py with a fake mkdocs, whose generated files are plain objects."""
    names = ("mkdocs", "mkdocs.config", "mkdocs.config.defaults", "mkdocs.structure")
    names += ("mkdocs.structure.files", "mkdocs.structure.pages")
    modules = {name: mock.MagicMock() for name in names}
    modules["mkdocs.structure.files"].File.generated = lambda config, uri, **content: (
        types.SimpleNamespace(src_uri=uri, **content)
    )
    spec = importlib.util.spec_from_file_location("site_pages", pages.ROOT / "docs/site_pages.py")
    hook = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, modules):
        spec.loader.exec_module(hook)
    return hook


class SiteTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls._hook = _load_hook()
        files = cls._hook.on_files(_Files(types.SimpleNamespace(src_uri=uri) for uri in DOCS), None)
        cls._contents = {file.src_uri: getattr(file, "content", "") for file in files}

    def test_contents_have_every_page(self):
        listed = re.findall(r": (\S+\.md)$", pages.text("mkdocs.yml"), re.M)
        self.assertContainsSubset(DOCS, listed)

    def test_dead_link_fails_the_build(self):
        self.assertIn("\nstrict: true\n", pages.text("mkdocs.yml"))
        (command,) = re.findall(r"mkdocs build.*", pages.text("Makefile"))
        self.assertEqual(command, "mkdocs build")  # With --quiet, mkdocs counts no warnings.

    @parameterized.parameters(
        ("laser_tf/ops", "api/ops.md"),
        ("laser_tf/ops/vtrace.py", "api/ops.md"),
        ("laser_tf/types.py", "api/laser_tf.md"),
        ("laser_tf/__init__.py", "source/laser_tf/__init__.py.md"),
        ("laser_tf/scores/dopamine_curves.csv", "laser_tf/scores/dopamine_curves.csv"),
        ("examples", "source/examples.md"),
        ("results/pong.png", "results/pong.png"),
    )
    def test_file_of_the_repository_has_a_uri(self, target, uri):
        self.assertEqual(self._hook._uri(target), uri)

    @parameterized.parameters("index.md", *DOCS)
    def test_links_of_a_page_have_targets(self, uri):
        text = self._contents[uri] or pages.text(f"docs/{uri}")
        page = types.SimpleNamespace(file=types.SimpleNamespace(src_uri=uri))
        links = pages.LINK.findall(
            self._hook.on_page_markdown(pages.FENCE.sub("", text), page, None, None)
        )
        for link in links:
            path, _, anchor = link.partition("#")
            if pages.OUTSIDE.match(link) or not path:
                continue
            target = posixpath.normpath(posixpath.join(posixpath.dirname(uri), path))
            is_file = not target.endswith(".md") and (pages.ROOT / "docs" / target).is_file()
            self.assertTrue(is_file or target in self._contents, f"{uri} links to {link}")
            if target.startswith("api/") and anchor:  # Modules and their names.
                modules = re.findall(r"^::: (.*)$", self._contents[target], re.M)
                named = [name for name in modules if f"{anchor}.".startswith(f"{name}.")]
                self.assertNotEmpty(named, f"{uri} links to {link}")


if __name__ == "__main__":
    absltest.main()
