"""What is not read, and why."""

import importlib
import sys

import numpy as np
import pytest

from orthonmf.exceptions import InvalidInputError, MissingExtraError
from orthonmf.io import REGISTRY, Data, read


def test_data_by_hand():
    data = Data([[1, 2]], column_names=["a", "b"])
    assert data.X.shape == (1, 2)
    assert data.column_names.dtype.kind == "U"
    with pytest.raises(InvalidInputError, match="has 1 names of columns for 2 columns"):
        Data([[1, 2]], column_names=["a"])


@pytest.mark.parametrize("place", sorted(set(REGISTRY.values())))
def test_every_reader_is_there(place):
    module, _, name = place.partition(":")
    assert callable(getattr(importlib.import_module(module), name))


@pytest.mark.parametrize("suffix", REGISTRY)
def test_missing_and_empty_files(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    with pytest.raises(InvalidInputError, match=r"data.* is not a file; expected a matrix: \.csv"):
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


@pytest.mark.parametrize("name", ["data", "data.xlsx", "csv", "data.gz"])
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


@pytest.mark.parametrize(("package", "suffix"), [("h5py", ".h5ad"), ("h5py", ".h5"), ("pyarrow", ".parquet")])
def test_a_missing_package_is_named_with_the_remedy(tmp_path, monkeypatch, package, suffix):
    path = tmp_path / f"data{suffix}"
    path.write_text("x")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"\{suffix} files need {package}.*pip install 'orthonmf\[io\]'"):
        read(path)
