"""The page in a real Chromium: what it shows, and that it shows it safely, anywhere."""

import re

import numpy as np
import pytest
from tests.reporting.example_pages import MIB, make_prediction, make_record, make_span

from snugly.graph.model import Kind
from snugly.recording.record import Samples, Window
from snugly.reporting.html import page_of_prediction, page_of_record, write_page
from snugly.timeline import Timeline
from snugly.units import Size, format_range

HOSTILE = "</script><img src=x onerror=alert(1)>\u2028\"'&amp;<b>bold</b>\u202e"


def make_sampled_record():
    seconds = np.arange(4, dtype=np.int64) * 1_000_000_000
    process = np.array([100, 200, 300, 250], np.int64) * MIB
    in_use = np.array([-1, 5, 14, 10], np.int64) * MIB
    samples = Samples(seconds, process, np.where(in_use < 0, -1, in_use), np.full(4, -1))
    return make_record(samples=samples, windows=(Window(0, 10**9, 6, 15 * MIB, 0),))


def test_a_page_opens_without_errors_requests_or_violations(open_page):
    opened = open_page(page_of_prediction(make_prediction()))
    assert opened.requests == [opened.address]
    assert opened.errors == []
    assert opened.violations() == []


def test_the_proof_above_can_fail(open_file, tmp_path):
    # GIVEN a page WHEN something on it would load an image THEN the policy forbids it, and is heard
    opened = open_file(write_page(page_of_record(make_record()), tmp_path / "page.html"))
    opened.page.evaluate(
        "new Promise((done) => { const image = new Image(); image.onerror = done;"
        " image.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACw='; })"
    )
    opened.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<p style=\"top:0\"></p>')")
    assert opened.violations() == ["img-src data", "style-src-attr inline"]


def test_a_prediction_is_told_in_words(open_page):
    opened = open_page(page_of_prediction(make_prediction(notes=("2 ops were assumed",))))
    text = opened.page.inner_text("body")
    assert opened.page.title() == "does not fit: train.py:model – Snugly"
    assert (
        opened.page.text_content("h1")
        == "one training step needs 15 MiB (14–17 MiB predicted); GPU:0 offers 12 MiB (measured)"
    )
    for words in (
        "the peak is in the backward pass of dense (train.py:12)",
        "batch_size=21 fits with nothing else changed",
        "2 ops were assumed",
        "expected within 14–17 MiB",
        "budget 12 MiB",
        "-3 MiB (predicted)",
    ):
        assert words.lower() in text.lower()
    legend = opened.page.locator("#legend li").all_inner_texts()
    assert [re.split(r"\s+", item)[0] for item in legend] == [
        "weights",
        "activations",
        "gradients",
        "rounding",
    ]
    assert opened.page.get_by_text("Live at the peak predicted").is_visible()


def test_a_record_is_told_in_words_with_its_samples(open_page):
    opened = open_page(page_of_record(make_sampled_record()))
    text = opened.page.inner_text("body")
    assert opened.page.text_content("h1") == (
        "the peak was 15 MiB (measured) on CPU:0, in gradient_tape/MatMul"
    )
    assert "286 MiB lay outside the allocator" in text
    assert "the process (resident set), at most 300 MiB" in text
    assert "in use by the allocator of CPU:0, at most 14 MiB" in text
    assert opened.page.locator("#samples canvas").bounding_box()["width"] > 600
    assert opened.page.locator("#advice").is_hidden()
    waste = opened.page.inner_text("#waste")
    assert "14 MiB\nasked for" in waste
    assert "1 MiB\nrounding" in waste
    assert "15 MiB\npeak" in waste
    assert "The gaps are not known: replayed by itself, this timeline peaks at 14 MiB" in waste


def test_without_samples_there_is_no_chart_of_them(open_page):
    opened = open_page(page_of_record(make_record()))
    assert opened.page.locator("#run").is_hidden()


def test_hostile_names_are_shown_as_text(open_page):
    # GIVEN names that are markup, everywhere a name can be
    long_name = f"{'x' * 5000}/end"
    timeline = Timeline(
        [
            make_span(3 * MIB, Kind.INPUT, HOSTILE, 1, 3, HOSTILE, HOSTILE),
            make_span(2 * MIB, Kind.OUTPUT, long_name, 0, 3, "__proto__", "constructor:1"),
        ],
        3,
    )
    record = make_record(
        timeline=timeline,
        program=HOSTILE,
        device=HOSTILE,
        notes=(HOSTILE,),
        facts={HOSTILE: HOSTILE},
    )
    # WHEN the page is opened and a block pointed at
    opened = open_page(page_of_record(record))
    opened.page.mouse.move(*opened.middle_of(HOSTILE))
    # THEN each is there letter by letter, and nothing was made of it
    assert opened.tip()["op"].strip() == HOSTILE
    assert opened.rows("op")[0] == HOSTILE
    assert opened.rows("layer") == [HOSTILE, "__proto__"]
    assert opened.rows("op")[1].endswith("x/end")
    assert opened.page.text_content("#program") == HOSTILE
    assert opened.page.text_content("#notes li") == HOSTILE
    assert HOSTILE in opened.page.text_content("#facts")
    assert opened.page.locator("img, b:text('bold')").count() == 0
    opened.page.fill("#filter", "constructor:1")
    opened.settle()
    assert opened.rows("line") == ["constructor:1"]
    assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_sizes_are_written_as_snugly_writes_them(open_page):
    opened = open_page(page_of_record(make_record()))
    sizes = [0, 1, 1023, 1024, 1280, 1536, 5 * MIB // 4, 2**20 - 1, 2**20 - 53, 2**30 * 7 // 4]
    sizes += [int(3.7**power) for power in range(1, 28)]
    written = opened.page.evaluate("(sizes) => sizes.map(snugly.formatBytes)", sizes)
    assert written == [str(Size(size)) for size in sizes]
    ranges = [[size, 2 * size + 1] for size in sizes]
    written = opened.page.evaluate(
        "(all) => all.map((each) => snugly.formatRange(...each))", ranges
    )
    assert written == [format_range(*each) for each in ranges]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_system_and_a_button(open_page, scheme):
    opened = open_page(page_of_record(make_sampled_record()), color_scheme=scheme)
    ground = "getComputedStyle(document.body).backgroundColor"
    blocks = "document.querySelector('#blocks canvas').toDataURL().length"
    before = opened.page.evaluate(f"[{ground}, document.documentElement.dataset.theme]")
    drawn = opened.page.evaluate(blocks)
    assert (
        before
        == {
            "light": ["rgb(244, 245, 247)", "light"],
            "dark": ["rgb(13, 16, 21)", "dark"],
        }[scheme]
    )
    # WHEN the button is pressed THEN page and canvases change, and it is remembered
    opened.page.click("#theme")
    opened.settle()
    other = {"light": "dark", "dark": "light"}[scheme]
    assert opened.page.evaluate("document.documentElement.dataset.theme") == other
    assert opened.page.evaluate(ground) != before[0]
    assert opened.page.evaluate(blocks) != drawn
    assert opened.page.get_by_role("button", name=f"Switch to {scheme} colours").is_visible()
    opened.page.reload()
    assert opened.page.evaluate("document.documentElement.dataset.theme") == other


@pytest.mark.parametrize(("width", "height"), [(320, 568), (390, 844), (820, 1180), (2560, 1300)])
def test_the_page_fits_screens_of_any_width(open_page, width, height):
    prediction = make_prediction(notes=("a" * 300,), peak_where="b" * 300)
    opened = open_page(page_of_prediction(prediction), viewport={"width": width, "height": height})
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    for chart in ("#line canvas", "#blocks canvas.base"):
        box = opened.page.locator(chart).bounding_box()
        assert 0.6 * min(width, 1240) < box["width"] <= width
    for tag in opened.page.locator("#gauge .tag").all():
        box, gauge = tag.bounding_box(), opened.page.locator("#gauge").bounding_box()
        assert box["x"] >= gauge["x"] - 1
        assert box["x"] + box["width"] <= gauge["x"] + gauge["width"] + 1


def test_charts_follow_the_window(open_page):
    opened = open_page(page_of_record(make_record()))
    opened.page.set_viewport_size({"width": 700, "height": 800})
    opened.settle()
    line = opened.page.locator("#line .u-over").bounding_box()
    assert line["x"] + line["width"] <= 700
    opened.page.mouse.move(*opened.middle_of("model/dense/Relu"))
    assert opened.tip()["op"] == "model/dense/Relu"


@pytest.mark.parametrize(
    "page",
    [
        page_of_record(make_record(timeline=Timeline([], 0), peak=Size(0))),
        page_of_prediction(make_prediction(timeline=None)),
    ],
    ids=["empty record", "no timeline"],
)
def test_without_a_timeline_that_is_said(open_page, page):
    opened = open_page(page)
    assert "There is no timeline to draw" in opened.page.inner_text("#time")
    assert opened.page.locator("canvas").count() == 0
    assert len(opened.rows("size")) == len(page.stack.spans)
    opened.page.keyboard.press("Escape")
    opened.page.keyboard.press("/")
    assert opened.page.evaluate("document.activeElement.id") == "filter"


def test_the_page_prints(open_page):
    opened = open_page(page_of_record(make_sampled_record()), color_scheme="dark")
    # Headless Chromium fires beforeprint for a PDF, in which the page turns light.
    opened.page.evaluate(
        "addEventListener('beforeprint',"
        " () => { window.printed = document.documentElement.dataset.theme })"
    )
    document = opened.page.pdf()
    assert document.startswith(b"%PDF")
    assert opened.page.evaluate("window.printed") == "light"
    assert opened.page.evaluate("document.documentElement.dataset.theme") == "dark"
    opened.page.emulate_media(media="print")
    assert opened.page.locator("#filter").is_hidden()
    assert len(opened.rows("size")) == 3
