"""Run benchmarks by name, each in a process of its own: ``python -m benchmarks [NAME [options]]``.

Without a name all are run. ``--list`` names them; options after a name go to that benchmark.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def benchmarks() -> dict[str, str]:
    """Every benchmark of this folder with the first line of its docstring."""
    modules = sorted(path for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))
    return {path.stem: _first_line(path) for path in modules}


def _first_line(path: Path) -> str:
    # Read, not imported: listing must not need the packages that a benchmark compares with.
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


def listing(known: dict[str, str]) -> str:
    """One line per benchmark."""
    width = max(map(len, known))
    return "\n".join(f"{name:<{width}}  {line}" for name, line in known.items())


def main(argv: list[str]) -> int:
    """Run what was asked for; the exit status is that of the first benchmark that failed."""
    known = benchmarks()
    if argv and argv[0] in ("-h", "--help", "--list"):
        print(__doc__.strip(), "\n\n", listing(known), sep="")
        return 0
    if argv and argv[0] not in known:
        print(f"No benchmark is called {argv[0]!r}. There are:\n\n{listing(known)}", file=sys.stderr)
        return 2
    worst = 0
    for name in argv[:1] or known:
        print(f"== {name}: {known[name]}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.{name}", *argv[1:]]
        worst = worst or subprocess.run(command, cwd=FOLDER.parent, check=False).returncode
        print(flush=True)
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
