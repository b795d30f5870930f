"""How a page is drawn: blocks that never overlap, waste, samples, colours one can tell apart."""

import itertools
import re
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reporting.example_pages import (
    MIB,
    TIMELINE,
    make_prediction,
    make_record,
    make_span,
)

from snugly.graph.model import Kind
from snugly.recording.record import Samples, Window
from snugly.reporting.html import page_of_prediction, page_of_record
from snugly.reporting.html.samples import MOST_SAMPLES
from snugly.reporting.html.stacking import stack
from snugly.timeline import Timeline
from snugly.units import Size

# --------------------------------------------------------------------------------------- stacking


@st.composite
def timelines(draw):
    length = draw(st.integers(1, 30))
    spans = []
    for index in range(draw(st.integers(0, 40))):
        birth = draw(st.integers(0, length - 1))
        death = draw(st.integers(birth + 1, length))
        kind = draw(st.sampled_from(list(Kind)))
        spans.append(make_span(draw(st.integers(1, 1000)), kind, f"op{index}", birth, death))
    return Timeline(spans, length)


@given(timelines(), st.sampled_from([0, 3, 100]))
def test_blocks_never_overlap_and_none_is_lost(timeline, most_large):
    # GIVEN any lifetimes WHEN stacked, with or without a band of small ones
    stacked = stack(timeline.spans, timeline.length, most_large)
    # THEN two that live at one moment have no byte in common
    placed = list(zip(stacked.spans, stacked.offsets, strict=True))
    for moment in range(timeline.length):
        live = sorted(
            (offset, offset + span.bytes)
            for span, offset in placed
            if span.birth <= moment < span.death
        )
        assert all(below[1] <= above[0] for below, above in itertools.pairwise(live))
    assert sorted(map(id, stacked.spans)) == sorted(map(id, timeline.spans))
    assert stacked.height == max((offset + span.bytes for span, offset in placed), default=0)


def test_what_stays_lies_at_the_bottom_and_small_ones_in_a_band_above_it():
    stacked = stack(TIMELINE.spans, TIMELINE.length, most_large=2)
    offsets = dict(zip((span.bytes for span in stacked.spans), stacked.offsets, strict=True))
    assert offsets[8 * MIB] == 0
    assert offsets[100] == stacked.resident_top == 8 * MIB
    assert min(offsets[4 * MIB], offsets[2 * MIB]) == stacked.band_top == 8 * MIB + 100


def test_blocks_of_one_size_are_not_stacked_twice_as_high_as_the_peak():
    # GIVEN so many blocks of one size that some would be large and others small
    spans = [make_span(100, Kind.GRADIENT, f"op{index}", index, index + 10) for index in range(90)]
    # WHEN stacked THEN all lie in one band, no higher than the peak
    stacked = stack(spans, 100, most_large=20)
    assert stacked.height == Timeline(spans, 100).peak()[1] == 1000
    assert stacked.larges == 0


# ------------------------------------------------------------------------------ waste and samples


def test_rounding_is_measured_where_chunks_are_known():
    waste = page_of_record(make_record()).waste
    assert (waste.rounding, waste.rounding_mark) == (MIB, "measured")


def test_what_is_not_known_about_waste_is_said():
    bare = Timeline([make_span(MIB, Kind.INPUT, "x", 0, 2)], 2)
    waste = page_of_record(make_record(timeline=bare)).waste
    assert waste.rounding is None
    assert waste.gaps is None
    assert any("rounding is not known" in reason for reason in waste.why)
    assert any("peaks at 1 MiB, too far" in reason for reason in waste.why)


def test_gaps_come_from_a_replay_that_reaches_the_peak():
    # GIVEN three blocks side by side of which the middle one dies WHEN a larger one is born
    sizes = (MIB // 4, MIB // 4, MIB // 4, MIB)
    spans = [
        make_span(size, Kind.ACTIVATION, "x", moment, death)
        for size, moment, death in zip(sizes, (0, 1, 2, 4), (5, 3, 5, 5), strict=True)
    ]
    record = make_record(timeline=Timeline(spans, 5), peak=Size(sum(sizes)))
    # THEN the hole it left is a gap (the larger one got a chunk that is not worth splitting)
    assert page_of_record(record).waste.gaps == MIB // 4


def test_a_predictions_rounding_is_its_peak_less_what_is_asked_for():
    waste = page_of_prediction(make_prediction()).waste
    assert (waste.rounding, waste.rounding_mark, waste.gaps) == (MIB, "predicted", 0)
    shared = page_of_prediction(make_prediction(peak=Size(10 * MIB))).waste
    assert shared.rounding is None
    assert any("shares buffers" in reason for reason in shared.why)


def make_samples(count, device="CPU:0"):
    moments = np.arange(count, dtype=np.int64) * 1_000_000_000
    process = np.arange(count, dtype=np.int64) * MIB
    in_use = np.where(moments == 0, -1, 1000)
    samples = Samples(moments, process, in_use, np.full(count, 9 * MIB if "GPU" in device else -1))
    windows = (Window(0, 500_000_000, 12, 100, 0),)
    return make_record(device=device, samples=samples, windows=windows)


def test_samples_become_lines_and_the_rest_outside_the_allocator():
    samples = page_of_record(make_samples(4)).samples
    assert samples is not None
    assert samples.seconds == [0, 1, 2, 3]
    lines = dict(samples.lines)
    assert lines["the process (resident set)"] == [0, MIB, 2 * MIB, 3 * MIB]
    assert lines["in use by the allocator of CPU:0"] == [None, 1000, 1000, 1000]
    assert len(lines) == 2  # nothing is known of a card
    assert samples.windows == [(0, 0.5)]
    assert samples.rest is not None
    assert (samples.rest.outside, samples.rest.whole) == (3 * MIB - 1000, 3 * MIB)


def test_on_a_gpu_the_rest_is_that_of_the_card():
    samples = page_of_record(make_samples(4, "GPU:0")).samples
    assert samples is not None
    assert samples.rest is not None
    assert (samples.rest.of, samples.rest.outside) == ("the card", 9 * MIB - 1000)


def test_long_runs_are_thinned_by_their_highest_samples():
    samples = page_of_record(make_samples(3 * MOST_SAMPLES + 1)).samples
    assert samples is not None
    assert len(samples.seconds) <= MOST_SAMPLES
    assert samples.every == 4
    process = dict(samples.lines)["the process (resident set)"]
    assert len(process) == len(samples.seconds)
    assert process[-1] == 3 * MOST_SAMPLES * MIB


# --------------------------------------------------------------------------------------- colours

# Machado, Oliveira and Fernandes (2009), severity 1.0, applied to linear RGB.
SIGHTS = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# Oklab (Ottosson 2020): linear RGB to cone responses, and their cube roots to lightness and hue.
TO_CONES = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
TO_LAB = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]


def palette(theme):
    """The colours of a theme, by their names in the style sheet, as linear RGB."""
    style = files("snugly.reporting.html").joinpath("assets", "colours.css").read_text("utf-8")
    blocks = re.findall(r":root(?:\[[^\]]*\])? \{(.*?)\}", style, re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", blocks[theme == "dark"]))
    return {name: linear(colour) for name, colour in colours.items()}


def linear(colour):
    values = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """As WCAG 2.2 defines it."""
    lights = sorted(float(colour @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def seen(colour, sight):
    return TO_LAB @ np.cbrt(TO_CONES @ np.clip(np.asarray(SIGHTS[sight]) @ colour, 0, 1))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_shapes_have_the_contrast_that_wcag_asks_for(theme):
    colours = palette(theme)
    for ground in ("card", "ground"):
        for ink in ("ink", "soft", "faint", "accent", "budget"):
            assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    for tone in ("good", "bad", "unsure", "plain"):
        assert contrast(colours[tone], colours[f"{tone}-ground"]) >= 4.5, tone
    inks = linear("#0d1117"), linear("#ffffff")
    for kind in Kind:
        fill = colours[f"kind-{kind}"]
        assert contrast(fill, colours["card"]) >= 3, kind
        assert max(contrast(fill, ink) for ink in inks) >= 4.5, kind


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_kinds_are_told_apart_whatever_ones_sight(theme, sight):
    # 0.02 is about the least difference in Oklab that is seen side by side; five times that.
    # What is not known is left out: it has dots, not only a colour.
    colours = palette(theme)
    for one, other in itertools.combinations(set(Kind) - {Kind.UNKNOWN}, 2):
        difference = seen(colours[f"kind-{one}"], sight) - seen(colours[f"kind-{other}"], sight)
        assert np.linalg.norm(difference) > 0.1, (one, other)
