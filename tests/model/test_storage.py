"""Models as files: what is written comes back bit for bit, and nothing else comes back at all."""

import copy
import doctest
import hashlib
import io
import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
import zipfile
from dataclasses import fields

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from orthonmf import ONMF
from orthonmf.exceptions import FileAccessError, InvalidInputError, ModelFormatError
from orthonmf.model import archive, storage
from orthonmf.model.certificate import Certificate
from orthonmf.model.storage import save
from orthonmf.report import render

# Two parts: rows 0 and 1 lie on one line, row 2 on another; and the same of columns.
X = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0]])


def cloud(n=14, p=6, dtype=np.float64):
    return np.random.default_rng(0).gamma(2.0, size=(n, p)).astype(dtype)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onmf"


def returned(model, path):
    """The model after a way through a file."""
    model.save(path)
    return ONMF.load(path)


def assert_same(left, right, where="model"):
    """Equal to the bit and of one type, however deep."""
    assert type(left) is type(right), where
    if isinstance(left, np.ndarray):
        assert left.dtype == right.dtype, where
        assert left.shape == right.shape, where
        assert left.tolist() == right.tolist() if left.dtype == object else left.tobytes() == right.tobytes(), where
    elif isinstance(left, dict):
        assert left.keys() == right.keys(), where
        for key in left:
            assert_same(left[key], right[key], f"{where}.{key}")
    elif isinstance(left, list | tuple):
        assert len(left) == len(right), where
        for i, pair in enumerate(zip(left, right, strict=True)):
            assert_same(*pair, f"{where}[{i}]")
    elif hasattr(left, "__dataclass_fields__"):
        for field in fields(left):
            assert_same(getattr(left, field.name), getattr(right, field.name), f"{where}.{field.name}")
    elif isinstance(left, float):
        assert left.hex() == right.hex(), where
    else:
        assert left == right, where


# -- forging: files whose digests are right, so that it is the check in question that refuses them ----------------------------------


def sealed(content):
    """A file with the right digest at its end."""
    return content[:-64] + hashlib.sha256(content[:-64]).hexdigest().encode()


def zipped(members, compression=zipfile.ZIP_STORED):
    """A sealed archive of (name, content) pairs, laid out as ours are."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, member in members:
            archive._add(file, name, [member])
        file.comment = archive.SEAL + b"0" * 64
    return sealed(buffer.getvalue())


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def members_of(path):
    with zipfile.ZipFile(path) as file:
        return {info.filename: file.read(info) for info in file.infolist()}


def forge(path, change=None, arrays=None, model=None):
    """A file of a good model, with a changed manifest and changed arrays (None: without it), whose digests are all right."""
    (ONMF(2).fit(X) if model is None else model).save(path)
    members = members_of(path)
    manifest = json.loads(members["manifest.json"])
    for name, array in (arrays or {}).items():
        if array is None:
            del manifest["arrays"][name], members[f"{name}.npy"]
            continue
        member = npy(array)
        manifest["arrays"][name] = {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": hashlib.sha256(member).hexdigest()}
        members[f"{name}.npy"] = member
    if change is not None:
        change(manifest)
    members["manifest.json"] = json.dumps(manifest).encode()
    path.write_bytes(zipped(members.items()))


def refused(path, match):
    with pytest.raises(ModelFormatError, match=match):
        ONMF.load(path)


def test_by_hand(path):
    model = returned(ONMF(2).fit(X), path)
    np.testing.assert_array_equal(model.labels_, [0, 0, 1])
    np.testing.assert_array_equal(model.predict([[3.0, 6.0, 0.0], [0.0, 0.1, 9.0]]), [0, 1])
    np.testing.assert_allclose(model.scale_, [np.sqrt(5), 2 * np.sqrt(5), 3], rtol=1e-15)
    assert model.verify(X).holds


def test_the_file_is_a_zip_archive_of_numpy_files_that_others_can_read(path):
    model = ONMF(2).fit(X)
    model.save(path)
    with np.load(path, allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["components_"], model.components_)
    assert json.loads(members_of(path)["manifest.json"])["format"] == 1


def test_a_forged_file_without_a_change_is_a_good_one(path):
    forge(path)
    assert_same(vars(ONMF.load(path)), vars(ONMF(2).fit(X)))


class TestRoundTrip:
    @pytest.mark.thinned(3)
    @pytest.mark.parametrize("capacity", [None, 5, 0.5, [8, 5, 7], "penalty", "cbf"])
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("scaling", ["item", "none"])
    @pytest.mark.parametrize("orthogonal", ["samples", "features"])
    def test_bit_equal(self, path, orthogonal, scaling, dtype, capacity):
        data = cloud(dtype=dtype)
        bounds = {"penalty": {"capacity": 4, "capacity_penalty": 0.3}, "cbf": {"capacity": 6, "solver": "cbf"}}
        extra = bounds[capacity] if isinstance(capacity, str) else {"capacity": capacity}
        model = ONMF(3, orthogonal=orthogonal, scaling=scaling, **extra).fit(data)
        again = returned(model, path)
        assert_same(vars(again), vars(model))
        fresh = cloud(9, dtype=dtype) + dtype(0.25)
        assert_same(again.transform(fresh), model.transform(fresh))
        assert again.score(fresh) == model.score(fresh)
        assert_same(again.verify(data), model.verify(data))
        if orthogonal == "samples":
            assert_same(again.predict(fresh), model.predict(fresh))
            assert_same(again.assign(fresh, capacity=3), model.assign(fresh, capacity=3))

    @pytest.mark.thinned(3)
    @pytest.mark.parametrize(
        "data",
        [np.zeros((4, 3)), np.ones((1, 3)), np.eye(3), cloud() * 1e200, np.ldexp(cloud(), -1000), cloud()[:, :1]],
        ids=["zeros", "one row", "distinct", "large", "subnormal", "one column"],
    )
    @pytest.mark.parametrize("orthogonal", ["samples", "features"])
    @pytest.mark.parametrize("scaling", ["item", "none"])
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_degenerate_data(self, path, data, orthogonal, scaling):
        model = ONMF(orthogonal=orthogonal, scaling=scaling).fit(data)
        assert_same(vars(returned(model, path)), vars(model))

    def test_sizes_weights_names_and_output(self, path):
        table = pd.DataFrame(cloud(), columns=["α", "b,c", "", "€ 𝛽", "e\n", "f"])
        model = ONMF(2, capacity=np.array([9.0, 8.0]), min_size=(1, 2), capacity_penalty=0.5).set_output(transform="pandas")
        model.fit(table, sample_weight=np.arange(1.0, 15.0), item_size=np.arange(1.0, 15.0))
        again = returned(model, path)
        assert_same(vars(again), vars(model))
        pd.testing.assert_frame_equal(again.transform(table), model.transform(table))

    @pytest.mark.filterwarnings("ignore:divide by zero")  # of the fit, which divides by the size of the empty component
    def test_a_component_without_items(self, path):
        model = ONMF(2, orthogonal="features", capacity=0.9, rounding="nearest").fit(np.eye(5))
        assert 0 in model.counts_
        assert_same(vars(returned(model, path)), vars(model))

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("capacity", np.int64(9)),
            ("capacity", np.float32(0.7)),
            ("capacity", np.array([9, 10], dtype=np.uint8)),
            ("capacity", [np.int32(9), 0.75]),
            ("solver_options", {"growth": 1.5}),
            ("solver_options", {}),
            ("random_state", 7),
            ("time_limit", 1e300),
            ("tol", 5e-324),
            ("verbose", False),
            ("n_components", np.int16(2)),
        ],
    )
    def test_parameters_keep_type_and_bits(self, path, name, value):
        model = ONMF(2).fit(cloud()).set_params(**{name: value})
        assert_same(vars(returned(model, path)), vars(model))

    def test_the_same_model_makes_the_same_bytes(self, path, tmp_path):
        model = ONMF(3, capacity=6).fit(cloud())
        model.save(path)
        ONMF.load(path).save(tmp_path / "again")
        ONMF(3, capacity=6).fit(cloud()).save(tmp_path / "anew")
        assert path.read_bytes() == (tmp_path / "again").read_bytes() == (tmp_path / "anew").read_bytes()

    def test_a_loaded_model_can_be_changed_and_fitted_again(self, path):
        model = returned(ONMF(2).fit(X), path)
        model.components_[0, 0] = 1.0
        assert model.fit(cloud()).components_.shape == (2, 6)

    def test_a_derived_class_loads_as_itself(self, path):
        class Derived(ONMF):
            pass

        Derived(2).fit(X).save(path)
        assert type(Derived.load(path)) is Derived

    def test_members_beyond_two_gigabytes(self, path, monkeypatch):
        monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)  # the directory then takes the form that large files need
        model = ONMF(2).fit(X)
        assert_same(vars(returned(model, path)), vars(model))

    def test_an_older_file_without_a_parameter_gets_its_default(self, path):
        forge(path, lambda manifest: manifest["parameters"].pop("verbose"))
        assert ONMF.load(path).verbose == 0

    def test_an_older_file_has_no_margins_and_no_probabilities(self, path):
        later = dict.fromkeys(["margin_", "_mixture.centers", "_mixture.share"])
        forge(path, lambda manifest: manifest["fitted"].pop("mixture_deviation"), later)
        model = ONMF.load(path)
        assert model.margin_ is None
        assert model.verify(X).holds
        assert "<h1>" in render(model)
        with pytest.raises(InvalidInputError, match="an older version wrote it"):
            model.predict_proba(X)
        assert_same(vars(returned(model, path)), vars(model))

    @pytest.mark.parametrize("scaling", ["item", "none"])
    def test_probabilities_come_back(self, path, scaling):
        model = ONMF(3, scaling=scaling).fit(cloud())
        assert_same(returned(model, path).predict_proba(cloud()), model.predict_proba(cloud()))

    @pytest.mark.parametrize("module", [storage])
    def test_examples(self, module):
        assert doctest.testmod(module).failed == 0


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """A good file, as small as can be."""
    path = tmp_path_factory.mktemp("good") / "model.onmf"
    ONMF(2, schedule=30.0).fit(X).save(path)
    return path.read_bytes()


class TestDamage:
    @staticmethod
    def refuses(content):
        try:
            archive._read(io.BytesIO(content))
        except ModelFormatError:
            return True
        return False

    def test_every_flipped_bit(self, content):
        assert not self.refuses(content)
        damaged = bytearray(content)
        for place, bit in itertools.product(range(len(content)), range(8)):
            damaged[place] ^= 1 << bit
            assert self.refuses(bytes(damaged)), (place, bit)
            damaged[place] ^= 1 << bit

    def test_every_truncation(self, content):
        assert all(self.refuses(content[:size]) for size in range(len(content)))
        assert all(self.refuses(content[size:]) for size in range(1, len(content)))

    def test_what_is_appended(self, content):
        assert self.refuses(content + b"\0")
        assert self.refuses(content + content)

    @pytest.mark.thinned(4)
    @pytest.mark.parametrize("first", [0, 3, 6, 9])
    def test_a_flip_under_a_new_digest_is_refused_or_harmless(self, content, path, first):
        # Whoever makes the digest anew may change a number, but meets our error or a model that keeps the laws: nothing else.
        loaded = 0
        for place in range(first, len(content) - 64, 12):
            damaged = bytearray(content)
            damaged[place] ^= 1 << place % 7
            path.write_bytes(sealed(bytes(damaged)))
            try:
                model = ONMF.load(path)
            except ModelFormatError:
                continue
            loaded += 1
            assert set(model.labels_) == {0, 1}
            assert (model.components_ >= 0).all()
        assert 0 < loaded < len(content) / 60  # digits of a float, and what zip says twice or nobody reads, such as times


class TestMalice:
    def test_a_pickle_is_not_run(self, path, tmp_path):
        class Evil:
            def __reduce__(self):
                return (os.mkdir, (str(tmp_path / "executed"),))

        path.write_bytes(pickle.dumps(Evil()))
        refused(path, "does not end in the digest")
        path.write_bytes(sealed(pickle.dumps(Evil()) + b"0" * 64))
        refused(path, "no archive that can be read")
        forge(path, lambda manifest: manifest["arrays"]["labels_"].update(dtype="|O"))
        refused(path, "holds '|O'")
        assert not (tmp_path / "executed").exists()

    def test_an_object_array(self, path):
        forge(path, arrays={"labels_": np.array([{}, 1, 2], dtype=object)})
        refused(path, r"holds '\|O'")
        forge(path, lambda manifest: manifest["arrays"]["labels_"].update(dtype="<i8"), {"labels_": np.array([{}, 1, 2], dtype=object)})
        refused(path, "its shape|not what the manifest describes")

    @pytest.mark.parametrize("dtype", ["<f2", ">f8", "<c16", "<M8[s]", "|S8", "<u8", "|b1", "<f8, <f8", 8, None, ["<f8"]])
    def test_a_type_that_is_not_on_the_list(self, path, dtype):
        forge(path, lambda manifest: manifest["arrays"]["scale_"].update(dtype=dtype))
        refused(path, "expected one of <f4, <f8, <i4, <i8")

    @pytest.mark.parametrize("dtype", [np.uint8, np.float16, bool, np.complex128])
    def test_an_array_of_such_a_type(self, path, dtype):
        forge(path, arrays={"labels_": np.array([0, 0, 1], dtype=dtype)})
        refused(path, "expected one of <f4, <f8, <i4, <i8")

    def test_a_zip_bomb(self, path):
        ONMF(2).fit(X).save(path)
        members = members_of(path) | {"labels_.npy": bytes(50_000_000)}
        path.write_bytes(zipped(members.items(), zipfile.ZIP_DEFLATED))
        assert path.stat().st_size < 100_000
        refused(path, "compressed or encrypted")

    @pytest.mark.parametrize(
        ("place", "value"),
        [(8, b"\1"), (10, b"\x08"), (20, b"\1"), (24, b"\1")],
        ids=["encrypted", "compressed", "stored size", "plain size"],
    )
    def test_a_directory_that_says_so(self, content, path, place, value):
        place += content.rindex(b"PK\x01\x02")
        path.write_bytes(sealed(content[:place] + value + content[place + 1 :]))
        refused(path, "compressed or encrypted")

    def test_a_size_that_is_not_in_the_file(self, path):
        ONMF(2).fit(X).save(path)
        content = path.read_bytes()
        place = content.rindex(b"PK\x01\x02") + 20  # stored and plain size of the last member in the directory
        path.write_bytes(sealed(content[:place] + b"\xf0\xff\xff\x7f" * 2 + content[place + 8 :]))
        refused(path, "where the directory starts")

    def test_members_that_overlap(self, path):
        ONMF(2).fit(X).save(path)
        content = path.read_bytes()
        places = [place for place in range(len(content)) if content.startswith(b"PK\x01\x02", place)]
        first = content[places[1] + 42 : places[1] + 46]  # the third member starts where the second does
        path.write_bytes(sealed(content[: places[2] + 42] + first + content[places[2] + 46 :]))
        refused(path, "where the one before ends")

    def test_something_before_the_archive(self, path):
        ONMF(2).fit(X).save(path)
        path.write_bytes(sealed(b"#!/bin/sh\n" + path.read_bytes()))
        refused(path, "starts at byte 10; expected 0")

    @pytest.mark.parametrize(
        "shape",
        [[4], [2**40], [2**62], [2**62, 4], [10**4000, 10**4000], [-3], [{"float": "0x1.8p+1"}], [True], "3", [1, 1, 3], {"3": 3}, None],
    )
    def test_an_absurd_shape(self, path, shape):
        forge(path, lambda manifest: manifest["arrays"]["labels_"].update(shape=shape))
        refused(path, r"its shape \[.*\] needs|expected one or two lengths")

    def test_an_absurd_shape_in_a_header(self, path):
        ONMF(2).fit(X).save(path)
        members = members_of(path)
        members["labels_.npy"] = members["labels_.npy"].replace(b"(3,)", b"(9,)")
        manifest = json.loads(members["manifest.json"])
        manifest["arrays"]["labels_"]["sha256"] = hashlib.sha256(members["labels_.npy"]).hexdigest()
        members["manifest.json"] = json.dumps(manifest).encode()
        path.write_bytes(zipped(members.items()))
        refused(path, "not what the manifest describes")

    def test_a_member_other_than_its_digest(self, path):
        forge(path, lambda manifest: manifest["arrays"]["labels_"].update(sha256="0" * 64))
        refused(path, "not what the manifest describes")

    @pytest.mark.parametrize("name", ["../labels_.npy", "/etc/passwd", "extra.npy", "C:\\x", "labels_.npy/", "é.npy"])
    def test_an_extra_member(self, path, name):
        ONMF(2).fit(X).save(path)
        path.write_bytes(zipped([*members_of(path).items(), (name, b"x")]))
        refused(path, r"expected those of the manifest|compressed or encrypted")

    @pytest.mark.parametrize("name", ["../labels_", "extra", "history.labels_"])
    def test_an_extra_array_in_the_manifest_too(self, path, name, tmp_path):
        forge(path, arrays={name: np.zeros(3)})
        refused(path, "unknown ones")
        assert os.listdir(tmp_path) == ["model.onmf"]

    @pytest.mark.filterwarnings("ignore:Duplicate name")
    @pytest.mark.parametrize("name", ["manifest.json", "labels_.npy"])
    def test_a_member_twice(self, path, name):
        ONMF(2).fit(X).save(path)
        members = members_of(path)
        path.write_bytes(zipped([*members.items(), (name, members[name])]))
        refused(path, "no name twice")

    @pytest.mark.parametrize("last", [True, False])
    def test_no_manifest_where_it_should_be(self, path, last):
        ONMF(2).fit(X).save(path)
        (first, *others) = members_of(path).items()
        path.write_bytes(zipped([*others, first] if last else others))
        refused(path, "expected 'manifest.json' first")

    @pytest.mark.parametrize(
        "entry", [None, {}, "<f8", ["dtype", "shape", "sha256"], {"dtype": "<f8", "shape": [3], "sha256": "", "more": 1}]
    )
    def test_an_entry_that_is_none(self, path, entry):
        forge(path, lambda manifest: manifest["arrays"].update(labels_=entry))
        refused(path, "expected its dtype, shape and sha256")

    def test_a_missing_array(self, path):
        forge(path, arrays={"labels_": None})
        refused(path, r"lacks the arrays \['labels_'\]")

    @pytest.mark.parametrize(
        "manifest",
        [
            b"",
            b"[]",
            b"{}",
            b"null",
            b"\xff",
            b"[" * 100_000,
            b'{"format": 1, "format": 1}',
            b'{"format": 1.0}',
            b'{"format": NaN}',
            b"9" * 9999,
        ],
        ids=range(10),
    )
    def test_a_manifest_that_is_none(self, path, manifest):
        ONMF(2).fit(X).save(path)
        path.write_bytes(zipped((members_of(path) | {"manifest.json": manifest}).items()))
        refused(path, "manifest")

    def test_a_manifest_that_says_something_twice(self, path):
        ONMF(2).fit(X).save(path)
        members = members_of(path)
        members["manifest.json"] = members["manifest.json"].replace(b'"format": 1,', b'"format": 1, "format": 1,')
        path.write_bytes(zipped(members.items()))
        refused(path, "a name occurs twice")

    def test_an_archive_of_something_else(self, path):
        archive.write(path, archive.Archive({"format": 1}, {}))
        refused(path, "no model")


class TestInconsistent:
    """Files in order whose model breaks a law."""

    @pytest.mark.parametrize("found", [2, 10**30])
    def test_a_future_format(self, path, found):
        forge(path, lambda manifest: manifest.update(format=found, written_by="orthonmf 9.0", news={}))
        refused(path, "written by 'orthonmf 9.0'.*Upgrade: pip install --upgrade orthonmf")

    @pytest.mark.parametrize("found", [0, -1, True, "1", None, []])
    def test_no_format(self, path, found):
        forge(path, lambda manifest: manifest.update(format=found))
        refused(path, "no model")

    @pytest.mark.parametrize("value", [np.nan, np.inf, -0.5])
    def test_a_component_that_is_no_number_or_negative(self, path, value):
        components = ONMF(2).fit(X).components_
        components[0, 2] = value
        forge(path, arrays={"components_": components})
        refused(path, "components has entries that are (negative|not finite)")

    def test_a_feature_in_two_components(self, path):
        model = ONMF(2, orthogonal="features").fit(X)
        components = model.components_.copy()
        components[0, 2] = 1e-9
        forge(path, arrays={"components_": components}, model=model)
        refused(path, "a feature belongs to two components")

    def test_a_feature_of_another_component_than_its_label(self, path):
        model = ONMF(2, orthogonal="features").fit(X)
        forge(path, arrays={"components_": model.components_[::-1].copy(), "scale_": np.zeros(3)}, model=model)
        refused(path, "scale_ is not the one nonzero")

    @pytest.mark.parametrize("shape", [(3, 2), (6,), (0,), ()])
    def test_a_sample_in_two_components(self, path, shape):
        forge(path, arrays={"labels_": np.zeros(shape, dtype=np.int64)})
        refused(path, "does not fit the others")

    @pytest.mark.parametrize("labels", [[0, 0, 2], [0, 0, -1], [0, 1, 1], [0, 0, 2**62]])
    def test_labels_that_are_not_counted(self, path, labels):
        forge(path, arrays={"labels_": np.array(labels)})
        refused(path, "labels_")

    def test_components_that_are_not_normalised(self, path):
        forge(path, arrays={"components_": ONMF(2).fit(X).components_ * 1.01})
        refused(path, "norm 1.01 instead of 1")

    def test_scales_that_are_not_shared(self, path):
        model = ONMF(2, scaling="none").fit(X)
        forge(path, arrays={"scale_": model.scale_ * 1.01}, model=model)
        refused(path, "one over the root")

    @pytest.mark.parametrize(("name", "values"), [("_upper", [1, 1]), ("_lower", [0, 2]), ("_lower", [3, 3]), ("_lower", [-1, 0])])
    def test_sizes_beyond_their_bounds(self, path, name, values):
        forge(path, arrays={name: np.array(values)}, model=ONMF(2, capacity=2).fit(X))
        refused(path, "bounds")

    @pytest.mark.parametrize("missing", ["_lower", "_upper", "bounds_named", "bounds_penalty"])
    def test_a_part_of_the_bounds(self, path, missing):
        model = ONMF(2, capacity=2).fit(X)
        if missing.startswith("_"):
            forge(path, arrays={missing: None}, model=model)
        else:
            forge(path, lambda manifest: manifest["fitted"].update({missing: None}), model=model)
        refused(path, "a part of the bounds")

    @pytest.mark.parametrize("name", ["labels_", "counts_", "components_", "history.beta", "history.ids"])
    def test_numbers_of_another_kind(self, path, name):
        model = ONMF(2).fit(cloud())
        model.save(path)
        with np.load(path) as arrays:
            array = arrays[name]
        forge(path, arrays={name: array.astype(np.int64 if array.dtype.kind == "f" else np.float64)}, model=model)
        refused(path, "does not fit the others")

    @pytest.mark.parametrize(
        ("parameters", "arrays", "fitted", "match"),
        [
            ({}, {"labels_": [], "scale_": [], "counts_": [0, 0]}, {}, "there are 0 items"),
            ({}, {"components_": np.zeros((0, 3)), "counts_": [], "_weight": []}, {"n_components_": 0}, "components of shape"),
            ({}, {}, {"n_components_": 3}, "there are 3 components of 3 features"),
            ({}, {}, {"n_features_in_": 2}, "there are 2 components of 2 features"),
            ({}, {}, {"feature_names_in_": {"tuple": ["a", "b"]}}, "2 names of 3 features"),
            ({}, {"_reference": [1.0, 0.0]}, {}, "reference has 2 entries"),
            ({}, {"_reference": [1.0, np.nan, 0.0]}, {}, "reference has entries"),
            ({}, {"persistence_": [1.0, 2.0]}, {}, "persistence_ has 2 entries for"),
            ({}, {"critical_betas_": [np.nan]}, {}, "critical_betas_ has entries"),
            ({}, {"critical_betas_": [-1.0]}, {}, "critical_betas_ has entries"),
            ({}, {"scale_": [1.0, -1.0, 1.0]}, {}, "scale has entries"),
            ({}, {"_weight": [np.inf, 1.0]}, {}, "weight has entries"),
            ({}, {"labels_": [0, 0, 2]}, {}, "labels_ goes from 0 to 2"),
            ({}, {"labels_": [0, 0, -1]}, {}, "labels_ goes from -1 to 0"),
            ({}, {"counts_": [1, 2]}, {}, "counts_ does not count"),
            ({}, {"margin_": [1.0, 2.0, 1.0]}, {}, "margin_ goes from 1.0 to 2.0"),
            ({}, {"margin_": [1.0, np.nan, 1.0]}, {}, "margin_ goes from nan"),
            ({}, {"margin_": [1.0, -0.5, 1.0]}, {}, "no bound keeps a sample"),
            ({}, {"_mixture.share": [0.5, 0.6]}, {}, "add up to 1.1 instead of 1"),
            ({}, {"_mixture.share": [1.5, -0.5]}, {}, "add up to 1 instead of 1, or one is below 0"),
            ({}, {"_mixture.centers": [[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]]}, {}, "another norm than 1"),
            ({}, {}, {"mixture_deviation": {"float": "nan"}}, "have the width nan"),
            ({}, {}, {"mixture_deviation": None}, "a part of what probabilities are made of"),
            ({"scaling": "none"}, {"_mixture.centers": [[np.inf, 0.0, 0.0], [0.0, 0.0, 1.0]]}, {}, "centres that are not finite"),
            ({"orthogonal": "features"}, {"labels_": [0, 0, 1, 1], "scale_": [1.0] * 4, "counts_": [2, 2]}, {}, "4 entries for 3 features"),
            ({"orthogonal": "features"}, {"scale_": [1.0, 1.0, 1.0]}, {}, "the one nonzero of each feature"),
            ({"orthogonal": "features"}, {"_weight": [2.0, 2.0]}, {}, "do not count features"),
            ({"capacity": 2}, {"_upper": [1, 2]}, {}, "not within their bounds"),
            ({"capacity": 2}, {"_lower": [3, 0]}, {}, "exclude each other"),
            ({"capacity": 2}, {"_lower": [-1, 0]}, {}, "exclude each other"),
            ({"capacity": 2}, {}, {"bounds_penalty": {"float": "nan"}}, "penalty of the bounds is nan"),
            ({}, {"_item_size": [1.0, -1.0, 3.0]}, {}, "sizes of the items are negative"),
            ({}, {"_item_size": [2.0, 2.0, 2.0]}, {}, "mean is not 1"),
            ({}, {"_item_size": [1.0, 1.0, 1.0]}, {}, "the sum of the sizes of the items is None"),
            ({}, {"_item_size": [1.0, 1.0, 1.0]}, {"total_size": {"float": "0x1p0"}}, "loads of other components"),
            ({"capacity": 2}, {"_item_size": [1.0, 1.0, 1.0]}, {}, "of the bounds on the sizes, array lower"),
            ({}, {"_item_size": [1.0, 1.0, 1.0], "_prices": [np.inf, 0.0]}, {}, "price of the bounds is not finite"),
            ({"capacity": 2}, {"_upper": [np.inf, 2.0]}, {}, "of the bounds on the sizes, array upper"),
            ({}, {"_reference": [2.0, 0.0, 0.0]}, {}, "reference has norm 2 instead of 1"),
        ],
    )
    def test_a_law_that_is_broken(self, path, parameters, arrays, fitted, match):
        later = dict.fromkeys(["margin_"] if "labels_" in arrays else [])
        if "components_" in arrays and "orthogonal" not in parameters:  # as in an older file, or they would be what does not fit
            later |= {"_mixture.centers": None, "_mixture.share": None, "stability_": None}
            fitted = {**fitted, "mixture_deviation": None}
        changed = later | {
            name: np.array(values, dtype=float if name not in ("labels_", "counts_", "_lower", "_upper") or np.inf in values else int)
            for name, values in arrays.items()
        }
        forge(path, lambda manifest: manifest["fitted"].update(fitted), changed, ONMF(2, **parameters).fit(X))
        refused(path, match)

    @pytest.mark.parametrize(
        ("name", "value", "match"),
        [
            ("n_items", 4, "of other sizes"),
            ("n_components", 3, "of other sizes"),
            ("counts", {"tuple": [1, 2]}, "of other sizes"),
            ("nonzeros_per_item", 2, "belongs to 2 components"),
            ("error", {"float": "inf"}, "the error of the certificate is inf"),
            ("error", {"float": "-0x1p0"}, "the error of the certificate is -1"),
            ("loads", {"tuple": [{"float": "0x1p0"}] * 2}, "loads of other components"),
        ],
    )
    def test_a_certificate_of_another_model(self, path, name, value, match):
        forge(path, lambda manifest: manifest["certificate"].update({name: value}))
        refused(path, match)

    @pytest.mark.parametrize(
        ("part", "name", "value"),
        [
            ("parameters", "tol", -1),
            ("parameters", "tol", 10**400),
            ("parameters", "tol", {"float": "nan"}),
            ("parameters", "tol", {"float": "0x1p99999"}),
            ("parameters", "tol", {"float": 1}),
            ("parameters", "tol", {"float": "0x1p0", "int": 1}),
            ("parameters", "tol", {}),
            ("parameters", "orthogonal", "both"),
            ("parameters", "orthogonal", ["samples"]),
            ("parameters", "capacity", {"uint8": [300]}),
            ("parameters", "capacity", {"float16": [{"float": "0x1p99"}]}),
            ("parameters", "capacity", {"int64": [10**30]}),
            ("parameters", "capacity", {"object": [1]}),
            ("parameters", "capacity", [[[[[[[[[[1]]]]]]]]]]),
            ("parameters", "capacity", "x"),
            ("parameters", "min_size", [1, "x"]),
            ("parameters", "novelty", 1),
            ("fitted", "n_components_", 3),
            ("fitted", "n_components_", True),
            ("fitted", "n_features_in_", 2),
            ("fitted", "n_iter_", None),
            ("fitted", "status_", 5),
            ("fitted", "feature_names_in_", {"tuple": ["a"]}),
            ("fitted", "feature_names_in_", {"tuple": [1, 2, 3]}),
            ("fitted", "output", "__import__"),
            ("fitted", "novelty", 1),
            ("certificate", "n_items", 4),
            ("certificate", "counts", {"tuple": [1, 2]}),
            ("certificate", "counts", {"tuple": []}),
            ("certificate", "nonzeros_per_item", 2),
            ("certificate", "error", {"float": "nan"}),
            ("certificate", "error", 1),
            ("certificate", "loads", {"tuple": [1, 2]}),
            ("certificate", "bounds", 1),
        ],
    )
    def test_a_value_that_cannot_be(self, path, part, name, value):
        forge(path, lambda manifest: manifest[part].update({name: value}))
        refused(path, "model.onmf")

    @pytest.mark.parametrize("part", ["parameters", "fitted", "certificate", "arrays"])
    def test_a_part_that_is_none(self, path, part):
        forge(path, lambda manifest: manifest.update({part: []}))
        refused(path, "model.onmf")

    @pytest.mark.parametrize("part", ["fitted", "certificate"])
    def test_a_field_that_is_missing(self, path, part):
        forge(path, lambda manifest: manifest[part].pop("status_" if part == "fitted" else "error"))
        refused(path, "expected the fields")

    @pytest.mark.parametrize(
        ("first", "n_values"),
        [([-2, 3], 3), ([2**62] * 4, 0), ([1, 1], 3), ([1, 3], 3), ([10**18], 3)],
        ids=["below none", "overflow", "too few", "too many", "absurd"],
    )
    def test_a_history_whose_lengths_lie(self, path, first, n_values):
        model = ONMF(2, scaling="none").fit(cloud())
        lengths = np.zeros(len(model.history_["beta"]), dtype=np.int64)
        lengths[: len(first)] = first
        forge(path, arrays={"history.ids.lengths": lengths, "history.ids": np.zeros(n_values, dtype=np.int64)}, model=model)
        refused(path, "lengths do not sum")

    @pytest.mark.parametrize(
        ("name", "change", "match"),
        [
            ("ids", np.zeros_like, "other components than it counts"),
            ("ids.lengths", lambda lengths: np.roll(lengths, 1), "other components than it counts"),
            ("n_components", lambda counts: counts + 1, "other components than it counts"),
            ("beta", np.negative, "below 0"),
            ("beta", lambda beta: beta * np.nan, "below 0"),
            ("projection", lambda points: points * np.nan, "is nowhere"),
            ("splits", lambda splits: splits[:, ::-1], "older than the one it comes from"),
            ("splits", lambda splits: splits * 0, "older than the one it comes from"),
        ],
    )
    def test_a_history_that_cannot_be(self, path, name, change, match):
        model = ONMF(2, scaling="none").fit(cloud())
        model.save(path)
        stored = np.load(io.BytesIO(members_of(path)[f"history.{name}.npy"]))
        forge(path, arrays={f"history.{name}": np.ascontiguousarray(change(stored))}, model=model)
        refused(path, match)

    def test_a_temperature_without_components(self, path):
        model = ONMF(2).fit(cloud())
        empty = {"history.ids": np.zeros(0, dtype=np.int64), "history.ids.lengths": np.full(len(model.history_["beta"]), -1)}
        forge(path, arrays=empty, model=model)
        refused(path, "no components")

    @pytest.mark.parametrize(
        "scale", [np.zeros(3, dtype=np.float16), np.zeros(2), np.zeros((3, 1)), np.zeros(3, dtype=int), np.zeros(3, dtype=">f2")]
    )
    def test_an_array_that_would_be_refused_is_not_written(self, path, scale):
        model = ONMF(2, scaling="item").fit(X)
        model.scale_ = scale
        with pytest.raises(ModelFormatError, match="cannot be written"):
            model.save(path)
        assert not path.exists()

    def test_such_a_model_is_not_written_either(self, path):
        model = ONMF(2).fit(X)
        model.save(path)
        before = path.read_bytes()
        model.counts_ = model.counts_ + 1
        with pytest.raises(ModelFormatError, match=r"cannot be written.*does not count"):
            model.save(path)
        assert path.read_bytes() == before


class TestSaving:
    def test_what_is_not_fitted_is_not_saved(self, path):
        with pytest.raises(NotFittedError):
            ONMF().save(path)
        assert not path.exists()

    @pytest.mark.parametrize(
        ("name", "value"),
        [("random_state", np.random.RandomState(0)), ("capacity", pd.Series([9, 9])), ("solver_options", {1: 2}), ("verbose", 1j)],
    )
    def test_a_parameter_that_cannot_be_stored(self, path, name, value):
        model = ONMF(2).fit(X).set_params(**{name: value})
        with pytest.raises(InvalidInputError, match=f"{name}=.*cannot be stored.*set_params"):
            model.save(path)
        assert not path.exists()

    def test_parameters_that_would_be_refused_are_not_written(self, path):
        with pytest.raises(ModelFormatError, match=r"cannot be written.*tol=-1 is not usable"):
            save(ONMF(2).fit(X).set_params(tol=-1), path)
        assert not path.exists()

    def test_options_that_never_end(self, path):
        options = {}
        options["again"] = options
        with pytest.raises(InvalidInputError, match="nested"):
            save(ONMF(2).fit(X).set_params(solver_options=options), path)

    def test_killed_while_saving(self, path):
        ONMF(2).fit(X).save(path)
        before = path.read_bytes()
        script = (
            "import sys, time, zipfile\n"
            "from orthonmf import ONMF\n"
            "closed = zipfile._ZipWriteFile.close\n"
            "def close(member):\n"
            "    closed(member)\n"
            "    if member._zinfo.filename == 'labels_.npy':\n"
            "        print('half way', flush=True)\n"
            "        time.sleep(600)\n"
            "zipfile._ZipWriteFile.close = close\n"
            "ONMF(3).fit([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]]).save(sys.argv[1])\n"
        )
        with subprocess.Popen([sys.executable, "-c", script, path], stdout=subprocess.PIPE) as child:
            assert child.stdout.readline() == b"half way\n"
            child.kill()
        assert child.returncode == -signal.SIGKILL
        assert path.read_bytes() == before
        (draft,) = [each for each in path.parent.iterdir() if each != path]
        refused(draft, "cut short")
        ONMF(3).fit(cloud()).save(path)
        assert ONMF.load(path).n_components_ == 3

    @pytest.mark.parametrize("verb", ["read", "written"])
    def test_a_directory(self, tmp_path, verb):
        with pytest.raises(FileAccessError, match=rf"cannot be {verb}: .*Pass the path"):
            ONMF.load(tmp_path) if verb == "read" else ONMF(2).fit(X).save(tmp_path)
        assert os.listdir(tmp_path) == []

    @pytest.mark.parametrize(("verb", "why"), [("read", "No such file or directory"), ("written", "there is no folder '.*nowhere'")])
    def test_a_path_that_leads_nowhere(self, tmp_path, verb, why):
        with pytest.raises(FileAccessError, match=f"'.*nowhere.*' cannot be {verb}: {why}"):
            ONMF.load(tmp_path / "nowhere" / "m") if verb == "read" else ONMF(2).fit(X).save(tmp_path / "nowhere" / "m")

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden to root")
    def test_a_file_that_may_not_be_read(self, path):
        ONMF(2).fit(X).save(path)
        path.chmod(0)
        with pytest.raises(FileAccessError, match="Permission denied"):
            ONMF.load(path)

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
    def test_a_pipe_is_not_waited_for(self, path):
        os.mkfifo(path)
        both_ends = os.open(path, os.O_RDWR)  # so that this test fails, and does not wait either
        with pytest.raises(FileAccessError, match="no regular file"):
            ONMF.load(path)
        os.close(both_ends)

    def test_an_empty_file(self, path):
        path.touch()
        refused(path, "cut short")


class TestOtherWays:
    """What scikit-learn users do already."""

    @pytest.mark.parametrize("model", [ONMF(3, capacity=6), ONMF(2, orthogonal="features", scaling="none")], ids=["bounded", "features"])
    def test_pickle_joblib_copy_and_skops(self, model, tmp_path):
        model = clone(model).fit(cloud())
        joblib.dump(model, tmp_path / "model.joblib")
        stored = skops.io.dumps(model)
        for again in (
            pickle.loads(pickle.dumps(model)),
            joblib.load(tmp_path / "model.joblib"),
            copy.deepcopy(model),
            copy.copy(model),
            skops.io.loads(stored, trusted=skops.io.get_untrusted_types(data=stored)),
        ):
            assert_same(vars(again), vars(model))
            assert_same(again.transform(cloud()), model.transform(cloud()))

    def test_clone_is_not_fitted(self):
        with pytest.raises(NotFittedError):
            clone(ONMF(2).fit(X)).predict(X)

    def test_a_loaded_model_goes_all_these_ways(self, path):
        model = returned(ONMF(2).fit(X), path)
        assert_same(vars(pickle.loads(pickle.dumps(model))), vars(model))
        assert isinstance(copy.deepcopy(model).certificate_, Certificate)
        assert clone(model).get_params() == model.get_params()


def test_an_item_between_two_components_can_be_saved(tmp_path):
    X = np.array([[0, 1, 2, 1], [1, 2, 0, 1], [0, 1, 0, 1], [1, 2, 1, 0], [1, 1, 0, 1]], dtype=np.float32)
    model = ONMF(2, scaling="none").fit(X, sample_weight=[7.40537564e8, 0, 4.09507009e8, 0, 0])
    model.save(tmp_path / "model.onmf")
    assert ONMF.load(tmp_path / "model.onmf").verify(X, sample_weight=[7.40537564e8, 0, 4.09507009e8, 0, 0]).holds
