"""The page of the interface, from the public modules themselves: a name in ``__all__`` is on it, whoever wrote it."""

from __future__ import annotations

import importlib
import inspect
import re
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from sphinx.application import Sphinx
from sphinx.config import Config

# Title and module, in the order of the page.
PUBLIC = {
    "The estimator": "orthonmf",
    "Measures": "orthonmf.metrics",
    "Data": "orthonmf.datasets",
    "Files": "orthonmf.io",
    "Figures": "orthonmf.plot",
    "Report": "orthonmf.report",
    "AnnData: tools": "orthonmf.tl",
    "AnnData: figures": "orthonmf.pl",
    "Other methods": "orthonmf.baselines",
    "Errors": "orthonmf.exceptions",
}
HEAD = "API\n===\n\nEverything that may be relied on. What is not on this page may change without notice.\n"


def names(module: ModuleType) -> list[str]:
    """The classes and functions that a module makes public."""
    return [name for name in module.__all__ if inspect.isclass(getattr(module, name)) or inspect.isfunction(getattr(module, name))]


def section(title: str, module: ModuleType) -> str:
    """A heading, what the module says of itself, and a table of its names."""
    said = inspect.getdoc(module) or ""
    table = "\n".join(f"   {name}" for name in names(module))
    return (
        f"\n{title}\n{'-' * len(title)}\n\n``{module.__name__}``: {said.partition(chr(10))[0]}\n\n"
        f".. currentmodule:: {module.__name__}\n\n.. autosummary::\n   :toctree: generated\n   :nosignatures:\n\n{table}\n"
    )


def write(app: Sphinx, _: Config) -> None:
    """Write api/index.rst, unless it is as it should be."""
    found = [(title, importlib.import_module(name)) for title, name in PUBLIC.items() if find_spec(name)]
    text = HEAD + "".join(section(title, module) for title, module in found)
    path = Path(app.srcdir) / "api" / "index.rst"
    path.parent.mkdir(exist_ok=True)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def escape(_app: Sphinx, _what: str, _name: str, _obj: object, _options: object, lines: list[str]) -> None:
    """In types such as (n_samples, n_components_) the last underscore is none of reStructuredText's."""
    lines[:] = [line if "``" in line else re.sub(r"\b(n_\w+)_(?=[,) ])", r"\1\\_", line) for line in lines]


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the page before Sphinx looks for pages."""
    app.connect("config-inited", write)
    app.connect("autodoc-process-docstring", escape, priority=900)  # after numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
