"""Looking around on the page in a real Chromium: pointing, zooming, sorting, filtering, keys."""

import pytest
from tests.reporting.example_pages import MIB, TIMELINE, make_prediction, make_record, make_span

from snugly.graph.model import Kind
from snugly.reporting.html import page_of_prediction, page_of_record
from snugly.timeline import Timeline

WHOLE = [0, 9]


@pytest.fixture
def opened(open_page):
    return open_page(page_of_record(make_record()))


# ---------------------------------------------------------------------------------------- pointing


def test_a_block_says_what_it_is_and_where_it_comes_from(opened):
    opened.page.mouse.move(*opened.middle_of("model/dense/Relu"))
    assert opened.tip() == {
        "lead": "4 MiB activation\nmeasured",
        "op": "model/dense/Relu",
        "layer": "dense",
        "line": "train.py:12",
        "chunk": "5 MiB (measured)",
        "alive": "from moment 2 to 7 (5 moments)",
    }


def test_what_is_not_known_of_a_block_is_said(open_page):
    timeline = Timeline([make_span(MIB, Kind.UNKNOWN, "x", 0, 2)], 2)
    opened = open_page(page_of_record(make_record(timeline=timeline)))
    opened.page.mouse.move(*opened.middle_of("x"))
    tip = opened.tip()
    assert (tip["layer"], tip["line"]) == ("not known", "not known")
    assert tip["alive"] == "the whole time: there before and after"
    assert "chunk" not in tip


def test_the_tip_goes_when_the_pointer_does(opened):
    opened.page.mouse.move(*opened.middle_of("dense/kernel"))
    assert opened.tip()["op"] == "dense/kernel"
    opened.page.mouse.move(5, 5)
    opened.settle()
    assert opened.page.locator("#tip").is_hidden()


def test_the_line_reads_out_the_moment_pointed_at(opened):
    opened.page.locator("#line").scroll_into_view_if_needed()
    box = opened.page.locator("#line .u-over").bounding_box()
    opened.page.mouse.move(box["x"] + box["width"] * 4.5 / 9, box["y"] + 50)
    opened.settle()
    text = opened.page.inner_text("#readout").replace("\n", " ")
    assert "moment 4 of 9, the peak" in text
    assert "14 MiB asked for" in text
    assert "15 MiB in chunks" in text
    assert "allocates" in text
    assert "MatMul, 2 MiB" in text


# ----------------------------------------------------------------------------------------- zooming


def test_the_wheel_zooms_both_charts_and_three_ways_lead_back(opened):
    x, y = opened.middle_of("model/dense/Relu")
    for back in ("escape", "twice", "button"):
        opened.page.mouse.move(x, y)
        opened.page.mouse.wheel(0, -200)
        begin, end = opened.view()[:2]
        assert 0 < begin < 4.5 < end < 9
        assert opened.line_view() == [begin, end]
        if back == "escape":
            opened.page.keyboard.press("Escape")
        elif back == "twice":
            opened.page.mouse.dblclick(x, y)
        else:
            opened.page.click("#reset")
        assert opened.view()[:2] == WHOLE, back
        assert opened.line_view() == WHOLE
        assert opened.page.locator("#reset").is_disabled()


def test_dragging_on_the_line_zooms_both(opened):
    opened.page.locator("#line").scroll_into_view_if_needed()
    box = opened.page.locator("#line .u-over").bounding_box()
    opened.page.mouse.move(box["x"] + box["width"] * 2 / 9, box["y"] + 60)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + box["width"] * 7 / 9, box["y"] + 70, steps=5)
    opened.page.mouse.up()
    begin, end = opened.view()[:2]
    assert (begin, end) == pytest.approx((2, 7), abs=0.05)
    assert opened.line_view() == [begin, end]
    opened.page.mouse.dblclick(box["x"] + 100, box["y"] + 60)
    assert opened.view()[:2] == WHOLE


def test_dragging_a_box_over_blocks_zooms_in_both_directions(opened):
    opened.page.locator("#blocks").scroll_into_view_if_needed()
    box = opened.page.locator("#blocks").bounding_box()
    opened.page.mouse.move(box["x"] + 300, box["y"] + 60)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + 1000, box["y"] + 200, steps=4)
    opened.page.mouse.up()
    begin, end, bottom, top = opened.view()
    assert 0 < begin < end < 9
    assert 0 < bottom < top < 14 * MIB
    assert opened.line_view() == [begin, end]
    opened.page.keyboard.press("Escape")
    assert opened.view() == [0, 9, 0, 14 * MIB]


def test_shift_and_the_wheel_zoom_upwards_only(opened):
    opened.page.mouse.move(*opened.middle_of("dense/kernel"))
    opened.page.keyboard.down("Shift")
    opened.page.mouse.wheel(0, -300)
    opened.page.keyboard.up("Shift")
    begin, end, bottom, top = opened.view()
    assert [begin, end] == WHOLE
    assert top - bottom < 14 * MIB


def test_at_the_widest_view_the_wheel_scrolls_the_page(opened):
    opened.page.set_viewport_size({"width": 1000, "height": 500})
    opened.page.mouse.move(*opened.middle_of("dense/kernel"))
    before = opened.page.evaluate("scrollY")
    opened.page.mouse.wheel(0, 120)
    opened.until(f"scrollY > {before}")
    assert opened.view()[:2] == WHOLE


def test_buttons_zoom_for_those_without_a_wheel(opened):
    opened.page.get_by_role("button", name="Zoom in").click()
    assert opened.view()[:2] == [2.25, 6.75]
    opened.page.get_by_role("button", name="Zoom out").click()
    assert opened.view()[:2] == WHOLE
    opened.page.get_by_role("button", name="peak", exact=True).click()
    assert opened.view()[:2] == [2.5, 6.5]  # never fewer than four moments


# ---------------------------------------------------------------------- the table, sorted, filtered


def test_the_table_has_what_is_live_at_the_peak_largest_first(opened):
    assert opened.rows("size") == ["8 MiB", "4 MiB", "2 MiB"]
    assert opened.rows("kind") == ["weight", "activation", "gradient"]
    assert opened.rows("freed") == ["stays", "7", "6"]
    assert opened.page.inner_text("#count") == "3 tensors, 14 MiB"


@pytest.mark.parametrize(
    ("column", "first"),
    [
        ("size", ["2 MiB", "4 MiB", "8 MiB"]),  # it was sorted by size, largest first
        ("kind", ["activation", "gradient", "weight"]),
        ("layer", ["", "dense", "dense"]),
        ("op", ["dense/kernel", "gradient_tape/MatMul", "model/dense/Relu"]),
        ("line", ["", "train.py:10", "train.py:12"]),
        ("chunk", ["8 MiB", "5 MiB", "2 MiB"]),
        ("born", ["0", "2", "4"]),
        ("freed", ["6", "7", "stays"]),
    ],
)
def test_every_column_sorts_and_sorts_back(opened, column, first):
    head = opened.page.get_by_role("columnheader", name=column, exact=True)
    head.get_by_role("button").click()
    assert opened.rows(column) == first
    assert head.get_attribute("aria-sort") in {"ascending", "descending"}
    head.get_by_role("button").click()
    assert opened.rows(column) == first[::-1]


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("RELU", ["4 MiB"]),
        ("dense", ["8 MiB", "4 MiB"]),
        ("dense relu", ["4 MiB"]),
        ("train.py:10", ["8 MiB"]),
        ("gradient", ["2 MiB"]),
        ("kind:weight", ["8 MiB"]),
        ("op:dense", ["8 MiB", "4 MiB"]),
        ("layer:model", []),
        ("nothing-like-it", []),
    ],
)
def test_the_filter_keeps_rows_with_all_its_words(opened, text, sizes):
    opened.page.fill("#filter", text)
    opened.settle()
    assert opened.rows("size") == sizes
    assert opened.page.inner_text("#count").startswith(f"{len(sizes)} of 3 tensors")
    assert opened.page.locator("#empty").is_visible() == (not sizes)


def test_the_filter_pales_other_blocks(opened):
    drawn = "document.querySelector('#blocks canvas').toDataURL()"
    before = opened.page.evaluate(drawn)
    opened.page.fill("#filter", "kind:weight")
    opened.settle()
    assert opened.page.evaluate(drawn) != before
    opened.page.fill("#filter", "")
    opened.settle()
    assert opened.page.evaluate(drawn) == before


def test_the_legend_filters_by_kind_and_back(opened):
    button = opened.page.locator("#legend button", has_text="gradients")
    button.click()
    opened.settle()
    assert opened.rows("kind") == ["gradient"]
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    opened.settle()
    assert len(opened.rows("kind")) == 3


def test_a_click_lists_what_is_live_at_another_moment(opened):
    # GIVEN the moment after the activation died WHEN the line is clicked there
    box = opened.page.locator("#line .u-over").bounding_box()
    opened.page.mouse.click(box["x"] + box["width"] * 7.5 / 9, box["y"] + 50)
    opened.settle()
    # THEN the table has what lives then, and a button leads back
    assert opened.page.inner_text("#live-title").startswith("Live at moment 7")
    assert opened.rows("size") == ["8 MiB", "100 B"]
    opened.page.get_by_role("button", name="back to the peak").click()
    opened.settle()
    assert opened.rows("size") == ["8 MiB", "4 MiB", "2 MiB"]


# ---------------------------------------------------------------------------------------- keyboard


def test_tab_reaches_everything(opened):
    reached = []
    for _ in range(40):
        opened.page.keyboard.press("Tab")
        reached.append(
            opened.page.evaluate("document.activeElement.id || document.activeElement.textContent")
        )
        if reached[-1] == "freed":
            break
    parts = ("theme", "closer", "farther", "near", "line", "blocks", "filter", "scroll", "op")
    for part in parts:
        assert part in reached, (part, reached)
    assert any(name.startswith("activations") for name in reached)
    # What has the focus can be seen.
    assert opened.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_arrow_keys_move_along_the_moments(opened):
    opened.page.focus("#line")
    opened.page.keyboard.press("p")
    opened.page.keyboard.press("ArrowRight")
    opened.settle()
    assert "moment 5 of 9" in opened.page.inner_text("#readout").replace("\n", " ")
    opened.page.keyboard.press("Home")
    opened.settle()
    assert "moment 0 of 9" in opened.page.inner_text("#readout").replace("\n", " ")
    opened.page.keyboard.press("End")
    opened.until("document.getElementById('said').textContent === 'moment 8, 8 MiB asked for'")


def test_arrow_keys_move_from_block_to_block_and_say_what_it_is(opened):
    opened.page.focus("#blocks")
    opened.page.keyboard.press("p")
    assert opened.tip()["op"] == "dense/kernel"  # the largest there
    opened.page.keyboard.press("ArrowUp")
    above = opened.tip()["op"]
    opened.page.keyboard.press("ArrowUp")
    assert {above, opened.tip()["op"]} == {"model/dense/Relu", "gradient_tape/MatMul"}
    opened.page.keyboard.press("ArrowDown")
    assert opened.tip()["op"] == above
    opened.until(f"document.getElementById('said').textContent.includes('{above}')")
    opened.page.keyboard.press("Escape")
    opened.settle()
    assert opened.page.locator("#tip").is_hidden()


def test_keys_zoom_reset_and_list(opened):
    opened.page.focus("#blocks")
    opened.page.keyboard.press("p")
    opened.page.keyboard.press("+")
    assert opened.view()[:2] == [2.25, 6.75]
    opened.page.keyboard.press("-")
    assert opened.view()[:2] == WHOLE
    for _ in range(3):
        opened.page.keyboard.press("ArrowRight")
    opened.page.keyboard.press("Enter")
    opened.settle()
    assert opened.page.inner_text("#live-title").startswith("Live at moment 7")


def test_the_slash_goes_to_the_filter_and_escape_clears_it(opened):
    opened.page.keyboard.press("/")
    opened.page.keyboard.type("relu/")
    assert opened.page.input_value("#filter") == "relu/"
    opened.page.keyboard.press("Escape")
    opened.settle()
    assert opened.page.input_value("#filter") == ""
    assert len(opened.rows("size")) == 3
    opened.page.keyboard.press("Escape")
    assert opened.page.evaluate("document.activeElement.id") != "filter"


def test_rows_are_chosen_with_the_keyboard_and_shown_among_the_blocks(opened):
    opened.page.focus("#scroll")
    opened.page.keyboard.press("ArrowDown")
    opened.page.keyboard.press("ArrowDown")
    opened.settle()
    chosen = opened.page.locator("#rows tr[aria-selected=true]")
    assert chosen.count() == 1
    assert "model/dense/Relu" in chosen.text_content()
    assert opened.page.evaluate("snugly.view.block") == opened.block("model/dense/Relu")
    opened.page.keyboard.press("End")
    opened.settle()
    assert "gradient_tape/MatMul" in chosen.text_content()


def test_parts_of_the_page_have_names_for_those_who_hear_it(open_page):
    page = open_page(page_of_prediction(make_prediction())).page
    count = len(TIMELINE.spans)
    for name in (
        "Bytes asked for over 9 moments; most, 14 MiB, at moment 4",
        f"{count} blocks by lifetime and size",
    ):
        assert page.get_by_role("application", name=name).count() == 1
    for name in ("Verdict", "What the peak is made of", "What to do about it", "Waste at the peak"):
        assert page.get_by_role("region", name=name).count() == 1
    assert page.get_by_role("searchbox", name="Filter").count() == 1
    assert page.get_by_role("table").get_attribute("aria-rowcount") == "4"
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button')]"
        ".filter((each) => !each.ariaLabel && !each.textContent.trim()).length"
    )
    assert unnamed == 0
