"""Every public name is documented with an example, and every example in the package runs."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import orthonmf

matplotlib = pytest.importorskip("matplotlib")

# The modules that users import from; all others may change without notice.
PUBLIC = ("", "baselines", "datasets", "exceptions", "io", "metrics", "pl", "plot", "report", "tl")
# Modules for GPUs, and what they import: without it there is nothing to run.
ON_GPU = {
    **{f"orthonmf.engines.{name}": "torch" for name in ("streamed", "tensors", "torch", "torch_sparse")},
    **{f"orthonmf.engines.{name}": "triton" for name in ("fused", "hopper", "triton")},
    **{f"orthonmf.engines.tiles.{name}": "triton" for name in ("hard", "labels", "pieces", "soft", "words")},
}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules():
    """The names of all modules of the package, but those that run when imported."""
    found = pkgutil.walk_packages(orthonmf.__path__, "orthonmf.", onerror=lambda name: pytest.fail(f"{name} cannot be imported"))
    return ["orthonmf", *(module.name for module in found if not module.name.endswith("__main__"))]


def public_names():
    """The classes and functions of the public modules, and the methods of those classes, by where they are found."""
    for part in PUBLIC:
        module = importlib.import_module(f"orthonmf.{part}".rstrip("."))
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                yield f"{module.__name__}.{name}", thing
    for name, method in inspect.getmembers(orthonmf.ONMF, inspect.isroutine):
        if not name.startswith("_") and inspect.unwrap(method).__module__.startswith("orthonmf"):
            yield f"orthonmf.ONMF.{name}", method


def documented(thing):
    """Whether the docstring has a section of examples with at least one in it."""
    text = inspect.getdoc(thing) or ""
    return "Examples\n--------" in text and ">>> " in text


def test_by_hand():
    assert documented(orthonmf.ONMF)
    assert not documented(len)


def test_every_public_name_has_an_example():
    assert [name for name, thing in public_names() if not documented(thing)] == []


@pytest.mark.parametrize("name", modules())
def test_examples_run(name):
    if name in ON_GPU:
        pytest.importorskip(ON_GPU[name])
    matplotlib.use("Agg")
    module = importlib.import_module(name)
    finder, said = doctest.DocTestFinder(exclude_empty=True), []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    for case in finder.find(module, name):
        runner.run(case, out=said.append)
    assert not said, "".join(said)
