"""Damaged files of every kind: each is read or refused, and none ends the process that reads it, but where a library in C reads it.

They are read in a process of their own, case after case: ``python test_fuzz_readers.py FOLDER SEED FIRST LAST``. A case is known by its
seed and its number, and can be tried again with these.
"""

import bz2
import gzip
import hashlib
import io
import lzma
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import zstandard
from scipy import sparse
from scipy.io import mmwrite, savemat

from orthonmf import ONMF
from orthonmf.exceptions import InvalidInputError, ModelFormatError
from orthonmf.io import apart, read

X = np.array([[1.0, 2.0, 0.0, 4.0], [0.0, 0.0, 3.0, 0.5], [5.0, 0.0, 0.0, 1.0]])
ROWS, COLUMNS = ["r1", "r2", "ä"], ["a", "b", "c", "d, e"]

# Read by libhdf5 or Arrow, which some damaged files kill or hold up for ever.
FOREIGN = ("h5", "h5ad", "h5ad of categories", "mat of 7.3", "parquet", "feather")
# Seconds after which a case is taken to hang, and bytes that a reader may take: no file here is larger than a few KiB.
SLOW, MEMORY = 10, 4 * 2**30
SHORT, LONG = 60, 5000  # cases of each kind


# -- sound files ------------------------------------------------------------------------------------------------------------------


def written(write, **options):
    buffer = io.BytesIO()
    write(buffer, **options)
    return buffer.getvalue()


def in_folder(write):
    """What a writer that wants a path writes."""

    def content(folder):
        path = folder / "sound"
        write(path)
        return path.read_bytes()

    return content


def hdf5(path):
    with h5py.File(path, "w") as file:
        file["group/X"] = X
        file.create_dataset("other", data=np.arange(8), chunks=(4,), compression="gzip")


def annotated(path):
    names = pd.DataFrame(index=ROWS), pd.DataFrame(index=COLUMNS)
    anndata.AnnData(sparse.csr_matrix(X), *names).write_h5ad(path)


def of_categories(path):
    with h5py.File(path, "w") as file:
        file["X"] = X
        for table, names in (("obs", ROWS), ("var", COLUMNS)):
            file.create_group(table).attrs["_index"] = "names"
            file[f"{table}/names/categories"], file[f"{table}/names/codes"] = names, np.arange(len(names))


def matlab(path):
    with h5py.File(path, "w", userblock_size=512) as file:
        columns = sparse.csc_array(X)
        file.create_group("X").attrs["MATLAB_sparse"] = np.uint64(len(X))
        file["X/data"], file["X/ir"], file["X/jc"] = columns.data, columns.indices.astype("u8"), columns.indptr.astype("u8")
    banner = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
    path.write_bytes(banner.ljust(512, b"\0") + path.read_bytes()[512:])


def market(matrix, **options):
    return lambda folder: written(lambda buffer: mmwrite(buffer, matrix, comment="a comment", **options))


def mat(**options):
    return lambda folder: written(lambda buffer: savemat(buffer, {"X": sparse.csc_matrix(X), "y": X}, **options))


def table(folder):
    return pd.DataFrame(X, index=ROWS, columns=COLUMNS).to_csv().encode()


def archive(folder):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("data.csv", table(folder))
    return buffer.getvalue()


# Each kind of file: the end of its name and a sound one.
KINDS = {
    "csv": (".csv", table),
    "tsv": (".tsv", lambda folder: table(folder).replace(b",", b"\t")),
    "npy": (".npy", lambda folder: written(lambda buffer: np.save(buffer, X))),
    "npz": (".npz", lambda folder: written(lambda buffer: np.savez(buffer, X=X))),
    "npz, sparse": (".npz", lambda folder: written(lambda buffer: sparse.save_npz(buffer, sparse.csr_array(X), compressed=False))),
    "npz, in blocks": (".npz", lambda folder: written(lambda buffer: sparse.save_npz(buffer, sparse.bsr_array(X), compressed=False))),
    "npz, of diagonals": (".npz", lambda folder: written(lambda buffer: sparse.save_npz(buffer, sparse.dia_array(X), compressed=False))),
    "mtx": (".mtx", market(sparse.coo_array(X))),
    "mtx, dense": (".mtx", market(X)),
    "mtx, symmetric": (".mtx", market(X[:, :3] @ X[:, :3].T, symmetry="symmetric")),
    "mat": (".mat", mat()),
    "mat of 4": (".mat", mat(format="4")),
    "mat of 7": (".mat", mat(do_compression=True)),
    "mat of 7.3": (".mat", in_folder(matlab)),
    "h5": (".h5", in_folder(hdf5)),
    "h5ad": (".h5ad", in_folder(annotated)),
    "h5ad of categories": (".h5ad", in_folder(of_categories)),
    "parquet": (".parquet", lambda folder: written(pd.DataFrame(X, index=ROWS, columns=COLUMNS).to_parquet)),
    "feather": (".feather", lambda folder: written(pd.DataFrame(X, index=ROWS, columns=COLUMNS).to_feather)),
    "xlsx": (".xlsx", lambda folder: written(pd.DataFrame(X, index=ROWS, columns=COLUMNS).to_excel)),
    "csv in bz2": (".csv.bz2", lambda folder: bz2.compress(table(folder))),
    "csv in xz": (".csv.xz", lambda folder: lzma.compress(table(folder))),
    "csv in zst": (".csv.zst", lambda folder: zstandard.compress(table(folder))),
    "csv in zip": (".zip", archive),
    "model": (".onmf", in_folder(lambda path: ONMF(2).fit(X).save(path))),
}


# -- damage -----------------------------------------------------------------------------------------------------------------------


NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)
WORDS = [b"0", b"1", b"-1", b"3", b"99999999999", b"1e400", b"nan", b"", b"x", b"9" * 30, b"symmetric", b"array", b"pattern", b'"', b"\xff"]


def damaged(content, rng):
    """Bytes with one change, or a few."""
    for _ in range(rng.geometric(0.7)):
        content = DAMAGES[rng.integers(len(DAMAGES))](content, rng)
    return content


def flipped(content, rng):
    changed = bytearray(content)
    if changed:
        changed[rng.integers(len(changed))] ^= 1 << rng.integers(8)
    return bytes(changed)


def renumbered(content, rng):
    """A number where it matters, of one to eight bytes, in either order."""
    size = int(2 ** rng.integers(4))
    number = NUMBERS[rng.integers(len(NUMBERS))] % 2 ** (8 * size)
    at = int(rng.integers(len(content) + 1))
    return content[:at] + number.to_bytes(size, ("little", "big")[rng.integers(2)]) + content[at + size :]


def cut(content, rng):
    return content[: rng.integers(len(content) + 1)]


def spliced(content, rng):
    """A piece removed, or copied to another place."""
    start, at = rng.integers(len(content) + 1, size=2).tolist()
    stop = start + int(rng.integers(1, 64))
    return content[:start] + content[stop:] if rng.integers(2) else content[:at] + content[start:stop] + content[at:]


def reworded(content, rng):
    """A word of text, or what looks like one, replaced by another."""
    words = list(re.finditer(rb"[\w.+-]+", content))
    if not words:
        return content
    word = words[rng.integers(len(words))]
    return content[: word.start()] + WORDS[rng.integers(len(WORDS))] + content[word.end() :]


DAMAGES = (flipped, renumbered, cut, spliced, reworded, reworded)


def case(kind, content, rng):
    """A damaged file. Where a sum protects the content, every other one has the damage within, and the right sum."""
    if rng.integers(2):
        return damaged(content, rng)
    if kind.startswith("npz") or kind in ("xlsx", "csv in zip"):
        return zipped(content, rng)
    if kind == "model":
        changed = damaged(content[:-64], rng)
        return changed + hashlib.sha256(changed).hexdigest().encode()
    return damaged(content, rng)


def zipped(content, rng):
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(buffer, "w") as target:
        names = source.namelist()
        chosen = names[rng.integers(len(names))]
        for name in names:
            target.writestr(name, damaged(source.read(name), rng) if name == chosen else source.read(name))
    return buffer.getvalue()


def cases(folder, seed, first, last):
    """The numbers of cases, each with the path of its file; the kinds take turns."""
    sound = {kind: make(folder) for kind, (_, make) in KINDS.items()}
    kinds = list(KINDS)
    for number in range(first, last):
        kind = kinds[number % len(kinds)]
        rng = np.random.default_rng([seed, number])
        path = folder / f"{number}{KINDS[kind][0]}"
        content = case(kind, sound[kind], rng)
        if kind in ("csv", "mtx") and not rng.integers(4):
            path, content = path.with_name(f"{path.name}.gz"), gzip.compress(content, mtime=0)
        path.write_bytes(content)
        yield number, path


# -- the process that reads -------------------------------------------------------------------------------------------------------


def tried(path):
    """Read a file and use what it holds; what is refused is refused by an error of ours."""
    try:
        if path.suffix == ".onmf":
            assert ONMF.load(path).predict(X).shape == (3,)
            return
        data = read(path)
    except (InvalidInputError, ModelFormatError):
        return
    n, p = data.X.shape
    assert data.row_names is None or data.row_names.shape == (n,)
    assert data.column_names is None or data.column_names.shape == (p,)
    entries = data.X.tocoo() if sparse.issparse(data.X) else data.X
    if sparse.issparse(entries):
        assert entries.row.max(initial=0) < max(n, 1)
        assert entries.col.max(initial=0) < max(p, 1)
        entries = entries.data
    assert len(entries.tobytes()) == entries.nbytes  # every entry can be looked at


def main(folder, seed, first, last):
    """Say the number of each case before it is tried."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number, path in cases(Path(folder), int(seed), int(first), int(last)):
        print(number, flush=True)
        signal.alarm(SLOW)
        tried(path)
        signal.alarm(0)
        path.unlink()


# -- the laws ---------------------------------------------------------------------------------------------------------------------


def killing(folder, seed, n_cases):
    """The numbers of the cases that end the process, each with what is to be seen of the end."""
    first, found = 0, {}
    while first < n_cases:
        command = [sys.executable, "-W", "ignore", __file__, str(folder), str(seed), str(first), str(n_cases)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode == 0:
            return found
        said = ended.stdout.split()
        assert said, ended.stderr
        number = int(said[-1])
        found[number] = f"exit code {ended.returncode}: {ended.stderr[-600:]}"
        first = number + 1
    return found


def check(folder, seed, n_each):
    for number, ending in killing(folder, seed, n_each * len(KINDS)).items():
        kind = list(KINDS)[number % len(KINDS)]
        assert kind in FOREIGN, f"case {number} of seed {seed}, {kind}: {ending}"
        assert "exit code -" in ending, f"case {number} of seed {seed}, {kind}: {ending}"  # killed, and not by an error in Python
        with pytest.raises(InvalidInputError, match=r"cannot be read: (its reader died|it took longer)"):
            apart.read(next(folder.glob(f"{number}.*")))


posix = pytest.mark.skipif(sys.platform == "win32", reason="there are no signals to tell how a process ended")


@posix
@pytest.mark.parametrize("seed", [17])
def test_a_damaged_file_is_read_or_refused_and_ends_no_process(tmp_path, seed):
    check(tmp_path, seed, SHORT)


@posix
@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_many_damaged_files_are_read_or_refused_and_end_no_process(tmp_path, monkeypatch, seed):
    monkeypatch.setenv("ORTHONMF_READ_SECONDS", str(SLOW))
    check(tmp_path, seed, LONG)


if __name__ == "__main__":
    main(*sys.argv[1:])
