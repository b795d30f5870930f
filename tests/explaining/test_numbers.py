"""Numbers in a log: what was asked for, what was free, and in which pieces."""

import pytest

from snugly.explaining.lines import Line
from snugly.explaining.numbers import NumberReader, Numbers, bytes_of_tensor
from snugly.units import Size

GIB = 1024**3
MIB = 1024**2


def numbers_of(*texts):
    reader = NumberReader()
    assert len(list(reader.watch(Line(1, text) for text in texts))) == len(texts)
    return reader.numbers


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        ("16,12,512,512", "float", 192 * MIB),
        ("16, 12, 512, 512", "half", 96 * MIB),
        ("40500, 224, 224, 3", "float64", 40500 * 224 * 224 * 3 * 8),
        ("629145600,", "uint8", 600 * MIB),
        ("", "double", 8),
        ("10,0", "float", 0),
        ("10,x", "float", None),
        ("10", "variant", None),
        ("9" * 18 + "," + "9" * 18, "float", None),
    ],
)
def test_a_shape_and_a_type_are_bytes(shape, dtype, expected):
    assert bytes_of_tensor(shape, dtype) == expected


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("OOM when allocating tensor with shape[1024,1024] and type float on x", 4 * MIB),
        ("ran out of memory trying to allocate 2.00GiB (rounded to 1)", 2 * GIB),
        ("Unable to allocate 600. MiB for an array", 600 * MIB),
        ("failed to allocate 11.11G (11924878080 bytes) from device", round(11.11 * GIB)),
        ("Out of memory while trying to allocate 7406166528 bytes.", 7406166528),
        ("Allocation of 17198850112 exceeds 10% of free system memory.", 17198850112),
        ("Failed to allocate request for 4.44GiB (4767482416B) on", round(4.44 * GIB)),
        ("trying to allocate 3 GiB. this is not a failure", None),
        ("trying to allocate " + "9" * 20 + " bytes", None),
        ("allocate", None),
    ],
)
def test_what_was_asked_for_is_read(text, asked):
    assert numbers_of(text).asked == asked


def test_a_tensor_is_said_in_words():
    text = "OOM when allocating tensor with shape[16,12,512,512] and type float on x"
    assert numbers_of(text).sentences() == ["192 MiB (float [16,12,512,512]) was asked for"]


STATISTICS = ("Limit:    1000000", "InUse:     400000", "LargestFreeBlock:  0")


def test_free_memory_in_small_pieces_is_fragmented():
    asked = "trying to allocate 500000 bytes"
    chunks = ("Free  at 7f2 of size 300000 next 1", "Free at 7f3 of size 200000 next 2")
    numbers = numbers_of(asked, *chunks, *STATISTICS)
    assert numbers.free == 600_000
    assert numbers.largest_free == 300_000
    assert numbers.is_fragmented


def test_without_the_largest_block_nothing_is_said_of_fragmentation():
    # GIVEN the 0 that BFC prints where it keeps no count
    numbers = numbers_of("trying to allocate 500000 bytes", *STATISTICS)
    assert numbers.largest_free is None
    assert not numbers.is_fragmented


def test_too_little_memory_is_not_fragmented():
    chunk = "Free  at 7f2 of size 300000 next 1"
    assert not numbers_of("trying to allocate 900000 bytes", chunk, *STATISTICS).is_fragmented


def test_a_card_that_somebody_else_holds_is_seen():
    start = "Created device /job:localhost/device:GPU:0 with 118 MB memory:  -> device: 0"
    total = "totalMemory: 10.91GiB freeMemory: 200.00MiB"
    assert numbers_of(start, total).is_occupied
    assert not numbers_of(start.replace("118", "9800"), total).is_occupied
    assert not numbers_of(start).is_occupied


def test_what_a_killed_process_held_and_what_an_arena_lacked():
    numbers = numbers_of(
        "Killed process 1 (python) total-vm:9kB, anon-rss:2048kB, file-rss:0kB",
        "Failed to resize buffer. Requested: 74576, available 69736, missing: 4840",
    )
    assert numbers.resident == 2 * MIB
    assert numbers.missing == 4840
    assert len(numbers.sentences()) == 3


def test_more_in_use_than_the_limit_is_not_a_negative_number():
    assert Numbers(limit=Size(1), in_use=Size(2)).free is None
