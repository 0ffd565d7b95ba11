"""What the documents name is there: files and folders, names of the package, benchmarks with their options, targets of make."""

import re
from pathlib import Path
from pkgutil import resolve_name

import pytest

ROOT = Path(__file__).parents[1]
TREES = ("src", "tests", "benchmarks", "docs", "scripts", "examples", "recipes", ".github", ".ci")
# What a command makes.
MADE = {".venv/bin/orthonmf", "docs/_build/html", "reproduced/", "reproduced/cells"}


def found(*patterns):
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]


DOCUMENTS = found("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/guide/*.md", "src/orthonmf/experiments/README.md")
every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def quoted(document):
    """What stands between backticks, outside of blocks of code."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.S))


def missing_paths(names, paths):
    """Names that end in no path, of those that look like one: ``search/run.py`` stands for ``src/orthonmf/search/run.py``."""
    looks = re.compile(r"[\w.-]+(/[\w.-]+)*/?")
    named = [name for name in names if looks.fullmatch(name) and re.search(r"/|\.(py|yml|toml|cff)$", name) and name not in MADE]
    return [name for name in named if not any(f"/{path}".endswith(f"/{name.strip('/')}") for path in paths)]


@pytest.fixture(scope="module")
def paths():
    inside = (path for tree in TREES for path in (ROOT / tree, *(ROOT / tree).rglob("*")) if "__pycache__" not in path.parts)
    return [path.relative_to(ROOT).as_posix() for path in (*ROOT.iterdir(), *inside)]


def test_a_path_stands_for_one_that_ends_in_it():
    paths = ["src/orthonmf/search/run.py", "src/orthonmf/search"]
    assert missing_paths(["search/run.py", "run.py", "search/", "ONMF.fit", "1/2"], paths) == ["1/2"]
    assert missing_paths(["search/walk.py", "arch/run.py"], paths) == ["search/walk.py", "arch/run.py"]


@every_document
def test_every_file_and_folder_that_is_named_is_there(document, paths):
    assert missing_paths(quoted(document), paths) == []


@every_document
def test_every_name_of_the_package_is_there(document):
    for name in re.findall(r"\borthonmf(?:\.[A-Za-z_]\w*)+", "\n".join(quoted(document))):
        assert resolve_name(name) is not None


@every_document
def test_every_benchmark_that_is_named_is_there_and_knows_its_words(document):
    for name, words in re.findall(r"python -m benchmarks ([a-z_0-9]+)([^`\n]*)", document.read_text(encoding="utf-8")):
        text = (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
        assert [word for word in re.findall(r"--[a-z-]+|\b[a-z][a-z_]+\b", words) if word not in text] == []


@every_document
def test_every_target_of_make_is_there(document):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M))
    assert {name for text in quoted(document) for name in re.findall(r"^make ([a-z-]+)", text)} <= targets
