"""What a model says of a matrix on disk, written to disk: all of it, or nothing."""

from pathlib import Path

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
import zarr
from numpy.testing import assert_array_equal

from orthonmf import ONMF
from orthonmf.exceptions import InvalidInputError
from orthonmf.sources import TARGETS, base, turned, write


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(base, "PIECE_BYTES", 2048)
    monkeypatch.setattr(base, "HELD_BYTES", 8192)


def read(path):
    if path.suffix == ".h5":
        with h5py.File(path) as file:
            return file["X"][()]
    if path.suffix == ".zarr":
        return zarr.open_array(path, mode="r")[:]
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        found = np.column_stack([table.column(name).to_numpy() for name in table.column_names])
        return found[:, 0] if found.shape[1] == 1 else found
    return np.load(path)


@pytest.fixture
def problem(tmp_path):
    X = np.random.default_rng(0).gamma(1, 1, (900, 7)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    return ONMF(4).fit(X), X, tmp_path / "X.npy"


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("method", ["predict", "transform", "predict_proba"])
def test_rows_are_those_of_the_array(kind, method, problem, tmp_path):
    model, X, path = problem
    target = tmp_path / f"found{kind}"
    for _ in range(2):  # the second takes the place of the first
        write(getattr(model, method), path, target)
        expected = getattr(model, method)(X)
        if method == "predict":
            assert_array_equal(read(target), expected)
        np.testing.assert_allclose(read(target), expected, rtol=1e-6, atol=1e-12)
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


@pytest.mark.parametrize("kind", TARGETS)
def test_half_a_file_is_none(kind, problem, tmp_path):
    model, _, path = problem
    target, calls = tmp_path / f"found{kind}", []

    def fails(rows):
        calls.append(len(rows))
        if len(calls) == 3:
            raise RuntimeError("stopped")
        return model.predict(rows)

    with pytest.raises(RuntimeError, match="stopped"):
        write(fails, path, target)
    assert {each.name for each in tmp_path.iterdir()} == {"X.npy"}


def test_sparse_output_is_written_dense(problem, tmp_path):
    model, X, path = problem
    write(model.set_params(sparse_output=True).transform, path, tmp_path / "T.npy")
    np.testing.assert_allclose(np.load(tmp_path / "T.npy"), model.transform(X).toarray(), rtol=1e-6)


def test_what_cannot_be_read_or_written(problem, tmp_path):
    model, X, path = problem
    with pytest.raises(InvalidInputError, match="X is a ndarray that does not lie on disk"):
        write(model.predict, X, tmp_path / "labels.npy")
    with pytest.raises(InvalidInputError, match=r"labels\.csv.*expected \.npy"):
        write(model.predict, path, tmp_path / "labels.csv")


def as_map(path):
    return np.load(path, mmap_mode="r")


@pytest.mark.parametrize("given", [str, Path, as_map])
def test_what_is_read_is_not_replaced(given, problem):
    model, X, path = problem
    for replacing in (lambda X: write(model.transform, X, path), lambda X: turned(X, path)):
        with pytest.raises(InvalidInputError, match=r"X\.npy' is what is read, and would be replaced; choose another file"):
            replacing(given(path))
    assert_array_equal(np.load(path), X)


def test_a_dataset_that_is_read_is_not_replaced(problem, tmp_path):
    model, X, _ = problem
    with h5py.File(tmp_path / "X.h5", "w") as file:
        file["X"] = X
    with h5py.File(tmp_path / "X.h5") as file, pytest.raises(InvalidInputError, match="is what is read"):
        write(model.predict, file["X"], tmp_path / "X.h5")
