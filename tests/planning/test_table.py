"""Tables of buffers: read, refused with the line, written with offsets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.planning.packing_problems import buffers

from snugly.errors import InputError
from snugly.planning.packing import Buffer, table
from snugly.planning.packing.table import read_table, write_table


@given(buffers(), st.sampled_from(["\n", "\r\n"]))
def test_what_is_written_can_be_read_again(problem, newline):
    rows = [f"{one.name},{one.lower},{one.upper},{one.size}" for one in problem]
    read = read_table(newline.join(["id,lower,upper,size", *rows]))
    assert list(read.buffers) == problem
    written = write_table(read, range(len(problem)))
    assert written.splitlines()[0] == "id,lower,upper,size,offset"
    assert read_table(written).buffers == read.buffers


def test_other_columns_and_orders_are_kept_and_an_offset_is_replaced():
    read = read_table('\ufeffsize, Lower ,upper,offset,id,note\n4,0,1,77,"a,b",x\n\n,,\n')
    assert read.buffers == (Buffer("a,b", 0, 1, 4),)
    assert write_table(read, [8]) == 'size, Lower ,upper,id,note,offset\n4,0,1,"a,b",x,8\n'


def test_harmless_columns_of_minimalloc_are_let_through():
    text = "id,lower,upper,size,alignment,gaps\na,0,1,4,1,\nb,0,1,4,,\n"
    assert len(read_table(text).buffers) == 2


HEAD = "id,lower,upper,size\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file is empty"),
        ("\ufeff \n\r\n", "the file is empty"),
        (",,,\n , \n", "the file is empty"),
        ("id,lower\0", "zero bytes"),
        (HEAD, "there is no buffer"),
        ("id,lower,size\na,1,2\n", "there is no column upper; the first line has: 'id', 'lower'"),
        ("a;b\n", "no column id and no column lower and no column upper and no column size"),
        ("id,lower,upper,size,Size\na,0,1,2,3\n", "two columns size"),
        (HEAD + "a,0,1\n", "line 2 has 3 cells; the first has 4"),
        (HEAD + "a,0,1,2,3\n", "line 2 has 5 cells"),
        (HEAD + ",0,1,2\n", "line 2 has no id"),
        (HEAD + "a,0,1,2\na,1,2,3\n", "lines 2 and 3 have the same id: 'a'"),
        (HEAD + "a,0,1,2.5\n", "line 2: size is no whole number .*'2.5'"),
        (HEAD + "a,0,1,1_000\n", "line 2: size"),
        (HEAD + "a,0,x,1\n", "line 2: upper"),
        (HEAD + "a,,2,1\n", "line 2: lower"),
        (HEAD + "a,0,1,٣\n", "line 2: size"),
        (HEAD + "a,0,1," + "9" * 5000 + "\n", "line 2: size"),
        (HEAD + "a,0,1,9999999999999999999\n", "line 2: buffer 'a' has a number .* 64 bits"),
        (HEAD + "a,0,1,-4\n", "line 2: buffer 'a' has a negative size: -4"),
        (HEAD + "a,2,2,4\n", "line 2: buffer 'a' ends before it begins: lower 2, upper 2"),
        (HEAD + 'a,0,1,"4\n', "line 2: unexpected end of data"),
        (HEAD + "x" * 200_000 + ",0,1,1\n", "line 2: field larger than field limit"),
        ("id,lower,upper,size,alignment\na,0,1,4,64\n", "line 2: the column alignment"),
        ("id,lower,upper,size,gaps\na,0,9,4,2-3\n", "line 2: the column gaps"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text, says):
    with pytest.raises(InputError, match=says) as caught:
        read_table(text)
    assert caught.value.code == "SNG590"
    assert len(caught.value.message) < 300


def test_ids_are_escaped_in_messages():
    with pytest.raises(InputError, match=r"same id: '\\x1b\[31mred'"):
        read_table(HEAD + "\x1b[31mred,0,1,1\n\x1b[31mred,0,1,1\n")


def test_too_many_lines_are_refused(monkeypatch):
    monkeypatch.setattr(table, "MOST_BUFFERS", 2)
    with pytest.raises(InputError, match="more than 2 buffers") as caught:
        read_table(HEAD + "a,0,1,1\nb,0,1,1\nc,0,1,1\n")
    assert caught.value.code == "SNG594"
