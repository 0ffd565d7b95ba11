"""Imports go one way: a module knows its own floor and those below, and no import hides in a function to avoid a circle."""

import ast
from pathlib import Path

import pytest

import orthonmf

SOURCE = Path(orthonmf.__file__).parent
# From the ground up. A name stands for a module, or for a package with all that is in it.
FLOORS = [
    {"", "exceptions"},  # the package itself imports nothing before it is asked for
    {"_common"},
    {"progress", "sources"},
    {"passes.base", "passes.raw", "passes.state", "passes"},  # the package itself is empty
    {"engines"},
    {"distortion"},
    {
        "passes.assigned",
        "passes.audit",
        "passes.critical",
        "passes.hard",
        "passes.moves",
        "passes.priced",
        "passes.samples",
        "passes.several",
        "passes.soft",
    },
    {"passes.swaps"},
    {"engines.compiled", "engines.fused", "engines.torch", "engines.torch_sparse"},
    {"search"},
    {"model"},
    {"estimator", "metrics", "datasets", "io"},
    {"baselines", "plot", "report", "tl"},
    {"pl", "experiments"},
    {"cli"},
    {"__main__"},
]
# Imported when they are used, because they need an extra, or take long.
WHEN_USED = {"plot", "report", "cli.app", "engines.kernels", "search.bounded.compiled", "search.bounded.compiled_dual"}


def name_of(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


def floor(module):
    """The floor of the longest name that is the module or a package it is in."""
    names = ((name, level) for level, names in enumerate(FLOORS) for name in names)
    return max((len(name), level) for name, level in names if not name or f"{module}.".startswith(f"{name}."))[1]


def imports(module):
    """What a module imports from the package: (module, whether it does so when it is read itself)."""
    path = MODULES[module]
    tree = ast.parse(path.read_text())
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [part for part in package if part]
            base = base[: len(base) - node.level + 1] + (node.module or "").split(".")
            for alias in node.names:
                whole = ".".join(part for part in [*base, alias.name] if part)
                yield whole if whole in MODULES else ".".join(part for part in base if part), node in tree.body


@pytest.mark.parametrize("module", MODULES)
def test_no_module_imports_from_above(module):
    upward = [(other, floor(other)) for other, at_once in imports(module) if at_once and floor(other) > floor(module)]
    assert upward == []


@pytest.mark.parametrize("module", MODULES)
def test_no_import_hides_in_a_function(module):
    assert {other for other, at_once in imports(module) if not at_once} <= WHEN_USED


def test_every_module_has_a_floor_of_its_own():
    assert [module for module in MODULES if floor(module) == floor("")] == ["", "exceptions"]


def test_there_is_no_circle():
    below = {module: {other for other, at_once in imports(module) if at_once and other != module} for module in MODULES}
    while free := {module for module, others in below.items() if not others}:
        below = {module: others - free for module, others in below.items() if module not in free}
    assert below == {}
