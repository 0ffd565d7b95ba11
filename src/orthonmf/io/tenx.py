"""A folder as the 10x pipelines write it: genes in the rows of the file, cells in ours."""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from pathlib import Path

from scipy import sparse

from .._common.typing import Array
from ..exceptions import InvalidInputError
from .base import Data, texts
from .mtx import matrix

# How texts of words end.
TEXTS = (".txt", ".md")


def read(path: Path, key: str | None = None) -> Data:
    """Cells × genes, with barcodes and the names of the genes."""
    counts = matrix(_member(path, "matrix.mtx"))
    cells = texts([row[0] for row in _rows(_member(path, "barcodes.tsv"))])
    genes = gene_names(_rows(_member(path, "features.tsv", "genes.tsv")))
    return Data(sparse.csr_array(counts.T), cells, genes)


def gene_names(rows: list[list[str]]) -> Array:
    """The second column, the symbol; with the first, the identifier, where a symbol is not the only one of its kind."""
    symbols = [row[1] if len(row) > 1 else row[0] for row in rows]
    seen = Counter(symbols)
    return texts([symbol if seen[symbol] == 1 else f"{symbol} ({row[0]})" for symbol, row in zip(symbols, rows, strict=True)])


def _member(folder: Path, *names: str) -> Path:
    found = [path for name in names for path in (folder / name, folder / f"{name}.gz") if path.is_file()]
    if not found:
        if n_texts := sum(each.suffix.lower() in TEXTS for each in folder.iterdir()):
            words = "TfidfVectorizer(input='filename', stop_words='english', min_df=2)"
            raise InvalidInputError(
                f"is a folder of texts ({n_texts} that end in {' or '.join(TEXTS)}), not of numbers. In Python their words become some: "
                f"make_pipeline({words}, ONMF()).fit(sorted(glob({f'{folder}/*'!r})))."
            )
        raise InvalidInputError(
            f"is a folder without {' or '.join(names)} (also .gz); expected a file, or a 10x folder with matrix.mtx, barcodes.tsv and "
            "features.tsv."
        )
    return found[0]


def _rows(path: Path) -> list[list[str]]:
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    return [row for row in csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE) if row]
