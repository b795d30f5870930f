"""A C++ header for firmware: the arena's size, the operators to register, where tensors lie."""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING, Final

from snugly.predicting.lite_micro import plan_micro
from snugly.readers.tflite import read_tflite
from snugly.readers.tflite.structures import HOST, TARGET_32

if TYPE_CHECKING:
    from snugly.predicting.lite_micro import HeadBuffer
    from snugly.readers.tflite import LiteModel

LONGEST_NAME: Final = 120  # characters of a tensor's name that are shown
_PLAIN: Final = frozenset(string.ascii_letters + string.digits + " _-./:")
# MicroMutableOpResolver's functions whose names do not follow from the operator's
# (micro_mutable_op_resolver.h, August 2026).
_RESOLVERS: Final = {
    "AVERAGE_POOL_2D": "AddAveragePool2D",
    "BATCH_MATMUL": "AddBatchMatMul",
    "CONV_2D": "AddConv2D",
    "CUMSUM": "AddCumSum",
    "DEPTHWISE_CONV_2D": "AddDepthwiseConv2D",
    "L2_POOL_2D": "AddL2Pool2D",
    "MAX_POOL_2D": "AddMaxPool2D",
    "PADV2": "AddPadV2",
    "REVERSE_V2": "AddReverseV2",
    "SELECT_V2": "AddSelectV2",
    "TFLite_Detection_PostProcess": "AddDetectionPostprocess",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "AddUnidirectionalSequenceLSTM",
}


def header_text(source: bytes, name: str, *, arena: int | None = None) -> str:
    """The header of a model.

    Args:
        source: The bytes of the file.
        name: What it is called; its letters name the namespace.
        arena: The size of the arena where it is known for one device. Without it, those of 32-bit
            firmware and of the 64-bit package tflite-micro are written, and the compiler chooses.
    """
    model = read_tflite(source)
    word = identifier(name)
    guard = f"SNUGLY_{word.upper()}_H_"
    return "\n".join(
        [
            f"// Written by `snugly shrink` for {_comment(name)}; write it again with the model.",
            "// Sizes are predicted, for TFLite Micro's reference kernels: kernels for a chip may",
            "// ask for more scratch. The arena must be aligned to kArenaAlignment.",
            f"#ifndef {guard}",
            f"#define {guard}",
            "",
            "#include <cstddef>",
            "#include <cstdint>",
            "",
            f"namespace snugly_{word} {{",
            "",
            *_sizes(model, arena),
            "",
            *_operators(model),
            "",
            *_tensors(model),
            "",
            f"}}  // namespace snugly_{word}",
            "",
            f"#endif  // {guard}",
            "",
        ]
    )


def identifier(name: str) -> str:
    """Letters, digits and underscores, as C++ takes them."""
    stem = name.rpartition("/")[2].removesuffix(".tflite")
    return re.sub(r"[^0-9a-z]+", "_", stem.lower()).strip("_")[:LONGEST_NAME] or "model"


def _sizes(model: LiteModel, arena: int | None) -> list[str]:
    host, small = plan_micro(model, HOST), plan_micro(model, TARGET_32)
    lines = [
        f"constexpr std::size_t kModelBytes = {model.size};",
        "constexpr std::size_t kArenaAlignment = 16;",
        f"constexpr std::size_t kHeadBytes = {host.head};  // tensors and scratch",
    ]
    if arena is not None:
        return [*lines, f"constexpr std::size_t kArenaBytes = {arena};"]
    return [
        *lines,
        "// The smallest arenas that start: 32-bit firmware, and the 64-bit package tflite-micro.",
        "constexpr std::size_t kArenaBytes =",
        f"    sizeof(void*) == 4 ? {small.smallest_arena} : {host.smallest_arena};",
    ]


def _operators(model: LiteModel) -> list[str]:
    names = sorted({one.name for part in model.subgraphs for one in part.operators})
    custom = {one.name for part in model.subgraphs for one in part.operators if one.is_custom}
    return [
        "// tflite::MicroMutableOpResolver<kOperatorCount> resolver, and of it:",
        *(f"//   {_resolver(name, is_custom=name in custom)}" for name in names),
        f"constexpr int kOperatorCount = {len(names)};",
    ]


def _resolver(name: str, *, is_custom: bool) -> str:
    if name in _RESOLVERS:
        return f"resolver.{_RESOLVERS[name]}();"
    if is_custom:
        return f'resolver.AddCustom("{_comment(name)}", ...);'
    words = "".join(part.capitalize() for part in name.split("_"))
    return f"resolver.Add{words}();"


def _tensors(model: LiteModel) -> list[str]:
    rows = [buffer for buffer in plan_micro(model, HOST).buffers if buffer.tensor is not None]
    lines = [
        "struct TensorPlace {",
        "  int subgraph;",
        "  int tensor;  // its index in the subgraph",
        "  std::uint32_t offset;  // from the beginning of the arena",
        "  std::uint32_t bytes;",
        "  const char* name;",
        "};",
        "",
        f"constexpr int kTensorCount = {len(rows)};",
    ]
    if not rows:
        return [*lines, "constexpr const TensorPlace* kTensors = nullptr;"]
    return [*lines, "constexpr TensorPlace kTensors[] = {", *map(_row, rows), "};"]


def _row(buffer: HeadBuffer) -> str:
    numbers = f"{buffer.subgraph}, {buffer.tensor}, {buffer.offset}u, {buffer.planned.bytes}u"
    return f'    {{{numbers}, "{_string(buffer.name)}"}},'


def _string(name: str) -> str:
    """A name inside a string of C++; whatever is not a plain character becomes an octal escape."""
    shown = name.partition(";")[0][:LONGEST_NAME].encode("utf-8", "replace")
    return "".join(chr(byte) if chr(byte) in _PLAIN else f"\\{byte:03o}" for byte in shown)


def _comment(name: str) -> str:
    """A name inside a comment or a string: nothing that could end either."""
    return re.sub(r"[^0-9A-Za-z_. -]", "_", name[:LONGEST_NAME])
