"""What is not read, and why."""

import importlib
import sys
import tracemalloc

import h5py
import numpy as np
import pandas as pd
import pytest

from orthonmf.exceptions import InvalidInputError, MissingExtraError
from orthonmf.io import REGISTRY, Data, read, read_names, write_table


def test_data_by_hand():
    data = Data([[1, 2]], column_names=["a", "b"])
    assert data.X.shape == (1, 2)
    assert data.column_names.tolist() == ["a", "b"]
    assert data.column_names.dtype == object  # as scikit-learn wants them
    with pytest.raises(InvalidInputError, match="has 1 names of columns for 2 columns"):
        Data([[1, 2]], column_names=["a"])


@pytest.mark.parametrize("place", sorted(set(REGISTRY.values())))
def test_every_reader_is_there(place):
    module, _, name = place.partition(":")
    assert callable(getattr(importlib.import_module(module), name))


@pytest.mark.parametrize("suffix", REGISTRY)
def test_missing_and_empty_files(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    with pytest.raises(InvalidInputError, match=r"data.* does not exist; expected a matrix: \.csv"):
        read(path)
    path.touch()
    with pytest.raises(InvalidInputError, match=r"data.* is empty; expected a matrix"):
        read(path)


@pytest.mark.parametrize("suffix", REGISTRY)
def test_noise_is_refused(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    path.write_bytes(np.random.default_rng(0).bytes(999))
    with pytest.raises(InvalidInputError, match=r"data"):
        read(path)


@pytest.mark.parametrize("suffix", ["pkl", "pickle", "joblib", "pt", "PKL", "pkl.gz"])
def test_what_could_run_code_is_refused_by_name(tmp_path, suffix):
    path = tmp_path / f"data.{suffix}"
    path.write_text("x")
    with pytest.raises(InvalidInputError, match=r"can run code. Save the matrix as \.npy"):
        read(path)


@pytest.mark.parametrize("name", ["data", "data.xls", "csv", "data.gz"])
def test_other_kinds_are_refused(tmp_path, name):
    path = tmp_path / name
    path.write_text("x")
    with pytest.raises(InvalidInputError, match="is of no known kind; expected"):
        read(path)


def test_an_unreadable_file_is_an_error_of_ours(tmp_path, monkeypatch):
    path = tmp_path / "data.csv"
    path.write_text("1,2\n")

    def denied(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.read_bytes", denied)
    with pytest.raises(InvalidInputError, match=r"data.csv cannot be read: .*Permission denied"):
        read(path)


@pytest.mark.parametrize(
    ("package", "suffix"), [("h5py", ".h5ad"), ("h5py", ".h5"), ("pyarrow", ".parquet"), ("pyarrow", ".feather"), ("openpyxl", ".xlsx")]
)
def test_a_missing_package_is_named_with_the_remedy(tmp_path, monkeypatch, package, suffix):
    path = tmp_path / f"data{suffix}"
    path.write_text("x")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"\{suffix} files need {package}.*pip install 'orthonmf\[io\]'"):
        read(path)


# -- memory -------------------------------------------------------------------------------------------------------------------


N, LONGEST = 5000, 5000
NAMES = ["a" * LONGEST, *(f"r{i}" for i in range(1, N))]


def put_csv(path):
    path.write_text("name,x\n" + "".join(f"{name},1\n" for name in NAMES))


def put_parquet(path):
    pd.DataFrame({"name": NAMES, "x": np.ones(N)}).to_parquet(path, index=False)


def put_h5ad(path):
    with h5py.File(path, "w") as file:
        file["X"], file["obs/names"], file["var/names"] = np.ones((N, 1)), NAMES, ["x"]
        file["obs"].attrs["_index"] = file["var"].attrs["_index"] = "names"


def put_folder(path):
    path.mkdir()
    (path / "matrix.mtx").write_text(f"%%MatrixMarket matrix coordinate integer general\n1 {N} 1\n1 1 1\n")
    (path / "barcodes.tsv").write_text("\n".join(NAMES))
    (path / "features.tsv").write_text("ENSG1\tx\n")


@pytest.mark.parametrize(
    ("name", "put"), [("data.csv", put_csv), ("data.parquet", put_parquet), ("data.h5ad", put_h5ad), ("folder", put_folder)]
)
def test_one_long_name_does_not_make_all_names_long(tmp_path, name, put):
    put(tmp_path / name)
    read(tmp_path / name)  # imports what it needs
    data, peak = traced(lambda: read(tmp_path / name))
    assert data.row_names.tolist() == NAMES
    assert peak < N * LONGEST / 5  # as text of one width they take N · LONGEST · 4 bytes; a name as an object some 100, one of a table 200


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_with_one_long_name_is_written_and_read_in_little_memory(tmp_path, suffix):
    path = tmp_path / f"table.{suffix}"
    for names in (NAMES, np.array(NAMES, dtype=object)):
        peak = traced(lambda names=names: write_table(path, [("item", names), ("component", range(N))]))[1]
        found, peak_read = traced(lambda: read_names(path))
        assert found.tolist() == NAMES
        assert max(peak, peak_read) < N * LONGEST / 5


def traced(work):
    """What work returns, and the most memory that it took."""
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
