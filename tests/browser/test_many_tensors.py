"""A page of 100,000 tensors does all that a small one does. How fast: `benchmarks/page.py`."""

import pytest
from tests.reporting.example_pages import MIB, make_record, make_span

from snugly.graph.model import Kind
from snugly.reporting.html import page_of_record, write_page
from snugly.timeline import Timeline

COUNT = 100_000
KEPT = 40_000


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Half of the tensors stay to the end, the others live for three moments; all are small."""
    spans = [
        make_span(
            1000 + index % 500,
            Kind.ACTIVATION if index < KEPT else Kind.GRADIENT,
            f"model/layer_{index % 100}/MatMul_{index}",
            index,
            COUNT + 3 if index < KEPT else index + 3,
            f"layer_{index % 100}",
            f"train.py:{index % 90}",
        )
        for index in range(COUNT)
    ]
    spans.append(make_span(64 * MIB, Kind.WEIGHT, "embedding", 0, COUNT + 3))
    page = page_of_record(make_record(timeline=Timeline(spans, COUNT + 3)))
    return write_page(page, tmp_path_factory.mktemp("pages") / "page.html")


@pytest.fixture
def opened(open_file, path):
    opened = open_file(path)
    yield opened
    assert opened.errors == []
    assert opened.violations() == []


def test_all_rows_can_be_scrolled_to_though_few_exist(opened):
    assert "40,0" in opened.page.inner_text("#count")
    rows = int(opened.page.get_attribute("#table", "aria-rowcount")) - 1
    assert opened.page.locator("#rows tr[data-row]").count() < 80
    for share in (0.5, 1):
        opened.page.evaluate(
            "(share) => { const it = document.getElementById('scroll');"
            " it.scrollTop = share * it.scrollHeight }",
            share,
        )
        opened.settle()
        opened.settle()
        shown = [
            int(row.get_attribute("data-row")) for row in opened.page.locator("tr[data-row]").all()
        ]
        assert shown[0] < share * rows <= shown[-1] + 1 + 30
        assert len(shown) < 80
    assert shown[-1] == rows - 1
    last = opened.page.locator("#rows tr[data-row]").last.bounding_box()
    frame = opened.page.locator("#scroll").bounding_box()
    assert last["y"] + last["height"] <= frame["y"] + frame["height"] + 1


def test_sorting_and_filtering_reach_every_row(opened):
    opened.page.fill("#filter", "MatMul_12345")
    opened.settle()
    assert opened.rows("op") == ["model/layer_45/MatMul_12345"]
    opened.page.fill("#filter", "layer:layer_7 kind:activation")
    opened.settle()
    assert opened.page.inner_text("#count").startswith("4,400 of 40,0")
    opened.page.get_by_role("columnheader", name="born").get_by_role("button").click()
    assert opened.rows("born")[:3] == ["7", "70", "71"]


def test_small_blocks_are_one_area_until_one_zooms_in(opened):
    # GIVEN the whole run, where a block is a hundredth of a pixel high
    opened.page.locator("#blocks").scroll_into_view_if_needed()
    box = opened.page.locator("#blocks").bounding_box()
    height = opened.page.evaluate("snugly.page.blocks.height")
    share = 1 - (64 * MIB + 5_000_000) / height
    x, y = box["x"] + 800, box["y"] + 4 + share * (box["height"] - 8)
    opened.page.mouse.move(x, y)
    opened.settle()
    assert "small blocks" in opened.page.inner_text("#tip")
    # WHEN one comes closer, along the time and upwards THEN single ones are told apart
    for _ in range(16):
        opened.page.mouse.wheel(0, -400)
        opened.page.keyboard.down("Shift")
        opened.page.mouse.wheel(0, -400)
        opened.page.keyboard.up("Shift")
        opened.settle()
    opened.page.mouse.move(x + 1, y)
    assert opened.tip()["op"].startswith("model/layer_")
    opened.page.keyboard.press("Escape")
    assert opened.view()[:2] == [0, COUNT + 3]
