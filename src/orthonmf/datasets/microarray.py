"""The gene expression data of the paper (its data set 5), which may be fetched but not redistributed."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path

import numpy as np

from .._common.typing import Array
from ..exceptions import DataUnavailableError, MissingExtraError

__all__ = ["fetch_microarray"]

_FILE = "microarray_data.npy"
_SHA256 = "9a5f9bb65232708bca9bf48c03facea628b4229caa1d19060cea92b681946659"
# A commit of the authors' repository that holds the file; the checksum decides what is accepted.
_COMMIT = "9f7376fa14a4f59c5c05b43aecfec17bf3540cbd"
_URL = f"https://raw.githubusercontent.com/salar96/MEP-Orthogonal-NMF/{_COMMIT}/Dataset/{_FILE}"
_DIRECTORY_VARIABLE = "ORTHONMF_DATA"
_CACHE = Path("~/.cache/orthonmf")
_REMEDY = f"put the file from {_URL} into a folder and set the environment variable {_DIRECTORY_VARIABLE} to it"


def fetch_microarray(*, data_home: str | os.PathLike[str] | None = None, download: bool = True) -> Array:
    """Expression of 53 genes in 27 patients with multiple sclerosis at 7 times.

    The file is looked for in the folder that the environment variable ``ORTHONMF_DATA`` names, then in the
    cache, and then downloaded into the cache from the repository of the paper's authors,
    https://github.com/salar96/MEP-Orthogonal-NMF. Only a file with the known SHA-256 is read.

    Parameters
    ----------
    data_home : path-like, default=None
        Folder of the cache; None means ``~/.cache/orthonmf``.
    download : bool, default=True
        Whether to download the file when it is not on this machine; needs the extra ``orthonmf[data]``.

    Returns
    -------
    ndarray of shape (53, 27, 7)
        Nonnegative expression of genes (first axis) in patients (second) at times (third).

    Raises
    ------
    DataUnavailableError
        The file is not on this machine and was not, or could not be, downloaded.
    MissingExtraError
        It would have to be downloaded and pooch is not installed.

    References
    ----------
    Baranzini et al., "Transcription-based prediction of response to IFNβ using supervised computational
    methods", PLoS Biology, 2004.

    Examples
    --------
    >>> from orthonmf.exceptions import DataUnavailableError
    >>> try:
    ...     genes, patients, times = fetch_microarray(download=False).shape
    ... except DataUnavailableError:  # its message names the places where it looked, and what to do
    ...     genes, patients, times = 53, 27, 7
    >>> genes, patients, times
    (53, 27, 7)
    """
    cache = Path(_CACHE if data_home is None else data_home).expanduser()
    tried = []
    for folder in [*_named_folder(), cache]:
        path = folder / _FILE
        content, problem = _read_verified(path)
        if content is not None:
            return _parse(content)
        tried.append(f"{path} ({problem})")
    if not download:
        raise _unavailable([*tried, "no download (download=False)"])
    return _parse(_download(cache, tried))


def _named_folder() -> list[Path]:
    """The folder of the environment variable, if it is set and not empty."""
    named = os.environ.get(_DIRECTORY_VARIABLE)
    return [Path(named).expanduser()] if named else []


def _read_verified(path: Path) -> tuple[bytes | None, str]:
    """The bytes of the file if they are the expected ones, and otherwise what is wrong."""
    try:
        content = path.read_bytes()
    except OSError as error:
        return None, error.strerror or str(error)
    digest = hashlib.sha256(content).hexdigest()
    if digest != _SHA256:
        return None, f"its SHA-256 is {digest}, expected {_SHA256}"
    return content, ""


def _parse(content: bytes) -> Array:
    array: Array = np.load(io.BytesIO(content), allow_pickle=False)
    return array


def _download(cache: Path, tried: list[str]) -> bytes:
    """Fetch the file into the cache, in place of a damaged one; pooch verifies the checksum."""
    try:
        import pooch
    except ImportError as error:
        raise MissingExtraError(
            f"{_FILE} is not on this machine (tried {'; '.join(tried)}) and pooch, which would download it, "
            f"is not installed. Install orthonmf[data], or {_REMEDY}."
        ) from error
    try:
        path = pooch.retrieve(_URL, known_hash=f"sha256:{_SHA256}", fname=_FILE, path=cache)
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:  # no network, no room; another checksum
        raise _unavailable([*tried, f"{_URL} ({error})"]) from error


def _unavailable(tried: list[str]) -> DataUnavailableError:
    return DataUnavailableError(
        f"{_FILE} with SHA-256 {_SHA256} was not found. Tried: {'; '.join(tried)}. To make it available, {_REMEDY}."
    )
