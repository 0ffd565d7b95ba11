"""Print the shape of the code: how deep a fit goes, how wide the interfaces are, how many modules, classes and constants there are.

Run ``python scripts/shape.py`` from the root of the repository.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).parents[1] / "src" / "orthonmf"
# Folders around the core: what people see, compare with and read from.
AROUND = {"baselines", "cli", "datasets", "experiments", "io", "plot", "report"}
LONGEST = 60


def modules() -> Iterator[tuple[Path, ast.Module]]:
    """Every module of the package, with its syntax tree."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE), ast.parse(path.read_text(encoding="utf-8"))


def core() -> list[tuple[Path, ast.Module]]:
    """The modules of the core."""
    return [(path, tree) for path, tree in modules() if path.parts[0] not in AROUND]


def ground_floor() -> int:
    """Modules and packages beside each other in the package; ``__init__`` and ``__main__`` aside."""
    return sum(not each.name.startswith("__") and (each.suffix == ".py" or each.is_dir()) for each in SOURCE.iterdir())


def public_classes() -> int:
    """Public classes of the core; passes and what they find aside."""
    return sum(
        isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        for path, tree in core()
        if path.parts[0] != "passes"
        for node in tree.body
    )


def interfaces() -> dict[str, int]:
    """Methods of every protocol and abstract class of the core."""
    found = {}
    for _, tree in core():
        for node in (node for node in tree.body if isinstance(node, ast.ClassDef)):
            if {"Protocol", "ABC"} & {base.id for base in node.bases if isinstance(base, ast.Name)}:
                found[node.name] = sum(isinstance(each, ast.FunctionDef) and not each.name.startswith("_") for each in node.body)
    return found


def constants() -> dict[str, list[str]]:
    """Numbers in capitals at the head of the modules of the core, by name, with where they stand."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, tree in core():
        for node in tree.body:
            names = [name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)]
            value = getattr(node, "value", None)
            if isinstance(node, ast.Assign | ast.AnnAssign) and value is not None and _is_number(value):
                for name in (name for name in names if name.isupper() or name.strip("_").isupper()):
                    found[name].append(str(path))
    return found


def _is_number(node: ast.AST) -> bool:
    leaves = [leaf for leaf in ast.walk(node) if isinstance(leaf, ast.Constant)]
    return bool(leaves) and all(isinstance(leaf.value, int | float) for leaf in leaves)


def longest_function() -> tuple[int, str]:
    """Lines of the longest function, without its docstring, and its name."""
    sizes = []
    for path, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                first = node.body[0]
                lines = (node.end_lineno or 0) - node.lineno + 1
                lines -= (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(node) else 0
                sizes.append((lines, f"{path}:{node.name}"))
    return max(sizes)


def documented() -> float:
    """The share of public functions and classes that say what they are; a method may inherit that from a protocol or a base."""
    said, public = 0, 0
    inherited = {
        each.name for _, tree in modules() for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for each in node.body if _says(each)
    }
    for _, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                public += 1
                said += _says(node) or node.name in inherited
    return said / public


def _says(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None


def deepest(parameters: dict[str, object]) -> tuple[int, int]:
    """Frames, and files, of our own on the stack from ``fit`` to ``pairs``, across threads."""
    from orthonmf import ONMF
    from orthonmf.distortion import line

    X = np.random.default_rng(0).gamma(1.0, 1.0, (200, 4))
    stacks: Counter[tuple[int, int]] = Counter()
    formula = line.Line.pairs

    def traced(self, items, centers, labels=None):  # type: ignore[no-untyped-def]
        frame, files = sys._getframe(), []
        while frame is not None:
            if SOURCE in Path(frame.f_code.co_filename).parents:
                files.append(frame.f_code.co_filename)
            frame = frame.f_back  # type: ignore[assignment]
        stacks[len(files) + 1, len(set(files) | {line.__file__})] += 1
        return formula(self, items, centers, labels)

    line.Line.pairs = traced  # type: ignore[method-assign]
    try:
        ONMF(**parameters, n_jobs=1).fit(X)
    finally:
        line.Line.pairs = formula  # type: ignore[method-assign]
    return max(stacks)


def main() -> None:
    """Print the table."""
    numbers = constants()
    twice = sorted(name for name, where in numbers.items() if len(where) > 1)
    wide = sorted(interfaces().items(), key=lambda each: -each[1])[:5]
    free, bounded = deepest({"n_components": 3}), deepest({"n_components": 3, "capacity": 70})
    lines, name = longest_function()
    rows = [
        ("frames from ONMF.fit to the formula", f"{free[0]} in {free[1]} files ({bounded[0]} in {bounded[1]} under bounds)"),
        ("longest function", f"{lines} lines ({name})"),
        ("widest interfaces", ", ".join(f"{name} {count}" for name, count in wide)),
        ("modules and packages on the ground floor", str(ground_floor())),
        ("public classes of the core, passes aside", str(public_classes())),
        (
            "numbers in capitals in the core",
            f"{sum(map(len, numbers.values()))} in {len({w for ws in numbers.values() for w in ws})} files",
        ),
        ("names with two meanings", ", ".join(twice) or "none"),
        ("public names that say what they are", f"{documented():.0%}"),
    ]
    for name, value in rows:
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    main()
