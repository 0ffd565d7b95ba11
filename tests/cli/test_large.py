"""``orthonmf fit`` of data larger than memory, and through interruptions."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from orthonmf import ONMF, estimator
from orthonmf.cli import _model, main
from orthonmf.model import checkpoint


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
        process.communicate()
    assert process.returncode == 143
    assert not (tmp_path / "parts").exists()
    assert ONMF.load(tmp_path / "kept").status_.startswith("Interrupted")
