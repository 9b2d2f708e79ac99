"""Who imports whom: the design's rules, and BUILD's deps, against the real imports."""

import ast
import functools
import pathlib
import re
import sys

from absl.testing import absltest

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("laser_tf", "launch", "configs", "examples", "experiments", "tools", "testing")


@functools.cache
def _rooms() -> dict[str, list[str]]:
    """Room -> the rooms that it may import: `ROOMS` of BUILD, and those outside laser_tf."""
    text = (ROOT / "BUILD").read_text()
    rooms = ast.literal_eval(re.search(r"^ROOMS = (\{.*?^\})", text, re.M | re.S)[1])
    configs = re.search(r'name = "configs".*?deps = (\[.*?\])', text, re.S)[1]
    return rooms | {
        "configs": [label[1:] for label in ast.literal_eval(configs)],
        "launch": [*rooms, "configs"],
        "examples": [*rooms],
        "experiments": [*rooms, "launch"],
        "tools": [*rooms, "configs", "launch"],
        "testing": [*rooms, "configs", "launch", "examples", "experiments", "tools"],
    }


@functools.cache
def _modules() -> dict[str, pathlib.Path]:
    """Module path without suffix -> file, for every module of the project."""
    paths = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return {
        str(path.relative_to(ROOT).with_suffix("")): path
        for path in sorted(paths)
        if path.name != "__init__.py"
    }


@functools.cache
def _imports(path: pathlib.Path, at_start: bool = False) -> tuple[set[str], set[str]]:
    """Project modules and outside packages that a file imports, lazily or not, or at its start."""
    modules, inside, outside = _modules(), set(), set()
    tree = ast.parse(path.read_text())
    for node in tree.body if at_start else ast.walk(tree):
        for name in _names(node):
            if name.replace(".", "/") in modules:
                inside.add(name.replace(".", "/"))
            elif name.split(".")[0] not in FOLDERS:
                outside.add(name.split(".")[0])
    return inside, outside


def _names(node: ast.AST) -> list[str]:
    """What a statement imports, modules and what is taken from them."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def _room(module: str) -> str:
    folder, *rest = module.split("/")
    if folder != "laser_tf":
        return folder
    return rest[0] if len(rest) > 1 else "common"


class LayeringTest(absltest.TestCase):
    def test_every_room_has_a_target(self):
        self.assertEqual({_room(module) for module in _modules()}, set(_rooms()))

    def test_rooms_import_one_way(self):
        # Bazel refuses targets that need each other: ROOMS has no circle.
        for module, path in _modules().items():
            room = _room(module)
            for imported in _imports(path)[0]:
                self.assertIn(
                    _room(imported), (room, *_rooms()[room]), f"{module} imports {imported}"
                )

    def test_no_room_is_allowed_what_it_does_not_import(self):
        for room, allowed in _rooms().items():
            if room in ("launch", "examples", "experiments", "tools", "testing"):
                continue
            paths = [path for module, path in _modules().items() if _room(module) == room]
            used = {_room(imported) for path in paths for imported in _imports(path)[0]}
            self.assertContainsSubset(allowed, used | {"common"}, room)

    def test_no_rooms_import_each_other(self):
        rooms, known = dict(_rooms()), set()
        while rooms:
            ready = [room for room, imports in rooms.items() if known.issuperset(imports)]
            self.assertNotEmpty(ready, f"a circle among {sorted(rooms)}")
            known.update(ready)
            rooms = {room: imports for room, imports in rooms.items() if room not in ready}

    def test_ops_import_tensorflow_only(self):
        for module, path in _modules().items():
            if _room(module) == "ops":
                self.assertContainsSubset(
                    _imports(path)[1], {"tensorflow", "typing", "collections", "math"}
                )

    def test_agents_are_known_by_name_to_the_registry_alone(self):
        for module, path in _modules().items():
            if module.startswith(("laser_tf/", "launch/")):
                inside = _imports(path)[0]
                self.assertFalse({"laser_tf/agents/laser", "laser_tf/agents/r2d2"} & inside, module)

    def test_the_registry_loads_agents_when_they_are_made(self):
        inside, outside = _imports(ROOT / "laser_tf/agents/registry.py")
        known = {"laser_tf/agents/agent_config", "laser_tf/agents/base", "laser_tf/errors"}
        self.assertContainsSubset(inside, known)
        self.assertContainsSubset(outside, {"importlib", "typing"})

    def test_only_commands_know_flags(self):
        for module, path in _modules().items():
            uses = re.search(r"from absl import .*\bflags\b|config_flags", path.read_text())
            # The second holds what is read of a flag before all imports against absl.
            tests = ("testing/layering_test", "testing/host/private_network_test")
            if uses and module not in tests:
                self.assertTrue(module.startswith(("launch/", "tools/")), module)

    def test_reverb_is_imported_in_its_room_alone(self):
        for module, path in _modules().items():
            if "reverb" in _imports(path)[1]:
                self.assertIn(_room(module), ("replay", "testing", "tools"), module)

    def test_ray_is_imported_in_its_room_alone(self):
        for module, path in _modules().items():
            if "ray" in _imports(path)[1]:
                self.assertIn(_room(module), ("cluster", "testing"), module)

    def test_what_drives_a_cluster_needs_no_tensorflow(self):
        reached = set()
        ahead = [f"laser_tf/cluster/{name}" for name in ("fleet", "run_job", "sweep_job")]
        while ahead:
            module = ahead.pop()
            reached.add(module)
            inside, outside = _imports(_modules()[module], at_start=True)
            self.assertFalse({"tensorflow", "reverb"} & outside, module)
            ahead.extend(inside - reached)

    def test_tf_agents_is_imported_where_it_is_used(self):
        for module, path in _modules().items():
            top = {
                name
                for node in ast.parse(path.read_text()).body
                for name in _names(node)
                if name.split(".")[0] == "tf_agents"
            }
            self.assertTrue(not top or _room(module) in ("export", "testing"), module)

    def test_what_runs_before_the_imports_is_standard_library_only(self):
        early = {
            "laser_tf/host/private_network",
            "laser_tf/host/process_launcher",
            "laser_tf/host/interruption",
            "laser_tf/host/terminal",
            "laser_tf/workdir/versions",
        }
        for module in early:
            inside, outside = _imports(ROOT / f"{module}.py")
            self.assertContainsSubset(inside, early)
            self.assertContainsSubset(outside, sys.stdlib_module_names)


if __name__ == "__main__":
    absltest.main()
