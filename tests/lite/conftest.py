"""Small `.tflite` models, made with LiteRT's own schema, and the real interpreters beside them."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field

import flatbuffers
import pytest
from ai_edge_litert import schema_py_generated as schema


@dataclass
class T:
    """A tensor: its shape and type, its bytes if it is constant, its scales if it is quantised."""

    shape: tuple
    type: str = "FLOAT32"
    data: bytes | None = None
    scales: int = 0
    variable: bool = False
    dimension: int = 0
    signature: tuple = ()


@dataclass
class Op:
    """An operator: its name, the indices of its tensors, its options by their schema's names."""

    name: str
    inputs: tuple
    outputs: tuple
    options: str | None = None
    values: dict = field(default_factory=dict)


@dataclass
class G:
    """A subgraph."""

    tensors: list
    operators: list
    inputs: tuple
    outputs: tuple


def build(*graphs, metadata=None):
    """The bytes of a model."""
    model = schema.ModelT()
    model.version = 3
    model.buffers = [schema.BufferT()]
    codes = {}
    model.operatorCodes = []
    model.subgraphs = [_subgraph(graph, model, codes) for graph in graphs]
    model.metadata = []
    for name, content in (metadata or {}).items():
        entry = schema.MetadataT()
        entry.name, entry.buffer = name, _buffer(model, content)
        model.metadata.append(entry)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _buffer(model, content):
    buffer = schema.BufferT()
    buffer.data = list(content)
    model.buffers.append(buffer)
    return len(model.buffers) - 1


def _subgraph(graph, model, codes):
    subgraph = schema.SubGraphT()
    subgraph.tensors = [_tensor(tensor, index, model) for index, tensor in enumerate(graph.tensors)]
    subgraph.inputs, subgraph.outputs = list(graph.inputs), list(graph.outputs)
    subgraph.operators = [_operator(operator, model, codes) for operator in graph.operators]
    return subgraph


def _tensor(tensor, index, model):
    made = schema.TensorT()
    made.name = f"t{index}"
    made.shape = list(tensor.shape)
    made.type = getattr(schema.TensorType, tensor.type)
    made.isVariable = tensor.variable
    if tensor.signature:
        made.shapeSignature = list(tensor.signature)
    made.buffer = 0 if tensor.data is None else _buffer(model, tensor.data)
    if tensor.scales:
        made.quantization = schema.QuantizationParametersT()
        made.quantization.scale = [1.0] * tensor.scales
        made.quantization.zeroPoint = [0] * tensor.scales
        made.quantization.quantizedDimension = tensor.dimension
    return made


def _operator(operator, model, codes):
    if operator.name not in codes:
        code = schema.OperatorCodeT()
        number = getattr(schema.BuiltinOperator, operator.name, schema.BuiltinOperator.CUSTOM)
        code.builtinCode, code.deprecatedBuiltinCode, code.version = number, min(number, 127), 1
        if number == schema.BuiltinOperator.CUSTOM:
            code.customCode = operator.name
        codes[operator.name] = len(model.operatorCodes)
        model.operatorCodes.append(code)
    made = schema.OperatorT()
    made.opcodeIndex = codes[operator.name]
    made.inputs, made.outputs = list(operator.inputs), list(operator.outputs)
    if operator.options:
        made.builtinOptionsType = getattr(schema.BuiltinOptions, operator.options)
        made.builtinOptions = getattr(schema, f"{operator.options}T")()
        for name, value in operator.values.items():
            setattr(made.builtinOptions, name, value)
    return made


MICRO = """
import json, sys
from tflite_micro import runtime
for path in sys.argv[2:]:
    print("MODEL", file=sys.stderr, flush=True)
    try:
        interpreter = runtime.Interpreter.from_file(path, arena_size=int(sys.argv[1]))
        interpreter.print_allocations()
    except RuntimeError as error:
        print("refused", error, file=sys.stderr, flush=True)
"""

LITERT = """
import json, sys
from ai_edge_litert import interpreter as lite
kind = lite.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
for path in sys.argv[1:]:
    interpreter = lite.Interpreter(path, experimental_op_resolver_type=kind)
    interpreter.allocate_tensors()
    inner = interpreter._interpreter
    rows = []
    for index in range(inner.NumTensors(0)):
        try:
            inner.TensorSize(index, 0)  # raises for a temporary without a shape, which must not
            array = inner.tensor(interpreter, index, 0)  # be touched: it ends the process
        except ValueError:
            continue
        rows.append((index, array.ctypes.data, array.nbytes))
    print(json.dumps(rows))
"""


def _run(code, *arguments):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)


def measure_micro(paths, arena=1 << 26):
    """Head and tail of each model in the real interpreter, or None where it refuses."""
    log = _run(MICRO, arena, *paths).stderr
    found = []
    for part in log.split("MODEL\n")[1:]:
        sizes = {key: int(size) for key, size in re.findall(r"allocation (\w+) (\d+)", part)}
        found.append((sizes["head"], sizes["tail"]) if sizes else None)
    return found


def measure_litert(paths):
    """Of each model: index, address and bytes of every tensor of the real interpreter."""
    return [json.loads(line) for line in _run(LITERT, *paths).stdout.splitlines()]


def dense(units=4, depth=8, *, quantised=False):
    """One fully connected layer."""
    kind, size = ("INT8", 1) if quantised else ("FLOAT32", 4)
    scales = int(quantised)
    return G(
        [
            T((1, depth), kind, scales=scales),
            T((units, depth), kind, bytes(units * depth * size), scales=scales),
            T((units,), "INT32" if quantised else "FLOAT32", bytes(units * 4), scales=scales),
            T((1, units), kind, scales=scales),
        ],
        [Op("FULLY_CONNECTED", (0, 1, 2), (3,), "FullyConnectedOptions")],
        (0,),
        (3,),
    )


@dataclass
class Lite:
    """What the tests of this room work with."""

    T: type = T
    Op: type = Op
    G: type = G
    build: object = staticmethod(build)
    dense: object = staticmethod(dense)
    measure_micro: object = staticmethod(measure_micro)
    measure_litert: object = staticmethod(measure_litert)


@pytest.fixture(scope="session")
def lite():
    return Lite()
