"""The notebook's picture: right as data, harmless as HTML, complete in words."""

import re
import xml.etree.ElementTree as ET

import numpy
import pytest

from snugly.graph.model import Kind, Origin
from snugly.integrations.picture import COLUMNS, TOP_TENSORS, draw_text, picture_data
from snugly.integrations.picture_html import draw_html
from snugly.recording.record import Record, Samples
from snugly.timeline import Timeline
from snugly.timeline.model import Span
from snugly.units import Size

MIB = 1024**2
EVIL = "<script>alert('&')</script>"


def make_record(spans=(), length=0, **rest):
    settings = {"program": "train.py", "device": "CPU:0", "peak": Size(8 * MIB)} | rest
    return Record(timeline=Timeline(spans, length), **settings)


@pytest.fixture
def record():
    spans = [
        Span(4 * MIB, Kind.WEIGHT, "dense/kernel", 0, 5000, Origin("dense", "train.py:3")),
        Span(2 * MIB, Kind.ACTIVATION, f"Relu{EVIL}", 1000, 1001, Origin(EVIL, "train.py:4")),
        *(Span(MIB, Kind.GRADIENT, f"MatMul_{i}", 1000, 2000) for i in range(20)),
    ]
    return make_record(spans, 5000, notes=[f"a {EVIL}"])


def parse(html):
    """The fragment as a tree: it is well-formed, or this raises."""
    return ET.fromstring(html)  # noqa: S314 - our own text


def test_the_curve_keeps_every_peak_however_short(record):
    # GIVEN 2 MiB more for one of 5,000 moments
    curve = picture_data(record).curve
    assert len(curve.bytes) == COLUMNS
    assert max(curve.bytes) == int(record.requested) == 26 * MIB
    assert (min(curve.bytes), curve.over, curve.of) == (4 * MIB, "program order", "requested")


def test_the_largest_tensors_come_with_layer_and_line_and_the_rest_as_a_sum(record):
    picture = picture_data(record, lambda line: line.replace("train.py", "In[3]"))
    assert len(picture.rows) == TOP_TENSORS
    first = picture.rows[0]
    assert (first.size, first.kind, first.layer) == (4 * MIB, "weight", "dense")
    assert first.line == "In[3]:3"
    assert (picture.more, picture.more_size) == (14, 14 * MIB)
    shown = sum(row.size for row in picture.rows) + picture.more_size
    assert shown == record.requested == sum(picture.parts.values())


def test_names_are_text_and_never_markup(record):
    html = draw_html(picture_data(record))
    assert "<script" not in html
    tree = parse(html)
    tags = {element.tag for element in tree.iter()}
    assert tags <= {
        *("div", "style", "p", "span", "svg", "title", "path", "circle", "rect", "text"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    }
    text = "".join(tree.itertext())
    assert text.count(EVIL) == 3  # layer, operation, note
    assert not re.search(r"https?:|url\(|@import", html)


def test_names_and_notes_are_bounded():
    spans = [Span(MIB, Kind.WEIGHT, "x" * 10_000, 0, 1, Origin("y" * 10_000))]
    picture = picture_data(make_record(spans, 1, notes=["z" * 10_000] * 1000))
    assert len(draw_html(picture)) < 20_000
    assert picture.rows[0].op.endswith("x…")


def test_the_bar_is_as_wide_as_the_parts_are_large(record):
    tree = parse(draw_html(picture_data(record)))
    bar = next(svg for svg in tree.iter("svg") if svg.get("viewBox", "").endswith(" 14"))
    widths = {rect.get("class"): float(rect.get("width")) for rect in bar.iter("rect")}
    assert widths["s-gradient"] / widths["s-weight"] == pytest.approx(20 / 4, rel=0.01)


def test_in_words_it_says_the_same(record):
    text = draw_text(picture_data(record))
    assert text.splitlines()[0] == "peak 8 MiB (measured) on CPU:0"
    assert "made of  gradients 20 · weights 4 · activations 2 MiB" in text
    assert re.search(r"4 MiB +weight +dense +dense/kernel +train.py:3", text)
    assert "14 MiB" in text
    assert "14 more" in text
    assert "note: a <script>" in text


@pytest.mark.parametrize(
    ("in_use", "of", "highest"),
    [([-1, 5, 9], "in use on CPU:0", 9), ([-1, -1, -1], "occupied by the process", 70)],
)
def test_without_a_trace_the_samples_are_drawn(in_use, of, highest):
    columns = {
        "nanoseconds": [0, 1, 2],
        "process": [50, 70, 60],
        "in_use": in_use,
        "card": [-1, -1, -1],
    }
    samples = Samples(**{name: numpy.array(column) for name, column in columns.items()})
    picture = picture_data(make_record(samples=samples))
    assert (picture.curve.of, max(picture.curve.bytes)) == (of, highest)
    assert picture.curve.over == "time"
    assert "over time" in "".join(parse(draw_html(picture)).itertext())


def test_an_empty_record_is_still_a_picture():
    picture = picture_data(make_record(peak=Size(0)))
    assert picture.curve is None
    assert draw_text(picture) == "peak 0 B (measured) on CPU:0"
    assert "peak 0 B" in "".join(parse(draw_html(picture)).itertext())
