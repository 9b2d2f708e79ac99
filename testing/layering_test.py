"""Imports between packages: rules of the design, and `PACKAGES` of BUILD."""

import ast
import functools
import graphlib
import pathlib
import re
import sys

from absl.testing import absltest, parameterized

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("laser_tf", "launch", "configs", "examples", "experiments", "tools", "testing")


@functools.cache
def _packages() -> dict[str, list[str]]:
    """Returns package -> packages that it may import, for those of BUILD and outside laser_tf."""
    text = (ROOT / "BUILD").read_text()
    packages = ast.literal_eval(re.search(r"^PACKAGES = (\{.*?^\})", text, re.M | re.S)[1])
    configs = re.search(r'name = "configs".*?deps = (\[.*?\])', text, re.S)[1]
    return packages | {
        "configs": [label[1:] for label in ast.literal_eval(configs)],
        "launch": [*packages, "configs"],
        "examples": [*packages],
        "experiments": [*packages, "launch"],
        "tools": [*packages, "configs", "launch"],
        "testing": [*packages, "configs", "launch", "examples", "experiments", "tools"],
    }


@functools.cache
def _modules() -> dict[str, pathlib.Path]:
    """Returns module path without suffix -> file, for every module of the project."""
    paths = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return {
        str(path.relative_to(ROOT).with_suffix("")): path
        for path in sorted(paths)
        if path.name != "__init__.py"
    }


@functools.cache
def _imports(module: str, at_start: bool = False) -> tuple[set[str], set[str]]:
    """Returns the project's modules and the other packages that a module imports.

    Args:
      module: Module path.
      at_start: Whether to leave out imports within functions.
    """
    inside, outside = set(), set()
    tree = ast.parse(_modules()[module].read_text())
    for node in tree.body if at_start else ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if name.replace(".", "/") in _modules():
                inside.add(name.replace(".", "/"))
            elif name.split(".")[0] not in FOLDERS:
                outside.add(name.split(".")[0])
    return inside, outside


def _package(module: str) -> str:
    folder, *rest = module.split("/")
    if folder != "laser_tf":
        return folder
    return rest[0] if len(rest) > 1 else "common"


class PackagesTest(absltest.TestCase):
    def test_build_lists_every_package(self):
        self.assertEqual({_package(module) for module in _modules()}, set(_packages()))

    def test_packages_import_what_build_allows(self):
        used = {package: set() for package in _packages()}
        for module in _modules():
            package = _package(module)
            for imported in _imports(module)[0]:
                used[package].add(_package(imported))
                allowed = (package, *_packages()[package])
                self.assertIn(_package(imported), allowed, f"{module} imports {imported}")
        for package, allowed in _packages().items():
            if package not in FOLDERS or package == "configs":
                self.assertContainsSubset(allowed, used[package] | {"common"}, package)

    def test_packages_have_no_import_cycle(self):
        graphlib.TopologicalSorter(_packages()).prepare()  # Raises CycleError.


class RulesTest(parameterized.TestCase):
    @parameterized.parameters(
        ("reverb", ("replay", "testing", "tools"), False),
        ("ray", ("cluster", "examples", "testing"), False),
        ("tf_agents", ("testing",), True),  # Elsewhere within functions.
    )
    def test_library_is_imported_in_its_package_alone(self, library, packages, at_start):
        for module in _modules():
            if library in _imports(module, at_start)[1]:
                self.assertIn(_package(module), packages, module)

    def test_ops_import_tensorflow_only(self):
        known = {"tensorflow", "typing", "collections", "math"}
        for module in _modules():
            if _package(module) == "ops":
                self.assertContainsSubset(_imports(module)[1], known, module)

    def test_only_the_registry_imports_agents(self):
        for module in _modules():
            if module.startswith(("laser_tf/", "launch/")):
                agents = {"laser_tf/agents/laser", "laser_tf/agents/r2d2"}
                self.assertFalse(agents & _imports(module)[0], module)
        inside, outside = _imports("laser_tf/agents/registry")
        known = {"laser_tf/agents/agent_config", "laser_tf/agents/base", "laser_tf/errors"}
        known |= {"laser_tf/config_values", "laser_tf/user_code"}
        self.assertContainsSubset(inside, known)
        self.assertContainsSubset(outside, {"importlib", "typing"})

    def test_only_commands_know_flags(self):
        # Tests of flags define some.
        tests = (
            "testing/layering_test",
            "testing/host/private_network_test",
            "testing/launch/config_flag_test",
        )
        for module, path in _modules().items():
            uses = re.search(r"from absl import .*\bflags\b|config_flags", path.read_text())
            if uses and module not in tests:
                self.assertStartsWith(module, ("launch/", "tools/"))

    def test_drivers_of_a_cluster_need_no_tensorflow(self):
        reached = set()
        pending = [f"laser_tf/cluster/{name}" for name in ("fleet", "run_work", "sweep_work")]
        while pending:
            module = pending.pop()
            reached.add(module)
            inside, outside = _imports(module, at_start=True)
            self.assertFalse({"tensorflow", "reverb"} & outside, module)
            pending.extend(inside - reached)

    def test_modules_before_imports_use_the_standard_library(self):
        early = {
            "laser_tf/host/private_network",
            "laser_tf/host/process_launcher",
            "laser_tf/host/interruption",
            "laser_tf/host/log_messages",
            "laser_tf/workdir/versions",
        }
        for module in early:
            inside, outside = _imports(module)
            self.assertContainsSubset(inside, early)
            self.assertContainsSubset(outside, sys.stdlib_module_names)


if __name__ == "__main__":
    absltest.main()
