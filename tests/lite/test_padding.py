"""PADs that pad no more than is read: the same bits from the real kernels, in less memory."""

# ruff: noqa: PLR0913 - what a padded convolution is made of, all by name

import numpy as np
import pytest
from tests.lite import micro_models as micro

from snugly import lite as smaller
from snugly.lite.padding import with_less_padding
from snugly.readers.tflite import read_tflite


def padded(size, amounts, *, kind="INT8", window=3, stride=2, depthwise=False, weights=None):
    """A PAD of rows and columns, and the unpadded convolution behind it."""
    model = micro.Model(3)
    zero = 5 if kind == "INT8" else 0
    given = model.tensor((1, size, size, 4), kind, zero=zero)
    rows, columns = amounts
    shape = (1, size + sum(rows), size + sum(columns), 4)
    middle = model.tensor(shape, kind, zero=zero)
    paddings = model.integers([[0, 0], [*rows], [*columns], [0, 0]])
    model.operator("PAD", (given, paddings), (middle,), "PadOptions")
    if depthwise:
        output = model.depthwise(middle, 1, window, kind, stride=stride, same=False)
    else:
        output = model.convolution(middle, 6, window, kind, stride=stride, same=False)
    if weights is not None:
        model.fill(3, weights)
    return model.finish((given,), (output,))


def names(source):
    return [operator.name for operator in read_tflite(source).main.operators]


def paddings(source):
    main = read_tflite(source).main
    operator = next(one for one in main.operators if one.name == "PAD")
    given, made = (main.tensors[index].shape for index in (operator.inputs[0], operator.outputs[0]))
    return made[1] - given[1], made[2] - given[2]


CASES = {
    # What SAME pads for 3×3 and stride 2: one row behind an even image, one on each side of an odd.
    "behind, even": (12, ((0, 1), (0, 1)), {}, None),
    "around, odd": (11, ((1, 1), (1, 1)), {}, None),
    "around, stride 1": (9, ((1, 1), (1, 1)), {"stride": 1}, None),
    "5×5": (11, ((2, 2), (2, 2)), {"window": 5}, None),
    "far too much behind": (12, ((0, 2), (0, 2)), {}, None),
    # What a kernel cannot pad itself, with a row and a column that it never reads.
    "around, even": (12, ((1, 1), (1, 1)), {}, (1, 1)),
    "rows only": (12, ((1, 1), (1, 0)), {}, (1, 1)),
}


@pytest.mark.parametrize("kind", ["INT8", "INT16", "FLOAT32"])
@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_padding_that_is_not_needed_goes_and_the_bits_stay(case, kind, depthwise):
    # GIVEN a PAD that pads more than the kernel has to be given
    size, amounts, options, left = CASES[case]
    source = padded(size, amounts, kind=kind, depthwise=depthwise, **options)
    # WHEN it is left out
    made, note = with_less_padding(source)
    # THEN there is none, or only as much of it as is read
    if left is None:
        assert "PAD" not in names(made)
        assert "became the padding" in note
    else:
        assert paddings(made) == left
        assert "never reads" in note
    # AND the real kernel gives the same bits
    assert micro.run(made, 20) == micro.run(source, 20)
    # AND nothing is left to be done
    assert with_less_padding(made) is None


@pytest.mark.parametrize(
    ("size", "amounts"),
    [(12, ((1, 0), (1, 0))), (12, ((2, 1), (2, 1))), (11, ((2, 2), (0, 0)))],
)
def test_padding_that_is_read_and_that_no_kernel_does_stays(size, amounts):
    assert with_less_padding(padded(size, amounts)) is None


def test_weights_that_are_no_numbers_keep_their_zeros():
    # GIVEN a weight by which a zero becomes NaN
    weights = np.ones((6, 3, 3, 4), np.float32)
    weights[0, 2, 2, 0] = np.inf
    source = padded(12, ((0, 1), (0, 1)), kind="FLOAT32", weights=weights)
    # THEN its PAD stays, and it is one whose absence would be seen
    assert with_less_padding(source) is None
    assert np.isnan(np.frombuffer(micro.run(source, 1)[0][0], np.float32)).any()


def test_floats_stay_padded_for_kernels_that_nobody_knows():
    source = padded(12, ((0, 1), (0, 1)), kind="FLOAT32")
    assert with_less_padding(source, floats=False) is None
    assert "PAD" in names(smaller.shrink(source, kernels="any").data)
    assert "PAD" not in names(smaller.shrink(source).data)


def test_a_pad_that_others_read_stays():
    model = micro.Model(3)
    given, middle = model.tensor((1, 12, 12, 4)), model.tensor((1, 13, 13, 4))
    table = model.integers([[0, 0], [0, 1], [0, 1], [0, 0]])
    model.operator("PAD", (given, table), (middle,), "PadOptions")
    output = model.convolution(middle, 6, 3, stride=2, same=False)
    for outputs in ((output, middle), (output, model.convolution(middle, 2, 3, same=False))):
        assert with_less_padding(model.finish((given,), outputs)) is None


def test_shrink_takes_it_and_says_so():
    # GIVEN a model whose padded image is its largest tensor
    source = padded(32, ((1, 1), (1, 1)), depthwise=True)
    # WHEN it is shrunk THEN the step is told, and the savings add up
    shrunk = smaller.shrink(source)
    step = shrunk.steps[0]
    assert (step.name, step.applied, step.safety) == ("padding", True, "same-result")
    assert sum(one.saved for one in shrunk.steps) == shrunk.before.arena - shrunk.after.arena
    assert shrunk.after.parts["head"] < 34 * 34 * 4 < shrunk.before.parts["head"]
    assert micro.run(shrunk.data, 20, arena=int(shrunk.after.arena)) == micro.run(source, 20)
