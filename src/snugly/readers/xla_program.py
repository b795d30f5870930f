"""What XLA would allocate for a function: its own answer, from compiling without running.

XLA decides all buffers when it compiles. Its buffer assignment tells the size of each: parameters,
results, and one block of scratch for everything in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snugly.errors import UnpredictableProgramError

if TYPE_CHECKING:
    from snugly.readers.node import Value


LAUNCH_SECONDS = 1e-3  # of a compiled function, to an order of magnitude
POINTER = 8  # bytes of one entry in the table of results that an XLA program fills


@dataclass(frozen=True, slots=True)
class Assignment:
    """The sums of XLA's buffer assignment, in bytes, and the shapes of its results."""

    scratch: int
    results: int
    parameters: int
    constants: int
    shapes: tuple[tuple[int, ...], ...] = ()


def assigned(serialized: bytes) -> Assignment:
    """Read the buffer assignment out of a serialized HloProto."""
    from tensorflow.compiler.xla.service import hlo_pb2

    program = hlo_pb2.HloProto()  # pyright: ignore[reportAttributeAccessIssue] - made by protobuf
    program.ParseFromString(serialized)
    scratch = results = parameters = constants = 0
    for allocation in program.buffer_assignment.buffer_allocations:
        if allocation.is_thread_local:
            continue
        if allocation.is_constant:
            constants += allocation.size
        elif allocation.is_entry_computation_parameter:
            parameters += allocation.size
        elif allocation.maybe_live_out:
            results += allocation.size
        else:
            scratch += allocation.size
    result = program.hlo_module.host_program_shape.result
    shapes = tuple(tuple(part.dimensions) for part in result.tuple_shapes or [result])
    return Assignment(scratch, results, parameters, constants, shapes)


class XlaCompiler:
    """Compiles functions of a graph's library; the same function for the same shapes only once."""

    def __init__(self, library: Any, platform: str) -> None:
        self._library = library
        self._platform = platform
        self._answers: dict[Any, Assignment] = {}
        self._registered = False

    def compile(self, function: str, arguments: list[Value]) -> Assignment:
        """The buffers of one function called with arguments of these types and shapes."""
        key = (function, tuple(arguments))
        if key not in self._answers:
            self._answers[key] = assigned(self._intermediate_representation(function, arguments))
        return self._answers[key]

    def _intermediate_representation(self, function: str, arguments: list[Value]) -> bytes:
        import tensorflow as tf
        from tensorflow.python.eager import context

        specs = [
            tf.TensorSpec(tf.TensorShape(argument.shape), argument.dtype)  # pyright: ignore[reportArgumentType] - None is an unknown shape
            for argument in arguments
        ]
        with tf.init_scope():
            eager: Any = context.context()
            eager.ensure_initialized()
            self._register(eager)
            try:
                return eager.get_compiler_ir(
                    device_name=None,
                    platform_name=self._platform,
                    function_name=function,
                    flat_args=specs,
                    captured_inputs=[],
                    stage="optimized_hlo_proto_serialized",
                )
            except (tf.errors.OpError, ValueError) as problem:
                raise UnpredictableProgramError(
                    f"XLA cannot compile {function}: {str(problem).splitlines()[0][:200]}"
                ) from problem

    def _register(self, eager: Any) -> None:
        if not self._registered:
            for function in self._library.function:
                if not eager.has_function(function.signature.name):
                    eager.add_function_def(function)
            self._registered = True
