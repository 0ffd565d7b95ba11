"""What is shipped: the files that are tracked, and actions that cannot change behind our back."""

import importlib.util
import io
import re
import tarfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def check_dist():
    spec = importlib.util.spec_from_file_location("check_dist", ROOT / "scripts" / "check_dist.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def archive(path, names):
    with tarfile.open(path, "w:gz") as file:
        for name in names:
            file.addfile(tarfile.TarInfo(f"orthonmf-1/{name}"), io.BytesIO())
    return path


def test_an_archive_of_the_tracked_files_passes(check_dist, tmp_path):
    source = archive(tmp_path / "a.tar.gz", ["src/a.py", "README.md", "PKG-INFO"])
    check_dist.check_source(source, {"src/a.py", "README.md", ".github/workflows/tests.yml"})


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["src/a.py", "README.md", "PKG-INFO", "tests/secret.env"], r"holds \['tests/secret.env'\], which nobody tracks"),
        (["src/a.py", "PKG-INFO"], r"lacks \['README.md'\]"),
    ],
)
def test_an_archive_with_other_files_is_refused(check_dist, tmp_path, names, message):
    with pytest.raises(SystemExit, match=message):
        check_dist.check_source(archive(tmp_path / "a.tar.gz", names), {"src/a.py", "README.md"})


def test_every_action_is_pinned_by_its_commit():
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    if not workflows:
        pytest.skip("no workflows travel with the source archive")
    used = [line.split("uses:")[1].strip() for path in workflows for line in path.read_text().splitlines() if "uses:" in line]
    assert used
    loose = [each for each in used if not each.startswith("./") and not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+.*", each)]
    assert loose == []


def test_every_package_that_is_imported_is_declared_and_every_extra_is_used():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {"scikit-learn": "sklearn"}
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))

    def imported(requirement):
        name = re.split(r"[\[<>=]", requirement)[0]
        return re.search(rf"^\s*(from|import) {names.get(name, name)}\b|needs\(\"{name}\"", source, re.MULTILINE) is not None

    assert all(imported(each) for each in project["dependencies"])
    extras = {name: each for name, each in project["optional-dependencies"].items() if name not in ("test", "docs", "bench", "recipes")}
    assert [each for some in extras.values() for each in some if not imported(each)] == []
    for package in ("joblib", "threadpoolctl"):
        assert any(each.startswith(f"{package}>=") for each in project["dependencies"])
