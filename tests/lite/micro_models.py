"""Models of one or a few operators, and the real TFLite Micro, for tests of overlaps."""

# ruff: noqa: PLR0913 - what operators are made of, all by name

import struct

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from snugly.lite.writing import write_plan
from snugly.readers.tflite import read_tflite

NUMPY = {
    "FLOAT32": np.float32,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "UINT8": np.uint8,
    "BOOL": np.bool_,
}


class Model:
    """A model that is put together tensor by tensor."""

    def __init__(self, seed=0):
        self.random = np.random.default_rng(seed)
        self._model = schema.ModelT()
        self._model.version = 3
        self._model.buffers = [schema.BufferT()]
        self._model.operatorCodes = []
        self._graph = schema.SubGraphT()
        self._graph.tensors, self._graph.operators = [], []
        self._graph.inputs, self._graph.outputs = [], []
        self._model.subgraphs = [self._graph]
        self._model.metadata = []
        self._codes = {}

    def tensor(self, shape, kind="INT8", data=None, *, scale=0.5, zero=0, channels=0, axis=0):
        made = schema.TensorT()
        made.name = f"t{len(self._graph.tensors)}"
        made.shape, made.type = list(shape), getattr(schema.TensorType, kind)
        made.buffer = 0
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
            self._model.buffers.append(buffer)
            made.buffer = len(self._model.buffers) - 1
        if kind in {"INT8", "INT16", "UINT8"} or channels:
            made.quantization = schema.QuantizationParametersT()
            made.quantization.scale = [scale] * (channels or 1)
            made.quantization.zeroPoint = [zero] * (channels or 1)
            made.quantization.quantizedDimension = axis
        self._graph.tensors.append(made)
        return len(self._graph.tensors) - 1

    def weights(self, shape, kind, axis=0):
        """Random constants, with a scale for each channel where they are integers."""
        if kind == "FLOAT32":
            return self.tensor(shape, kind, self.random.standard_normal(shape).astype(np.float32))
        values = self.random.integers(-127, 128, shape).astype(np.int8)
        return self.tensor(shape, "INT8", values, scale=0.02, channels=shape[axis], axis=axis)

    def bias(self, count, kind):
        if kind == "FLOAT32":
            return self.tensor((count,), kind, self.random.standard_normal(count).astype("f4"))
        wide = np.int64 if kind == "INT16" else np.int32
        name = "INT64" if kind == "INT16" else "INT32"
        values = self.random.integers(-50, 50, count).astype(wide)
        return self.tensor((count,), name, values, scale=0.01, channels=count)

    def fill(self, index, values):
        """Put other values into a constant."""
        buffer = self._model.buffers[self._graph.tensors[index].buffer]
        buffer.data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)

    def integers(self, values):
        return self.tensor(np.shape(values), "INT32", np.array(values, np.int32))

    def operator(self, name, inputs, outputs, options=None, **values):
        if name not in self._codes:
            code = schema.OperatorCodeT()
            number = getattr(schema.BuiltinOperator, name, schema.BuiltinOperator.CUSTOM)
            code.builtinCode, code.version = number, 1
            code.deprecatedBuiltinCode = min(number, 127)
            if number == schema.BuiltinOperator.CUSTOM:
                code.customCode = name
            self._codes[name] = len(self._model.operatorCodes)
            self._model.operatorCodes.append(code)
        made = schema.OperatorT()
        made.opcodeIndex = self._codes[name]
        made.inputs, made.outputs = list(inputs), list(outputs)
        if options:
            made.builtinOptionsType = getattr(schema.BuiltinOptions, options)
            made.builtinOptions = getattr(schema, f"{options}T")()
            for key, value in values.items():
                setattr(made.builtinOptions, key, value)
        self._graph.operators.append(made)

    def convolution(self, given, count, window, kind="INT8", *, stride=1, same=True, dilation=1):
        """CONV_2D; gives its output."""
        _, height, width, depth = self._graph.tensors[given].shape
        weights = self.weights((count, window, window, depth), kind)
        size = [out_size(one, window, stride, same, dilation) for one in (height, width)]
        output = self.tensor((1, *size, count), kind, scale=4.0)
        options = {"strideW": stride, "strideH": stride, "padding": 0 if same else 1}
        options |= {"dilationWFactor": dilation, "dilationHFactor": dilation}
        inputs = (given, weights, self.bias(count, kind))
        self.operator("CONV_2D", inputs, (output,), "Conv2DOptions", **options)
        return output

    def depthwise(self, given, multiplier, window, kind="INT8", *, stride=1, same=True):
        """DEPTHWISE_CONV_2D; gives its output."""
        _, height, width, depth = self._graph.tensors[given].shape
        weights = self.weights((1, window, window, depth * multiplier), kind, axis=3)
        size = [out_size(one, window, stride, same) for one in (height, width)]
        output = self.tensor((1, *size, depth * multiplier), kind, scale=2.0)
        options = {"strideW": stride, "strideH": stride, "padding": 0 if same else 1}
        options |= {"depthMultiplier": multiplier, "dilationWFactor": 1, "dilationHFactor": 1}
        inputs = (given, weights, self.bias(depth * multiplier, kind))
        self.operator("DEPTHWISE_CONV_2D", inputs, (output,), "DepthwiseConv2DOptions", **options)
        return output

    def add(self, one, other, kind="INT8"):
        output = self.tensor(self._graph.tensors[one].shape, kind, scale=1.0)
        self.operator("ADD", (one, other), (output,), "AddOptions")
        return output

    def finish(self, inputs, outputs, plan=None):
        """The bytes of the model."""
        self._graph.inputs, self._graph.outputs = list(inputs), list(outputs)
        if plan is not None:
            entry, buffer = schema.MetadataT(), schema.BufferT()
            numbers = [1, 1, len(plan), *plan]
            buffer.data = list(struct.pack(f"<{len(numbers)}i", *numbers))
            self._model.buffers.append(buffer)
            entry.name = "OfflineMemoryAllocation"
            entry.buffer = len(self._model.buffers) - 1
            self._model.metadata = [entry]
        builder = flatbuffers.Builder(1024)
        builder.Finish(self._model.Pack(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())


def out_size(size, window, stride, same, dilation=1):
    reach = (window - 1) * dilation + 1
    return -(-size // stride) if same else (size + stride - reach) // stride


def run(source, count=8, seed=0, arena=1 << 22):
    """The outputs of the real interpreter for random inputs, as bytes."""
    from tflite_micro import runtime

    model = read_tflite(source)
    interpreter = runtime.Interpreter.from_bytes(source, arena_size=arena)
    random = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        for place, index in enumerate(model.main.inputs):
            tensor = model.main.tensors[index]
            interpreter.set_input(values(random, tensor.shape, tensor.type.name), place)
        interpreter.invoke()
        places = range(len(model.main.outputs))
        found.append(tuple(interpreter.get_output(place).tobytes() for place in places))
    return found


def values(random, shape, kind):
    """Random values of a type; floats are positive, so that roots and logarithms exist."""
    if kind == "FLOAT32":
        return random.uniform(0.5, 4.0, shape).astype(np.float32)
    if kind == "BOOL":
        return random.integers(0, 2, shape).astype(np.bool_)
    low, high = (0, 256) if kind == "UINT8" else (-128, 128)
    return random.integers(low, high, shape).astype(NUMPY[kind])


def with_offsets(source, chosen):
    """The model with these tensors at these offsets."""
    model = read_tflite(source)
    offsets = [chosen.get(index, -1) for index in range(len(model.main.tensors))]
    return write_plan(source, model, offsets)
