"""Try what was built as a stranger would: ``python scripts/check_dist.py dist``.

The source archive holds the files that are kept under version control, and no others. The wheel goes into a new environment with the core
dependencies alone: every module imports, a model is fitted, saved, loaded and verified, and what needs an extra says which. Each extra
resolves to what it names; the light ones are installed and used.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from email.parser import Parser
from pathlib import Path
from time import perf_counter
from zipfile import ZipFile

# What the source archive leaves out: settings of the place where the code is kept.
LEFT_OUT = (".ci/", ".github/", ".gitignore")
# What the build adds to it.
ADDED = {"PKG-INFO"}
# Extras that are installed for real, with a command that needs them.
LIGHT = {"cli": "orthonmf --help", "plot": "python -m orthonmf.experiments.demo --help", "data": "python -c 'import pooch'"}
PROBE = Path(__file__).with_name("probe_install.py")


def main(folder: Path) -> None:
    """Check the one wheel and the one source archive in a folder."""
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with step(f"{source.name} holds what is tracked"):
        check_source(source, tracked())
    with tempfile.TemporaryDirectory() as place:
        python = environment(Path(place, "core"))
        with step(f"{wheel.name} installs"):
            run(python, "-m", "pip", "install", "--quiet", str(wheel))
        with step("works with the core dependencies alone"):
            run(python, "-I", str(PROBE), "core", cwd=place)
        for extra, needs in extras(wheel).items():
            with step(f"[{extra}] brings {', '.join(needs)}"):
                check_extra(python, wheel, extra, needs)
        for extra, command in LIGHT.items():
            with step(f"[{extra}] installed: {command}"):
                run(python, "-m", "pip", "install", "--quiet", f"{wheel}[{extra}]")
                run("sh", "-c", f'PATH="{python.parent}:$PATH"; {command}', cwd=place)
        with step("works with them, too"):
            run(python, "-I", str(PROBE), "extras", cwd=place)


def tracked() -> set[str]:
    """The files that are kept under version control."""
    return set(subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.splitlines())


def check_source(source: Path, tracked: set[str]) -> None:
    """Every tracked file is there, but for what is left out on purpose, and nothing else but what the build adds."""
    with tarfile.open(source) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    if missing := sorted(name for name in tracked - held if not name.startswith(LEFT_OUT)):
        sys.exit(f"{source.name} lacks {missing}; add them to tool.hatch.build.targets.sdist in pyproject.toml.")
    if strange := sorted(held - tracked - ADDED):
        sys.exit(f"{source.name} holds {strange}, which nobody tracks; see scripts/only_tracked.py.")


def environment(place: Path) -> Path:
    """The interpreter of a new environment."""
    venv.create(place, with_pip=True)
    return place / "bin" / "python"


def extras(wheel: Path) -> dict[str, list[str]]:
    """The names of the packages that each extra of a wheel asks for."""
    with ZipFile(wheel) as members:
        (name,) = [name for name in members.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = Parser().parsestr(members.read(name).decode())
    names: dict[str, list[str]] = {extra: [] for extra in metadata.get_all("Provides-Extra", [])}
    for line in metadata.get_all("Requires-Dist", []):
        requirement, _, extra = line.partition("; extra == ")
        if extra and not requirement.startswith("orthonmf["):
            names[extra.strip("'")].append(re.split(r"[\[>]", requirement)[0])
    return names


def check_extra(python: Path, wheel: Path, extra: str, needs: list[str]) -> None:
    """What would be installed, or is there already, has all the packages that the extra names."""
    options = ("--dry-run", "--quiet", "--ignore-installed", "--report", "-")
    report = json.loads(run(python, "-m", "pip", "install", *options, f"{wheel}[{extra}]"))
    found = {each["metadata"]["name"].lower().replace("_", "-") for each in report["install"]}
    if missing := set(needs) - found:
        sys.exit(f"[{extra}] does not bring {sorted(missing)}.")


def run(*command: object, cwd: str | None = None) -> str:
    """The output of a command; its errors end the check."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=cwd)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


@contextmanager
def step(name: str) -> Iterator[None]:
    """One line for what was checked, with its time."""
    start = perf_counter()
    yield
    print(f"ok {perf_counter() - start:6.1f} s  {name}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
