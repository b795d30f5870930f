"""A short way to write nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from snugly.readers.node import Machine, Node, Value

if TYPE_CHECKING:
    from collections.abc import Callable

ITEM_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "int32": 4, "float64": 8, "int64": 8}
Shapes = list[tuple[int, ...] | None]


@pytest.fixture
def node() -> Callable[..., Node]:
    """Make a node: its type, input shapes, output shapes; types are float32 unless said."""

    def make(  # noqa: PLR0913 - a node has many sides, and most tests name one or two
        operator: str,
        inputs: Shapes,
        outputs: Shapes,
        *,
        dtype: str = "float32",
        dtypes: dict[int, str] | None = None,
        constants: dict[int, Any] | None = None,
        device: str = "cpu",
        onednn: bool = True,
        threads: int = 2,
        **attributes: Any,
    ) -> Node:
        def value(shape: tuple[int, ...] | None, name: str) -> Value:
            return Value(dtype=name, item_bytes=ITEM_BYTES[name], shape=shape)

        return Node(
            operator.lower(),
            operator,
            [value(shape, (dtypes or {}).get(i, dtype)) for i, shape in enumerate(inputs)],
            [value(shape, dtype) for shape in outputs],
            attributes,
            Machine(device=device, onednn=onednn, threads=threads),
            {i: np.array(known) for i, known in (constants or {}).items()},
        )

    return make
