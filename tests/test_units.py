"""Size: parsing, printing, arithmetic."""

import json
import pickle

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snugly.errors import InvalidSizeError
from snugly.units import LARGEST, Size, format_range, format_together, total, unit_for

sizes = st.integers(min_value=0, max_value=LARGEST).map(Size)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("512MiB", 512 * 1024**2),
        ("2 GB", 2_000_000_000),
        ("1.5 GiB", 3 * 1024**3 // 2),
        ("64KiB", 65_536),
        ("1B", 1),
        ("4096", 4096),
        (" 7 bytes ", 7),
        (".5kib", 512),
        ("2.GiB", 2 * 1024**3),
        ("512mb", 512_000_000),
        (4096, 4096),
        (Size(5), 5),
        (numpy.int64(12), 12),
        ("1.9B", 1),  # rounded down: a stated budget is never stretched
    ],
)
def test_sizes_are_read(written, expected):
    assert Size(written) == expected


@pytest.mark.parametrize(
    "written",
    [
        "4 bananas",
        "",
        "   ",
        "-1GiB",
        "nan",
        "inf",
        "1e9",
        "1,5 GiB",
        "GiB",
        "1 2",
        "0x10",
        "9 YiB",
    ],
)
def test_what_is_no_size_is_refused_with_a_hint(written):
    with pytest.raises(InvalidSizeError, match="cannot read") as caught:
        Size(written)
    assert "512MiB" in caught.value.hint


@pytest.mark.parametrize("number", [-1, numpy.int64(-5)])
def test_negative_numbers_are_refused(number):
    with pytest.raises(InvalidSizeError, match="negative"):
        Size(number)


@pytest.mark.parametrize("huge", [LARGEST + 1, "9000 EiB", "9" * 400])
def test_huge_sizes_are_refused(huge):
    with pytest.raises(InvalidSizeError, match="8 EiB"):
        Size(huge)


@pytest.mark.parametrize("value", [1.5, None, True, [1]])
def test_other_types_are_refused(value):
    with pytest.raises(InvalidSizeError, match="is not a size"):
        Size(value)


def test_a_bare_letter_could_mean_two_sizes():
    with pytest.raises(InvalidSizeError, match="two sizes") as caught:
        Size("4G")
    assert "4GiB" in caught.value.hint
    assert "4GB" in caught.value.hint


@pytest.mark.parametrize(
    ("number", "printed"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1025, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1024**2 - 1, "1.0 MiB"),
        (15_784_004_812, "14.7 GiB"),
        (4 * 1024**3, "4 GiB"),
        (LARGEST, "8.0 EiB"),
    ],
)
def test_sizes_print_in_binary_units(number, printed):
    assert str(Size(number)) == printed


def test_a_size_formats_as_text_or_as_its_number():
    size = Size("1 KiB")
    assert f"{size}" == "1 KiB"
    assert f"{size:,}" == "1,024"
    assert repr(size) == "Size(1024)"


@given(sizes)
def test_printing_and_reading_again_loses_at_most_half_a_decimal(size):
    # THEN the error is at most 0.05 of at least 1.0 of the unit printed, hence 5 %
    try:
        again = Size(str(size))
    except InvalidSizeError:
        assert str(size) == "8.0 EiB"  # one byte more than the largest size
    else:
        assert abs(int(again) - int(size)) <= 0.05 * size


@given(sizes)
def test_bytes_are_read_back_exactly(size):
    assert Size(f"{size:d} B") == size == Size(f"{size:d}")


@given(sizes, sizes)
def test_arithmetic_is_that_of_ints_and_stays_a_size(left, right):
    for result, expected in [
        (left + right, int(left) + int(right)),
        (left - right, int(left) - int(right)),
        (1 + left, 1 + int(left)),
        (1 - left, 1 - int(left)),
        (3 * left, 3 * int(left)),
        (-left, -int(left)),
        (abs(left - right), abs(int(left) - int(right))),
        (sum([left, right]), int(left) + int(right)),
        (total([left, right]), int(left) + int(right)),
    ]:
        assert type(result) is Size
        assert int(result) == expected


def test_a_negative_headroom_can_be_printed_and_sent():
    headroom = Size("1 GiB") - Size("2.5 GiB")
    assert str(headroom) == "-1.5 GiB"
    assert str(-Size("2 GiB")) == "-2 GiB"
    assert pickle.loads(pickle.dumps(headroom)) == headroom  # noqa: S301 - our own bytes


def test_json_has_plain_bytes():
    assert json.dumps({"peak": Size("1 KiB")}) == '{"peak": 1024}'


@given(sizes, st.integers(min_value=1, max_value=2**20))
def test_rounding_up_gives_the_smallest_multiple_that_holds(size, multiple):
    rounded = size.rounded_up_to(multiple)
    assert rounded % multiple == 0
    assert 0 <= rounded - size < multiple


def test_a_fraction_is_rounded_to_the_nearest_byte():
    assert Size(10).times(0.26) == 3
    assert type(Size(10).times(0.26)) is Size


def test_sizes_of_one_list_share_a_unit():
    assert format_together([Size("11.2 GiB"), Size("512 MiB"), Size(0)]) == (
        ["11.2", "0.5", "0"],
        "GiB",
    )
    assert format_range(Size("17.6 GiB"), Size("19.1 GiB")) == "17.6–19.1 GiB"
    assert unit_for() == "B"


def test_beyond_the_largest_unit_the_largest_unit_is_used():
    assert unit_for(2**80) == "EiB"
