"""Ten exhaustions in a real Jupyter kernel; `python -m tests.faults.exhaustions` forces 200."""

import pytest
from tests.faults.exhaustions import Kernel

pytestmark = pytest.mark.tensorflow
TEN = (
    "one impossible tensor", "ramp at full speed", "convolution in a graph", "fit of convolutions",
    "shuffle", "py_function", "threads", "shared memory", "NumPy", "retracing",
)  # fmt: skip


@pytest.fixture(scope="module")
def kernel():
    kernel = Kernel()
    yield kernel
    kernel.close()


@pytest.mark.parametrize("kind", TEN)
def test_the_kernel_survives_and_the_next_cell_works(kernel, kind):
    attempt = kernel.exhaust(kind, 40)
    assert attempt.survived, attempt
