"""Finished cells on disk, one JSON file each, so that an interrupted table goes on where it stopped."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._common.files import atomic

Record = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """A cell to compute: a function as "module:name", what it is called with, and the settings that its result depends on."""

    function: str
    arguments: dict[str, Any]
    settings: str = ""

    @property
    def key(self) -> str:
        """Name of the cell, fit for a file."""
        table = self.function.split(":")[0].rsplit(".", 1)[-1]
        return "_".join([table, *(str(value) for value in self.arguments.values())]).replace(os.sep, "-")


@dataclass(frozen=True)
class Store:
    """A folder of finished cells."""

    folder: Path

    def get(self, task: Task) -> Record | None:
        """What is known of a cell; None if nothing, if the file is torn, or if the settings have changed."""
        try:
            record = json.loads(self._path(task).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        same = isinstance(record, dict) and record.get("settings") == task.settings and record.get("arguments") == task.arguments
        return record if same else None

    def put(self, task: Task, record: Record) -> None:
        """Keep a cell: all of it or nothing, whenever the process ends."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(task)
        with atomic(path) as draft:
            draft.write_text(json.dumps(record, indent=1), encoding="utf-8")

    def _path(self, task: Task) -> Path:
        return self.folder / f"{task.key}.json"
