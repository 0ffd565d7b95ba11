"""What the compared methods share: validation, the loop, and the fitted attributes.

A method factors items, A ≈ T C with T (n_items, n_components) orthogonal. Items are the rows of X for ``orthogonal="samples"`` and its
columns for "features", where the roles change: ``components_`` is Tᵀ. A new method is a subclass with `_solve`.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.optimize import nnls
from scipy.sparse.linalg import svds
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from .._common.arithmetic import own_arithmetic
from .._common.typing import Array, Labels
from .._common.validation import check_choice, check_count, check_positive, check_seed
from ..exceptions import InvalidInputError
from ..metrics import reconstruction_error
from ..model.factorization import Factorization
from ..model.factors import one_per_row

State = tuple[Array, ...]

# Side of the largest Gram matrix whose eigenvectors are all computed; a larger one gets a Lanczos method.
_LARGEST_GRAM = 500

# Pivots of one nonnegative least squares problem, per component; it needs about one.
_NNLS_PIVOTS = 100


@dataclass(frozen=True)
class Solution:
    """Factors of the items and how they were found.

    Attributes
    ----------
    T : ndarray of shape (n_items, n_components)
    C : ndarray of shape (n_components, n_dims)
    history : list of float
        The method's objective, at the start and after every iteration.
    converged : bool
    n_iter : int
    labels : ndarray of shape (n_items,) or None
        The component of each item, of a method that knows it.
    """

    T: Array
    C: Array
    history: list[float]
    converged: bool
    n_iter: int
    labels: Labels | None = None


@dataclass(frozen=True)
class Descent:
    """The last state of a loop and its objective along the way."""

    state: State
    history: list[float]
    converged: bool

    def solution(self, T: Array, C: Array, labels: Labels | None = None) -> Solution:
        """The factors that the last state stands for."""
        return Solution(T, C, self.history, self.converged, len(self.history) - 1, labels)


class Baseline(Factorization, ABC):
    """A factorisation X ≈ T C by a published method.

    Parameters
    ----------
    n_components : int, default=2
    orthogonal : {"samples", "features"}, default="samples"
        Which factor is orthogonal: T, or C.
    max_iter : int
        Bound on the iterations.
    tol : float
        The loop ends when an iteration changes the objective by at most this fraction of it.
    random_state : int, RandomState instance or None, default=None
        Draws the start.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features)
    n_components_ : int
    reconstruction_err_ : float
        Frobenius norm of X − T C.
    history_ : ndarray of shape (n_iter_ + 1,)
        The method's objective, at the start and after every iteration.
    n_iter_ : int
    converged_ : bool
    labels_ : ndarray of shape (n_items,)
        The component of each item; only where every item has exactly one.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when X has string column names.

    Examples
    --------
    >>> from orthonmf.baselines import REGISTRY
    >>> from orthonmf.datasets import make_onmf
    >>> X = make_onmf(40, 6, 3, noise=0.1, random_state=0).X
    >>> model = REGISTRY["apx"](3, random_state=0).fit(X)
    >>> model.transform(X).shape, bool(model.reconstruction_err_ < 2.0)
    ((40, 3), True)
    """

    def __init__(
        self, n_components: int = 2, *, orthogonal: str = "samples", max_iter: int = 1000, tol: float = 1e-5, random_state: Any = None
    ) -> None:
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @abstractmethod
    def _solve(self, A: Any, rng: np.random.RandomState) -> Solution:
        """Factor the items A of shape (n_items, n_dims)."""

    def _represent(self, X: Any) -> Array:
        """T for samples, given ``components_``: the nonnegative one of least error."""
        return nonnegative_least_squares(X, self.components_)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Factorise X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Nonnegative data.
        y : None
            Ignored.

        Returns
        -------
        self : object
        """
        self.fit_transform(X)
        return self

    @own_arithmetic
    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Factorise X and return the T that the method found.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : None

        Returns
        -------
        T : ndarray of shape (n_samples, n_components_)
        """
        self._check_parameters()
        checked = self._checked(X)
        items = checked if self.orthogonal == "samples" else checked.T
        self._check_shape(*items.shape)
        solution = self._solve(items, check_random_state(self.random_state))
        validate_data(self, X, reset=True, skip_check_array=True)
        T = self._store(checked, solution)
        if not solution.converged:
            warnings.warn(
                f"{type(self).__name__} did not converge in max_iter={self.max_iter} iterations; raise max_iter or tol={self.tol:g}.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return T

    @own_arithmetic
    def transform(self, X: Any) -> Array:
        """T for new samples, given ``components_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        T : ndarray of shape (n_samples, n_components_)
        """
        check_is_fitted(self)
        checked = self._checked_again(X)
        return self._represent(checked).astype(checked.dtype, copy=False)

    def _check_parameters(self) -> None:
        check_count("n_components", self.n_components, least=1)
        check_choice("orthogonal", self.orthogonal, ("samples", "features"))
        check_count("max_iter", self.max_iter, least=1)
        check_positive("tol", self.tol)
        check_seed(self.random_state)

    def _check_shape(self, n_items: int, n_dims: int) -> None:
        """Refuse more components than items."""
        kind = "n_samples" if self.orthogonal == "samples" else "n_features"
        if self.n_components > n_items:
            raise InvalidInputError(f"n_components={self.n_components} is more than {kind}={n_items}; ask for at most {n_items}.")

    def _store(self, X: Any, solution: Solution) -> Array:
        """Set the fitted attributes and return T."""
        swapped = self.orthogonal == "features"
        T, C = (solution.C.T, solution.T.T) if swapped else (solution.T, solution.C)
        self.components_ = np.ascontiguousarray(C, dtype=X.dtype)
        T = np.ascontiguousarray(T, dtype=X.dtype)
        self.n_components_ = len(self.components_)
        self.history_, self.n_iter_, self.converged_ = np.array(solution.history), solution.n_iter, solution.converged
        self.reconstruction_err_ = reconstruction_error(X, T, self.components_, relative=False)
        return T

    def _descend(self, state: State, step: Callable[..., State], objective: Callable[..., float]) -> Descent:
        """Apply ``step`` until the objective changes by at most ``tol`` of itself."""
        history = [objective(*state)]
        for _ in range(self.max_iter):
            state = step(*state)
            history.append(objective(*state))
            if abs(history[-2] - history[-1]) <= self.tol * abs(history[-2]):
                return Descent(state, history, converged=True)
        return Descent(state, history, converged=False)


class PairBaseline(Baseline):
    """A method that updates T and C in turn from a random start and measures ‖A − T C‖²."""

    @abstractmethod
    def _step(self, A: Any, T: Array, C: Array) -> tuple[Array, Array]:
        """The next T and C."""

    def _start(self, A: Any, rng: np.random.RandomState) -> tuple[Array, Array]:
        return random_factors(A, self.n_components, rng)

    def _objective(self, A: Any, squared_norm: float, T: Array, C: Array) -> float:
        return squared_error(A, squared_norm, T, C)

    def _solve(self, A: Any, rng: np.random.RandomState) -> Solution:
        norm = squared_sum(A)
        run = self._descend(self._start(A, rng), lambda T, C: self._step(A, T, C), lambda T, C: self._objective(A, norm, T, C))
        return run.solution(*run.state)


class ProjectiveBaseline(Baseline):
    """A method for A ≈ W Wᵀ A, so that T = W and C = Wᵀ A. With B = A (Aᵀ W) nothing of size n_items² is formed.

    After a random start all columns are nearly alike, and the objective hardly moves until they part: by 2e-6 of itself in an iteration on
    the 4000 items of the paper's third data set. Hence the small ``tol``.
    """

    def __init__(
        self, n_components: int = 2, *, orthogonal: str = "samples", max_iter: int = 2000, tol: float = 1e-8, random_state: Any = None
    ) -> None:
        super().__init__(n_components, orthogonal=orthogonal, max_iter=max_iter, tol=tol, random_state=random_state)

    @abstractmethod
    def _rule(self, W: Array, B: Array, M: Array) -> Array:
        """The next W, from B = A Aᵀ W and M = Wᵀ A Aᵀ W."""

    def _solve(self, A: Any, rng: np.random.RandomState) -> Solution:
        norm = squared_sum(A)

        def step(W: Array, P: Array) -> State:
            W = unit_spectral_norm(self._rule(W, product(A, P), P.T @ P))
            return W, product(A.T, W)

        def objective(W: Array, P: Array) -> float:
            # ‖A − W Wᵀ A‖² = ‖A‖² − 2 ‖P‖² + ⟨Wᵀ W, Pᵀ P⟩ with P = Aᵀ W.
            return max(0.0, norm - 2 * squared_sum(P) + inner(W.T @ W, P.T @ P))

        start = unit_spectral_norm(random_factors(A, self.n_components, rng)[0])
        run = self._descend((start, product(A.T, start)), step, objective)
        W, P = run.state
        return run.solution(W, P.T)

    def _represent(self, X: Any) -> Array:
        return product(X, self.components_.T) if self.orthogonal == "features" else super()._represent(X)


class HardBaseline(Baseline):
    """A method that gives every item to exactly one component. With "features", C Cᵀ = I."""

    def _oriented(self, A: Any, T: Array, C: Array) -> tuple[Array, Array]:
        """T and C; for "features" Tᵀ T = I and the best C for it."""
        if self.orthogonal == "samples":
            return T, C
        T, _ = unit_columns(T)
        return T, product(A.T, T).T

    def _nearest(self, A: Any, C: Array) -> Labels:
        """The component whose line is nearest to each item."""
        return nearest_line(A, C)

    def _represent(self, X: Any) -> Array:
        C = self.components_.astype(np.float64)
        if self.orthogonal == "features":
            return product(X, C.T)  # C Cᵀ = I
        return on_lines(X, C, self._nearest(X, C))

    def _store(self, X: Any, solution: Solution) -> Array:
        T = super()._store(X, solution)
        self.labels_ = solution.labels
        return T


def check_double(double: Any, n_components: int, n_dims: int) -> None:
    """Refuse anything but a bool, and two orthogonal factors of more components than either side of X."""
    if not isinstance(double, bool | np.bool_):
        raise InvalidInputError(f"double={double!r} is not usable; expected True or False.")
    if double and n_components > n_dims:
        raise InvalidInputError(
            f"n_components={n_components} is more than the {n_dims} dimensions of the items; with double=True ask for at most {n_dims}."
        )


# -- formulas ---------------------------------------------------------------------------------------------------------------------


def product(A: Any, B: Array) -> Array:
    """A B as an array, for a dense or a sparse A."""
    return np.asarray(safe_sparse_dot(A, B, dense_output=True))


def inner(A: Array, B: Array) -> float:
    """⟨A, B⟩ in float64."""
    return float(np.einsum("ij,ij->", A, B, dtype=np.float64))


def squared_sum(A: Any) -> float:
    """‖A‖² in float64."""
    values = A.data[np.newaxis] if hasattr(A, "tocsr") else A
    return inner(values, values)


def squared_norms(A: Any) -> Array | None:
    """The squared norm of each row as its weight, of a dense or a sparse A; None, all alike, where every row is zero."""
    weight = np.asarray(A.multiply(A).sum(axis=1)).ravel() if hasattr(A, "tocsr") else np.einsum("ij,ij->i", A, A)
    return weight if weight.any() else None


def squared_error(A: Any, squared_norm: float, T: Array, C: Array) -> float:
    """‖A − T C‖² = ‖A‖² − 2 ⟨A Cᵀ, T⟩ + ⟨Tᵀ T, C Cᵀ⟩, never dense in A."""
    return max(0.0, squared_norm - 2 * inner(product(A, C.T), T) + inner(T.T @ T, C @ C.T))


def random_factors(A: Any, n_components: int, rng: np.random.RandomState) -> tuple[Array, Array]:
    """Uniform T and C of the size of A: the mean of T C is that of A."""
    scale = 2 * np.sqrt(A.mean() / n_components) or 1.0
    T, C = (scale * (1 - rng.random_sample(shape)) for shape in ((A.shape[0], n_components), (n_components, A.shape[1])))
    return T.astype(A.dtype), C.astype(A.dtype)


def multiplied(F: Array, above: Array, below: Array) -> Array:
    """F ⊙ above / below, with ``below`` kept off zero."""
    return F * ratio(above, below)


def ratio(above: Array, below: Array) -> Array:
    """above / below, with ``below`` at least the square of the rounding unit times its largest entry."""
    floor = np.finfo(below.dtype).eps ** 2 * below.max(initial=0) or 1.0
    quotient: Array = above / np.maximum(below, floor)
    return quotient


def unit_spectral_norm(F: Array) -> Array:
    """F divided by its largest singular value."""
    size = np.sqrt(np.linalg.norm(F.T @ F, 2))
    return F / size if size > 0 else F


def unit_columns(F: Array) -> tuple[Array, Array]:
    """F with columns of norm 1, and the norms; a zero column stays."""
    size = np.linalg.norm(F, axis=0)
    size = np.where(size > 0, size, 1).astype(F.dtype)
    return F / size, size


def nearest_line(A: Any, C: Array) -> Labels:
    """argmax_j (a_i · c_j) / ‖c_j‖."""
    units, _ = unit_columns(C.T)
    return np.asarray(product(A, units).argmax(axis=1), dtype=np.intp)


def on_lines(A: Any, C: Array, labels: Labels) -> Array:
    """T with one nonzero per item, the scale of its line that is nearest to it: (a_i · c) / ‖c‖²."""
    squares = np.square(C).sum(axis=1)
    scale = product(A, C.T)[np.arange(A.shape[0]), labels] / np.where(squares > 0, squares, 1)[labels]
    T: Array = one_per_row(np.maximum(scale, 0), labels, len(C), sparse=False, dtype=scale.dtype)
    return T


def leading_vector(A: Any) -> Array:
    """The right singular vector of the largest singular value, nonnegative as A is; zero for no items."""
    n_items, n_dims = A.shape
    A = A.astype(np.float64)
    if n_items == 0 or n_dims == 0:
        return np.zeros(n_dims)
    if min(n_items, n_dims) > _LARGEST_GRAM:
        return np.abs(svds(A, k=1, v0=np.ones(min(n_items, n_dims)), return_singular_vectors="vh")[2][0])
    if n_dims <= n_items:
        return np.abs(np.linalg.eigh(product(A.T, A))[1][:, -1])
    vector = np.abs(product(A.T, np.linalg.eigh(product(A, A.T))[1][:, -1]))
    return vector / (np.linalg.norm(vector) or 1.0)


def kmeans(A: Any, n_clusters: int, rng: np.random.RandomState, *, weight: Any = None, **options: Any) -> KMeans:
    """scikit-learn's k-means, silent about fewer distinct items than clusters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        means = KMeans(n_clusters, random_state=rng, **{"n_init": 1, **options}).fit(A, sample_weight=weight)
    means.cluster_centers_ = np.maximum(means.cluster_centers_, 0)  # a zero comes back as ±1e-17: the data were centred
    return means


def nonnegative_least_squares(X: Any, C: Array) -> Array:
    """The T ≥ 0 of least ‖X − T C‖, row by row: with Cᵀ = Q R, min ‖R t − Qᵀ x‖ over t ≥ 0."""
    Q, R = np.linalg.qr(C.T.astype(np.float64))
    rows = product(X, Q)
    return np.array([nnls(R, row, maxiter=_NNLS_PIVOTS * len(C))[0] for row in rows]).reshape(len(rows), len(C))
