"""The GPU's kernels: rules against what they allocated on an H200 (TensorFlow 2.21, cuDNN 9).

`data/gpu_allocations.json` holds nodes of real programs with what the allocator was asked for while
each ran: `copies`, which TensorFlow makes, and `workspace`, which cuDNN chose.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from snugly.readers.kernels import behaviour_of
from snugly.readers.node import Machine, Node, Value

MEASURED = json.loads((Path(__file__).parent / "data" / "gpu_allocations.json").read_text())
EXACT = [
    "AvgPoolGrad",
    "Conv2D",
    "Conv2DBackpropFilter",
    "Conv2DBackpropInput",
    "Conv3D",
    "Conv3DBackpropFilterV2",
    "MaxPool",
    "MaxPool3D",
    "MaxPool3DGrad",
    "MaxPoolGrad",
    "Softmax",
    "TopKV2",
    "_FusedConv2D",
]


def as_node(entry: dict[str, Any]) -> Node:
    def value(dtype: str, item: int, shape: list[int] | None) -> Value:
        return Value(dtype, item, None if shape is None else tuple(shape))

    return Node(
        "measured",
        entry["type"],
        [value(*parts) for parts in entry["inputs"]],
        [value(*parts) for parts in entry["outputs"]],
        entry["attributes"],
        Machine("gpu", onednn=False),
    )


def of_type(*operators: str) -> list[dict[str, Any]]:
    return [entry for entry in MEASURED if entry["type"] in operators]


def beyond_copies(entry: dict[str, Any]) -> tuple[Counter[int], int]:
    """Copies the rule does not know of, and bytes of its scratch that are no copy."""
    scratch = Counter(behaviour_of(as_node(entry)).workspace)
    copies = Counter(entry["copies"])
    return copies - scratch, (scratch - copies).total() and sum((scratch - copies).elements())


@pytest.mark.parametrize("operator", EXACT)
def test_every_copy_tensorflow_makes_is_known_to_the_byte(operator) -> None:
    entries = of_type(operator)
    assert entries
    assert not [entry for entry in entries if beyond_copies(entry)[0]]


@pytest.mark.parametrize("operator", ["AvgPoolGrad", "MaxPool3D", "MaxPool3DGrad", "Softmax"])
def test_kernels_without_cudnns_choice_take_nothing_else(operator) -> None:
    assert all(beyond_copies(entry)[1] == 0 for entry in of_type(operator))


@pytest.mark.parametrize(
    ("operator", "share"),
    [
        # cuDNN's choice varies, so this says how often the likely one was taken, not that it was.
        ("Conv2D", 0.75),
        ("Conv2DBackpropInput", 0.9),
        ("Conv2DBackpropFilter", 0.45),
        ("_FusedConv2D", 0.45),
    ],
)
def test_the_likely_workspace_is_the_usual_one(operator, share) -> None:
    pairs = [(beyond_copies(entry)[1], entry["workspace"]) for entry in of_type(operator)]
    near = sum(abs(likely - real) <= max(4096, 0.05 * real) for likely, real in pairs)
    assert near >= share * len(pairs)
    # What is said of all of them together is nearer the truth than what is said of each.
    assert 0.8 < sum(likely for likely, _ in pairs) / sum(real for _, real in pairs) < 1.25


@pytest.mark.parametrize("entry", of_type("CudnnRNNV3"), ids=lambda entry: str(entry["workspace"]))
def test_recurrent_layers_keep_gates_and_work_in_a_fitted_workspace(entry) -> None:
    behaviour = behaviour_of(as_node(entry))
    assert behaviour.extra[0] in entry["made"]
    # Within 1 % of the five layers it was fitted to.
    assert behaviour.workspace[0] == pytest.approx(entry["workspace"], rel=0.01)
    assert behaviour.absent == (3, 4)


def test_the_gradient_of_a_recurrent_layer_reads_what_was_kept() -> None:
    for entry in of_type("CudnnRNNBackpropV3"):
        behaviour = behaviour_of(as_node(entry))
        assert behaviour.reads_extra == (11,)
        assert behaviour.workspace[0] == pytest.approx(entry["workspace"], rel=0.01)


@pytest.mark.parametrize(
    "operator", ["MatrixDeterminant", "LogMatrixDeterminant", "MatrixInverse", "MatrixSolve", "Svd"]
)
def test_factorisations_copy_their_matrices(operator) -> None:
    (entry,) = of_type(operator)
    real = sum(entry["copies"]) + entry["workspace"]
    # Statuses and pointers of a few bytes a matrix are left out: up to 4 % of these small ones.
    assert sum(behaviour_of(as_node(entry)).workspace) == pytest.approx(real, rel=0.04)


def test_no_kernel_on_a_gpu_is_expensive() -> None:
    assert not any(behaviour_of(as_node(entry)).expensive for entry in MEASURED)


def test_a_convolution_of_single_places_channels_last_is_a_product(node) -> None:
    images, weights, result = (8, 16, 16, 32), (1, 1, 32, 64), (8, 16, 16, 64)
    ones = {"strides": [1, 1, 1, 1], "data_format": "NHWC", "padding": "SAME"}
    product = node("Conv2D", [images, weights], [result], device="gpu", **ones)
    assert behaviour_of(product).workspace == ()


def test_padding_of_one_side_only_copies_the_image(node) -> None:
    halved = {"strides": [1, 2, 2, 1], "data_format": "NHWC", "padding": "SAME"}
    shapes = [(8, 32, 32, 16), (3, 3, 16, 24)]
    strided = node("Conv2D", shapes, [(8, 16, 16, 24)], device="gpu", **halved)
    assert 8 * 33 * 33 * 16 * 4 in behaviour_of(strided).workspace


def test_few_of_many_columns_are_found_without_sorting(node) -> None:
    few = node("TopKV2", [(4, 5000), ()], [(4, 10), (4, 10)], device="gpu")
    assert behaviour_of(few).workspace == ()


def test_unknown_shapes_promise_nothing(node) -> None:
    for operator in ("Conv2D", "_FusedConv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"):
        unknown = node(operator, [None, None, None], [None], device="gpu")
        assert behaviour_of(unknown).workspace == ()
    for operator in ("TopKV2", "Svd", "CudnnRNNV3"):
        unknown = node(operator, [None, None, None, None], [None], device="gpu")
        assert behaviour_of(unknown).workspace == ()
