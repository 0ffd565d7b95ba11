"""``orthonmf fit`` of data larger than memory, and through interruptions."""

import signal
import subprocess
import sys
import time

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import zarr
from scipy import sparse

from orthonmf import ONMF, estimator
from orthonmf.cli import _data, _model, main
from orthonmf.model import checkpoint
from orthonmf.sources import ON_DISK


def written(folder, n_items=400):
    X = np.random.default_rng(0).gamma(2.0, size=(n_items, 5))
    np.save(folder / "X.npy", X)
    return X


@pytest.mark.parametrize(("free", "said"), [(1 << 40, False), (1000, True)])
def test_what_does_not_fit_stays_on_disk_and_that_is_said(free, said, tmp_path, monkeypatch, capfd):
    X, seen = written(tmp_path), []
    fit = ONMF.fit
    monkeypatch.setattr(ONMF, "fit", lambda self, given: seen.append(type(given)) or fit(self, given))
    monkeypatch.setattr(_model, "free_bytes", lambda: free)
    monkeypatch.setattr(estimator, "FEW_BYTES", 0)
    assert main(["fit", str(tmp_path / "X.npy"), "-k", "3", "--out", str(tmp_path / "parts")]) == 0
    assert seen == [np.memmap if said else np.ndarray]
    assert ("read piece by piece" in capfd.readouterr().err) == said
    np.testing.assert_array_equal(ONMF.load(tmp_path / "parts" / "model.onmf").labels_, ONMF(3).fit(X).labels_)


def as_zarr(folder, X):
    zarr.open_array(folder / "X.zarr", mode="w", shape=X.shape, dtype=X.dtype, chunks=(50, 5))[:] = X
    return folder / "X.zarr"


def as_parquet(folder, X):
    pd.DataFrame(X, columns=list("abcde")).to_parquet(folder / "X.parquet", row_group_size=50)
    return folder / "X.parquet"


def as_parquet_folder(folder, X):
    (folder / "X").mkdir()
    for number, part in enumerate(np.split(X, 4)):
        pd.DataFrame(part, columns=list("abcde")).to_parquet(folder / "X" / f"{number}.parquet")
    return folder / "X"


def as_hdf5(folder, X):
    with h5py.File(folder / "X.h5", "w") as file:
        file.create_dataset("group/X", data=X, chunks=(50, 5))
    return folder / "X.h5"


def as_h5ad(folder, X):
    cells = anndata.AnnData(X, pd.DataFrame(index=[f"c{i}" for i in range(X.shape[0])]), pd.DataFrame(index=list("abcde")))
    cells.write_h5ad(folder / "X.h5ad")
    return folder / "X.h5ad"


def as_sparse_h5ad(folder, X):
    return as_h5ad(folder, sparse.csr_matrix(X))


def as_tenx(folder, X):
    counts = sparse.csr_array(X)
    with h5py.File(folder / "X.h5", "w") as file:
        group = file.create_group("matrix")
        for name, values in (("data", counts.data), ("indices", counts.indices), ("indptr", counts.indptr), ("shape", X.shape[::-1])):
            group[name] = values
        group["barcodes"] = [f"c{i}".encode() for i in range(len(X))]
        group["features/id"] = group["features/name"] = [name.encode() for name in "abcde"]
    return folder / "X.h5"


STREAMED = [
    as_zarr,
    as_parquet,
    as_sparse_h5ad,
    *(pytest.param(kind, marks=pytest.mark.long) for kind in (as_parquet_folder, as_hdf5, as_h5ad, as_tenx)),
]


@pytest.mark.parametrize("kind", STREAMED, ids=lambda kind: kind.__name__)
def test_every_kind_is_read_piece_by_piece_where_it_does_not_fit(kind, tmp_path, monkeypatch, capfd):
    X = np.random.default_rng(0).gamma(2.0, size=(400, 5))
    path, results, seen = kind(tmp_path, X), [], []
    fit = ONMF.fit
    monkeypatch.setattr(ONMF, "fit", lambda self, given: seen.append(isinstance(given, ON_DISK)) or fit(self, given))
    monkeypatch.setattr(estimator, "FEW_BYTES", 0)
    for name, free in (("here", 1 << 40), ("there", 1000)):
        for module in (_model, _data):
            monkeypatch.setattr(module, "free_bytes", lambda free=free: free)
        out = tmp_path / name
        assert main(["fit", str(path), "-k", "3", "--out", str(out), "--format", "csv"]) == 0
        assert ("read piece by piece" in capfd.readouterr().err) == (name == "there")
        assert main(["verify", str(out), str(path)]) == 0
        assert main(["predict", str(out), str(path), "--out", str(tmp_path / f"{name}.csv")]) == 0
        results.append(
            [(out / "assignments.csv").read_bytes(), (out / "components.csv").read_bytes(), (tmp_path / f"{name}.csv").read_bytes()]
        )
    assert seen == [False, True]
    assert results[0] == results[1]


def test_what_needs_memory_is_refused_where_there_is_none(tmp_path, monkeypatch, capfd):
    path = as_parquet(tmp_path, np.random.default_rng(0).gamma(2.0, size=(400, 5)))
    for module in (_model, _data):
        monkeypatch.setattr(module, "free_bytes", lambda: 1000)
    assert main(["fit", str(path), "-k", "3", "--drop", "a"]) == 2
    assert "do not fit in memory, where --drop" in capfd.readouterr().err
    assert main(["fit", str(path), "-k", "3", "--normalize", "max"]) == 2
    assert "--normalize max needs data in memory" in capfd.readouterr().err


def test_the_same_command_carries_on(tmp_path, monkeypatch):
    written(tmp_path)
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    command = ["fit", str(tmp_path / "X.npy"), "-k", "3", "--checkpoint", str(tmp_path / "kept"), "--quiet", "--force", "--out"]
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        assert main([*command, str(folder)]) == 0
    one, two = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders)
    assert one == two
    assert len(list((tmp_path / "kept").glob("checkpoint-*"))) == 2


def test_a_request_to_end_leaves_the_best_model(tmp_path):
    written(tmp_path, 6000)
    program = "import sys; from orthonmf.model import checkpoint; checkpoint.EVERY = 0.0; from orthonmf.cli import main; sys.exit(main())"
    command = ["fit", str(tmp_path / "X.npy"), "-k", "9", "--checkpoint", str(tmp_path / "kept"), "--out", str(tmp_path / "parts")]
    with subprocess.Popen([sys.executable, "-c", program, *command], stderr=subprocess.PIPE) as process:
        while not list((tmp_path / "kept").glob("checkpoint-*")) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        said = process.communicate()[1].decode()
    assert process.returncode == 143
    assert not (tmp_path / "parts").exists()
    best = tmp_path / "kept" / "interrupted.onmf"
    assert ONMF.load(best).status_.startswith("Interrupted")
    remedy = f"To go on, call fit with the same data, parameters and --checkpoint '{tmp_path / 'kept'}'."
    assert said.splitlines()[-1] == f"orthonmf: interrupted. The best model so far is in '{best}'. {remedy}"
