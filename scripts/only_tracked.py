"""A step of the build: the source archive takes no file that git does not track."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class OnlyTracked(BuildHookInterface):  # type: ignore[type-arg]
    """Excludes what is not tracked; where there is no git, as in the source archive itself, all is as it was."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the files are gathered."""
        if not Path(self.root, ".git").exists():
            return
        listed = subprocess.run(["git", "ls-files", "-z", "--others"], cwd=self.root, capture_output=True, text=True, check=True)
        untracked = [re.sub(r"([][\\*?! #])", r"\\\1", name) for name in listed.stdout.split("\0") if name]
        self.build_config.target_config.setdefault("exclude", []).extend(f"/{name}" for name in untracked)
