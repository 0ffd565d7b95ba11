"""Numbers for people; text that cannot become markup."""

import json

import pytest

from orthonmf.report.text import aligned, count, embedded, escaped, name, number, percent, percents, plural


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (-2.5, "−2.5"),
        (0.12345678, "0.1235"),
        (12345.678, "12\u202f350"),
        (9_999_999.0, "10\u202f000\u202f000"),
        (0.00012, "0.00012"),
        (1e-12, "1\u202f×\u202f10⁻¹²"),
        (-1.5e200, "−1.5\u202f×\u202f10²⁰⁰"),
        (float("inf"), "∞"),
        (float("-inf"), "−∞"),
        (float("nan"), "not a number"),
    ],
)
def test_numbers_have_four_digits_and_no_letter_e(value, shown):
    assert number(value) == shown


def test_counts_shares_and_nouns():
    assert count(1_234_567) == "1\u202f234\u202f567"
    assert count(2.5) == "2.5"
    assert (percent(0.5), percent(0), percent(1e-7)) == ("50 %", "0 %", "less than 0.001 %")
    assert (plural(1, "sample"), plural(0, "sample")) == ("1 sample", "0 samples")


def test_names_cannot_become_markup():
    assert escaped("""<a href="x">'&""") == "&lt;a href=&quot;x&quot;&gt;&#x27;&amp;"
    assert escaped("a\x00b\x1bc\udc80") == "a\ufffdb\ufffdc?"
    assert name("x" * 500).count("x") == 119


def test_embedded_json_cannot_end_its_element():
    value = {"a": "</script><!-- & \u2028", "b": [1.5, None]}
    text = embedded(value)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == value


def test_embedded_json_has_no_nan():
    with pytest.raises(ValueError, match="JSON"):
        embedded([float("nan")])


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([9.8497, 8.4, 0.565, 0.0], ["9.85", "8.40", "0.56", "0.00"]),
        ([-6816.6, -19.04, -0.2], ["−6\u202f817", "−19", "0"]),
        ([0.3, float("nan"), float("inf")], ["0.3", "", "∞"]),
        ([50.0, 50.0], ["50", "50"]),
        ([1e-7, 2.5e-9], ["1\u202f×\u202f10⁻⁷", "2.5\u202f×\u202f10⁻⁹"]),
        ([float("nan")], [""]),
        ([], []),
    ],
)
def test_numbers_of_a_column_have_the_same_decimals(values, shown):
    assert aligned(values) == shown


def test_shares_of_a_column_have_the_same_decimals():
    assert percents([0.0996, 0.084]) == ["9.96 %", "8.40 %"]
