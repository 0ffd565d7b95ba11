"""ONMF, the estimator: validate, choose an engine, factorise, store."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any, Self, cast

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from ._common.arithmetic import own_arithmetic
from ._common.typing import Array, Labels
from ._common.validation import (
    check_choice,
    check_count,
    check_jobs,
    check_masked,
    check_numbers,
    check_positive,
    check_present,
    check_sample_weight,
    check_seed,
)
from .distortion import MISSING, Distortion, loss_of, losses, scalings
from .engines import REGISTRY as ENGINES
from .engines import Engine, ThreadTeam
from .engines.base import digest
from .engines.given import copy_of, in_kind, is_tensor, of_arrays, of_tensors, shared, taken
from .engines.layout import MASKED, Layout
from .engines.threads import TimeLimitReached
from .exceptions import DistributedFitError, InfeasibleCapacityError, InvalidInputError, ModelFormatError, NothingStandsOutWarning
from .model import storage
from .model.certificate import Certificate, Claim, audited, certify, error_of
from .model.checkpoint import PARTIAL, Checkpoint, partial
from .model.departure import asked_bounds, departure
from .model.factorization import Factorization, named
from .model.factors import Assigned, Factors, converted, one_per_row, sizes, weights
from .model.invariants import contradiction, malformed
from .model.posterior import Mixture, fit_mixture, margins, posterior
from .model.preparation import Preparation
from .model.start import given_start, plain_init
from .passes.audit import AuditSums
from .passes.base import host
from .progress import CallbackSupport, Monitor, Reporter, history, in_units, phase, under_way, with_callbacks
from .search.bounded import REGISTRY as SOLVERS
from .search.bounded import solver_parameters
from .search.bounded.assigner import Bounded
from .search.bounded.bounds import Bounds, least_components, most_components, parse_bounds
from .search.budget import BUDGET
from .search.factorize import Result, factorize
from .search.job import MAX_COMPONENTS, Request
from .search.sampling import mergeable
from .search.status import Status
from .search.transitions import persistence
from .sources import FEW_BYTES, ON_DISK, StoredColumns, StoredRows, as_dask_array, chunks_of, each_chunk, in_chunks, stored

# Parameters on which no bit of a fit depends.
UNCHANGING = ("checkpoint", "n_jobs", "time_limit", "verbose")

# How X comes into memory, by where it lies.
LOADED = {"with a cluster": "X.compute()", "on a GPU": "X.cpu()", "on disk": "orthonmf.sources.stored(X).loaded()"}

# What a model says of every item of its fit.
OF_ITEMS = ("labels_", "scale_", "margin_")


def _assigns_samples(self: ONMF) -> bool:
    if self.orthogonal != "samples":
        raise AttributeError(f"This method assigns samples; with orthogonal={self.orthogonal!r} the features are assigned: see labels_.")
    return True


def _float_of(X: Any) -> Any:
    """The type of the numbers that are computed of a collection of dask."""
    dtype = getattr(X, "dtype", np.float64)
    return dtype if dtype in (np.float32, np.float64) else np.float64


def _confidence(result: Result) -> tuple[Array, Array, Array, Array]:
    """Levels, and for each number of components its BIC, agreement and p-value; all empty where the number was given."""
    number = result.number
    if number is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0), np.zeros(0)
    p_values = np.array([number.p_values.get(m, np.nan) for m in range(1, len(number.bic) + 1)])
    return np.array([number.answer, *number.levels]), number.bic, number.agreement, p_values


class ONMF(CallbackSupport, Factorization):
    """Orthogonal nonnegative matrix factorisation, X ≈ T C, with parts that do not overlap.

    Each sample (or each feature) belongs to exactly one component. The number of components is given, or found from the phase
    transitions of a maximum-entropy annealing [1]_. The same fit on the same machine gives the same bits, for any number of threads.
    Another processor or BLAS library changes the rounding, and so the last digits, and labels where two answers are nearly as good; so
    does another order of the rows under bounds, or in data of more than four million numbers.

    Parameters
    ----------
    n_components : int, "auto" or "persistence", default="auto"
        Number of components. "auto" takes the finest number that a likelihood in the leading directions supports, and says how sure that
        is; 1, with a warning, where nothing stands out. "persistence" is the reading of [1]_: the number that persists over the widest
        range of temperatures.
    max_components : int or None, default=None
        Where the search for the number stops. None means 32, or the number of distinct items if that is smaller.
    orthogonal : {"samples", "features"}, default="samples"
        What belongs to one component: each row of X (T has one nonzero per row) or each column (C has one nonzero per column).
    scaling : {"item", "none"}, default="item"
        "item": every item keeps a scale of its own, and components are directions. "none": all items of a component share
        one scale, and components are means.
    loss : {"frobenius", "kullback-leibler"}, default="frobenius"
        What is minimised: the squared differences of X and T C, or, for counts, Σ x log(x / y) − x + y with y = T C, which is half the
        deviance of counts that are Poisson. With scaling "item" each item is then its sum times a profile that adds up to one. Where no
        component has something that a sample has, 1e-9 of what all samples have of it stands for its zero.
    missing : {"error", "ignore"}, default="error"
        "ignore": NaN in X is a number that is missing, and all sums are over those that are there. ``inverse_transform(transform(X))`` is X
        with the others filled in. X is then an array in memory, of which every row and every column has a number. Where no item of a
        component has one, the component is as all items together are. There is no lower bound, and ``solver="cbf"`` is refused.
    capacity : int, float, array-like or None, default=None
        Most items in a component: an int counts items, a float in (0, 1] is a fraction of them (rounded down), one value for all
        components or one for each. The bound is hard: it is never exceeded.
    min_size : int, float, array-like or None, default=None
        Fewest items in a component, in the same forms (fractions are rounded up). No component is left empty, also where this is 0.
    capacity_penalty : float or None, default=None
        None makes the bounds hard. A number makes them soft: each item too many or too few in a component then costs this many times
        the mean squared norm of an item (for counts: the mean sum), and bounds that no partition can meet are no error.
    solver : {"auto", "dual", "cbf"}, default="auto"
        How bounds are met along the annealing: "dual" (the default) by annealed prices, "cbf" by the control-barrier flow of [1]_,
        which holds n × k numbers.
    solver_options : dict or None, default=None
        Constants of the solver: ``growth`` for "dual"; the fields of ``orthonmf.search.bounded.flow.FlowParameters`` for "cbf".
    rounding : {"exact", "nearest"}, default="exact"
        How the relaxed solution becomes labels: by the exact assignment under the bounds, or each item to its most probable
        component, as in [1]_, which may exceed a capacity and is not refined.
    init : array-like, ONMF or None, default=None
        A start of your own: centres (n_components, n_features), labels (n_items,) from 0 without gaps, or a fitted model. It is refined as
        the annealed start is, and the better of the two ends is the answer: never worse than the fit without it, nor than the start itself.
        It needs n_components to be its number of components. To save time, not quality, set a time_limit.
    schedule : "adaptive" or float, default="adaptive"
        How the inverse temperature β grows: from one critical value to the next, or by a fixed factor above 1.
    refine : bool, default=True
        Whether the annealed components are improved until no swap of a component and no move of an item lowers the error.
    tol : float, default=1e-4
        Tolerance of the annealing: a temperature is settled when a step gains less than ``tol**2`` in free energy per unit
        weight, or less than ``tol`` where n_components is a number and the schedule "adaptive".
    max_iter : int, default=300
        Passes over the data at one temperature, and of one alternation.
    time_limit : float or None, default=None
        Seconds after which the best answer so far is returned: with as many components as asked for, within the bounds, and never worse
        than with less time, but for what a sample of large data cannot tell. The lower bound of the certificate is left out where there
        is no time for it.
    sparse_output : bool, default=False
        Whether ``transform`` returns a CSR array. Samples only.
    engine : {"auto", "compiled", "compiled-sparse", "dask", "dense", "sparse", "torch"}, default="auto"
        What reads X; "auto" follows the type of X. For collections of dask it is "dask", or the name of what reads each chunk. "compiled"
        and "compiled-sparse" are "dense" and "sparse" with their hot passes compiled by numba (the extra ``fast``): "auto" takes them for
        arrays of 2**20 numbers or more, and for sparse matrices of 2**18 stored ones, where numba is installed. They agree to rounding. The
        first fit compiles, which takes some ten seconds once. "torch" computes with tensors, on the GPU where there is one (the extra
        ``torch``): "auto" takes it for tensors that lie there.
    n_jobs : int or None, default=None
        Threads. None uses the cores that are free. The result does not depend on it, to the last bit.
    checkpoint : path-like or None, default=None
        A folder for how far the fit has come, written after a stage of the search and at most once a minute; the last two are kept. ``fit``
        with the same folder, data and parameters carries on from there, and ends in the same bits. An interrupt (Ctrl-C) leaves the
        best model so far in it, for ``ONMF.load(folder)``.
    random_state : int, RandomState instance or None, default=None
        Chooses the samples on which large data are annealed and searched; None chooses fixed ones.
    verbose : int, default=0
        1 reports each temperature on standard error.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features)
        C. Rows have unit norm, except for scaling "none" with samples, where they are √N times the means. With loss
        "kullback-leibler" they have unit sum, or are N times the means.
    labels_ : ndarray of shape (n_items,)
        The component of each sample, or of each feature with ``orthogonal="features"``.
    scale_ : ndarray of shape (n_items,)
        The one nonzero of each item in its factor.
    counts_ : ndarray of shape (n_components_,)
        Items in each component; components are ordered by mass.
    n_components_ : int
    margin_ : ndarray of shape (n_items,) or None
        How clear it is where an item belongs: 1 − d₁/d₂, for its distances d₁ to its own component and d₂ to the nearest other (squared, as
        in the objective); 0 where both are 0, 1 where there is one component. An item that bounds keep out of its nearest component has
        d₂ < d₁, and a margin d₂/d₁ − 1 below 0. None in a model that an older version wrote.
    reconstruction_err_ : float
        Frobenius norm of the weighted residual; with loss "kullback-leibler", the weighted divergence of X from T C.
    levels_ : ndarray
        Numbers of components that stand out, the finest first; the first is ``n_components_`` unless capacities need more. Empty where
        the number was given.
    bic_ : ndarray of shape (max_components,)
        For 1, 2, … components the log-likelihood of a mixture of balls, less half a logarithm of the number of items for each of its
        parameters: higher is better. Empty where the number was given or nothing rises above noise.
    agreement_ : ndarray of shape (max_components,)
        For 1, 2, … components, how far partitions of halves of the items agree with that of all (adjusted Rand index).
    p_values_ : ndarray of shape (max_components,)
        For m = 1, 2, … components how often chance gains as much by one more as these data do, if m is right; NaN where not tested.
    stability_ : ndarray of shape (n_components_,)
        How often each component comes back in halves of the items: the mean Jaccard index with the part that resembles it most.
    critical_betas_ : ndarray
        The β at which 2, 3, … distinct components first exist. Empty where n_components is a number and the schedule "adaptive": β then
        leaps past several of them at a time.
    persistence_ : ndarray
        log(β_{m+1} / β_m) for m = 2, 3, …; empty where ``critical_betas_`` is.
    history_ : dict
        The annealing, one entry per temperature, and the tree of splits; ``passes`` are those over the annealed items at that
        temperature alone. With "auto" it goes some components beyond the number that was found, with "persistence" one past
        ``max_components``, to see how long that number lasts. Empty where the number is given, the schedule "adaptive" and the best
        partition proven at once, from parts that are far apart (``certificate_.optimal``): no temperature is needed then. A number for
        ``schedule`` asks for them. Of items with 1024 dimensions or more, where the number is given and the schedule "adaptive", it is
        the annealing of their leading directions: what lies beside them counts in no β and no energy.
    certificate_ : Certificate
        What is claimed of the factors, with the numbers that prove it.
    status_ : str
        Why the fit ended and what to change, in sentences; ``orthonmf.search.status.Status`` lists the reasons.
    converged_ : bool
    n_iter_ : int
        Passes over all of X, those of the certificate included.
    n_sample_iter_ : int
        Passes over samples of X, on which large data are annealed and searched: short ones, and often many more.
    data_digest_ : str or None
        Of the items of the fit, in their order; ``verify`` compares it. None in a model that an older version wrote.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when X has string column names.

    See Also
    --------
    sklearn.decomposition.NMF : Parts that may overlap.
    sklearn.cluster.KMeans : Means without scale, bounds or a number of clusters.

    References
    ----------
    .. [1] S. Basiri, A. Bayati, S. M. Salapaka, "Orthogonal Nonnegative Matrix Factorization with Sparsity Constraints", 2025.

    Examples
    --------
    >>> import numpy as np
    >>> from orthonmf import ONMF
    >>> X = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.1, 5.0]])
    >>> model = ONMF(n_components=2).fit(X)
    >>> model.labels_
    array([1, 1, 0, 0])
    >>> bool(np.abs(X - model.inverse_transform(model.transform(X))).max() < 0.1)
    True
    """

    margin_: Array | None
    data_digest_: str | None
    #: What was done to the data before; new ones get the same on the command line.
    _preparation: Preparation | None = None

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        max_components: int | None = None,
        orthogonal: str = "samples",
        scaling: str = "item",
        loss: str = "frobenius",
        missing: str = "error",
        capacity: Any = None,
        min_size: Any = None,
        capacity_penalty: float | None = None,
        solver: str = "auto",
        solver_options: dict[str, Any] | None = None,
        rounding: str = "exact",
        init: Any = None,
        schedule: str | float = "adaptive",
        refine: bool = True,
        tol: float = 1e-4,
        max_iter: int = 300,
        time_limit: float | None = None,
        sparse_output: bool = False,
        engine: str = "auto",
        n_jobs: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.max_components = max_components
        self.orthogonal = orthogonal
        self.scaling = scaling
        self.loss = loss
        self.missing = missing
        self.capacity = capacity
        self.min_size = min_size
        self.capacity_penalty = capacity_penalty
        self.solver = solver
        self.solver_options = solver_options
        self.rounding = rounding
        self.init = init
        self.schedule = schedule
        self.refine = refine
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.sparse_output = sparse_output
        self.engine = engine
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    # -- fitting ----------------------------------------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, item_size: Any = None) -> Self:
        """Factorise X.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor of torch, dask array or data frame} of shape (n_samples, n_features), or a matrix on disk
            Nonnegative data. A tensor stays on its device, and ``components_``, ``labels_``, ``scale_``, ``margin_`` and ``counts_``, like
            what the other methods return for tensors, are tensors there. Of dask: chunks of whole items, arrays or CSR, which stay with
            the workers. On disk: a ``numpy.memmap``, a dataset of h5py, a zarr array, the X of an AnnData that is backed, or the path of a
            .npy, a .zarr, a .parquet or a folder of these; more than 64 MiB are read piece by piece in every pass, never held whole.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the rows in the objective.
        item_size : array-like of shape (n_items,) or None
            What each item counts towards ``capacity`` and ``min_size``, which then bound sums of sizes. Only for soft bounds: whether
            sizes fit hard ones is bin packing, which is NP-hard even to decide.

        Returns
        -------
        self : ONMF

        Examples
        --------
        >>> import numpy as np
        >>> from orthonmf import ONMF
        >>> X = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 6.0]])
        >>> ONMF(2).fit(X).counts_
        array([2, 2])
        >>> ONMF(2).fit(X, sample_weight=[1.0, 1.0, 2.0, 2.0]).labels_
        array([1, 1, 0, 0])
        """
        with self._all_or_nothing(), self._resumable(), under_way():
            self._check_parameters()
            given, X = X, self._checked(X, at_once=False)
            if loss_of(self).partial:
                check_present(X, axis=0)
            validate_data(self, named(given, X), reset=True, skip_check_array=True)
            sample_weight = check_sample_weight(sample_weight, X.shape[0])
            deadline = None if self.time_limit is None else monotonic() + self.time_limit
            with ThreadTeam(self.n_jobs, deadline) as team, closing(team), Reporter(self, X) as listener:
                engine = self._nearby(self._layout.first_seen(X, sample_weight, team))
                engine.size, total_size = self._sizes(item_size, engine.n_items)
                monitor = Monitor(self.verbose, listener, self._unit(engine))
                request = self._request(engine, total_size)
                with team.unhurried():
                    self.data_digest_: str | None = digest(engine)
                request = replace(request, start=given_start(self, engine, item_size))
                kept = self._checkpoint(engine, sample_weight, item_size)
                result = factorize(engine, request, monitor, *((kept.last(), kept.keep, kept.journal()) if kept else ()))
                phase("certifying")
                self._mixture = self._mixed(engine, result, request.seed)
                self._total_size = None if item_size is None else total_size
                with team.unhurried():
                    self._store(engine, result, X.dtype)
                if result.status is Status.INTERRUPTED:
                    self.save(best := Path(cast(str, self.checkpoint)) / PARTIAL)
                    raise KeyboardInterrupt(f"The best model so far is in {str(best)!r}.")
                if kept:
                    kept.finished()
        if is_tensor(given):
            of_tensors(self, given.device)
        self._warn(result)
        return self

    def _nearby(self, engine: Engine) -> Engine:
        """Few items are searched whole, and bounds need the costs of all items at once."""
        if engine.n_items <= BUDGET.many_items or mergeable(engine) or self._bounded:
            return engine.near()
        engine.columns_stay = True
        return engine

    @contextmanager
    def _resumable(self) -> Iterator[None]:
        """Where a cluster fails, or somebody interrupts, say how to go on from the checkpoints."""
        try:
            yield
        except (DistributedFitError, KeyboardInterrupt) as error:
            if self.checkpoint is None:
                raise
            remedy = f"To go on, call fit with the same data, parameters and checkpoint={os.fspath(self.checkpoint)!r}."
            raise type(error)(f"{error} {remedy}".lstrip()) from error

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, item_size: Any = None) -> Any:
        """Factorise X and return T.

        The same as ``fit(X).transform(X)``, except under bounds: there the samples of X share the places that the bounds leave, while
        ``transform`` maps each new sample to its nearest component.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : None
        sample_weight : array-like of shape (n_samples,) or None
        item_size : array-like of shape (n_items,) or None

        Returns
        -------
        T : ndarray or CSR array of shape (n_samples, n_components_)

        Examples
        --------
        >>> import numpy as np
        >>> from orthonmf import ONMF
        >>> X = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 6.0]])
        >>> ONMF(2).fit_transform(X).round(3)
        array([[0.   , 2.236],
               [0.   , 4.472],
               [3.   , 0.   ],
               [6.   , 0.   ]])
        """
        self.fit(X, sample_weight=sample_weight, item_size=item_size)
        if self.orthogonal == "features" or self._far:
            return self.transform(X)
        return self._transformed(X)

    @in_kind
    def _transformed(self, X: Any) -> Any:
        """T of the data of the fit."""
        scale, labels = (np.asarray(values.cpu()) if is_tensor(values) else values for values in (self.scale_, self.labels_))
        return one_per_row(scale, labels, self.n_components_, sparse=self.sparse_output, dtype=scale.dtype)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None, item_size: Any = None) -> Labels:
        """Factorise X and return ``labels_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : None
        sample_weight : array-like of shape (n_samples,) or None
        item_size : array-like of shape (n_items,) or None

        Returns
        -------
        labels : ndarray of shape (n_items,)

        Examples
        --------
        >>> import numpy as np
        >>> from orthonmf import ONMF
        >>> X = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 6.0]])
        >>> ONMF(2).fit_predict(X)
        array([1, 1, 0, 0])
        """
        return self.fit(X, sample_weight=sample_weight, item_size=item_size).labels_

    # -- using ------------------------------------------------------------------------------------------------------------------

    @own_arithmetic
    @in_kind
    def transform(self, X: Any) -> Any:
        """T for new samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        T : ndarray or CSR array of shape (n_samples, n_components_)
            One nonzero per row for "samples"; X Cᵀ for "features", or with loss "kullback-leibler" the sums of each component's features.

        Examples
        --------
        >>> import numpy as np
        >>> from orthonmf import ONMF
        >>> X = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 6.0]])
        >>> model = ONMF(2).fit(X)
        >>> model.transform([[0.0, 0.0, 9.0]])
        array([[9., 0.]])
        """
        check_is_fitted(self)
        if in_chunks(X) and (self.orthogonal == "samples" or as_dask_array(X).numblocks[1] == 1):
            of_features, none = self.orthogonal == "features", np.zeros(0, dtype=np.intp)
            empty = one_per_row(none, none, self.n_components_, sparse=self.sparse_output and not of_features, dtype=_float_of(X))
            return self._later("transform", X, empty)
        X = self._checked_again(X)
        if self.orthogonal == "features":
            return self._factors.mapped(X)
        assigned = self._assigned(X)
        return one_per_row(assigned.scale, assigned.labels, self.n_components_, sparse=self.sparse_output, dtype=X.dtype)

    @in_kind
    def inverse_transform(self, T: Any) -> Any:
        return super().inverse_transform(np.asarray(T.cpu()) if is_tensor(T) else T)

    inverse_transform.__doc__ = Factorization.inverse_transform.__doc__

    @available_if(_assigns_samples)
    @in_kind
    def predict(self, X: Any) -> Labels:
        """The nearest component of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)

        Examples
        --------
        >>> import numpy as np
        >>> from orthonmf import ONMF
        >>> X = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 6.0]])
        >>> ONMF(2).fit(X).predict([[0.0, 0.0, 9.0], [1.0, 2.0, 0.5]])
        array([0, 1])
        """
        check_is_fitted(self)
        if in_chunks(X):
            return self._later("predict", X, np.zeros(0, dtype=np.intp))
        return self._nearest(self._checked_again(X))

    @available_if(_assigns_samples)
    @in_kind
    def predict_proba(self, X: Any) -> Array:
        """How probable each component is for each sample, seen as drawn from equally wide components of unequal size.

        p_ij ∝ π_j exp(−d_ij / 2σ²), or for counts π_j exp(−D_ij / φ) with the divergence D and its dispersion φ, the Pearson statistic per
        degree of freedom; with the shares π_j (by sample weight), the width σ and the centres that these probabilities
        themselves imply for the data of the fit, found by expectation and maximisation from the fitted components. Where shares are
        unequal, or components overlap, the most probable component of a sample need not be the nearest, which ``predict`` returns.
        Capacities play no part. With scaling "item", a sample that is all zero has no direction: it gets the shares.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_components_)
            Each row sums to one.

        See Also
        --------
        predict : The nearest component.

        Examples
        --------
        >>> import numpy as np
        >>> from orthonmf import ONMF
        >>> X = np.array([[1.0, 2.0], [1.0, 1.8], [1.0, 2.4], [3.0, 1.0], [3.0, 1.5], [3.0, 0.5]])
        >>> model = ONMF(2).fit(X)
        >>> model.predict_proba([[1.0, 2.0], [1.5, 1.2], [3.0, 1.0]]).round(2)
        array([[0.  , 1.  ],
               [0.97, 0.03],
               [1.  , 0.  ]])
        """
        check_is_fitted(self)
        if self._mixture is None:
            raise InvalidInputError(
                "This model has no probabilities: its fit was stopped before they were found, or an older version wrote it. Fit it again, "
                "with a longer time_limit where there is one."
            )
        if in_chunks(X):
            return self._later("predict_proba", X, np.zeros((0, self.n_components_), dtype=_float_of(X)))
        X = self._checked_again(X)
        with ThreadTeam(self.n_jobs) as team, closing(team):
            # Neither the squares of these samples nor those of the centres may overflow; lines have no size.
            shift = None if loss_of(self).scaled else min(self._layout.shift(each, None) for each in (X, self._mixture.centers))
            engine = self._layout.build(X, None, team, shift)
            mixture = self._mixture.scaled(*self._mixture_units(engine))
            return posterior(engine, self._factors.distortion(engine), mixture).astype(X.dtype, copy=False)

    def _later(self, method: str, X: Any, empty: Any) -> Any:
        """What a method says of a collection of dask, chunk by chunk, as a dask array that is computed when it is asked for."""
        self._check_features(X, as_dask_array(X))
        few = clone(self)
        unused = (*OF_ITEMS, "history_", "feature_names_in_", "_item_size")  # what the chunks need not know
        few.__dict__.update({name: value for name, value in self.__dict__.items() if name not in unused})
        few.n_jobs = 1  # the workers share the cores
        return each_chunk(X, getattr(few, method), empty)

    def _nearest(self, X: Any) -> Labels:
        with ThreadTeam(self.n_jobs) as team, closing(team):
            engine = self._layout.build(X, None, team)
            return engine.shown(self._factors.nearest(engine), np.intp)

    def _assigned(self, X: Any) -> Assigned:
        with ThreadTeam(self.n_jobs) as team, closing(team):
            engine = self._layout.build(X, None, team)
            found = self._factors.assign(engine)
            return Assigned(engine.shown(found.labels, np.intp), engine.shown(found.scale, np.float64))

    @available_if(_assigns_samples)
    @in_kind
    def assign(self, X: Any, capacity: Any = None, min_size: Any = None) -> Labels:
        """The optimal assignment of new samples under bounds on how many of them each component may take.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        capacity, min_size : int, float, array-like or None
            As in the constructor, for these samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)

        Examples
        --------
        >>> import numpy as np
        >>> from orthonmf import ONMF
        >>> X = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 6.0]])
        >>> new = [[0.0, 0.0, 9.0], [0.0, 1.0, 4.0], [0.0, 0.0, 8.0]]
        >>> model = ONMF(2).fit(X)
        >>> model.predict(new)
        array([0, 0, 0])
        >>> model.assign(new, capacity=2)
        array([0, 1, 0])
        """
        check_is_fitted(self)
        X = self._checked_again(X)
        bounds = parse_bounds(capacity, min_size, self.n_components_, X.shape[0], empty=True)
        if bounds is None:
            return self._nearest(X)
        with ThreadTeam(self.n_jobs) as team, closing(team):
            engine, factors = self._layout.build(X, None, team).near(), self._factors
            distortion = factors.distortion(engine)
            centers = distortion.to_frame(factors.sample_centers(engine))
            return Bounded(engine, distortion, bounds, least=0).assign(centers, None)[0]

    @in_kind
    def score(self, X: Any, y: Any = None) -> float:
        """−‖X − T C‖_F with T = transform(X), or minus the divergence of X from T C, half the deviance: higher is better.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : None

        Returns
        -------
        score : float

        Examples
        --------
        >>> import numpy as np
        >>> from orthonmf import ONMF
        >>> X = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 6.0]])
        >>> model = ONMF(2).fit(X)
        >>> model.score(X + 1.0) < model.score(X) <= 0
        True
        """
        check_is_fitted(self)
        X = self._checked_again(X)
        with ThreadTeam(self.n_jobs) as team, closing(team):
            engine = self._layout.build(X, None, team)
            found = error_of(engine, self._factors.distortion(engine), self._factors.claim(engine))
            return -float(np.ldexp(found, -engine.shift))

    def verify(self, X: Any, sample_weight: Any = None) -> Certificate:
        """Recompute every claim about this model from X, and compare with it every number that the model stores.

        One claim is that the model stores what the data give: counts, scales, weights, errors and the numbers of ``certificate_`` are
        recomputed, the bounds are read from ``capacity`` and ``min_size`` again, and what follows from other numbers is compared with
        them. What the fit recorded of its way (``history_``, ``critical_betas_``, ``n_iter_``, ``converged_``, ``status_``, the KKT
        residual) and of how sure the number of components is (``bic_``, ``agreement_``, ``p_values_``, ``stability_``) only another fit
        could tell; no prediction depends on it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The training data, whose labels are ``labels_``. With another number of rows each sample gets its nearest component, and
            some claims (optimal centres, no empty component) need not hold.
        sample_weight : array-like of shape (n_samples,) or None

        Returns
        -------
        certificate : Certificate

        Raises
        ------
        ModelFormatError
            An attribute was changed such that nothing can be computed with it.

        Examples
        --------
        >>> import numpy as np
        >>> from orthonmf import ONMF
        >>> X = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 6.0]])
        >>> model = ONMF(2).fit(X)
        >>> model.verify(X).holds
        True
        >>> model.components_ = model.components_[::-1]
        >>> model.verify(X).holds
        False
        """
        check_is_fitted(self)
        if self._gathered is not self:
            return self._gathered.verify(X, sample_weight)
        if complaint := malformed(self):
            raise ModelFormatError(f"The model contradicts itself: {complaint}. Fit it again.")
        X = self._checked_again(X)
        weight = check_sample_weight(sample_weight, X.shape[0])
        with ThreadTeam(self.n_jobs) as team, closing(team):
            engine = self._nearby(self._layout.build(X, weight, team))
            if engine.n_items != len(self.labels_):
                distortion, claim = self._claimed(engine, None)
                audit: AuditSums = audited(engine, distortion, claim).total
                return replace(self._certified(engine, distortion, claim, audit, None, None), contradiction=contradiction(self))
            distortion, claim = self._claimed(engine, Assigned(self.labels_, self.scale_))
            audit = audited(engine, distortion, claim).total
            found = self._certified(engine, distortion, claim, audit, self._bounds, self._prices)
            return replace(found, contradiction=contradiction(self) or self._other_data(engine) or departure(self, engine, found))

    def _other_data(self, engine: Engine) -> str | None:
        """That the items are not those of the fit, if they are not and the model knows."""
        if self.data_digest_ is None or digest(engine) == self.data_digest_:
            return None
        return "X is not the data of the fit: its digest differs"

    # -- keeping ----------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that holds no code; see ``orthonmf.model.storage.save``.

        Parameters
        ----------
        path : str or path-like
            By custom it ends in ``.onmf``. An older file is replaced when the new one is complete.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from orthonmf import ONMF
        >>> with TemporaryDirectory() as folder:
        ...     ONMF(2).fit([[1, 0], [2, 0], [0, 3]]).save(f"{folder}/parts.onmf")
        """
        storage.save(self._gathered, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that ``save`` wrote, after checking every byte; see ``orthonmf.model.storage.load``.

        Parameters
        ----------
        path : str or path-like
            A file; or the folder of ``checkpoint``, for the best model of a fit that was interrupted.

        Returns
        -------
        model : ONMF

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from orthonmf import ONMF
        >>> with TemporaryDirectory() as folder:
        ...     ONMF(2).fit([[1, 0], [2, 0], [0, 3]]).save(f"{folder}/parts.onmf")
        ...     ONMF.load(f"{folder}/parts.onmf").labels_
        array([1, 1, 0])
        """
        return storage.load(partial(path) if Path(path).is_dir() else path, cls)

    @property
    def _gathered(self) -> ONMF:
        """The same with what it says of every item as arrays of this process; itself, where they are."""
        if not self._far:
            return of_arrays(self)
        other = copy_of(self)
        other.__dict__.update({name: np.asarray(values) for name, values in self._far.items()})
        return other

    @property
    def _far(self) -> dict[str, Any]:
        """What it says of every item that lies with a cluster."""
        return {name: getattr(self, name) for name in OF_ITEMS if in_chunks(getattr(self, name, None))}

    def __getstate__(self) -> dict[str, Any]:
        # Elsewhere there may be no cluster, and no X.
        found: dict[str, Any] = super(ONMF, self._gathered).__getstate__()
        return found

    def __sklearn_clone__(self) -> Self:
        """A clone with the same start: a clone of a model that is one would have forgotten its fit."""
        cloned: Self = super().__sklearn_clone__()
        cloned.init = self.init
        return cloned

    # -- validation -------------------------------------------------------------------------------------------------------------

    def _checked(self, X: Any, *, at_once: bool = True) -> Any:
        """X with its values checked; on disk or in chunks it stays there if it is large. An array on disk may be checked as it is read."""
        if loss_of(self).partial:
            return check_masked(self._held(X), type(self).__name__)
        if in_chunks(X):
            return chunks_of(X, self.orthogonal, type(self).__name__)
        if is_tensor(X) and not isinstance(X := taken(X, self.engine, type(self).__name__), np.ndarray) and not issparse(X):
            return X
        found = stored(X)
        if not isinstance(found, ON_DISK):
            return super()._checked(found)
        if found.nbytes <= FEW_BYTES:
            return super()._checked(X if isinstance(X, np.ndarray) else found.loaded())
        if (by_columns := isinstance(found, StoredColumns)) != (self.orthogonal == "features"):
            raise InvalidInputError(
                f"X is stored by {'columns' if by_columns else 'rows'}: orthogonal={self.orthogonal!r} would read it whole for each block. "
                "Write it the other way round once, orthonmf.sources.turned(X, 'turned.npy'), and fit that file."
            )
        if at_once or isinstance(found, StoredRows):
            found.check(type(self).__name__)
        else:
            found.watch(type(self).__name__)
        return found

    def _held(self, X: Any) -> Any:
        """X in memory, or mapped into it, where numbers may be missing."""
        if is_tensor(X) and X.device.type != "cpu":
            raise InvalidInputError(f"X is a tensor on {X.device}; with missing='ignore' expected one of this process: X.cpu().")
        X = shared(X) if is_tensor(X) else X
        far = in_chunks(X)
        found = X if isinstance(X, np.ndarray) or far else stored(X)
        if far or (isinstance(found, ON_DISK) and found.nbytes > FEW_BYTES):
            place = "with a cluster" if in_chunks(X) else "on a GPU" if is_tensor(X) else "on disk"
            raise InvalidInputError(
                f"X lies {place}; with missing='ignore' expected an array in memory, {LOADED[place]}, or one that is mapped: "
                "numpy.load(path, mmap_mode='r')."
            )
        return found.loaded() if isinstance(found, ON_DISK) else found

    @property
    def _layout(self) -> Layout:
        return Layout(self.orthogonal, self.engine, loss_of(self).power, masked=loss_of(self).partial, bounded=self._bounded)

    @property
    def _bounded(self) -> bool:
        """Whether sizes are bounded."""
        return self.capacity is not None or self.min_size is not None

    def _check_parameters(self) -> None:
        check_count("n_components", self.n_components, least=1, words=("auto", "persistence"))
        if self.max_components is not None:
            check_count("max_components", self.max_components, least=1)
        check_choice("orthogonal", self.orthogonal, ("samples", "features"))
        check_choice("loss", self.loss, losses())
        check_choice("scaling", self.scaling, scalings(self.loss))
        check_choice("missing", self.missing, tuple(MISSING))
        check_choice("engine", self.engine, ("auto", *ENGINES))
        check_choice("solver", self.solver, ("auto", *SOLVERS))
        solver_parameters(self.solver, self.solver_options)
        check_choice("rounding", self.rounding, ("exact", "nearest"))
        check_positive("schedule", self.schedule, above=1.0, word="adaptive")
        check_positive("tol", self.tol)
        check_count("max_iter", self.max_iter, least=1)
        if self.capacity_penalty is not None:
            check_positive("capacity_penalty", self.capacity_penalty)
            if self.solver == "cbf":
                raise InvalidInputError("solver='cbf' keeps hard bounds at every step; with capacity_penalty use solver='dual' or 'auto'.")
        if self.missing == "ignore":
            self._check_for_missing()
        if self.time_limit is not None:
            check_positive("time_limit", self.time_limit)
        check_jobs(self.n_jobs)
        if not isinstance(self.checkpoint, str | os.PathLike | None):
            raise InvalidInputError(f"checkpoint={self.checkpoint!r} is not usable; expected the path of a folder, or None.")
        check_seed(self.random_state)

    def _check_for_missing(self) -> None:
        """Refuse what knows nothing of missing numbers."""
        if self.solver == "cbf":
            raise InvalidInputError(
                "solver='cbf' knows all distances of the items and nothing of missing numbers; with missing='ignore' use solver='dual' or "
                "'auto'."
            )
        if self.engine not in ("auto", *MASKED):
            raise InvalidInputError(
                f"engine={self.engine!r} reads no missing numbers; with missing='ignore' use engine='auto', which reads arrays."
            )

    def _checkpoint(self, engine: Engine, sample_weight: Array | None, item_size: Any) -> Checkpoint | None:
        """The checkpoints of this fit, where they are asked for."""
        if self.checkpoint is None:
            return None
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name not in UNCHANGING}
        numbers = {"sample_weight": sample_weight, "item_size": item_size, "init": plain_init(self.init)}
        given = {
            name: None if values is None else sha256(np.asarray(values, float).tobytes()).hexdigest() for name, values in numbers.items()
        }
        borders = sha256(np.array([where.start for where in engine.slices], dtype=np.int64).tobytes()).hexdigest()
        blocks = {"engine": type(engine).__name__, "precision": engine.dtype.name, "blocks": borders}
        return Checkpoint(Path(self.checkpoint), {**parameters, "X": self.data_digest_, **given, **blocks})

    def _sizes(self, item_size: Any, n_items: int) -> tuple[Array | None, float]:
        """The sizes of the items in units of their mean, and their sum; None where all count the same."""
        if item_size is None:
            return None, float(n_items)
        size = check_numbers("item_size", item_size, n_items, "item")
        if self.capacity_penalty is None:
            raise InvalidInputError(
                "item_size needs soft bounds, since packing sizes into hard ones is NP-hard even to decide; set capacity_penalty, "
                "for example to 1.0."
            )
        return size * (n_items / size.sum()), float(size.sum())

    def _request(self, engine: Engine, total_size: float) -> Request:
        n_items = engine.n_items
        kind = "rows" if self.orthogonal == "samples" else "columns"
        auto = isinstance(self.n_components, str)
        if not auto and self.n_components > n_items:  # type: ignore[operator]
            raise InvalidInputError(f"n_components={self.n_components} is more than the {n_items} {kind} of X; ask for at most {n_items}.")
        soft = self.capacity_penalty is not None
        if not auto and engine.size is None:
            parse_bounds(self.capacity, self.min_size, int(self.n_components), n_items, 0.0 if soft else np.inf)
        least = least_components(self.capacity, n_items) if auto and not soft else 1
        most = MAX_COMPONENTS if self.max_components is None else self.max_components
        most = min(max(most, least), n_items, most_components(self.min_size, n_items) if auto and not soft else n_items)
        if least > most:
            raise InfeasibleCapacityError(
                f"capacity={self.capacity!r} needs at least {least} components, min_size={self.min_size!r} allows at most {most}; raise "
                "capacity or lower min_size."
            )
        seed = 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31))
        return Request(
            n_components=None if auto else int(self.n_components),
            persistence=self.n_components == "persistence",
            min_components=least,
            max_components=most,
            loss=self.loss,
            scaling=self.scaling,
            missing=self.missing,
            growth=None if self.schedule == "adaptive" else float(self.schedule),
            refine=self.refine,
            capacity=self.capacity,
            min_size=self.min_size,
            capacity_penalty=self.capacity_penalty,
            total_size=total_size,
            solver=self.solver,
            solver_parameters=solver_parameters(self.solver, self.solver_options),
            rounding=self.rounding,
            tol=self.tol,
            max_iter=self.max_iter,
            seed=seed,
        )

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """A failed fit leaves the model as it was."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _warn(self, result: Result) -> None:
        given = not isinstance(self.n_components, str)
        if given and self.n_components_ < int(self.n_components) and not result.status.stopped:
            warnings.warn(
                f"Found {self.n_components_} distinct components where {self.n_components} were asked for: the data have no more "
                "distinct items. Ask for fewer components.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if result.status is not Status.CONVERGED:
            warnings.warn(f"ONMF did not converge. {result.sentences}", ConvergenceWarning, stacklevel=3)
        if result.number is not None and result.number.answer == 1 < len(self.labels_):
            warnings.warn(result.number.sentence, NothingStandsOutWarning, stacklevel=3)

    # -- storing ----------------------------------------------------------------------------------------------------------------

    def _mixed(self, engine: Engine, result: Result, seed: int) -> Mixture | None:
        """What ``predict_proba`` needs, in the units of X; None where the fit was stopped, or samples are not what is assigned."""
        if self.orthogonal == "features" or result.status.stopped:
            return None
        try:
            return fit_mixture(engine, result.distinct, result.distortion, result.centers, seed).scaled(
                *(-unit for unit in self._mixture_units(engine))
            )
        except TimeLimitReached:
            return None

    @property
    def _factors(self) -> Factors:
        return Factors(self.orthogonal, loss_of(self), self.components_, self._weight, self._reference)

    def _unit(self, engine: Engine) -> int:
        """d in the units of X is d in the engine's units times 4**−unit, so β is β times 4**unit; a line has no units."""
        loss = loss_of(self)
        if loss.scaled:
            return 0
        shift = engine.shift * loss.power // 2
        return shift if self.orthogonal == "samples" else shift + engine.weight_shift

    def _mixture_units(self, engine: Engine) -> tuple[int, int]:
        """Powers of two between the units of X and of the engine: of the centres of samples, and of their width."""
        loss = loss_of(self)
        return 0 if loss.scaled else engine.shift, self._unit(engine) if loss.power == 2 else engine.shift // 2

    def _store(self, engine: Engine, result: Result, dtype: Any) -> None:
        """Set the fitted attributes, in the units of X."""
        self.n_iter_, self.n_sample_iter_ = engine.passes, engine.team.passes - engine.passes
        factors = Factors.of(engine, result, self.orthogonal, loss_of(self), dtype)
        self.components_, self._weight, self._reference = factors.components, factors.weight, factors.reference
        self.n_components_ = len(factors.components)
        # Where items are counted, the prices of the best assignment are soon found again.
        self._prices, self._item_size = None if engine.size is None else result.prices, engine.size
        given = result.labels if result.bounds is not None or result.certain else None
        if self.orthogonal == "samples":
            assigned = factors.assign(engine, given)
        else:
            assigned = Assigned(host(result.labels), factors.components.max(axis=0))
        assigned = Assigned(assigned.labels, converted(engine, assigned.scale, dtype))
        self.labels_, self.scale_ = engine.shown(assigned.labels, np.intp), engine.shown(assigned.scale, dtype)
        self.counts_ = sizes(engine, assigned.labels, self.n_components_)
        if self.orthogonal == "samples" and loss_of(self).scaled:  # an item that is zero is as near to one component as to another
            self._weight = weights(engine, assigned.labels, self.n_components_)
        self._bounds = asked_bounds(self, engine) if result.bounds is None else result.bounds
        distortion, claim = self._claimed(engine, assigned)
        audit = audited(engine, distortion, claim)
        self.margin_ = engine.shown(converted(engine, audit.columns["margin"], dtype), dtype)
        unit = self._unit(engine)
        self.critical_betas_ = in_units(result.critical_betas, 2 * unit)
        self.persistence_ = persistence(result.critical_betas)
        self.levels_, self.bic_, self.agreement_, self.p_values_ = _confidence(result)
        self.stability_ = result.stability
        self.history_ = history(result.temperatures, result.splits, result.plane, unit)
        self.converged_, self.status_ = result.status is Status.CONVERGED, result.sentences
        self.certificate_ = replace(
            self._certified(engine, distortion, claim, audit.total, self._bounds, result.prices), kkt_residual=result.kkt_residual
        )
        self.reconstruction_err_ = self.certificate_.error
        if self.certificate_.optimal:
            self.status_ += f" No other partition into {self.n_components_} components has a smaller error."

    def _margins(self, engine: Engine, labels: Labels) -> Any:
        centers = self._factors.claim(engine, Assigned(labels, np.zeros(len(labels)))).components
        return margins(engine, self._factors.distortion(engine), centers, labels)

    def _certainty(self, X: Any, labels: Labels) -> dict[str, Array]:
        """By name, how sure it is that items have these labels: ``margin`` as in ``margin_``, and ``probability`` where it is known."""
        X = self._checked_again(X)
        with ThreadTeam(self.n_jobs) as team, closing(team):
            columns = {"margin": host(self._margins(self._layout.build(X, None, team), labels)).astype(X.dtype)}
        if self._mixture is not None:
            columns["probability"] = self.predict_proba(X)[np.arange(len(labels)), labels]
        return columns

    def _claimed(self, engine: Engine, assigned: Assigned | None) -> tuple[Distortion, Claim]:
        """The loss, and what is claimed of the items of an engine; under the bounds of the fit where its labels are given."""
        bounds, engine.size = (None, None) if assigned is None else (self._bounds, self._item_size)
        free = bounds is None or not (bounds.bind(engine.n_items) or self.solver == "cbf")
        return self._factors.distortion(engine), self._factors.claim(engine, assigned, nearest=free)

    def _certified(
        self, engine: Engine, distortion: Distortion, claim: Claim, audit: AuditSums, bounds: Bounds | None, prices: Array | None
    ) -> Certificate:
        """The claims about the items of an engine."""
        weight_shift = engine.weight_shift * 2 // distortion.power
        return certify(engine, distortion, claim, audit, bounds, prices).in_units(-engine.shift - weight_shift)
