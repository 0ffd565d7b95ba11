"""The order of the examples, from the first to read to the most particular."""

from __future__ import annotations

from pathlib import Path

ORDER = ("getting_started", "choosing_k", "capacities", "documents", "images", "spectra", "gene_expression", "dataframes")


class Order:
    """Sorts the files of the gallery; an example that is not listed comes last."""

    def __init__(self, src_dir: str) -> None:
        self.src_dir = src_dir

    def __call__(self, filename: str) -> int:
        """The place of a file."""
        name = Path(filename).stem.removeprefix("plot_")
        return ORDER.index(name) if name in ORDER else len(ORDER)
