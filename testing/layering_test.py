"""Who imports whom: the design's rules, and BUILD's deps, against the real imports."""

import ast
import pathlib
import re
import sys

from absl.testing import absltest

ROOT = pathlib.Path(__file__).resolve().parents[1]
ROOMS = ("laser_tf", "launch", "configs", "testing")

# What a room may import of the project, beside its own modules.
ALLOWED = {
    "laser_tf/types": (),
    "laser_tf/errors": (),
    "laser_tf/config_checks": (),
    "laser_tf/ops": (),
    "laser_tf/networks": ("laser_tf/types",),
    "laser_tf/agents": (
        "laser_tf/ops",
        "laser_tf/networks",
        "laser_tf/types",
        "laser_tf/config_checks",
    ),
    "laser_tf/replay": ("laser_tf/types", "laser_tf/config_checks"),
    "laser_tf/environments": ("laser_tf/types", "laser_tf/config_checks"),
    "laser_tf/scores": (),
    "laser_tf/runtime": (
        "laser_tf/agents",
        "laser_tf/replay",
        "laser_tf/environments",
        "laser_tf/scores",
        "laser_tf/types",
        "laser_tf/errors",
        "laser_tf/config_checks",
    ),
    "laser_tf/export": (
        "laser_tf/agents",
        "laser_tf/replay",
        "laser_tf/environments",
        "laser_tf/runtime",
        "laser_tf/observations",
        "laser_tf/types",
    ),
    "configs": ("laser_tf/agents",),
    "launch": ("laser_tf", "configs"),
    "testing": ("laser_tf", "launch", "configs"),
}


def _modules() -> dict[str, pathlib.Path]:
    """Module path without suffix -> file, for every module of the project."""
    paths = (path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    return {
        str(path.relative_to(ROOT).with_suffix("")): path
        for path in sorted(paths)
        if path.name != "__init__.py"
    }


def _imports(path: pathlib.Path) -> tuple[set[str], set[str]]:
    """Project modules and outside packages that a file imports, lazily or not."""
    modules, inside, outside = _modules(), set(), set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if name.replace(".", "/") in modules:
                inside.add(name.replace(".", "/"))
            elif name.split(".")[0] not in ROOMS:
                outside.add(name.split(".")[0])
    return inside, outside


def _room(module: str) -> str:
    parts = module.split("/")
    return "/".join(parts[:2]) if parts[0] == "laser_tf" else parts[0]


def _build_targets() -> dict[str, set[str]]:
    """Module -> modules in its deps, from both BUILD files."""
    targets = {}
    for package in ("", "testing"):
        text = (ROOT / package / "BUILD").read_text()
        for name, body in re.findall(
            r'py_(?:library|binary|test)\(\n    name = "([^"]+)",\n(.*?)^\)', text, re.M | re.S
        ):
            deps = re.search(r"deps = \[(.*?)\]", body, re.S)
            labels = re.findall(r'"([^"]+)"', deps[1]) if deps else []
            targets[_module(f":{name}", package)] = {_module(label, package) for label in labels}
    return targets


def _module(label: str, package: str) -> str:
    named_package, name = label.split(":")
    folder = named_package.removeprefix("//") if named_package else package
    return f"{folder}/{name}" if folder else name


class LayeringTest(absltest.TestCase):
    def test_rooms_import_one_way(self):
        for module, path in _modules().items():
            room = _room(module)
            for imported in _imports(path)[0]:
                allowed = (room, *ALLOWED[room])
                self.assertTrue(
                    any(imported == a or imported.startswith(a + "/") for a in allowed),
                    f"{module} imports {imported}, which {room} may not",
                )

    def test_ops_import_tensorflow_only(self):
        for module, path in _modules().items():
            if _room(module) == "laser_tf/ops":
                self.assertContainsSubset(
                    _imports(path)[1], {"tensorflow", "typing", "collections", "math"}
                )

    def test_only_commands_know_flags(self):
        for module, path in _modules().items():
            uses = re.search(r"from absl import .*\bflags\b|config_flags", path.read_text())
            if uses and module != "testing/layering_test":
                self.assertTrue(module.startswith(("launch/", "testing/benchmarks/")), module)

    def test_reverb_is_imported_where_it_may_be(self):
        for module, path in _modules().items():
            if "reverb" in _imports(path)[1] and _room(module) != "testing":
                self.assertTrue(
                    _room(module) == "laser_tf/replay"
                    or module in ("laser_tf/runtime/variables", "laser_tf/runtime/checkpointing"),
                    module,
                )

    def test_build_has_a_target_for_each_module_with_its_imports_as_deps(self):
        targets = _build_targets()
        modules = _modules()
        self.assertEqual(sorted(targets), sorted(modules))
        for module, path in modules.items():
            self.assertEqual(targets[module], _imports(path)[0], module)

    def test_what_runs_before_the_imports_is_standard_library_only(self):
        early = {
            "laser_tf/runtime/private_network",
            "laser_tf/runtime/versions",
            "launch/interruption",
            "launch/terminal",
        }
        for module in early:
            inside, outside = _imports(ROOT / f"{module}.py")
            self.assertContainsSubset(inside, early)
            self.assertContainsSubset(outside, sys.stdlib_module_names)


if __name__ == "__main__":
    absltest.main()
