"""The Triton kernels against the same sums written out in float64; on a machine without a GPU Triton's interpreter runs them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

SCRIPT = Path(__file__).with_name("triton_laws.py")
pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() and np.lib.NumpyVersion(np.__version__) >= "2.4.0",
    reason="Triton's interpreter takes arrays of one number for numbers, which NumPy 2.4 no longer does",
)


def run(*laws):
    """The interpreter is chosen when Triton is imported: in a process of its own."""
    source = [str(Path(path)) for path in sys.path if path]
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(source)}
    if not torch.cuda.is_available():
        environ["TRITON_INTERPRET"] = "1"
    done = subprocess.run([sys.executable, str(SCRIPT), *laws], env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_sums_equal_those_in_float64_whether_they_fit_a_program_or_are_cut_in_tiles():
    run("small", "tiles", "wide")


def test_ties_go_to_the_lowest_index_and_what_is_far_from_the_origin_cancels_nothing():
    run("ties", "far")


def test_sums_by_label_are_those_of_components_of_any_number_of_runs():
    run("runs")


def test_distances_to_two_centres_and_keys_are_those_of_the_formulas():
    run("two", "words")


def test_results_repeat_bit_for_bit():
    run("repeat")
