"""Models that were tampered with: whatever is changed, ``verify`` notices, refuses, or nothing that it speaks of has changed."""

import hashlib
import io
import json
import zipfile
from copy import deepcopy
from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest

from orthonmf import ONMF
from orthonmf.exceptions import ModelFormatError, OrthonmfError
from orthonmf.model import archive
from orthonmf.model.certificate import Certificate
from orthonmf.report import render

X = np.random.default_rng(0).gamma(2.0, size=(24, 5))
SETTINGS = {
    "samples item": {},
    "samples none": {"scaling": "none"},
    "features none": {"orthogonal": "features", "scaling": "none"},
    "features item bounded": {"orthogonal": "features", "capacity": 11},
    "samples none bounded": {"scaling": "none", "capacity": [10, 9, 8], "min_size": 2},
    "samples item soft sizes": {"capacity": 9.0, "capacity_penalty": 0.4},
}
SHORT = ("samples item", "samples none bounded")
# What a fit records of its way, which no data can tell: it says nothing of the factors, and no prediction depends on it.
OF_THE_WAY = {
    "status_",
    "converged_",
    "n_iter_",
    "n_sample_iter_",
    "history_",
    "critical_betas_",
    "persistence_",
    "kkt_residual",
    "feature_names_in_",
}
# Numbers of the certificate that are compared to the tolerance of their claim.
TOLERATED = 2e-3


@cache
def fitted(name):
    size = np.arange(1.0, 25.0) if "sizes" in name else None
    return ONMF(3, **SETTINGS[name]).fit(data(name), item_size=size)


def data(name):
    return X.T if name.startswith("features") else X


def changes(value):
    """Other values in the place of one, of its type and not."""
    with np.errstate(all="ignore"):
        return list(_changes(value))


def _changes(value):
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "fi" and value.size:
            first = np.zeros(value.shape, dtype=value.dtype)
            first.flat[0] = 1
            yield from (value * 2, value * 0, value[::-1].copy(), value + first, value + value, value[:-1], value.astype(np.float32))
            if value.dtype.kind == "f":
                yield from (value * 1.01, value * np.nan, value + first * np.inf, -value, np.where(first, value * 1.01, value))
        yield from (None, np.zeros(0), value.astype(object))
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1, 0, -1, None, 10**30)
    elif isinstance(value, float):
        yield from (value * 1.01, value * 2, value + 1, -value, np.nan, np.inf, None)
    elif isinstance(value, tuple):
        yield from (value[::-1], (), tuple(each * 2 for each in value))
    elif value is None:
        yield from (1.0, 3, np.ones(3))


def reported(model, name):
    """What a user reads off a model, beside what was recorded of the way of its fit."""
    numbers = [transformed(model, name), model.components_, model.labels_, model.scale_, model.counts_, model.reconstruction_err_]
    proof = model.certificate_
    if proof.lower_bound is None:  # which says that it was not computed
        proof = replace(proof, lower_bound=fitted(name).certificate_.lower_bound)
    if proof.separation is None:  # which claims nothing
        proof = replace(proof, separation=fitted(name).certificate_.separation)
    numbers += [getattr(proof, field.name) for field in fields(Certificate) if field.name not in {"bounds", *OF_THE_WAY}]
    return [0.0 if each is None or isinstance(each, str) else each for each in numbers]


def transformed(model, name):
    return deepcopy(model).set_params(sparse_output=False).transform(data(name) + 0.25)


def same(model, name):
    """Whether all that is reported is as it was."""
    before, after = reported(fitted(name), name), reported(model, name)
    return all(np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=0, atol=TOLERATED) for a, b in zip(before, after, strict=True))


def survives(model, name):
    """Whether a model verifies; errors are ours."""
    try:
        return model.verify(data(name)).holds
    except OrthonmfError:
        return False


def attack_attributes(name):
    """Every fitted attribute, and every number of the certificate, changed in turn."""
    for attribute, value in vars(fitted(name)).items():
        if attribute in fitted(name).get_params() or attribute in OF_THE_WAY:
            continue
        for other in changes(value):
            model = deepcopy(fitted(name))
            setattr(model, attribute, other)
            assert not survives(model, name) or same(model, name), (attribute, other)
    for field in fields(Certificate):
        for other in changes(getattr(fitted(name).certificate_, field.name)) if field.name not in OF_THE_WAY else ():
            model = deepcopy(fitted(name))
            model.certificate_ = replace(model.certificate_, **{field.name: other})
            assert not survives(model, name) or same(model, name), (field.name, other)


@pytest.mark.parametrize("name", SHORT)
def test_every_attribute_that_is_changed_is_noticed(name):
    attack_attributes(name)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(set(SETTINGS) - set(SHORT)))
def test_every_attribute_that_is_changed_is_noticed_whatever_the_model(name):
    attack_attributes(name)


# -- files whose digests were made anew -------------------------------------------------------------------------------------------


def forged(path, members):
    """A file of these members, with the digests that belong to them."""
    manifest = json.loads(members["manifest.json"])
    for name, member in members.items():
        if name != "manifest.json":
            manifest["arrays"][name.removesuffix(".npy")]["sha256"] = hashlib.sha256(member).hexdigest()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        for name, member in {**members, "manifest.json": json.dumps(manifest).encode()}.items():
            archive._add(file, name, [member])
        file.comment = archive.SEAL + b"0" * 64
    content = buffer.getvalue()
    path.write_bytes(content[:-64] + hashlib.sha256(content[:-64]).hexdigest().encode())


def members_of(name, path):
    fitted(name).save(path)
    with zipfile.ZipFile(path) as file:
        return {info.filename: file.read(info) for info in file.infolist()}


def other_arrays(members, rng, n_ways):
    """Numbers of one array after the other, changed at a random place, by a little, by much, and to what is no number."""
    for name in members:
        if name == "manifest.json":
            continue
        array = np.load(io.BytesIO(members[name]))
        if not array.size:
            continue
        header = members[name][: len(members[name]) - array.nbytes]
        ways = (lambda x: x * 1.01, lambda x: x * 1e9, lambda x: -x, lambda x: x * 0, lambda x: x + np.inf, lambda x: x + 1)
        for way in rng.permutation(len(ways))[:n_ways]:
            changed = array.copy()
            place = int(rng.integers(array.size))
            with np.errstate(all="ignore"):
                other = ways[way](float(array.flat[place]))
            if array.dtype.kind == "i":
                other = int(np.clip(np.nan_to_num(other), -(2**62), 2**62))
            changed.flat[place] = other
            yield name.removesuffix(".npy"), {**members, name: header + changed.tobytes()}


def other_documents(members):
    """Every value of the manifest, changed in turn."""
    plain = (None, 3, -1, "x", {"float": "inf"}, {"float": "-0x1p0"}, {"float": "0x1.8p0"}, [1, "x"], {"tuple": [{"float": "nan"}] * 3})
    for part in ("parameters", "fitted", "certificate"):
        for key in json.loads(members["manifest.json"])[part]:
            for value in plain:
                manifest = json.loads(members["manifest.json"])
                manifest[part][key] = value
                yield (part, key, value), {**members, "manifest.json": json.dumps(manifest).encode()}


def attack_file(path, name, what, members, *, shown):
    forged(path, members)
    try:
        model = ONMF.load(path)
    except ModelFormatError:
        return
    held = survives(model, name)
    of_the_way = (
        what[0] == "parameters" or what[1] in OF_THE_WAY if isinstance(what, tuple) else what.startswith(("history.", "crit", "pers"))
    )
    if held and not of_the_way:
        assert same(model, name), what
    if held:
        np.testing.assert_array_equal(transformed(model, name), transformed(fitted(name), name), err_msg=str(what))
    if shown:
        render(model)


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize("seed", [0])
def test_forged_arrays_are_noticed(tmp_path, name, seed):
    members = members_of(name, tmp_path / "good.onmf")
    for what, others in other_arrays(members, np.random.default_rng(seed), 2):
        attack_file(tmp_path / "model.onmf", name, what, others, shown=what.startswith("history."))


@pytest.mark.parametrize("name", SHORT[1:])
def test_forged_documents_are_noticed(tmp_path, name):
    members = members_of(name, tmp_path / "good.onmf")
    for i, (what, others) in enumerate(other_documents(members)):
        if i % 3 == 0:
            attack_file(tmp_path / "model.onmf", name, what, others, shown=True)


@pytest.mark.long
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("seed", range(5))
def test_forged_files_are_noticed_whatever_the_model(tmp_path, name, seed):
    members = members_of(name, tmp_path / "good.onmf")
    for what, others in other_arrays(members, np.random.default_rng(seed), 6):
        attack_file(tmp_path / "model.onmf", name, what, others, shown=True)
    for what, others in other_documents(members) if seed == 0 else ():
        attack_file(tmp_path / "model.onmf", name, what, others, shown=True)
