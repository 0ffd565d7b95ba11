"""The memory of the machine."""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["free_bytes"]


def free_bytes() -> int:
    """Memory that a program may take now: what is free, and what the system holds of files and would give back."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        found = None
    if found is not None:
        return 1024 * int(found[1])
    names = getattr(os, "sysconf_names", {})
    pages = next((name for name in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES") if name in names), None)
    # Where the system does not say, as on Windows, a little is assumed.
    return 4 << 30 if pages is None else os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
