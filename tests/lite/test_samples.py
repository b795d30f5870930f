"""Sample inputs: which files are taken, and what is said of the others."""

import io
import zipfile

import numpy as np
import pytest
from tests.lite import micro_models as micro

from snugly.errors import InputError
from snugly.lite.samples import MADE_UP, MOST_SAMPLES, made_up_samples, read_samples
from snugly.readers.tflite import read_tflite


def model(*shapes, kind="FLOAT32"):
    made = micro.Model()
    given = [made.tensor(shape, kind) for shape in shapes]
    output = made.tensor(shapes[0], kind)
    made.operator("NEG", (given[0],), (output,))
    return read_tflite(made.finish(given, (output,)))


def saved(path, **arrays):
    if list(arrays) == ["only"]:
        np.save(path, arrays["only"])
    else:
        np.savez(path, **arrays)
    return path


@pytest.mark.parametrize("shape", [(5, 1, 8), (5, 8), (1, 8)])
def test_arrays_with_or_without_the_batch_are_taken(tmp_path, shape):
    path = saved(tmp_path / "s.npy", only=np.ones(shape))
    samples = read_samples(path, model((1, 8)))
    assert samples.arrays[0].shape == (shape[0], 1, 8)
    assert samples.arrays[0].dtype == np.float32
    assert not samples.made_up
    assert "s.npy" in samples.note


def test_arrays_are_inputs_by_name_or_by_number(tmp_path):
    two = model((1, 2), (1, 3))
    one, other = np.zeros((4, 2)), np.ones((4, 3))
    for names in (("t0", "t1"), ("serving_default_t0:0", "t1:0"), ("arr_0", "arr_1")):
        arrays = dict(zip(names, (one, other), strict=True))
        samples = read_samples(saved(tmp_path / "s.npz", **dict(reversed(arrays.items()))), two)
        assert [array.shape for array in samples.arrays] == [(4, 1, 2), (4, 1, 3)]


def test_only_so_many_are_used_and_that_is_said(tmp_path):
    samples = read_samples(saved(tmp_path / "s.npy", only=np.zeros((900, 2))), model((1, 2)))
    assert samples.count == MOST_SAMPLES
    assert "the first 128" in samples.note


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"only": np.zeros((4, 3))}, "takes 1×2"),
        ({"only": np.zeros(())}, "takes 1×2"),
        ({"only": np.zeros((0, 2))}, "no samples"),
        ({"only": np.full((4, 2), np.nan)}, "no numbers"),
        ({"only": np.full((4, 2), 1e300)}, "infinite"),
        ({"only": np.full((4, 2), "a")}, "takes float32"),
        ({"only": np.zeros((4, 2), complex)}, "takes float32"),
        ({"a": np.zeros((4, 2)), "b": np.zeros((4, 2))}, "not the model's inputs"),
    ],
)
def test_what_is_no_input_of_the_model_is_said(tmp_path, arrays, message):
    path = saved(tmp_path / ("s.npy" if "only" in arrays else "s.npz"), **arrays)
    with pytest.raises(InputError, match=message) as caught:
        read_samples(path, model((1, 2)))
    assert caught.value.code == "SNG571"
    assert caught.value.hint


def test_integers_must_hold_what_they_are_given(tmp_path):
    path = saved(tmp_path / "s.npy", only=np.full((4, 2), 300))
    with pytest.raises(InputError, match="too large"):
        read_samples(path, model((1, 2), kind="INT8"))
    with pytest.raises(InputError, match="takes int8"):
        read_samples(saved(path, only=np.zeros((4, 2))), model((1, 2), kind="INT8"))


def test_different_numbers_of_samples_are_refused(tmp_path):
    path = saved(tmp_path / "s.npz", t0=np.zeros((4, 2)), t1=np.zeros((5, 3)))
    with pytest.raises(InputError, match="different numbers"):
        read_samples(path, model((1, 2), (1, 3)))


class Evil:
    def __reduce__(self):
        return print, ("this must never be printed",)


def test_files_that_carry_code_or_are_damaged_are_errors(tmp_path, capsys):
    # GIVEN a pickle, a file cut short, text, nothing at all, and an archive that claims too much
    path = tmp_path / "s.npy"
    np.save(path, np.array([Evil()], dtype=object), allow_pickle=True)
    pickled = path.read_bytes()
    np.save(path, np.zeros((100, 2)))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, "
        header += b"'shape': (1099511627776, 2), }"
        file.writestr("a.npy", header.ljust(127) + b"\n")
    contents = [pickled, path.read_bytes()[:300], b"text", b"", archive.getvalue()]
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(InputError) as caught:
            read_samples(path, model((1, 2)))
        assert caught.value.hint
    assert "printed" not in capsys.readouterr().out
    for place in (tmp_path / "none.npy", tmp_path):
        with pytest.raises(InputError):
            read_samples(place, model((1, 2)))


def test_made_up_samples_say_so_and_are_the_same_each_time():
    one, other = (made_up_samples(model((1, 4), (1, 2))) for _ in range(2))
    assert one.made_up
    assert "not representative" in one.note
    assert one.count == MADE_UP
    assert all((a == b).all() for a, b in zip(one.arrays, other.arrays, strict=True))
    assert one.arrays[0].min() < 0 < one.arrays[0].max()
    assert set(np.unique(made_up_samples(model((1, 9), kind="INT32")).arrays[0])) == {0, 1}
