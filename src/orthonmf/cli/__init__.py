"""The command ``orthonmf``. One file per command; typer and rich are imported only when it runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

__all__ = ["main"]

# Options that take several values, "--datasets 1 2 5".
_LISTS = ("--datasets", "--methods")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. 2 means that something asked for is not usable."""
    missing = [name for name in ("typer", "rich") if find_spec(name) is None]
    if missing:
        sys.stderr.write(f"orthonmf: the command needs {' and '.join(missing)}. Install with: pip install 'orthonmf[cli,plot]'\n")
        return 1
    from .app import run

    return run(joined(sys.argv[1:] if argv is None else argv))


def joined(argv: Sequence[str]) -> list[str]:
    """The values after an option that takes several, as one value with commas."""
    result: list[str] = []
    collecting = False
    for word in argv:
        if word.startswith("-"):
            collecting = word in _LISTS
            result.append(word)
        elif collecting and not result[-1].startswith("-"):
            result[-1] += f",{word}"
        else:
            result.append(word)
    return result
