"""The options of commands, and what their words mean."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from ..exceptions import InvalidInputError

Data = Annotated[
    Path,
    typer.Argument(
        help=(
            "Matrix, samples in rows: .csv, .tsv, .txt (also .gz, .bz2, .xz, .zst, .zip), .xlsx, .parquet, .feather, .arrow, .npy, .npz, "
            ".mtx (also .gz), .h5, .h5ad, .mat, a 10x folder, or - for text from standard input."
        ),
        metavar="DATA",
        readable=False,  # what cannot be read is said in our own words
    ),
]
Model = Annotated[Path, typer.Argument(help="Model that fit wrote, or the folder that holds it.", metavar="MODEL", readable=False)]
Key = Annotated[
    str | None, typer.Option(help="Which matrix, where the file holds several: array, HDF5 path, sheet, or layer (raw for the raw counts).")
]
Drop = Annotated[str | None, typer.Option(help="Columns of the file to leave out, by name, with commas between.", metavar="NAMES")]
Keep = Annotated[str | None, typer.Option(help="The only columns of numbers to take, by name, with commas between.", metavar="NAMES")]
IdColumn = Annotated[str | None, typer.Option(help="The column of the file that names its rows.", metavar="NAME")]
Names = Annotated[
    Path | None,
    typer.Option(help="Text file with a name in each line, for columns without names.", metavar="FILE", readable=False),
]
Transpose = Annotated[bool, typer.Option("--transpose", help="Samples are the columns of the file; all names are those of the file.")]
Normalize = Annotated[
    str | None,
    typer.Option(
        help="What is done to the numbers first, and to those of predict and verify: max, std (each feature), l2 (each row), log1p, tfidf; "
        "several with commas between, in this order.",
        metavar="STEPS",
    ),
]
Init = Annotated[
    Path | None,
    typer.Option(
        help="Model to start from as well, of the same columns; -k is then its number. The answer is never worse than without it.",
        metavar="MODEL",
        readable=False,
    ),
]
Orthogonal = Annotated[str, typer.Option(help="What belongs to one component: samples (rows) or features (columns).")]
Scaling = Annotated[str, typer.Option(help="item: each item has a scale of its own. none: all items of a component share one.")]
Loss = Annotated[str, typer.Option(help="frobenius: squared differences. kullback-leibler: for counts.")]
Missing = Annotated[
    str, typer.Option(help="error: every number must be there. ignore: blanks and NA are missing, and the fit is to what is there.")
]
MaxComponents = Annotated[int | None, typer.Option(help="Where auto stops looking; 32 by default.")]
NComponents = Annotated[
    str,
    typer.Option(
        "-k",
        "--components",
        help="Number of components; auto: as many as the data support; persistence: the number that lasts longest as β grows.",
        metavar="auto|persistence|K",
    ),
]
Capacity = Annotated[str | None, typer.Option(help="Most items in a component: 18, a fraction 0.35, or one for each, 10,20,30.")]
Checkpoint = Annotated[
    Path | None, typer.Option(help="Folder for checkpoints: the same command with the same folder carries on a fit that was stopped.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]

# No matrix has a number of rows with more.
MOST_DIGITS = 18


def examples(*lines: str) -> str:
    """The end of a help text: commands to copy, each on its own line."""
    return "\n".join(["\b", "Examples:", *(f"  orthonmf {line}" for line in lines)])


# Parameters of the library by their options, where a sentence names one: always those that are no words, others where they are set.
_ALWAYS = {"n_components": "-k", "max_components": "--max-components", "min_size": "--min-size", "time_limit": "--time-limit"}
_SETTABLE = ("capacity", "orthogonal", "scaling", "loss", "missing", "format", "checkpoint", "init", "normalize")
_WHERE_SET = {name: f"--{name}" for name in _SETTABLE}
_PARAMETER = re.compile(rf"\b(?:({'|'.join(_ALWAYS)})|({'|'.join(_WHERE_SET)})(?==)|(?<=raise )(capacity)|(?<=lower )(capacity))\b(=?)")


def spoken(text: str) -> str:
    """A sentence of the library in the words of the command line: ``-k 9`` for ``n_components=9``."""
    return _PARAMETER.sub(lambda found: {**_ALWAYS, **_WHERE_SET}[found[0].rstrip("=")] + " " * (found[5] == "="), text)


def number_of_components(text: str) -> int | str:
    """``auto``, ``persistence`` or a whole number."""
    if text in ("auto", "persistence"):
        return text
    if not text.isascii() or not text.isdigit() or len(text) > MOST_DIGITS:
        raise InvalidInputError(f"-k {text[:40]!r} is not usable; expected auto, persistence or a whole number of at least 1.")
    return int(text)


def sizes(name: str, text: str | None) -> Any:
    """Bounds from what the user wrote: 18 items, 0.35 of them, or one of either for each component, with commas between."""
    if text is None:
        return None
    values = [_size(name, text, word) for word in text.split(",")]
    return values if len(values) > 1 else values[0]


def _size(name: str, text: str, word: str) -> int | float:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    raise InvalidInputError(
        f"--{name} {text!r} is not usable; expected items (18), a fraction (0.35), or one for each component (10,20,30)."
    )
