"""The command ``orthonmf``. One file per command, imported when it is asked for; so are typer and rich."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

from ._signals import signals

__all__ = ["main"]

# Options that take several values, "--datasets 1 2 5".
_LISTS = ("--datasets", "--methods")

# The exit code when what was asked for cannot be done.
REFUSED = 2
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. 2 means that something asked for is not usable."""
    try:
        try:
            signals.hear()
            code = _main(joined(sys.argv[1:] if argv is None else argv))
        finally:
            signals.end()
    except KeyboardInterrupt:
        signals.end()
        code = INTERRUPTED
    return signals.code or code


def _main(argv: list[str]) -> int:
    missing = [name for name in ("typer", "rich") if find_spec(name) is None]
    if missing:
        sys.stderr.write(f"orthonmf: the command needs {' and '.join(missing)}. Install with: pip install 'orthonmf[cli,plot]'\n")
        return REFUSED
    with signals.held():  # an import that is interrupted may turn the interrupt into another error
        from .app import run
    return run(argv)


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
