"""The memory that a process has taken."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_bytes() -> int:
    """The peak of this process since it started."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak
    # Linux: ru_maxrss would count the parent, whose memory this process shared when it was started.
    return 1024 * int(status.split("VmHWM:")[1].split()[0])
