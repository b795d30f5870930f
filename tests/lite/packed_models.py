"""Float networks, and the same with weights of fewer bits: as converters write them to a file."""

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from tests.lite import micro_models as micro

WEIGHTED = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"}
FORMS = ("float", "weights", "weights per tensor", "halves", "dynamic")
"""`weights` and `halves` are made float again by DEQUANTIZE, `dynamic` are used as they are."""


def networks(width=1):
    """Float models by their names, each of other layers; `width` times as wide."""
    yield "convolutions", _images(width, ("convolution", "convolution", "pixel"))
    yield "depthwise", _images(width, ("convolution", "depthwise", "depthwise"))
    yield "mobile", _images(width, ("convolution", "depthwise", "pixel", "depthwise", "pixel"))
    yield "residual", _images(width, ("convolution", "branch", "branch"))
    yield "dense", _dense(width)


def _images(width, layers):
    model = micro.Model(len(layers))
    values = given = model.tensor((1, 24, 24, 3), "FLOAT32")
    count = 8 * width
    for layer in layers:
        if layer == "convolution":
            values = model.convolution(values, count, 3, "FLOAT32", stride=2)
        elif layer == "pixel":
            values = model.convolution(values, count, 1, "FLOAT32")
        elif layer == "depthwise":
            values = model.depthwise(values, 1, 3, "FLOAT32")
        else:
            inner = model.convolution(values, count, 3, "FLOAT32")
            values = model.add(values, inner, "FLOAT32")
    mean = model.tensor((1, count), "FLOAT32")
    axes = model.integers([1, 2])
    model.operator("MEAN", (values, axes), (mean,), "ReducerOptions", keepDims=False)
    output = fully_connected(model, mean, 10, count)
    return model.finish((given,), (output,))


def _dense(width):
    model = micro.Model(9)
    values = given = model.tensor((1, 60), "FLOAT32")
    depth = 60
    for count in (64 * width, 48 * width, 10):
        values, depth = fully_connected(model, values, count, depth), count
    return model.finish((given,), (values,))


def fully_connected(model, given, count, depth):
    """A dense layer of floats; gives its output."""
    output = model.tensor((1, count), "FLOAT32")
    inputs = (given, model.weights((count, depth), "FLOAT32"), model.bias(count, "FLOAT32"))
    model.operator("FULLY_CONNECTED", inputs, (output,), "FullyConnectedOptions")
    return output


def packed(source, form):
    """A float model with its weights in another form."""
    if form == "float":
        return source
    model = schema.ModelT.InitFromPackedBuf(source, 0)
    graph = model.subgraphs[0]
    names = {value: name for name, value in vars(schema.BuiltinOperator).items()}
    unpacking = []
    for operator in list(graph.operators):
        name = names[model.operatorCodes[operator.opcodeIndex].builtinCode]
        if name not in WEIGHTED:
            continue
        constants = operator.inputs[1:3] if form == "halves" else operator.inputs[1:2]
        for index in constants:
            axis = 3 if name == "DEPTHWISE_CONV_2D" else 0
            made = _packed_tensor(model, graph.tensors[index], form, axis)
            if form == "dynamic":
                graph.tensors[index] = made
                continue
            graph.tensors.append(made)
            graph.tensors[index].buffer = 0
            unpacking.append(_dequantize(model, len(graph.tensors) - 1, index))
    graph.operators = unpacking + list(graph.operators)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _packed_tensor(model, old, form, axis):
    values = np.frombuffer(bytes(model.buffers[old.buffer].data), np.float32).reshape(old.shape)
    made = schema.TensorT()
    made.name, made.shape = b"packed " + old.name, list(old.shape)
    if form == "halves":
        made.type, content = schema.TensorType.FLOAT16, values.astype(np.float16)
    else:
        others = tuple(one for one in range(values.ndim) if one != axis)
        whole = form == "weights per tensor"
        largest = np.abs(values).max(None if whole else others, keepdims=True)
        scales = np.maximum(largest, 1e-6) / 127
        made.type, content = schema.TensorType.INT8, np.round(values / scales).astype(np.int8)
        made.quantization = schema.QuantizationParametersT()
        made.quantization.scale = scales.ravel().tolist()
        made.quantization.zeroPoint = [0] * scales.size
        made.quantization.quantizedDimension = 0 if whole else axis
    buffer = schema.BufferT()
    buffer.data = np.frombuffer(content.tobytes(), np.uint8)
    model.buffers.append(buffer)
    made.buffer = len(model.buffers) - 1
    return made


def _dequantize(model, given, output):
    number = schema.BuiltinOperator.DEQUANTIZE
    codes = [code.builtinCode for code in model.operatorCodes]
    if number not in codes:
        code = schema.OperatorCodeT()
        code.builtinCode = code.deprecatedBuiltinCode = number
        code.version = 5
        model.operatorCodes.append(code)
        codes.append(number)
    made = schema.OperatorT()
    made.opcodeIndex = codes.index(number)
    made.inputs, made.outputs = [given], [output]
    made.builtinOptionsType = schema.BuiltinOptions.DequantizeOptions
    made.builtinOptions = schema.DequantizeOptionsT()
    return made
