"""README.md and docs/: links, names of files and commands, metrics, and numbers of results."""

import ast
import posixpath
import re

import pandas as pd
from absl.testing import absltest, parameterized

from laser_tf.api import config_files
from laser_tf.monitoring import metrics
from testing import pages

_PATH = re.compile(
    r"(?<![\w./-])((?:configs|deploy|docs|laser_tf|launch|experiments|results|testing|tools)/[\w./-]*"
    r"\.(?:py|csv\.gz|csv|png|md|yaml|sbatch|service))\b"
)
_MODULE = re.compile(r"\b((?:launch|experiments|tools|testing)\.[a-z_]+(?:\.[a-z_]+)*)\b")
# First parts of paths, units and tasks that look like names of metrics.
_NO_METRICS = ("checkpoints", "tensorboard", "frames", "ray", "cartpole", "cheetah", "reacher")


def _links(page):
    """Yields (path from the root, anchor) of each link into the repository."""
    for link in pages.LINK.findall(pages.FENCE.sub("", pages.text(page))):
        if not pages.OUTSIDE.match(link):
            path, _, anchor = link.partition("#")
            target = posixpath.join(posixpath.dirname(page), path) if path else page
            yield posixpath.normpath(target), anchor


def _anchors(path):
    """Returns the anchors of a file: headings of a page, names of a module."""
    if path.suffix == ".md":
        headings = re.findall(r"^#+ (.*)$", pages.FENCE.sub("", path.read_text()), re.M)
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return set(_names(ast.parse(path.read_text()))) if path.suffix == ".py" else set()


def _names(scope, prefix=""):
    for node in scope.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from _names(node, f"{prefix}{node.name}.")


def _table(page, title):
    """Returns the cells of the first table in a section of a page, without its head."""
    section = pages.text(page).split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = re.search(r"(?:^\|.*\n)+", section, re.M)[0].splitlines()[2:]
    return [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]


class LinksTest(parameterized.TestCase):
    @parameterized.parameters(*pages.PAGES)
    def test_links_have_targets(self, page):
        for target, anchor in _links(page):
            path = pages.ROOT / target
            self.assertTrue(path.exists(), f"{page} links to {target}")
            if anchor:
                self.assertIn(anchor, _anchors(path), f"{page} links to {target}")

    @parameterized.parameters(*pages.PAGES)
    def test_named_files_and_commands_exist(self, page):
        text = pages.LINK.sub("]", pages.text(page))  # The first test checks links.
        for name in set(_PATH.findall(text)):
            if "NAME" not in name:  # Readers write these files themselves.
                self.assertTrue((pages.ROOT / name).exists(), f"{page} names {name}")
        for name in set(_MODULE.findall(text)):
            path = pages.ROOT / name.replace(".", "/")
            exists = path.is_dir() or path.with_suffix(".py").exists()
            self.assertTrue(exists, f"{page} names {name}")

    def test_every_page_can_be_reached(self):
        reached, pending = set(), [pages.README]
        while pending:
            page = pending.pop()
            reached.add(page)
            found = {target for target, _ in _links(page) if target in pages.PAGES}
            pending += sorted(found - reached)
        self.assertEqual(reached, set(pages.PAGES))


class MetricsTest(absltest.TestCase):
    def test_page_is_generated_from_the_descriptions(self):
        self.assertEqual(pages.text("docs/metrics.md"), f"{metrics.page()}\n")

    def test_every_metric_has_a_description_and_no_other(self):
        texts = {
            node.value
            for path in (pages.ROOT / "laser_tf").rglob("*.py")
            if path.name != "metrics.py"
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        names = {text for text in texts if re.fullmatch(r"[a-z_]+/[a-z0-9_]+", text)}
        in_code = {name for name in names if name.split("/")[0] not in _NO_METRICS}
        self.assertIn("replay/fill", in_code)
        described = set(metrics.DESCRIPTIONS)
        self.assertContainsSubset({name for name in in_code if not name.endswith("_")}, described)
        # The other names are composed when metrics are written.
        composed = re.compile(r"loss/|task/|staleness/|environment/|.*\*")
        self.assertEmpty({name for name in described - in_code if not composed.match(name)})


class TablesTest(absltest.TestCase):
    def test_configuration_page_lists_every_variant(self):
        rows = _table("docs/configuration.md", "Configurations and variants")
        agents = ("laser", "impala", "acer", "r2d2", "reactor")
        listed = {
            f"{agent}:{variant}"
            for names, _, *marks in rows
            for variant in re.findall(r"`(\w+)`", names)
            for agent, mark in zip(agents, marks, strict=True)
            if mark
        }
        listed |= {f"acer:control_{name}" for name in ("a3c", "trust_a3c", "tis", "trust_tis")}
        sweeps = _table("docs/sweeps.md", "Members and files")
        listed |= {name for row in sweeps for name in re.findall(r"`(sweeps:\w+)`", row[0])}
        self.assertEqual(listed, set(config_files.variants()))

    def test_functions_of_the_data_path_exist(self):
        rows = _table("docs/design.md", "Data flow")
        self.assertNotEmpty(rows)
        for function, path in rows:
            anchors = _anchors(pages.ROOT / path.strip("`"))
            self.assertIn(function.strip("`"), anchors)

    def test_readme_lists_every_package(self):
        listed = re.findall(r"`(?:laser_tf/)?(\w+)`", str(_table(pages.README, "Repository")))
        packages = [path.parent.name for path in pages.ROOT.glob("laser_tf/*/__init__.py")]
        self.assertContainsSubset(packages, listed)

    def test_numbers_of_the_readme_are_in_their_files(self):
        scores = pd.read_csv(pages.ROOT / "results/agents.csv").set_index(["label", "game"])["mean"]
        pong = {}
        for file in ("pong_normalised", "reactor_pong", "acer_pong", "r2d2_pong"):
            table = pd.read_csv(pages.ROOT / f"results/{file}.csv")
            pong |= table.groupby("label")["mean"].last().to_dict()
        rows = _table(pages.README, "Results")
        self.assertLen(rows, 5)
        for agent, *texts in rows:
            values = (pong[agent], scores[agent, "breakout"], scores[agent, "space_invaders"])
            for text, value in zip(texts, values, strict=True):
                self.assertAlmostEqual(float(text), value, delta=0.0501)


if __name__ == "__main__":
    absltest.main()
