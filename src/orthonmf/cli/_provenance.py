"""What a report says of the command that made it."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from .._common.files import STDIN
from ._output import base_name

# Options that change where and how something is written, not what is found.
SILENT = {"out", "force", "json", "quiet", "form", "checkpoint", "allow_uncertified", "stamp"}


def command(context: Any) -> str:
    """The command as it was typed, but for what does not change the answer; files without their folders, so that the place of the data
    does not matter."""
    words = ["orthonmf", str(context.info_name)]
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name)
        if parameter.name in SILENT or source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[parameter.name]
        if parameter.param_type_name == "option":
            words.append(max(parameter.opts, key=len))
        if value is not True:
            words.append(_word(value))
    return shlex.join(words)


def _word(value: Any) -> str:
    if isinstance(value, Path):
        return str(value) if value == STDIN else base_name(value)
    return str(value)


def stamped(began: float) -> dict[str, str]:
    """The date, and the seconds since ``began``, of a monotonic clock."""
    return {"Date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", "Seconds": f"{monotonic() - began:.1f}"}
