"""The report in a real browser: it loads, moves, sorts, and can be read on a phone, in the dark and by keyboard."""

import csv
import os
import re
import shutil
from collections import Counter

import numpy as np
import pytest
from sklearn.datasets import load_digits

from orthonmf import ONMF
from orthonmf.datasets import make_nested
from orthonmf.report import write_report

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
LONG = [f"{'a_name_without_any_space_' * 3}{i}" for i in range(64)]


@pytest.fixture(scope="session")
def browser():
    """Chromium; without it these tests are skipped, or fail in CI."""
    missing = None if shutil.which(CHROMIUM) else f"{CHROMIUM} is not there: make browser"
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing = "playwright is not installed: pip install 'orthonmf[test]'"
    if missing:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def reports(tmp_path_factory):
    """Three models: one whose number was found, one with bounds and unkind names, one with a single component."""
    folder = tmp_path_factory.mktemp("reports")
    digits, nested = load_digits().data[:60], make_nested(64, 10, random_state=0).X
    write_report(ONMF(scaling="none", max_components=18).fit(nested), folder / "nested.html", X=nested)
    bounded = ONMF(5, capacity=20, min_size=5).fit(digits)
    attacks = ["<script>document.title = 'taken'</script>", "</script><img src=x onerror=\"document.title = 'taken'\">", *LONG[2:]]
    write_report(bounded, folder / "bounded.html", X=digits, feature_names=attacks, item_names=LONG[:60], title="<b>Bounded</b>")
    write_report(ONMF(1).fit(digits), folder / "one.html")
    return folder


@pytest.fixture
def opened(browser, reports):
    """A page of a report; at the end, nothing may have gone wrong and nothing may have been asked of a network."""
    contexts, wrong, asked = [], [], []

    def open_page(name, *, width=1100, **options):
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        context.set_default_timeout(5000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((reports / f"{name}.html").as_uri())
        return page

    yield open_page
    assert wrong == []
    assert all(url.startswith("file:") and url.endswith(".html") for url in asked)
    assert len(asked) == len(contexts)
    for context in contexts:
        context.close()


def dots(page):
    return page.eval_on_selector_all("#plane .dot", "dots => dots.map(dot => [dot.getAttribute('cx'), dot.getAttribute('cy')].join())")


def column(page, table, place):
    return page.eval_on_selector_all(f"{table} tbody tr", f"rows => rows.map(row => row.cells[{place}].textContent)")


# -- the slider ----------------------------------------------------------------------------------------------------------------


def test_the_keyboard_moves_the_slider_and_the_components_part(opened):
    page = opened("nested")
    slider = page.get_by_label("Inverse temperature β")
    slider.focus()
    page.keyboard.press("Home")
    assert len(set(dots(page))) == 1
    assert page.inner_text("#at-count") == "1"
    last = int(slider.get_attribute("max"))
    seen = [1]
    for _ in range(last):
        page.keyboard.press("ArrowRight")
        seen.append(len(set(dots(page))))
    assert page.inner_text("#at-count") == str(seen[-1])
    assert (np.diff(seen) >= 0).all()
    assert {1, 4, 16} <= set(seen)


def test_the_value_changes_picture_text_and_what_is_said(opened):
    page = opened("nested")
    slider = page.get_by_label("Inverse temperature β")
    before = dots(page), page.inner_text("#at-beta"), page.inner_text("#at-energy"), page.get_attribute("#cursor", "transform")
    slider.fill("3")
    after = dots(page), page.inner_text("#at-beta"), page.inner_text("#at-energy"), page.get_attribute("#cursor", "transform")
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert slider.get_attribute("aria-valuetext") == f"β = {after[1]}: {page.inner_text('#at-count')} component" + "s" * (
        len(set(after[0])) > 1
    )


def test_play_moves_on_and_pause_stops(opened):
    from playwright.sync_api import expect

    page = opened("bounded", reduced_motion="reduce")
    slider = page.get_by_label("Inverse temperature β")
    slider.fill("0")
    page.get_by_role("button", name="Play").click()
    expect(slider).not_to_have_value("0")
    page.get_by_role("button", name="Pause").click()
    stopped = slider.input_value()
    assert page.get_by_role("button", name="Play").is_visible()
    page.wait_for_timeout(150)
    assert slider.input_value() == stopped
    assert page.eval_on_selector("#plane .dot", "dot => getComputedStyle(dot).transitionDuration") == "0s"


def test_without_a_script_pictures_and_tables_are_there(opened):
    page = opened("nested", java_script_enabled=False)
    assert page.get_by_role("img", name="Components part as β grows").is_visible()
    assert page.locator("#plane .dot").count() >= 16
    assert not page.locator("#temperature").is_visible()
    assert page.get_by_role("table", name="Size of each component").locator("tbody tr").count() == 16
    assert page.get_by_role("columnheader", name="Samples", exact=True).locator("button").count() == 0


def test_one_component_has_no_slider(opened):
    page = opened("one")
    assert page.locator("#temperature").count() == 0
    assert page.get_by_text("n_components='auto'").first.is_visible()


# -- tables --------------------------------------------------------------------------------------------------------------------


def test_tables_sort_by_click_and_by_keyboard(opened):
    page = opened("bounded")
    sizes_table = page.locator("#sizes").get_by_role("table", name="Size of each component")
    heading = sizes_table.get_by_role("columnheader", name="Samples", exact=True)
    assert heading.get_attribute("aria-sort") == "none"
    heading.get_by_role("button").click()
    sizes = [float(size) for size in column(page, "#sizes", 1)]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) > 1
    assert heading.get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Enter")
    assert [float(size) for size in column(page, "#sizes", 1)] == sorted(sizes, reverse=True)
    assert heading.get_attribute("aria-sort") == "descending"
    sizes_table.get_by_role("columnheader", name="Component", exact=True).get_by_role("button").press("Space")
    assert column(page, "#sizes", 0) == ["0", "1", "2", "3", "4"]
    assert heading.get_attribute("aria-sort") == "none"


def test_numbers_sort_as_numbers_and_words_as_words(opened):
    page = opened("nested")
    page.get_by_text("The numbers behind the answer").click()
    page.get_by_role("columnheader", name="Components", exact=True).get_by_role("button").click()
    numbers = [int(number.split()[0]) for number in column(page, "#number", 0)]  # a coarser level says so
    assert numbers == sorted(numbers)
    assert max(numbers) > 9
    page.get_by_role("columnheader", name="Claim").get_by_role("button").click()
    claims = column(page, "#certificate", 0)
    assert claims == sorted(claims)


def test_a_table_is_searched_and_the_rows_that_are_left_are_counted(opened):
    page = opened("bounded")
    claims = page.get_by_role("table", name="What is claimed, and what proves it")
    field = page.get_by_role("searchbox", name="Search: What is claimed, and what proves it")
    field.fill("SCALES")
    assert claims.locator("tbody tr:visible").count() == 1
    total = claims.locator("tbody tr").count()
    assert page.get_by_text(f"1 of {total} rows").is_visible()
    field.fill("")
    assert claims.locator("tbody tr:visible").count() == total


def test_every_table_is_saved_as_it_is_sorted_and_searched(opened):
    page = opened("bounded")
    page.evaluate("document.querySelectorAll('details').forEach(box => { box.open = true; })")
    buttons = page.get_by_role("button", name="Download CSV")
    assert buttons.count() == page.get_by_role("searchbox", name="Search").count() == page.locator("table").count() == 4
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download CSV: Features of the components").press("Enter")
    with open(saved.value.path(), encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert saved.value.suggested_filename == "features-of-the-components.csv"
    assert list(rows[0]) == ["Component", "Feature", "Weight", "Distinctiveness"]
    assert len(rows) == page.locator("#components tbody tr").count()
    assert {float(row["Component"]) for row in rows} == {0, 1, 2, 3, 4}
    page.get_by_role("columnheader", name="Samples", exact=True).get_by_role("button").click()
    page.get_by_role("searchbox", name="Search: Size of each component").fill("2")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download CSV: Size of each component").click()
    with open(saved.value.path(), encoding="utf-8-sig", newline="") as file:
        sizes = [float(row["Samples"]) for row in csv.DictReader(file)]
    assert sizes == sorted(sizes)
    assert 0 < len(sizes) == page.locator("#sizes tbody tr:visible").count()


def test_a_field_of_a_saved_table_is_quoted_and_never_computed(opened):
    page = opened("bounded")
    fields = ["a,b", 'say "a"', "=1+1", "-5", "−x", "@sum", "plain"]
    assert page.evaluate("fields => fields.map(csvField)", fields) == ['"a,b"', '"say ""a"""', "'=1+1", "-5", "−x", "'@sum", "plain"]


# -- the items -----------------------------------------------------------------------------------------------------------------


def test_a_component_is_shown_alone_by_keyboard(opened):
    page = opened("bounded")
    buttons = page.get_by_role("list", name="Components").get_by_role("button")
    assert buttons.count() == 5
    faint = "paths => paths.filter(path => getComputedStyle(path).opacity < 0.1).map(path => path.dataset.component)"
    buttons.nth(2).press("Enter")
    assert buttons.nth(2).get_attribute("aria-pressed") == "true"
    assert set(page.eval_on_selector_all("#items-plane .items", faint)) == {"0", "1", "3", "4"}
    buttons.nth(0).press("Enter")
    assert [button.get_attribute("aria-pressed") for button in buttons.all()] == ["true", "false", "false", "false", "false"]
    buttons.nth(0).press("Enter")
    assert page.eval_on_selector_all("#items-plane .items", faint) == []


def test_an_item_is_found_by_its_name(opened):
    page = opened("bounded")
    assert not page.locator("#ring").is_visible()
    page.get_by_label("Find a sample").fill("space_17")
    assert re.match(r".*a_name_without.*, component \d, margin 0\.\d+$", page.inner_text("#found"))
    assert page.locator("#ring").get_attribute("visibility") == "visible"
    page.get_by_label("Find a sample").fill("nobody")
    assert page.inner_text("#found") == "none is shown with that name"
    assert page.locator("#ring").get_attribute("visibility") == "hidden"


def test_pointing_at_a_dot_tells_what_it_is(opened):
    page = opened("nested")
    path = page.locator("#items-plane .items").last
    x, y = (float(part) for part in re.match(r"M(\S+) (\S+)h0", path.get_attribute("d")).groups())
    page.locator("#items-plane").scroll_into_view_if_needed()
    box = page.locator("#items-plane").bounding_box()
    page.mouse.move(box["x"] + x * box["width"] / 720, box["y"] + y * box["width"] / 720)
    tip = page.locator(".tip")
    assert tip.is_visible()
    assert tip.inner_text().startswith(f"component {path.get_attribute('data-component')}, margin ")
    page.mouse.move(0, 0)
    assert not tip.is_visible()


def test_a_component_has_one_colour_in_every_section(opened):
    page = opened("bounded")
    colours = page.evaluate(
        """() => [0, 1, 2, 3, 4].map((j) => {
          const of = (selector, part) => [...document.querySelectorAll(selector)].map((e) => getComputedStyle(e)[part]);
          return [...new Set([
            ...of(`.items.hue${j}`, "stroke"), ...of(`.size .hue${j}, .histogram.hue${j} .hued, article.hue${j} .hued`, "fill"),
            ...of(`.feature.hue${j} path`, "stroke"), ...of(`.heads .hue${j}`, "fill"), ...of(`article.hue${j} .swatch`, "backgroundColor"),
          ])];
        })"""
    )
    assert [len(each) for each in colours] == [1] * 5
    assert len({each[0] for each in colours}) == 5


# -- everywhere, by everyone ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nested", "bounded", "one"])
def test_nothing_scrolls_sideways(opened, name):
    page = opened(name)
    page.evaluate("document.querySelectorAll('details').forEach(box => { box.open = true; })")
    for width in (320, 360, 768):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = page.eval_on_selector_all(".scroll", "boxes => boxes.map(box => getComputedStyle(box).overflowX)")
    assert set(boxes) == {"auto"}


def test_names_are_shown_not_run(opened):
    page = opened("bounded")
    assert page.title() == "<b>Bounded</b>"
    assert page.get_by_role("heading", level=1).inner_text() == "<b>Bounded</b>"
    assert page.locator("img, script[src]").count() == 0


CONTRAST = """() => {
  const part = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = part(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const low = [];
  let seen = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !element.checkVisibility() || element.closest("script, style")) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(part(element.closest("svg") ? style.fill : style.color)), light(ground(element))].sort((x, y) => y - x);
    seen += 1;
    if ((a + 0.05) / (b + 0.05) < 4.5) low.push(element.tagName + ": " + element.textContent.slice(0, 40));
  }
  return [seen, low];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_contrast(opened, scheme):
    page = opened("bounded", color_scheme=scheme)
    seen, low = page.evaluate(CONTRAST)
    assert seen > 100
    assert low == []
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in ground[4:-1].split(",")) < 200) is (scheme == "dark")


def test_headings_are_in_order_and_landmarks_named(opened):
    page = opened("nested")
    levels = page.eval_on_selector_all("h1, h2, h3, h4", "heads => heads.map(head => Number(head.tagName[1]))")
    assert levels[0] == 1
    assert Counter(levels)[1] == 1
    assert (np.diff(levels) <= 1).all()
    assert page.evaluate("document.documentElement.lang") == "en"
    for landmark in ("banner", "navigation", "main", "contentinfo"):
        assert page.get_by_role(landmark).count() == 1
    assert page.locator("section:not([aria-labelledby])").count() == 0
    assert page.locator("table:not(:has(caption))").count() == 0
    assert page.locator("table:not(:has(thead th[scope=col])), tbody tr:not(:has(th[scope=row]))").count() == 0


def test_every_control_has_a_name_and_every_picture_a_title(opened):
    page = opened("nested")
    unlabelled = page.eval_on_selector_all("input", "inputs => inputs.filter(e => !e.labels.length && !e.ariaLabel).length")
    assert unlabelled == 0
    assert page.eval_on_selector_all("button", "buttons => buttons.filter(button => !button.textContent.trim()).length") == 0
    pictures = page.locator("svg[role=img]")
    assert pictures.count() == 7  # items, persistence, BIC, agreement, distortion, tree, plane
    for i in range(7):
        assert pictures.nth(i).locator("title").text_content()
        assert pictures.nth(i).locator("desc").text_content()
    assert page.locator("[role=img]:not(svg)").get_attribute("aria-label").startswith("The data in the order of the components. ")
    assert page.locator("svg:not([role=img]):not([aria-hidden=true]):not([role=img] svg)").count() == 0


def test_tab_goes_through_the_page_in_order_and_focus_can_be_seen(opened):
    page = opened("one")
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        place = page.evaluate(
            "(() => { const e = document.activeElement; const s = getComputedStyle(e);"
            " return e === document.body ? null : [e.tagName, e.getBoundingClientRect().top + scrollY, parseFloat(s.outlineWidth)]; })()"
        )
        if place is None:
            break
        reached.append(place)
    assert reached[0][0] == "A"  # the link that skips to the content
    assert all(width >= 2 for _, _, width in reached)
    tops = [top for _, top, _ in reached[1:]]
    assert tops == sorted(tops)
    assert {"A", "BUTTON", "DIV"} <= {tag for tag, _, _ in reached}


@pytest.mark.parametrize("name", ["bounded", "nested"])
def test_the_keyboard_reaches_everything(opened, name):
    page = opened(name)
    page.evaluate("document.querySelectorAll('details').forEach(box => { box.open = true; })")
    everything = page.locator("a[href], button, input, summary, .scroll").count()
    reached = 0
    for _ in range(everything + 5):
        page.keyboard.press("Tab")
        reached += page.evaluate("document.activeElement !== document.body && document.activeElement.matches(':focus-visible')")
    assert reached >= everything


def test_the_skip_link_leads_to_the_content(opened):
    page = opened("one")
    page.keyboard.press("Tab")
    assert page.get_by_text("Skip to the content").bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"


def test_printed_it_has_no_controls(opened):
    page = opened("nested")
    page.emulate_media(media="print")
    assert not page.locator("#temperature").is_visible()
    assert not page.get_by_role("navigation").is_visible()
    assert page.locator("#tree").is_visible()
    assert page.locator("#items-plane").is_visible()
    assert not page.get_by_role("button", name="Download CSV").first.is_visible()


def test_a_phone_shows_margins_beside_their_numbers(opened):
    page = opened("nested", width=390)
    beyond = page.eval_on_selector_all(
        ".histogram", "all => all.map(each => each.getBoundingClientRect().right - each.closest('.scroll').getBoundingClientRect().right)"
    )
    assert len(beyond) == 16
    assert max(beyond) <= 0
