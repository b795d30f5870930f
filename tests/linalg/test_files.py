"""Files are read as they are, and what is damaged, hostile or missing is refused with a code."""

import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.linalg.matrices import random_matrix
from tests.linalg.test_sources import content, save_zarr

from snugly.errors import InputError
from snugly.linalg import slogdet
from snugly.linalg.files import NpyFile, ZarrArray, open_source


def write_npy(path, header, data=bytes(800), version=(1, 0)):
    text = header.encode("latin1")
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    length = len(text).to_bytes(2 if version[0] == 1 else 4, "little")
    path.write_bytes(b"\x93NUMPY" + bytes(version) + length + text + data)
    return path


def header(shape="(2, 2)", descr="'<f8'"):
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


def refused(path, code="SNG504"):
    with pytest.raises(InputError) as caught:
        slogdet(path)
    assert caught.value.code == code
    assert str(path) in caught.value.message
    return caught.value


def test_a_file_shorter_than_its_header_says_is_refused_with_both_sizes(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, random_matrix(10))
    path.write_bytes(path.read_bytes()[:-1])
    assert "799 bytes of 800" in refused(path).message


def test_a_file_that_gets_shorter_while_it_is_read_is_refused(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, random_matrix(10))
    source = NpyFile(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="got shorter"):
        content(source)


def test_a_stack_in_fortran_order_is_refused_with_what_to_write(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.asfortranarray(random_matrix(4, batch=(3,))))
    assert "ascontiguousarray" in refused(path).hint


@pytest.mark.parametrize(
    ("shape", "descr"),
    [
        ("(-10, -10)", "'<f8'"),
        ("(-1, 2, 2)", "'<f8'"),
        ("(True, True)", "'<f8'"),
        ("(1000000000000, 1000000000000)", "'<f8'"),
        ("('a', 'b')", "'<f8'"),
        ("2**3", "'<f8'"),
        ("(2, 2)", "'nonsense'"),
        ("(2, 2)", "__import__('os').abort()"),
    ],
)
def test_a_damaged_or_hostile_header_is_refused(tmp_path, shape, descr):
    refused(write_npy(tmp_path / "a.npy", header(shape, descr)))


@pytest.mark.parametrize("descr", ["'|O'", "'<U2'", "'<i4'", "'|V2'", "[('a', '<f8')]", "'<f16'"])
def test_a_header_of_another_type_is_refused_and_nothing_is_unpickled(tmp_path, descr):
    refused(write_npy(tmp_path / "a.npy", header(descr=descr)), "SNG502")


@pytest.mark.parametrize(
    "text", ["{'descr': (", "(" * 5000, "'''", "-" * 3000 + "1", '"', "\0", ""]
)
def test_a_header_that_is_no_dictionary_is_refused(tmp_path, text):
    refused(write_npy(tmp_path / "a.npy", text))


@pytest.mark.parametrize(
    "data", [b"", b"\x93NUM", b"\x93NUMPY\1\0", b"\x93NUMPY\1\0\xff\xff{", b"PK\3\4" + bytes(99)]
)
def test_a_file_that_is_none_is_refused(tmp_path, data):
    (tmp_path / "a.npy").write_bytes(data)
    refused(tmp_path / "a.npy")


@given(st.binary(max_size=64), st.integers(0, 80))
def test_no_damage_to_a_header_gets_through_as_another_error(tmp_path_factory, noise, place):
    path = tmp_path_factory.mktemp("damaged") / "a.npy"
    np.save(path, random_matrix(4))
    good = path.read_bytes()
    path.write_bytes(good[:place] + noise + good[place + len(noise) :])
    try:
        slogdet(path)
    except InputError as error:
        assert error.code in {"SNG501", "SNG502", "SNG503", "SNG504"}  # noqa: PT017 - either is right
    finally:
        shutil.rmtree(path.parent)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_format_is_read(tmp_path, version):
    data = np.array([[2.0, 0.0], [0.0, -3.0]]).tobytes()
    path = write_npy(tmp_path / "a.npy", header(), data, version)
    sign, logabs = slogdet(path)
    assert (sign, logabs) == (-1, pytest.approx(np.log(6)))


def test_a_version_of_the_future_is_refused(tmp_path):
    refused(write_npy(tmp_path / "a.npy", header(), version=(9, 0)))


@pytest.mark.parametrize("name", ["nowhere.npy", "nowhere.zarr", "."])
def test_what_is_not_there_is_refused(tmp_path, name):
    refused(tmp_path / name)


# ---------------------------------------------------------------------------------------- Zarr


def test_a_zarr_array_may_be_of_any_chunks_and_byte_order(tmp_path):
    array = random_matrix(20, "float32", batch=(3,)).astype(">f4")
    path = save_zarr(tmp_path / "a.zarr", array, chunks=(2, 7, 20))
    got = slogdet(path)
    assert got.sign_certain.all()
    expected = np.linalg.slogdet(array.astype("f8"))
    assert (got.sign == expected[0]).all()
    assert (abs(got.logabs - expected[1]) <= 3 * got.error).all()


def test_a_folder_is_opened_as_zarr_whatever_its_name(tmp_path):
    path = save_zarr(tmp_path / "folder", np.eye(3), chunks=(3, 3))
    assert isinstance(open_source(path), ZarrArray)
    assert tuple(slogdet(path)) == (1, 0)


def test_what_is_not_finite_in_a_stack_in_zarr_is_named(tmp_path):
    array = random_matrix(20, batch=(2,))
    array[1, 3, 17] = -np.inf
    with pytest.raises(InputError, match=r"-inf at \[1, 3, 17\]"):
        slogdet(save_zarr(tmp_path / "a.zarr", array, chunks=(1, 7, 20)))


def test_a_group_is_no_array(tmp_path):
    import zarr

    zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    assert "not of a group" in refused(tmp_path / "a.zarr").hint


def test_a_damaged_chunk_is_refused(tmp_path):
    path = save_zarr(tmp_path / "a.zarr", random_matrix(20), chunks=(20, 20))
    chunk = max((p for p in path.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    chunk.write_bytes(b"damaged")
    refused(path)


def test_a_zarr_array_tells_what_decoding_its_chunks_holds(tmp_path):
    small = open_source(save_zarr(tmp_path / "a.zarr", random_matrix(20), chunks=(2, 2)))
    large = open_source(save_zarr(tmp_path / "b.zarr", random_matrix(20), chunks=(20, 20)))
    assert large.reading - small.reading >= (400 - 4) * 8
