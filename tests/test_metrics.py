import doctest
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy import sparse

from orthonmf import metrics
from orthonmf.exceptions import InvalidInputError
from orthonmf.metrics import orthogonality, reconstruction_error, sparsity

SPARSE_FORMATS = [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix, sparse.bsr_array]
ROUNDING = 1e-14  # some hundred additions of float64

# X − TC = [[0, 1], [2, 0]], squares sum to 5; ‖X‖² = 1 + 1 + 4 + 9 = 15.
X = np.array([[1.0, 1.0], [2.0, 3.0]])
T = np.array([[1.0, 0.0], [0.0, 3.0]])
C = np.array([[1.0, 0.0], [0.0, 1.0]])


def random_factorization(seed, n=300, p=7, k=3):
    """X, T and C with zeros in each."""
    rng = np.random.default_rng(seed)
    return [rng.gamma(1.0, size=shape) * (rng.random(shape) < 0.6) for shape in [(n, p), (n, k), (k, p)]]


def orthogonal_factor(seed, n=500, k=6):
    """T with at most one nonzero in each row, of sizes over 16 decades."""
    rng = np.random.default_rng(seed)
    factor = np.zeros((n, k))
    factor[np.arange(n), rng.integers(k, size=n)] = 10.0 ** rng.uniform(-8, 8, n)
    return factor


def test_examples_in_docstrings_hold():
    assert doctest.testmod(metrics).failed == 0


class TestReconstructionError:
    def test_by_hand(self):
        assert reconstruction_error(X, T, C, relative=False) == math.sqrt(5)
        assert reconstruction_error(X, T, C) == math.sqrt(5) / math.sqrt(15)

    def test_by_hand_weighted(self):
        # 4 · 1 + 1 · 4 over 4 · 2 + 1 · 13
        assert_allclose(reconstruction_error(X, T, C, sample_weight=[4, 1]), math.sqrt(8 / 21), rtol=ROUNDING)
        norm = reconstruction_error(X, T, C, sample_weight=[4, 1], relative=False)
        assert_allclose(norm, math.sqrt(8), rtol=ROUNDING)

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("relative", [True, False])
    def test_equals_the_formula(self, seed, relative):
        X, T, C = random_factorization(seed)
        expected = np.linalg.norm(X - T @ C) / (np.linalg.norm(X) if relative else 1.0)
        assert_allclose(reconstruction_error(X, T, C, relative=relative), expected, rtol=ROUNDING)

    @pytest.mark.parametrize("as_sparse", SPARSE_FORMATS)
    def test_sparse_equals_dense(self, as_sparse):
        X, T, C = random_factorization(0)
        expected = reconstruction_error(X, T, C)
        assert_allclose(reconstruction_error(as_sparse(X), T, C), expected, rtol=ROUNDING)
        assert_allclose(reconstruction_error(X, as_sparse(T), C), expected, rtol=ROUNDING)
        assert_allclose(reconstruction_error(as_sparse(X), as_sparse(T), as_sparse(C)), expected, rtol=ROUNDING)

    def test_duplicate_sparse_entries_add(self):
        twice = sparse.csr_array((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
        assert reconstruction_error(twice, [[1.0]], [[3.0]]) == 0.0
        assert twice.nnz == 2, "the argument was changed"

    def test_weighted_vs_repeated(self):
        X, T, C = random_factorization(1)
        weight = np.random.default_rng(1).integers(0, 4, len(X))
        repeated = reconstruction_error(X.repeat(weight, axis=0), T.repeat(weight, axis=0), C)
        assert_allclose(reconstruction_error(X, T, C, sample_weight=weight), repeated, rtol=ROUNDING)

    @pytest.mark.parametrize("n_rows", [1, 7, 300])
    def test_independent_of_block_size(self, monkeypatch, n_rows):
        X, T, C = random_factorization(2)
        expected = reconstruction_error(X, T, C)
        monkeypatch.setattr(metrics, "_BLOCK_ENTRIES", n_rows * X.shape[1])
        assert_allclose(reconstruction_error(X, T, C), expected, rtol=ROUNDING)

    @pytest.mark.parametrize("exponent", [-1000, -900, 0, 900, 1000])
    def test_power_of_two_scale_changes_no_bit(self, exponent):
        X, T, C = (np.ldexp(np.round(A, 2), 0) for A in random_factorization(3))
        error = reconstruction_error(X, T, C)
        scaled = np.ldexp(X, exponent)
        assert reconstruction_error(scaled, np.ldexp(T, exponent), C) == error
        assert reconstruction_error(scaled, T, np.ldexp(C, exponent)) == error

    @pytest.mark.parametrize("scale", [1e-200, 1e200])
    def test_scale_beyond_the_square_of_a_float(self, scale):
        X, T, C = random_factorization(4)
        error = reconstruction_error(X, T, C)
        assert_allclose(reconstruction_error(X * scale, T * scale, C), error, rtol=1e-13)
        norm = reconstruction_error(X, T, C, relative=False)
        assert_allclose(reconstruction_error(X * scale, T, C * scale, relative=False), norm * scale, rtol=1e-13)

    def test_size_is_that_of_the_absolute_value(self):
        assert reconstruction_error([[-3e200, 4.0]], [[0.0]], [[0.0, 0.0]]) == 1.0

    def test_components_of_opposite_scales(self):
        spread = np.array([1e200, 1e-200, 1.0])
        X, T, C = random_factorization(5)
        expected = reconstruction_error(X, T, C)
        assert_allclose(reconstruction_error(X, T * spread, C / spread[:, None]), expected, rtol=1e-13)

    def test_unused_component_of_any_size_is_harmless(self):
        wide_T, wide_C = np.hstack([T, np.zeros((2, 1))]), np.vstack([C, [[1e300, 1e300]]])
        assert reconstruction_error(X, wide_T, wide_C) == reconstruction_error(X, T, C)

    @pytest.mark.parametrize("weight_scale", [1e-300, 1e300])
    def test_common_weight_cancels(self, weight_scale):
        error = reconstruction_error(X, T, C, sample_weight=np.full(2, weight_scale))
        assert_allclose(error, reconstruction_error(X, T, C), rtol=ROUNDING)

    def test_small_error_keeps_its_digits(self):
        # ‖X‖² − 2⟨X, TC⟩ + ‖TC‖² cannot see anything below 1e-8.
        assert_allclose(reconstruction_error([[1.0, 2.0**-40]], [[1.0]], [[1.0, 0.0]]), 2.0**-40, rtol=ROUNDING)

    def test_zero_data(self):
        zero = np.zeros((2, 2))
        assert reconstruction_error(zero, zero, C) == 0.0
        assert reconstruction_error(zero, T, C) == math.inf
        assert reconstruction_error(zero, T, C, relative=False) == math.sqrt(10)

    def test_norm_beyond_the_largest_float_is_infinite(self):
        assert reconstruction_error([[1e308] * 9], [[0.0]], [[0.0] * 9], relative=False) == math.inf

    @pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, bool, ">f8"])
    def test_computed_in_float64(self, dtype):
        A, B, D = X.astype(dtype), T.astype(dtype), C.astype(dtype)
        expected = reconstruction_error(A.astype(float), B.astype(float), D.astype(float))
        assert reconstruction_error(A, B, D) == expected

    def test_memory_is_that_of_blocks(self):
        n, p = 4000, 5000
        wide = sparse.csr_array((np.ones(n), (np.arange(n), np.arange(n))), shape=(n, p))
        tracemalloc.start()
        reconstruction_error(wide, np.ones((n, 1)), np.ones((1, p)))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < n * p * 8 / 2  # a dense residual is n p float64; a handful of blocks are 40 MB

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"X": [[math.nan, 1.0], [2.0, 3.0]]}, "X cannot be used.*NaN"),
            ({"T": [1.0, 2.0]}, "T cannot be used.*1D"),
            ({"T": T[:1]}, r"X \(2, 2\), T \(1, 2\) and C \(2, 2\) do not fit"),
            ({"C": C[:, :1]}, r"C \(2, 1\) do not fit"),
            ({"sample_weight": [1.0]}, r"shape \(1,\), expected \(2,\)"),
            ({"sample_weight": [1.0, -2.0]}, r"sample_weight\[1\] is -2.0"),
            ({"sample_weight": [math.inf, 1.0]}, r"sample_weight\[0\] is inf"),
            ({"sample_weight": [0.0, 0.0]}, "all zero"),
        ],
    )
    def test_invalid_input_is_named(self, wrong, message):
        with pytest.raises(InvalidInputError, match=message):
            reconstruction_error(**{"X": X, "T": T, "C": C, **wrong})


class TestOrthogonality:
    def test_by_hand(self):
        # G = [[2, 1], [1, 1]]: off-diagonal norm √2, norm √7
        assert_allclose(orthogonality([[1, 0], [1, 1]]), 1 - math.sqrt(2 / 7), rtol=ROUNDING)

    @pytest.mark.parametrize("seed", range(5))
    def test_disjoint_components_give_exactly_one(self, seed):
        factor = orthogonal_factor(seed)
        assert orthogonality(factor) == 1.0
        assert orthogonality(factor.astype(np.float32)) == 1.0
        assert orthogonality(sparse.csr_array(factor)) == 1.0
        assert orthogonality(factor.T, axis=0) == 1.0

    @pytest.mark.parametrize("seed", range(3))
    def test_equals_the_formula(self, seed):
        H = random_factorization(seed)[1].T
        gram = H @ H.T
        expected = 1 - np.linalg.norm(gram - gram * np.eye(len(gram))) / np.linalg.norm(gram)
        assert_allclose(orthogonality(H.T), expected, rtol=ROUNDING)
        assert_allclose(orthogonality(H, axis=0), expected, rtol=ROUNDING)

    @pytest.mark.parametrize("as_sparse", SPARSE_FORMATS)
    @pytest.mark.parametrize("axis", [0, 1])
    def test_sparse_equals_dense(self, as_sparse, axis):
        T = random_factorization(0, n=40)[1]
        assert_allclose(orthogonality(as_sparse(T), axis=axis), orthogonality(T, axis=axis), rtol=ROUNDING)

    @pytest.mark.parametrize("scale", [1e-300, 1e300])
    def test_scale_changes_nothing(self, scale):
        assert_allclose(orthogonality([[scale, 0], [scale, scale]]), 1 - math.sqrt(2 / 7), rtol=ROUNDING)

    def test_independent_of_block_size(self, monkeypatch):
        T = random_factorization(2)[1]
        expected = orthogonality(T)
        monkeypatch.setattr(metrics, "_BLOCK_ENTRIES", 7 * T.shape[1])
        assert_allclose(orthogonality(T), expected, rtol=ROUNDING)

    def test_zero_factor_and_single_component(self):
        assert orthogonality(np.zeros((3, 2))) == 1.0
        assert orthogonality([[1.0], [2.0]]) == 1.0

    def test_identical_components_have_the_least(self):
        assert_allclose(orthogonality(np.ones((3, 2))), 1 - math.sqrt(1 / 2), rtol=ROUNDING)

    @given(arrays(float, (5, 3), elements=st.floats(0, 1e300)))
    def test_lies_between_the_least_and_one(self, factor):
        # ‖off‖² ≤ ‖G‖² (1 − 1/k), with equality for identical components
        assert 1 - math.sqrt(1 - 1 / 3) - ROUNDING <= orthogonality(factor) <= 1.0

    def test_invalid_axis_is_named(self):
        with pytest.raises(InvalidInputError, match="axis=2, expected 1"):
            orthogonality(T, axis=2)


class TestSparsity:
    def test_by_hand(self):
        assert sparsity([[1.0, 0.0, 0.0], [0.0, -2.0, 3.0]]) == 0.5

    @pytest.mark.parametrize(("n", "k"), [(7, 2), (1000, 20), (53, 3)])
    def test_one_nonzero_per_row_gives_one_minus_one_over_k(self, n, k):
        assert_allclose(sparsity(orthogonal_factor(0, n, k)), 1 - 1 / k, rtol=ROUNDING)

    def test_threshold_is_relative_to_the_largest_entry_and_inclusive(self):
        factor = np.array([[100.0, 1.0], [1.5, 0.0]])
        assert sparsity(factor) == 0.25
        assert sparsity(factor, threshold=0.01) == 0.5
        assert sparsity(factor * 1e-250, threshold=0.012) == 0.5
        assert sparsity(factor, threshold=0.5) == 0.75
        assert sparsity(-factor, threshold=0.01) == 0.5

    @pytest.mark.parametrize("as_sparse", SPARSE_FORMATS)
    @pytest.mark.parametrize("threshold", [0.0, 0.1])
    def test_sparse_equals_dense(self, as_sparse, threshold):
        T = random_factorization(0)[1]
        assert sparsity(as_sparse(T), threshold=threshold) == sparsity(T, threshold=threshold)

    def test_explicit_and_cancelled_zeros_are_zeros(self):
        stored = sparse.csr_array((np.array([0.0, 1.0, -1.0]), ([0, 1, 1], [0, 1, 1])), shape=(2, 2))
        duplicates = sparse.csr_array((np.array([1.0, -1.0]), np.array([1, 1]), np.array([0, 0, 2])), shape=(2, 2))
        assert sparsity(stored) == 1.0
        assert sparsity(duplicates) == 1.0

    def test_independent_of_block_size(self, monkeypatch):
        T = random_factorization(2)[1]
        expected = sparsity(T)
        monkeypatch.setattr(metrics, "_BLOCK_ENTRIES", 7 * T.shape[1])
        assert sparsity(T) == expected

    def test_all_zero_and_none_zero(self):
        assert sparsity(np.zeros((3, 2))) == 1.0
        assert sparsity(np.full((3, 2), 5e-324)) == 0.0

    @pytest.mark.parametrize("threshold", [-0.1, 1.0, math.nan])
    def test_invalid_threshold_is_named(self, threshold):
        with pytest.raises(InvalidInputError, match=f"threshold={threshold}, expected"):
            sparsity(T, threshold=threshold)
