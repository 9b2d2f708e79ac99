"""README.md and docs/: links that lead somewhere, names that exist, numbers of their files."""

import ast
import csv
import functools
import itertools
import posixpath
import re

from absl.testing import absltest, parameterized

from launch import found_config
from testing import pages

_PATH = re.compile(
    r"(?<![\w./-])((?:configs|deploy|docs|laser_tf|launch|experiments|results|testing|tools)/[\w./-]*"
    r"\.(?:py|csv\.gz|csv|png|md|yaml|sbatch|service))\b"
)
_MODULE = re.compile(r"\b((?:launch|experiments|tools|testing)\.[a-z_]+(?:\.[a-z_]+)*)\b")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?%?")
# What looks like a metric's name otherwise: paths, units, and tasks of the control suite.
_NO_METRICS = ("checkpoints", "tensorboard", "frames", "ray", "cartpole", "cheetah", "reacher")
# What a page tells its readers to write themselves.
_PLACES_TO_FILL = ("NAME",)


def _links(page):
    """(path from the root, anchor) of each link into the repository."""
    for link in pages.LINK.findall(pages.FENCE.sub("", pages.text(page))):
        if not pages.OUTSIDE.match(link):
            path, _, anchor = link.partition("#")
            target = posixpath.join(posixpath.dirname(page), path) if path else page
            yield posixpath.normpath(target), anchor


def _anchors(path):
    """What can follow a file's name: headings of a page, names of a module."""
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


def _table(title):
    """The cells of the first table in a section of the README, without its head."""
    section = pages.text(pages.README).split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = itertools.dropwhile(lambda line: not line.startswith("|"), section.splitlines())
    rows = list(itertools.takewhile(lambda line: line.startswith("|"), rows))[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


@functools.cache
def _columns(path):
    with (pages.ROOT / path).open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def _curves(path):
    """Game and label -> points: env frames (or seconds), then values of seeds and their mean."""
    columns = _columns(path)
    low, high = ("min", "max") if "min" in columns else ("worst", "best")
    curves = {}
    games = columns.get("game", [""] * len(columns["label"]))
    axis = "env_frames" if "env_frames" in columns else "seconds"
    names = ("label", axis, "mean", low, high)
    for game, label, *texts in zip(games, *(columns[name] for name in names), strict=True):
        frames, mean, least, most = map(float, texts)
        middle = 3 * mean - least - most
        curves.setdefault((game, label), []).append((frames, mean, least, most, middle))
    return curves


def _readings(path):
    """Every number that the results' table may take from a file."""
    columns = _columns(path)
    if "label" not in columns:
        names = ("mean", "median", "mean_return_100_episodes", "greedy_mean")
        return [float(value) for name in names for value in columns.get(name, ()) if value]
    readings = []
    # Where curves pass: of Pong in seconds, of the T-maze in million frames.
    passed, unit = (18, 1) if "seconds" in columns else (0.95, 1e6)
    for curve in _curves(path).values():
        points, *seeds = zip(*curve, strict=True)
        recent = [index for index, point in enumerate(points) if point > points[-1] - 20_000]
        for values in seeds:
            readings += [values[-1], max(values)]
            readings.append(100 * sum(values[index] for index in recent) / len(recent))
            above = [point for point, value in zip(points, values, strict=True) if value > passed]
            readings += [point / unit for point in above[:1]]
    return readings


class LinksTest(parameterized.TestCase):
    @parameterized.parameters(*pages.PAGES)
    def test_links_lead_somewhere(self, page):
        for target, anchor in _links(page):
            path = pages.ROOT / target
            self.assertTrue(path.exists(), f"{page} links to {target}")
            if anchor:
                self.assertIn(anchor, _anchors(path), f"{page} links to {target}")

    @parameterized.parameters(*pages.PAGES)
    def test_files_and_commands_that_are_named_exist(self, page):
        # Links are relative to their page: they are tested above.
        text = pages.LINK.sub("]", pages.text(page))
        for name in set(_PATH.findall(text)):
            if not any(place in name for place in _PLACES_TO_FILL):
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
    def test_every_metric_is_explained_and_no_other(self):
        section = pages.text("docs/training.md").split("\n## Metrics\n")[1].split("\n## ")[0]
        table = "\n".join(line for line in section.splitlines() if line.startswith("|"))
        documented = set(re.findall(r"`([a-z_]+/\S+)`", table))
        in_code = {name for name in _texts_of_code() if name.split("/")[0] not in _NO_METRICS}
        self.assertIn("replay/fill", in_code)  # that there is something to compare
        self.assertContainsSubset({name for name in in_code if not name.endswith("_")}, documented)
        # The others are put together of parts when they are written.
        made = re.compile(r"loss/|task/|staleness/|.*\*")
        self.assertEqual(set(), {n for n in documented - in_code if not made.match(n)})


def _texts_of_code():
    """Whatever looks like a metric's name in the sources."""
    for path in (pages.ROOT / "laser_tf").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and re.fullmatch(r"[a-z_]+/[a-z0-9_]+", text):
                yield text


class ReadmeTest(absltest.TestCase):
    def test_every_config_is_in_its_table(self):
        rows = _table("Configs")
        listed = {name for row in rows for name in re.findall(r"`configs/(.*?)`", row[0])}
        known = {known.replace(":", ".py:") for known in found_config.variants()}
        self.assertEqual({name for name in listed if name in known}, listed)
        files = {name.partition(":")[0] for name in known}
        self.assertEqual({name.partition(":")[0] for name in listed}, files)

    def test_every_room_is_in_its_table(self):
        listed = {
            name for row in _table("Reading order") for name in re.findall(r"`(.*?)`", row[0])
        }
        rooms = {
            f"laser_tf/{path.parent.name}" for path in pages.ROOT.glob("laser_tf/*/__init__.py")
        }
        self.assertEqual(listed, rooms | {"configs", "launch"})

    def test_numbers_of_results_are_in_their_files(self):
        rows = _table("Results")
        self.assertNotEmpty(rows)
        for what, _, result, link in rows:
            readings = [value for path in pages.LINK.findall(link) for value in _readings(path)]
            numbers = _NUMBER.findall(result.replace("last 100", "").replace("last_100", ""))
            self.assertNotEmpty(numbers, what)
            for text in numbers:
                digits = len(text.rstrip("%").partition(".")[2])
                distance = min(abs(float(text.rstrip("%")) - reading) for reading in readings)
                self.assertLessEqual(distance, 0.5 * 10**-digits + 1e-9, f"{what}: {text}")

    def test_the_way_to_the_gradient_is_as_long_as_it_says(self):
        section = pages.text(pages.README).split("\nFrom ")[1].split("\n\n")[0]
        steps = [link.partition("#") for link in pages.LINK.findall(section)]
        calls = [(path, name.split(".")[-1]) for path, _, name in steps]
        # Whoever stands before a step in the text calls it.
        for (path, caller), (_, called) in itertools.pairwise(calls):
            if "__call__" not in (caller, called):  # compiled and called as an attribute
                self.assertIn(called, _called_in(path, caller), f"{caller} of {path}")
        self.assertEqual(calls[-2:], [("laser_tf/training/learner.py", "_update"), calls[-1]])
        self.assertLen(calls[1:-1], 8)
        self.assertLen({path for path, _ in calls[:-1]}, 5)


def _called_in(path, function):
    """Names of what a function of a file calls."""
    functions = (
        node
        for node in ast.walk(ast.parse((pages.ROOT / path).read_text()))
        if isinstance(node, ast.FunctionDef) and node.name == function
    )
    calls = (
        node.func for body in functions for node in ast.walk(body) if isinstance(node, ast.Call)
    )
    return {getattr(call, "attr", getattr(call, "id", None)) for call in calls}


if __name__ == "__main__":
    absltest.main()
