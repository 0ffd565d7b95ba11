"""Features in different units, on the command line: it is said, and there is one command for it."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score

from orthonmf import ONMF
from orthonmf.cli import main

WINE = load_wine(as_frame=True)


@pytest.fixture
def wine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    WINE.data.to_csv("wine.csv", index=False)
    return tmp_path


def agreement(folder):
    return adjusted_rand_score(WINE.target, pd.read_csv(folder / "assignments.csv")["component"])


def test_one_feature_that_holds_everything_is_named_with_what_to_type(wine, capfd):
    assert main(["fit", "wine.csv", "-k", "3", "--quiet"]) == 0
    err = capfd.readouterr().err
    assert "note: feature 'proline' holds 98% of the squared numbers, so that the other 12 hardly count" in err
    assert "--normalize max, or std." in err
    assert agreement(wine / "wine-onmf") < 0.4


@pytest.mark.parametrize(("steps", "least"), [("max", 0.7), ("std", 0.65)])
def test_brought_to_one_scale_in_one_command(wine, capfd, steps, least):
    assert main(["fit", "wine.csv", "-k", "3", "--normalize", steps, "--quiet"]) == 0
    assert capfd.readouterr().err == ""
    assert agreement(wine / "wine-onmf") >= least
    assert json.loads((wine / "wine-onmf" / "summary.json").read_text())["asked"]["normalize"] == steps


def test_the_model_does_the_same_to_new_data(wine, capfd):
    main(["fit", "wine.csv", "-k", "3", "--normalize", "log1p,max", "--quiet"])
    model = ONMF.load(wine / "wine-onmf" / "model.onmf")
    WINE.data.iloc[::-1, ::-1].to_csv("new.csv", index=False)  # in another order
    assert main(["predict", "wine-onmf", "new.csv", "--out", "labels.csv"]) == 0
    np.testing.assert_array_equal(pd.read_csv("labels.csv")["component"], model.labels_[::-1])
    assert main(["verify", "wine-onmf", "wine.csv"]) == 0
    capfd.readouterr()


def test_a_step_that_is_not_known(wine, capfd):
    assert main(["fit", "wine.csv", "--normalize", "zscore"]) == 2
    assert "normalize: 'zscore' is not known. Known are: max (divide each feature by its largest value)" in capfd.readouterr().err


def test_rank_takes_it_too(wine, capfd):
    assert main(["rank", "wine.csv", "--normalize", "max", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["n_components"] == 3


def test_what_tells_a_component_from_the_others_is_a_table(wine):
    main(["fit", "wine.csv", "-k", "3", "--normalize", "max", "--quiet"])
    table = pd.read_csv("wine-onmf/features.csv")
    assert list(table) == ["component", "feature", "weight", "distinctiveness"]
    weights = pd.read_csv("wine-onmf/components.csv", index_col="component")
    for component, rows in table.groupby("component"):
        assert rows["distinctiveness"].is_monotonic_decreasing
        np.testing.assert_array_equal(rows["weight"], weights.loc[component, rows["feature"]])
