import functools
import hashlib
import http.server
import io
import sys
import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from orthonmf.datasets import fetch_microarray, microarray
from orthonmf.exceptions import DataUnavailableError, MissingExtraError

NAME = "microarray_data.npy"


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def expected(monkeypatch, tmp_path):
    """A small array in place of the real one; its bytes, with the checksum and the cache set accordingly."""
    buffer = io.BytesIO()
    np.save(buffer, np.arange(24.0).reshape(4, 3, 2))
    monkeypatch.setattr(microarray, "_SHA256", hashlib.sha256(buffer.getvalue()).hexdigest())
    monkeypatch.setattr(microarray, "_CACHE", tmp_path / "default-cache")
    monkeypatch.setattr(microarray, "_URL", "http://127.0.0.1:1/unreachable")
    monkeypatch.delenv("ORTHONMF_DATA", raising=False)
    return buffer.getvalue()


@pytest.fixture
def served(monkeypatch, tmp_path):
    """A folder that a server on this machine offers as the place to download from."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setattr(microarray, "_URL", f"http://127.0.0.1:{server.server_port}/{NAME}")
        yield folder
        server.shutdown()
        thread.join()


def place(content, folder):
    folder.mkdir(exist_ok=True)
    (folder / NAME).write_bytes(content)
    return folder


def test_the_real_data_are_as_described(microarray):
    assert microarray.shape == (53, 27, 7)
    assert microarray.dtype == np.float64
    assert np.isfinite(microarray).all()
    assert 3.0 <= microarray.min() < 4.0
    assert 1.1e7 < microarray.max() < 1.3e7


def test_named_folder_is_enough(expected, monkeypatch, tmp_path):
    monkeypatch.setenv("ORTHONMF_DATA", str(place(expected, tmp_path / "named")))
    assert fetch_microarray(data_home=tmp_path / "cache").shape == (4, 3, 2)


def test_named_folder_comes_before_the_cache(expected, monkeypatch, tmp_path):
    monkeypatch.setenv("ORTHONMF_DATA", str(tmp_path / "named"))
    with pytest.raises(DataUnavailableError, match=r"Tried: \S*/named/.*; \S*/cache/"):
        fetch_microarray(data_home=tmp_path / "cache", download=False)


def test_empty_variable_names_no_folder(expected, monkeypatch, tmp_path):
    monkeypatch.setenv("ORTHONMF_DATA", "")
    monkeypatch.chdir(place(expected, tmp_path / "here"))
    with pytest.raises(DataUnavailableError):
        fetch_microarray(data_home=tmp_path / "cache", download=False)


@pytest.mark.parametrize("variable", ["", "/nonexistent"])
def test_cache_comes_next(expected, monkeypatch, tmp_path, variable):
    monkeypatch.setenv("ORTHONMF_DATA", variable)
    place(expected, tmp_path / "cache")
    assert fetch_microarray(data_home=str(tmp_path / "cache"), download=False).shape == (4, 3, 2)


def test_default_cache_is_used_without_data_home(expected, tmp_path):
    place(expected, tmp_path / "default-cache")
    assert fetch_microarray(download=False).shape == (4, 3, 2)


def test_download_fills_the_cache(expected, served, tmp_path):
    place(expected, served)
    first = fetch_microarray(data_home=tmp_path / "cache")
    (served / NAME).unlink()
    assert_array_equal(fetch_microarray(data_home=tmp_path / "cache", download=False), first)


def test_damaged_cache_is_downloaded_again(expected, served, tmp_path):
    place(expected, served)
    cache = place(expected[:-1] + b"\xff", tmp_path / "cache")
    assert fetch_microarray(data_home=cache).shape == (4, 3, 2)
    assert (cache / NAME).read_bytes() == expected


def test_damaged_download_is_refused(expected, served, tmp_path):
    place(expected[:-1] + b"\xff", served)
    with pytest.raises(DataUnavailableError, match="does not match the known hash"):
        fetch_microarray(data_home=tmp_path / "cache")
    assert not (tmp_path / "cache" / NAME).exists()


def test_missing_data_names_what_was_tried_and_the_remedy(expected, monkeypatch, tmp_path):
    named = place(b"damaged", tmp_path / "named")
    monkeypatch.setenv("ORTHONMF_DATA", str(named))
    with pytest.raises(DataUnavailableError) as caught:
        fetch_microarray(data_home=tmp_path / "cache", download=False)
    message = str(caught.value)
    assert f"{named / NAME} (its SHA-256 is {hashlib.sha256(b'damaged').hexdigest()}" in message
    assert f"{tmp_path / 'cache' / NAME} (No such file or directory)" in message
    assert "download=False" in message
    assert "set the environment variable ORTHONMF_DATA" in message


def test_unreachable_server_is_named(expected, tmp_path):
    with pytest.raises(DataUnavailableError, match=r"http://127\.0\.0\.1:1/unreachable"):
        fetch_microarray(data_home=tmp_path / "cache")


def test_missing_pooch_names_the_extra(expected, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=r"Install orthonmf\[data\]"):
        fetch_microarray(data_home=tmp_path / "cache")
