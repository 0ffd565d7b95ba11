"""``import orthonmf``: every name is there, and nothing is imported before it is used."""

import subprocess
import sys
from importlib import import_module

import pytest

import orthonmf


def test_every_name_is_there():
    assert set(orthonmf.__all__) <= set(dir(orthonmf))
    for name in orthonmf.__all__:
        assert getattr(orthonmf, name) is not None
    assert orthonmf.ONMF is import_module("orthonmf.estimator").ONMF
    assert orthonmf.exceptions is import_module("orthonmf.exceptions")


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="module 'orthonmf' has no attribute 'onmf'"):
        orthonmf.onmf  # noqa: B018
    assert not hasattr(orthonmf, "__wrapped__")


def test_a_module_that_lacks_another_says_which():
    code = "import sys; sys.modules['joblib'] = None; import orthonmf; orthonmf.ONMF"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ModuleNotFoundError: import of joblib halted" in ended.stderr


def test_nothing_is_imported_before_it_is_used():
    code = "import sys, orthonmf, orthonmf.cli; sys.exit(bool({'numpy', 'scipy', 'sklearn', 'joblib', 'typer'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


WITHOUT_TORCH = """
import sys

class Without:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "torch":
            raise ImportError("as if it were not installed")

sys.meta_path.insert(0, Without())
from orthonmf import ONMF
from orthonmf.exceptions import MissingExtraError

assert ONMF(1).fit([[1.0]]).n_components_ == 1
try:
    ONMF(1, engine="torch").fit([[1.0]])
except MissingExtraError as error:
    print(error)
"""


def test_without_torch_who_asks_for_it_is_told_what_to_install():
    found = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=True)
    assert "pip install 'orthonmf[torch]'" in found.stdout
