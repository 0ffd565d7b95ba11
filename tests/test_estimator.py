"""The interface of ONMF: what goes in, what comes out, and what is left behind."""

import copy
import doctest
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from orthonmf import ONMF, estimator
from orthonmf.datasets import make_onmf
from orthonmf.exceptions import InvalidInputError
from orthonmf.model.certificate import Certificate

ORIENTATIONS = ["samples", "features"]
SCALINGS = ["item", "none"]
ROUNDING = 1e-13  # some hundred operations of float64

every_form = pytest.mark.parametrize(
    ("orthogonal", "scaling"), [(orthogonal, scaling) for orthogonal in ORIENTATIONS for scaling in SCALINGS]
)


def separated(orthogonal="samples", scaling="item", *, n_dims=8, seed=0, dtype=np.float64):
    """Three clear components, among the rows or among the columns."""
    item_scale = 30.0 if scaling == "item" else None
    X = make_onmf(60, n_dims, 3, noise=0.1, item_scale=item_scale, random_state=seed).X
    return (X if orthogonal == "samples" else np.ascontiguousarray(X.T)).astype(dtype)


def cloud(n=80, p=4, seed=0):
    """Items without separate parts, on which an alternation takes its time."""
    return np.random.default_rng(seed).gamma(2.0, size=(n, p))


def fitted(orthogonal="samples", scaling="item", X=None, **parameters):
    """X and a model with three components."""
    X = separated(orthogonal, scaling) if X is None else X
    return X, ONMF(3, orthogonal=orthogonal, scaling=scaling, **parameters).fit(X)


class TestByHand:
    def test_samples_with_scales_of_their_own(self):
        # rows 0 and 1 lie on one line, of mass 5 + 20; row 2 on another, of mass 9
        X = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0]])
        model = ONMF(2).fit(X)
        assert_array_equal(model.labels_, [0, 0, 1])
        root = math.sqrt(5)
        assert_allclose(model.components_, [[1 / root, 2 / root, 0], [0, 0, 1]], atol=ROUNDING)
        assert_allclose(model.transform(X), [[root, 0], [2 * root, 0], [0, 3]], rtol=ROUNDING)
        assert model.reconstruction_err_ <= ROUNDING

    def test_samples_that_share_a_scale(self):
        # means (2, 0) of two rows and (0, 4) of one; the residual is (∓1, 0) twice
        X = np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
        model = ONMF(2, scaling="none").fit(X)
        assert_array_equal(model.labels_, [0, 0, 1])
        root = 1 / math.sqrt(2)
        assert_allclose(model.components_, [[2 * math.sqrt(2), 0], [0, 4]], atol=ROUNDING)
        assert_allclose(model.transform(X), [[root, 0], [root, 0], [0, 1]], rtol=ROUNDING)
        assert_allclose(model.reconstruction_err_, math.sqrt(2), rtol=ROUNDING)

    def test_features_with_scales_of_their_own(self):
        # columns (1, 2, 0) and (2, 4, 0) are one part, with loadings 1 : 2; C has orthonormal rows
        X = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0]])
        model = ONMF(2, orthogonal="features").fit(X)
        assert_array_equal(model.labels_, [0, 0, 1])
        root = math.sqrt(5)
        assert_allclose(model.components_, [[1 / root, 2 / root, 0], [0, 0, 1]], atol=ROUNDING)
        assert_allclose(model.transform(X), [[root, 0], [2 * root, 0], [0, 3]], atol=ROUNDING)

    def test_features_that_share_a_scale(self):
        # columns (1, 0) and (3, 0) become 2 each: T = X Cᵀ = (1 + 3)/√2, times 1/√2
        X = np.array([[1.0, 3.0, 0.0], [0.0, 0.0, 4.0]])
        model = ONMF(2, orthogonal="features", scaling="none").fit(X)
        root = 1 / math.sqrt(2)
        assert_allclose(model.components_, [[root, root, 0], [0, 0, 1]], atol=ROUNDING)
        assert_allclose(model.inverse_transform(model.transform(X)), [[2, 2, 0], [0, 0, 4]], atol=ROUNDING)
        assert_allclose(model.reconstruction_err_, math.sqrt(2), rtol=ROUNDING)

    def test_weight_of_a_row(self):
        # the mean of 1 (weight 3) and 5 (weight 1) is 2: 3 · 1 + 1 · 9 = 12
        model = ONMF(1, scaling="none").fit([[1.0], [5.0]], sample_weight=[3, 1])
        assert_allclose(model.reconstruction_err_, math.sqrt(12), rtol=ROUNDING)
        assert_allclose(model.components_, [[2 * math.sqrt(4)]], rtol=ROUNDING)

    def test_example_in_the_docstring(self):
        assert doctest.testmod(estimator).failed == 0


@every_form
class TestFitted:
    def test_shapes_and_dtypes(self, orthogonal, scaling):
        for dtype in (np.float64, np.float32):
            X, model = fitted(orthogonal, scaling, separated(orthogonal, scaling, dtype=dtype))
            n_items = X.shape[0 if orthogonal == "samples" else 1]
            assert (model.components_.shape, model.components_.dtype) == ((3, X.shape[1]), dtype)
            assert (model.labels_.shape, model.labels_.dtype) == ((n_items,), np.intp)
            assert (model.scale_.shape, model.scale_.dtype) == ((n_items,), dtype)
            assert (model.transform(X).shape, model.transform(X).dtype) == ((len(X), 3), dtype)
            assert_array_equal(model.counts_, np.bincount(model.labels_))
            assert model.n_components_ == 3
            assert model.n_features_in_ == X.shape[1]
            assert isinstance(model.n_iter_, int)
            assert model.n_iter_ > 0
            assert isinstance(model.reconstruction_err_, float)
            assert isinstance(model.certificate_, Certificate)

    def test_components_are_ordered_by_mass(self, orthogonal, scaling):
        X, model = fitted(orthogonal, scaling)
        items = X if orthogonal == "samples" else X.T
        weight = np.square(items).sum(axis=1) if scaling == "item" else np.ones(len(items))
        assert (np.diff(np.bincount(model.labels_, weight)) <= 0).all()

    def test_factors_are_nonnegative_and_do_not_overlap(self, orthogonal, scaling):
        X, model = fitted(orthogonal, scaling)
        T, C = model.transform(X), model.components_
        assert T.min() >= 0
        assert C.min() >= 0
        sparse_factor = T if orthogonal == "samples" else C.T
        assert_array_equal(np.count_nonzero(sparse_factor, axis=1), 1)
        assert_array_equal(sparse_factor.argmax(axis=1), model.labels_)
        assert_array_equal(sparse_factor.max(axis=1), model.scale_)

    def test_normalisation(self, orthogonal, scaling):
        X, model = fitted(orthogonal, scaling)
        T, C = model.transform(X), model.components_
        if orthogonal == "features":
            gram = C @ C.T
        elif scaling == "none":
            gram = T.T @ T
        else:
            gram = np.diag(np.square(C).sum(axis=1))
            assert_array_equal(T.T @ T, np.diag(np.diag(T.T @ T)))
        assert_allclose(np.diag(gram), 1, rtol=ROUNDING)
        assert_array_equal(gram - np.diag(np.diag(gram)), 0)

    def test_error_is_the_norm_of_the_residual(self, orthogonal, scaling):
        X = separated(orthogonal, scaling)
        weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
        for sample_weight in (None, weight):
            model = ONMF(3, orthogonal=orthogonal, scaling=scaling).fit(X, sample_weight=sample_weight)
            rest = X - model.inverse_transform(model.transform(X))
            root = 1.0 if sample_weight is None else np.sqrt(weight)[:, None]
            assert_allclose(model.reconstruction_err_, np.linalg.norm(root * rest), rtol=1e-10)

    def test_fit_transform_is_fit_then_transform(self, orthogonal, scaling):
        X = separated(orthogonal, scaling)
        model = ONMF(3, orthogonal=orthogonal, scaling=scaling)
        T = model.fit_transform(X)
        assert_array_equal(T, model.transform(X))
        assert_array_equal(T, clone(model).fit(X).transform(X))

    def test_score_is_the_error_of_new_samples(self, orthogonal, scaling):
        X, model = fitted(orthogonal, scaling)
        assert_allclose(model.score(X), -model.reconstruction_err_, rtol=1e-10)
        # as many rows as in the fit, and fewer
        for new in (X[::-1] * 1.5, X[: len(X) // 2] + 0.01):
            rest = new - model.inverse_transform(model.transform(new))
            assert_allclose(model.score(new), -np.linalg.norm(rest), rtol=1e-10)

    def test_verify_repeats_the_certificate(self, orthogonal, scaling):
        X, model = fitted(orthogonal, scaling)
        again = model.verify(X)
        assert again.holds, str(again)
        assert again.counts == model.certificate_.counts == tuple(model.counts_)
        assert_allclose(again.error, model.reconstruction_err_, rtol=1e-10)
        assert again.lower_bound <= again.error * (1 + ROUNDING)

    def test_verify_weighs_the_error(self, orthogonal, scaling):
        X = separated(orthogonal, scaling)
        weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
        model = ONMF(3, orthogonal=orthogonal, scaling=scaling).fit(X, sample_weight=weight)
        assert model.certificate_.holds, str(model.certificate_)
        assert model.verify(X, sample_weight=weight).holds
        assert_allclose(model.verify(X, sample_weight=weight).error, model.reconstruction_err_, rtol=1e-10)

    def test_clone_pickle_and_copy(self, orthogonal, scaling):
        X, model = fitted(orthogonal, scaling)
        assert clone(model).get_params() == model.get_params()
        with pytest.raises(NotFittedError):
            clone(model).transform(X)
        for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
            assert_array_equal(twin.transform(X), model.transform(X))
            assert twin.verify(X) == model.verify(X)

    @pytest.mark.thinned(3)
    def test_parameters_that_change_only_the_way(self, orthogonal, scaling):
        # Separated components are found by every schedule, refined or not, and by every sample.
        X, model = fitted(orthogonal, scaling)
        for parameters in (
            {"schedule": 1.5},
            {"refine": False},
            {"random_state": 7},
            {"n_components": "auto"},
        ):
            other = clone(model).set_params(**parameters).fit(X)
            assert_array_equal(other.labels_, model.labels_)

    def test_names_of_features(self, orthogonal, scaling):
        X = separated(orthogonal, scaling)
        frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(X.shape[1])])
        model = ONMF(3, orthogonal=orthogonal, scaling=scaling).fit(frame)
        assert_array_equal(model.feature_names_in_, frame.columns)
        assert_array_equal(model.get_feature_names_out(), ["onmf0", "onmf1", "onmf2"])
        with pytest.raises(ValueError, match="feature names"):
            model.transform(frame.rename(columns={"gene 0": "other"}))
        model.fit(X)
        assert not hasattr(model, "feature_names_in_")

    def test_output_in_data_frames(self, orthogonal, scaling):
        X, model = fitted(orthogonal, scaling)
        T = model.transform(X)
        for container, frame in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
            out = clone(model).set_output(transform=container).fit_transform(X)
            assert isinstance(out, frame)
            assert list(out.columns) == ["onmf0", "onmf1", "onmf2"]
            assert_array_equal(out.to_numpy(), T)
            assert_allclose(model.inverse_transform(out), T @ model.components_, rtol=ROUNDING)


class TestSamplesOnly:
    @pytest.mark.parametrize("scaling", SCALINGS)
    def test_fit_predict_is_predict(self, scaling):
        X = separated()
        model = ONMF(3, scaling=scaling)
        labels = model.fit_predict(X)
        assert_array_equal(labels, model.labels_)
        assert_array_equal(labels, model.predict(X))
        assert_array_equal(model.predict(X[7:8]), labels[7:8])

    @pytest.mark.parametrize("scaling", SCALINGS)
    def test_predict_gives_the_nearest_component(self, scaling):
        model = fitted(scaling=scaling)[1]
        new = cloud(50, 8, seed=1) * 10
        centers = model.components_ if scaling == "item" else model.components_ / np.sqrt(model.counts_)[:, None]
        if scaling == "item":
            distance = np.square(new).sum(axis=1)[:, None] - np.square(new @ centers.T)
        else:
            distance = np.square(new[:, None] - centers).sum(axis=2)
        assert_array_equal(model.predict(new), distance.argmin(axis=1))

    def test_features_have_no_predict(self):
        model = fitted("features")[1]
        for method in ("predict", "assign"):
            assert not hasattr(model, method)
            with pytest.raises(AttributeError, match=method):
                getattr(model, method)
        with pytest.raises(AttributeError) as caught:
            model.predict(separated("features"))
        assert "see labels_" in str(caught.value.__cause__)
        assert hasattr(model.set_params(orthogonal="samples"), "predict")

    @pytest.mark.parametrize("scaling", SCALINGS)
    def test_sparse_output_equals_dense(self, scaling):
        X, model = fitted(scaling=scaling)
        T = clone(model).set_params(sparse_output=True).fit_transform(X)
        assert isinstance(T, sparse.csr_array)
        assert T.nnz == len(X)
        assert_array_equal(T.toarray(), model.transform(X))
        assert_allclose(model.inverse_transform(T), T @ model.components_, rtol=ROUNDING)


class TestUsing:
    def test_before_fit(self):
        X = separated()
        model = ONMF(3)
        assert not model.__sklearn_is_fitted__()
        calls = (model.transform, model.predict, model.score, model.verify, model.inverse_transform)
        for call in calls:
            with pytest.raises(NotFittedError):
                call(X)
        with pytest.raises(NotFittedError):
            model.get_feature_names_out()

    def test_inverse_transform_takes_what_an_array_takes(self):
        X, model = fitted()
        T = model.transform(X)
        expected = T @ model.components_
        for given in (T.tolist(), sparse.csr_matrix(T), sparse.coo_array(T), pd.DataFrame(T)):
            found = model.inverse_transform(given)
            assert isinstance(found, np.ndarray)
            assert_allclose(found, expected, rtol=ROUNDING)
        with pytest.raises(InvalidInputError, match="T has 2 columns; expected 3"):
            model.inverse_transform(T[:, :2])

    def test_in_a_pipeline_with_names(self):
        X = separated()
        pipeline = make_pipeline(MaxAbsScaler(), ONMF(3)).fit(X)
        assert_array_equal(pipeline.get_feature_names_out(), ["onmf0", "onmf1", "onmf2"])
        assert pipeline.transform(X).shape == (60, 3)

    def test_everything_is_an_argument_by_name(self):
        with pytest.raises(TypeError):
            ONMF(3, 4)

    def test_weight_one_is_no_weight(self):
        X, model = fitted()
        for weight in (np.ones(len(X)), 1, [1] * len(X), pd.Series(np.ones(len(X)))):
            other = clone(model).fit(X, sample_weight=weight)
            assert_array_equal(other.labels_, model.labels_)
            assert_allclose(other.components_, model.components_, rtol=ROUNDING)


class TestNumberOfComponents:
    def test_auto_finds_the_separate_parts(self):
        X = separated()
        model = ONMF().fit(X)
        assert model.n_components_ == 3
        assert model.converged_
        assert model.status_.startswith("Converged. 3 components stand out")

    def test_curve_of_persistence(self):
        model = ONMF(max_components=5).fit(separated())
        betas = model.critical_betas_
        assert len(betas) == 5  # the transitions to 2, 3, 4, 5 and past 5
        assert (np.diff(betas) >= 0).all()
        assert_allclose(model.persistence_, np.log(betas[1:] / betas[:-1]), rtol=1e-12, atol=1e-12)
        assert model.persistence_.argmax() + 2 == model.n_components_

    def test_history_has_one_entry_per_temperature(self):
        model = ONMF(max_components=5).fit(separated())
        history = model.history_
        n = len(history["beta"])
        assert n > 5
        for name in ("n_components", "free_energy", "distortion", "entropy", "passes", "projection", "ids", "stage"):
            assert len(history[name]) == n
        assert history["n_components"][0] == 1
        assert history["n_components"].max() in (5, 6)  # to locate the transition past 5 it may be taken
        for count, projection, ids in zip(history["n_components"], history["projection"], history["ids"], strict=True):
            assert projection.shape == (count, 2)
            assert len(set(ids)) == count
        born = {0}
        for beta, parent, child in history["splits"]:
            assert beta > 0
            assert parent in born
            born.add(child)


class TestStopping:
    @pytest.mark.parametrize(("n_components", "said"), [(2, ""), (3, " No other partition into 3 components has a smaller error.")])
    def test_converged_status(self, n_components, said):
        model = ONMF(n_components).fit(separated())
        assert model.converged_ is True
        assert model.status_ == f"Converged.{said}"

    @pytest.mark.parametrize("n_components", [4, "auto"])
    def test_too_few_iterations_warn(self, n_components):
        with pytest.warns(ConvergenceWarning, match=r"did not converge.*raise max_iter"):
            model = ONMF(n_components, max_components=4, max_iter=1).fit(cloud())
        assert model.converged_ is False
        assert "raise max_iter" in model.status_
        assert model.certificate_.orthogonal

    @every_form
    @pytest.mark.parametrize("n_components", [2, "auto"])
    def test_time_limit_returns_what_there_is(self, orthogonal, scaling, n_components):
        X = separated(orthogonal, scaling)
        model = ONMF(n_components, orthogonal=orthogonal, scaling=scaling, time_limit=1e-9)
        with pytest.warns(ConvergenceWarning, match="raise time_limit"):
            model.fit(X)
        assert model.converged_ is False
        assert model.status_.startswith("Stopped at the time limit")
        assert model.verify(X).orthogonal
        assert np.isfinite(model.transform(X)).all()

    def test_no_time_limit_stops_what_is_proven_at_once(self):
        X, model = fitted()
        hurried = clone(model).set_params(time_limit=1e-9).fit(X)
        assert hurried.converged_ is True
        assert_array_equal(hurried.components_, model.components_)

    def test_time_limit_that_is_not_reached_changes_nothing(self):
        X, model = fitted()
        assert_array_equal(clone(model).set_params(time_limit=1e6).fit(X).components_, model.components_)

    def test_fewer_components_than_asked_for_warn(self):
        X = np.repeat([[1.0, 2.0], [3.0, 1.0]], 5, axis=0)
        with pytest.warns(ConvergenceWarning, match="Found 2 distinct components where 4 were asked for"):
            model = ONMF(4).fit(X)
        assert model.n_components_ == 2
        assert model.components_.shape == (2, 2)


class TestRefit:
    @staticmethod
    def assert_untouched(model, before):
        assert model.__dict__.keys() == before.keys()
        for name, value in before.items():
            assert model.__dict__[name] is value

    @pytest.mark.parametrize(
        ("X", "weight"),
        [
            (np.full((4, 8), np.nan), None),
            (-np.ones((4, 8)), None),
            (np.ones(8), None),
            (np.ones((2, 5)), None),
            (np.ones((4, 5)), [1, 2]),
        ],
        ids=["NaN", "negative", "1-D", "too few rows", "weights"],
    )
    def test_failed_refit_leaves_the_old_model(self, X, weight):
        model = fitted()[1]
        before = dict(model.__dict__)
        with pytest.raises(ValueError, match=r"."):
            model.fit(X, sample_weight=weight)
        self.assert_untouched(model, before)

    def test_interrupted_refit_leaves_the_old_model(self, monkeypatch):
        model = fitted()[1]
        before = dict(model.__dict__)

        def interrupted(*args, **kwargs):
            raise KeyboardInterrupt

        monkeypatch.setattr(estimator, "certify", interrupted)  # after the components have been stored
        with pytest.raises(KeyboardInterrupt):
            model.fit(separated(n_dims=5))
        self.assert_untouched(model, before)

    def test_failed_first_fit_leaves_nothing(self):
        model = ONMF(3)
        before = dict(model.__dict__)
        with pytest.raises(InvalidInputError):
            model.fit([[np.nan, 1.0]])
        self.assert_untouched(model, before)
        assert not model.__sklearn_is_fitted__()

    def test_refit_is_as_a_first_fit(self):
        model = fitted()[1]
        other = separated(n_dims=5, seed=3)
        again = model.fit(other)
        fresh = ONMF(3).fit(other)
        assert_array_equal(again.components_, fresh.components_)
        assert again.n_iter_ == fresh.n_iter_


class TestProgress:
    def test_verbose_speaks_on_standard_error_alone(self, capsys):
        model = fitted(X=cloud(), verbose=1)[1]
        out, err = capsys.readouterr()
        assert out == ""
        lines = err.splitlines()
        assert all(line.startswith("[ONMF] ") for line in lines)
        assert sum("beta" in line for line in lines) == len(model.history_["beta"]) > 0
        fitted(verbose=1)
        assert capsys.readouterr() == ("", "[ONMF] 3 components far apart: no other partition of 60 items is as good\n")
        fitted()
        assert capsys.readouterr() == ("", "")

    def test_callback_sees_every_temperature(self):
        callback = Callback()
        model = watched(ONMF(2), callback)
        if model is None:
            return
        model.fit(separated())
        assert callback.events[0] == "setup"
        assert callback.events[-1] == "teardown"
        temperatures = [event for event in callback.events if event.startswith("beta")]
        assert len(temperatures) == len(model.history_["beta"]) > 0
        assert_array_equal(model.labels_, ONMF(2).fit(separated()).labels_)

    def test_callback_may_stop_the_fit(self):
        X = separated()
        model = watched(ONMF(max_components=8), Callback(stop_after=4))
        if model is None:
            return
        with pytest.warns(ConvergenceWarning, match="Stopped by a callback"):
            model.fit(X)
        assert len(model.history_["beta"]) == 4
        assert model.converged_ is False
        assert model.status_.startswith("Stopped by a callback.")
        assert model.verify(X).orthogonal

    def test_callback_that_raises_leaves_the_old_model(self):
        X, old = fitted(X=cloud())
        model = watched(old, Callback(raise_after=2))
        if model is None:
            return
        before = model.components_
        with pytest.raises(RuntimeError, match="enough"):
            model.fit(X)
        assert model.components_ is before


class Callback:
    """Notes what it is told, and stops or fails after so many temperatures."""

    def __init__(self, stop_after=None, raise_after=None):
        self.events, self.ended = [], 0
        self.stop_after, self.raise_after = stop_after, raise_after

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None):
        assert isinstance(X, np.ndarray)

    def on_fit_task_end(self, estimator, context):
        self.events.append(context.task_name)
        self.ended += context.parent is not None
        if self.ended == self.raise_after:
            raise RuntimeError("enough")
        return self.ended == self.stop_after


def watched(model, callback):
    """The model with a callback; None where scikit-learn has none yet."""
    return model.set_callbacks(callback) if hasattr(model, "set_callbacks") else None
