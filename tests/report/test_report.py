"""The report says what the model holds, to the same bytes every time, and data never become markup."""

import doctest
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from orthonmf import ONMF
from orthonmf.datasets import make_nested
from orthonmf.exceptions import InvalidInputError, NothingStandsOutWarning
from orthonmf.model.track import drawable
from orthonmf.report import page, render, sections, write_report
from orthonmf.report import text as report_text
from orthonmf.report.frames import MOST_FRAMES, Frames
from orthonmf.report.hues import N_HUES, hue
from orthonmf.report.pictures import _tallest_near
from orthonmf.report.words import asked, evidence, unproven, why

X = load_digits().data[:60]
NESTED = make_nested(64, 10, random_state=0).X
VOID = {"meta", "input", "br", "img", "link"}


class Page(HTMLParser):
    """The elements of a page; fails on tags that do not nest."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.text = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert len(attrs) == len(dict(attrs))
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def tags(self, name):
        return [attributes for tag, attributes in self.elements if tag == name]


def words_of(text):
    return " ".join(" ".join(Page(text).text).split())


def models():
    return {
        "auto": lambda: ONMF(scaling="none").fit(NESTED),
        "given": lambda: ONMF(3).fit(X),
        "one": lambda: ONMF(1).fit(X),
        "alike": lambda: ONMF().fit(np.ones((5, 3))),
        "bounded": lambda: ONMF(4, capacity=20, min_size=5).fit(X),
        "named bounds": lambda: ONMF(3, capacity=[12, 8, 4]).fit(X[:24]),
        "soft": lambda: ONMF(3, capacity=0.25, capacity_penalty=0.1).fit(X[:24]),
        "sizes": lambda: ONMF(3, capacity=0.25, capacity_penalty=0.1).fit(X, item_size=X.sum(axis=1)),
        "features": lambda: ONMF(4, orthogonal="features", scaling="none").fit(X),
        "flow": lambda: ONMF(2, capacity=14, solver="cbf", tol=1e-3).fit(X[:24]),
        "tiny": lambda: ONMF(3, scaling="none").fit(X * 1e-200),
        "steps": lambda: ONMF(3, schedule=1.3).fit(X),
        "persistence": lambda: ONMF("persistence", max_components=6).fit(X),
        "idle bounds": lambda: ONMF(3, capacity=60).fit(X),
    }


@pytest.fixture(scope="module", params=list(models()))
def model(request):
    return models()[request.param]()


@pytest.mark.long
def test_examples_run():
    assert doctest.testmod(page).failed == 0
    assert doctest.testmod(report_text).failed == 0


def test_a_report_worked_by_hand():
    data = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0]])
    text = words_of(render(ONMF(2).fit(data), feature_names=["apple", "pear", "bolt"], item_names=["a", "b", "c"], title="By hand"))
    for expected in (
        "By hand",
        "3 samples in 2 components, 1 to 2 in each, with a relative error of less than 0.001 %.",
        "2 components were asked for.",
        # c log(c / c̄) with c̄ = c / 2: log 2 times the weight
        "Component 0 2 samples, 66.7 % feature weight distinct. pear 0.894 0.62 apple 0.447 0.31 Largest: b , a",
        "Component 1 1 sample, 33.3 % feature weight distinct. bolt 1 0.69 Largest: c",
        "Each item belongs to one component ✓ yes No sample has more than 1 nonzero.",
    ):
        assert expected in text


def test_how_clear_the_items_are_by_hand():
    # Means 1 and 11: items 2 and 10 have margins 1 − 1/81, 0 and 12 have 1 − 1/121. With two in each, 0, 0 | 0, 10: 1, 1 | −1, 0.75.
    text = words_of(render(ONMF(2, scaling="none").fit([[0.0], [2.0], [10.0], [12.0]])))
    assert (
        "0 % of all samples have a margin below 0.1. How clear the samples are Component Median margin Samples below 0.1 "
        "Margins, from 0 to 1 0 0.99 0 %" in text
    )
    text = words_of(render(ONMF(2, scaling="none", capacity=[2, 2]).fit([[0.0], [0.0], [0.0], [10.0]])))
    assert "25 % of all samples have a margin below 0.1." in text
    assert "0.12 50 %" in text
    assert "How clear" not in render(ONMF(1).fit([[1.0, 2.0]]))


def test_every_kind_of_model_has_a_page_that_nests_and_names_nothing_twice(model):
    found = Page(render(model))
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for attributes in found.tags("a")]
    labels = [name for _, attributes in found.elements for name in attributes.get("aria-labelledby", "").split()]
    assert set(ids).issuperset([link.removeprefix("#") for link in links] + labels)
    assert not any(key.startswith("on") or key in {"src", "style"} for _, attributes in found.elements for key in attributes)


def test_the_same_model_gives_the_same_bytes(model, tmp_path):
    first = write_report(model, tmp_path / "first.html").read_bytes()
    assert write_report(model, tmp_path / "second.html").read_bytes() == first
    assert first.decode("utf-8") == render(model)
    assert str(tmp_path).encode() not in first


def test_every_claim_has_its_evidence(model):
    assert evidence(model.certificate_, "sample").keys() >= model.certificate_.claims.keys()


def test_numbers_are_shown_for_people(model):
    text = words_of(re.sub(r"<(script|style).*?</\1>", "", render(model), flags=re.S))
    assert not re.search(r"\d[eE][-+]\d|\bnan\b|\binf\b|None", text)


def test_nothing_is_loaded_and_only_these_scripts_run(model):
    text = render(model)
    assert not re.search(r"https?:|url\(|@import", text)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    inline = re.findall(r"<(style|script)>(.*?)</\1>", text, flags=re.S)
    assert [tag for tag, _ in inline] == ["style", "script"]
    for _, body in inline:
        assert f"'sha256-{page._hash(body)}'" in policy


ATTACKS = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "$title ${x} $$",
    "<!--",
    "é" * 90,
]


def test_names_are_data():
    data = np.abs(load_iris().data[:30]).repeat(2, axis=1)[:, :6]
    harmless = Page(render(ONMF(2).fit(data), item_names=["a"] * 30, feature_names=list("abcdef"), title="t"))
    for title in ATTACKS:
        text = render(ONMF(2).fit(data), item_names=[ATTACKS[i % 6] for i in range(30)], feature_names=ATTACKS, title=title)
        assert [tag for tag, _ in Page(text).elements] == [tag for tag, _ in harmless.elements]
        assert title in Page(text).text


def test_feature_names_come_from_the_pipeline():
    pipeline = make_pipeline(TfidfVectorizer(), ONMF(2)).fit(["apple pear apple", "pear apple", "bolt nut", "nut bolt bolt"])
    assert "Component 1 2 samples, 50 % feature weight distinct. bolt" in words_of(render(pipeline))


def test_names_must_be_as_many_as_what_they_name():
    model = ONMF(2).fit(X)
    with pytest.raises(InvalidInputError, match="item_names has 2 entries; expected 60, one for each sample"):
        render(model, item_names=["a", "b"])
    with pytest.raises(InvalidInputError, match="feature_names has 1 entries"):
        render(model, feature_names=["a"])


def test_items_are_features_where_features_are_assigned():
    model = ONMF(2, orthogonal="features").fit(X[:, 18:22])
    assert render(model, item_names=list("abcd")) == render(model, feature_names=list("abcd"))


def test_a_model_must_be_fitted(tmp_path):
    with pytest.raises(NotFittedError):
        write_report(ONMF(), tmp_path / "page.html")
    assert not list(tmp_path.iterdir())


def test_a_large_model_stays_small():
    """30 components of 20 000 features, with long names, and as many temperatures as may be."""
    rng = np.random.default_rng(0)
    centres = rng.gamma(0.1, size=(30, 20_000))
    data = np.repeat(centres, 3, axis=0) + 0.01 * rng.random((90, 20_000))
    model = ONMF(30).fit(data.astype(np.float32))
    frames = Frames.of(ONMF(scaling="none", schedule=1.02, max_components=4).fit(NESTED))
    per_frame = len(json.dumps(frames.data())) / frames.points.shape[0] / len(frames.beta)
    names = [f"{i} " + "x" * 60 for i in range(20_000)]
    assert len(render(model, feature_names=names).encode()) + 30 * MOST_FRAMES * per_frame < 500_000


# -- words ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "question", "answer"),
    [
        ({"n_components": 3}, "Number of components", "3, as given"),
        ({"max_components": 4}, "Number of components", "to be found from the data, up to 4"),
        (
            {"n_components": "persistence", "max_components": 4},
            "Number of components",
            "to be found from the data, as the one that persists longest, up to 4",
        ),
        ({"n_components": 3, "capacity": 0.5}, "Most in a component", "30 samples (0.5 of all)"),
        (
            {"n_components": 3, "capacity": [30, 20, 15], "refine": False},
            "Most in a component",
            "30, 20, 15 samples, in the order of the components",
        ),
        ({"n_components": 3, "capacity": 60}, "Most in a component", "60, which excludes nothing"),
        ({"n_components": 3, "min_size": 10}, "Fewest in a component", "10 samples"),
        ({"n_components": 3, "orthogonal": "features"}, "What belongs to one component", "each feature, a column of X"),
        ({"n_components": 3, "refine": False, "n_jobs": 1}, "Other settings", "refine=False"),
    ],
)
def test_parameters_are_said_in_words(parameters, question, answer):
    assert dict(asked(ONMF(**parameters).fit(X)))[question] == answer


def test_an_object_among_the_parameters_does_not_tell_where_it_lay():
    model = ONMF(2, random_state=np.random.RandomState(0)).fit(X)
    assert dict(asked(model))["Other settings"] == "random_state=RandomState"


def test_a_given_number_is_said_even_where_persistence_was_measured():
    assert why(ONMF(3, scaling="none", schedule=1.3).fit(NESTED))[0] == "3 components were asked for."


@pytest.fixture(scope="module")
def levelled():
    """Sixteen clusters, with what could be known of them set by hand."""
    model = ONMF(scaling="none", max_components=18).fit(NESTED)
    model.levels_, model.agreement_ = np.array([16, 8, 4]), np.full(18, 0.9)
    model.p_values_ = np.where(np.arange(1, 19) == 15, 0.01, np.where(np.arange(1, 19) == 16, 0.4, np.nan))
    return model


def test_the_answer_its_levels_and_how_sure_it_is_are_said(levelled):
    text = " ".join(why(levelled))
    for expected in (
        "16 is the finest number of components that a likelihood supports",
        "At a coarser level 8 or 4 components stand out as well",
        "Going from 15 to 16 would gain as much by chance with probability 0.01.",
        "Going from 16 to 17 would gain as much by chance with probability 0.40: one more is noise.",
        "with an agreement of 0.90",
    ):
        assert expected in text


def test_pieces_that_were_put_together_are_not_called_the_finest_number(levelled):
    levelled.bic_ = np.where(np.arange(1, 19) == 18, 0.0, -1.0)
    text = why(levelled)[0]
    assert text.startswith("A mixture of 18 balls explains the data best; those that are pieces of one longer cloud are put together")
    assert "which leaves 16 components." in text
    assert "finest" not in text


def test_the_table_has_a_row_for_every_number_and_the_picture_marks_the_levels(levelled):
    found = Page(render(levelled))
    kinds = [attributes["class"] for attributes in found.tags("rect") if attributes.get("class", "").startswith("bar")]
    assert kinds.count("bar level") == 2
    text = words_of(render(levelled))
    assert "BIC, less the best" in text
    assert "8 (coarser level)" in text
    assert "comes back in halves of the samples: " in text


def test_where_nothing_stands_out_it_is_said():
    noise = 20 + np.random.default_rng(0).normal(size=(100, 5))
    with pytest.warns(NothingStandsOutWarning):
        model = ONMF(max_components=6).fit(noise)
    assert why(model)[0].startswith("Nothing stands out")
    text = render(model)
    top = min(float(y) for y in re.findall(r'<rect class="bar" x="[^"]*" y="([^"]*)"', text))
    assert top > (14 + 232) / 2  # bars that chance made do not reach half of the picture


def test_a_given_number_shows_no_annealing_and_says_how_to_get_it():
    model = ONMF(3).fit(X)
    assert Frames.of(model) is None
    text = words_of(render(model))
    assert "n_components=3 was given" in text
    assert "fit with n_components='auto', or with a growth factor such as schedule=1.05" in text
    assert '<input id="temperature" type="range"' not in render(model)
    assert '<input id="temperature" type="range"' in render(ONMF(3, schedule=1.3).fit(X))


# -- frames --------------------------------------------------------------------------------------------------------------------


def test_frames_run_from_one_component_past_those_of_the_model():
    model = ONMF(scaling="none", schedule=1.02, max_components=18).fit(NESTED)
    frames = Frames.of(model)
    assert len(frames.beta) <= MOST_FRAMES + 2 * 18 + 2
    assert frames.counts[0] == 1
    assert frames.counts[frames.first] == model.n_components_ == 16
    assert (np.diff(frames.beta) > 0).all()
    assert (np.diff(frames.counts) >= 0).all()


def test_all_that_is_drawn_lies_in_the_picture(model):
    frames = Frames.of(model)
    if frames is None:
        assert model.n_components_ == 1 or not np.isfinite(model.history_["beta"]).any() or not drawable(model)
        return
    assert ((frames.points >= 0) & (frames.points <= [440, 300])).all()
    assert ((frames.heights >= 0) & (frames.heights <= 300)).all()
    assert ((frames.x >= 0) & (frames.x <= 440)).all()
    assert frames.counts[frames.first] == len({tuple(point) for point in frames.points[:, frames.first].tolist()})


# -- colours -------------------------------------------------------------------------------------------------------------------


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return np.dot([0.2126, 0.7152, 0.0722], [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels])


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_black_on_white_has_the_contrast_of_the_guideline():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_and_graphics_have_contrast(scheme):
    blocks = re.findall(r":root \{(.*?)\}", page._part("report.css"), flags=re.S)
    colours = dict(re.findall(r"--(\w+): (#\w{6});", blocks[scheme]))
    for ground in ("page", "card", "soft"):
        for words in ("ink", "dim", "accent", "good", "bad"):
            assert contrast(colours[words], colours[ground]) >= 4.5, (words, ground)
    for mark in ("accent", *(f"hue{i}" for i in range(N_HUES))):
        assert contrast(colours[mark], colours["card"]) >= 3, mark
        assert contrast(colours[mark], colours["soft"]) >= 3, mark


@pytest.mark.parametrize(("error", "shown"), [(1.04471, "1.045"), (1.00401, "1.005"), (1.0, "1")])
def test_what_is_at_most_is_rounded_up(error, shown):
    proof = replace(ONMF(2).fit(np.eye(3)).certificate_, error=error, lower_bound=1.0)
    assert f"at most {shown} times the best" in evidence(proof, "sample")["the error is not below the lower bound"]


def test_the_note_of_a_low_bar_is_above_its_neighbours():
    assert _tallest_near(np.array([9.0, 1.0, 2.0, 1.0, 5.0]), 2, 2.0) == 2.0
    assert _tallest_near(np.array([9.0, 1.0, 2.0, 1.0, 5.0]), 2, 4.0) == 9.0


# Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of color vision deficiency", 2009: severity 1, linear RGB.
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def oklab(colours, kind):
    """Colours as one with that blindness sees them, in Ottosson's OKLab (2020): distances are about as large as they look."""
    channels = np.array([[int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)] for colour in colours])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.transpose(BLINDNESS[kind]), 0, 1)
    cones = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    mixed = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return np.cbrt(seen @ np.transpose(cones)) @ np.transpose(mixed)


@pytest.mark.parametrize("kind", BLINDNESS)
@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colours_stay_apart_for_colour_blind_readers_too(scheme, kind):
    """Black and white are 1 apart; 0.02 can be told side by side."""
    block = re.findall(r":root \{(.*?)\}", page._part("report.css"), flags=re.S)[scheme]
    colours = dict(re.findall(r"--(hue\d+): (#\w{6});", block))
    assert len(set(colours.values())) == N_HUES
    for most, least in ((8, 0.09), (N_HUES, 0.11 if kind == "none" else 0.05)):
        places = oklab([colours[f"hue{i}"] for i in range(most)], kind)
        apart = np.linalg.norm(places[:, None] - places[None], axis=2)[np.triu_indices(most, 1)]
        assert apart.min() >= least


def test_every_colour_has_a_class():
    classes = re.findall(r"^\.(hue\d+) \{ --hue: var\(--(hue\d+)\); \}$", page._part("report.css"), flags=re.M)
    assert classes == [(hue(i), hue(i)) for i in range(N_HUES)]


# -- what is not proven, and how it was made ------------------------------------------------------------------------------------


def test_under_certified_stands_what_is_not_proven():
    text = words_of(render(ONMF(3).fit(X)))
    assert "all 9 claims hold; not proven: that none is better Certified" in text
    for expected in ("What is not proven That no other partition has a smaller error", "in another order", "times the smallest"):
        assert expected in text


def test_where_none_is_better_that_is_said():
    model = ONMF(2).fit(np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0]]))
    assert model.certificate_.optimal
    text = words_of(render(model))
    assert "claims hold; proven: none is better Certified" in text
    assert "That no other partition has a smaller error" not in text


def test_how_well_components_come_back_is_said_where_it_was_tried(levelled):
    levelled.stability_ = np.where(np.arange(16) == 3, 0.25, 0.5)
    assert any("came back to between 25 % and 50 %." in sentence for sentence in unproven(levelled, 0.1))
    assert any("n_components='auto', which fits halves" in sentence for sentence in unproven(ONMF(3).fit(X), 0.1))


def test_the_page_says_how_it_was_made_and_no_clock_ticks_in_it():
    model = ONMF(3).fit(X)
    text = words_of(render(model, provenance={"Command": "orthonmf fit <x>.csv", "Seconds": "1.5"}))
    for expected in (model.data_digest_, "Command orthonmf fit <x>.csv Seconds 1.5", f"NumPy {np.__version__}", "scikit-learn"):
        assert expected in text
    assert "Seconds" not in words_of(render(model))


def test_what_is_left_of_the_distortion_falls_from_one():
    left = np.array(sections._left(ONMF(scaling="none", max_components=18).fit(NESTED), 18))
    assert left[0] == 1
    assert (np.diff(left[np.isfinite(left)]) < 0).all()
    assert np.isnan(sections._left(ONMF(3).fit(X), 5)).all()
