"""Models that patches are tried on, converted by TensorFlow, and the real interpreters."""

import warnings

import numpy as np
from ai_edge_litert import interpreter as litert
from tflite_micro import runtime

from snugly.lite.patches_layers import layers_of
from snugly.lite.patches_stage import stage_of
from snugly.lite.patches_writing import write_plain, write_stage
from snugly.lite.rewriting import Rewriting
from snugly.readers.tflite import read_tflite

KINDS = litert.OpResolverType
LARGE = 1 << 24


def convolved(x, filters, taps, strides=1, padding="same", **options):
    import keras

    return keras.layers.Conv2D(
        filters,
        taps,
        strides=strides,
        padding=padding,
        **{"activation": "relu6", **options},
    )(x)


def odd_sizes():
    """Odd sizes, padding SAME and VALID, a maximum over the edge, a dense end."""
    import keras

    layers = keras.layers
    image = keras.Input((33, 47, 3), batch_size=1)
    x = convolved(image, 8, 3, 2)
    x = layers.DepthwiseConv2D(3, padding="same", activation="relu")(x)
    x = convolved(x, 12, 5, 2, "valid")
    x = layers.MaxPool2D(3, 2, padding="same")(x)
    x = convolved(x, 8, 3)
    return keras.Model(image, layers.Dense(5)(layers.Flatten()(x)))


def residuals():
    """Blocks of MobileNetV2, one of them with a stride."""
    import keras

    layers = keras.layers
    image = keras.Input((29, 31, 3), batch_size=1)
    x = convolved(image, 8, 3)
    for strides in (1, 2, 1):
        y = convolved(x, 24, 1)
        y = layers.DepthwiseConv2D(3, strides=strides, padding="same")(y)
        y = convolved(layers.ReLU(6.0)(y), 8, 1, activation=None)
        x = layers.Add()([x, y]) if strides == 1 else y
    return keras.Model(image, layers.GlobalAveragePooling2D()(x))


def paddings():
    """Explicit padding on all sides, dilation, a depth multiplier, a mean of what is inside."""
    import keras

    layers = keras.layers
    image = keras.Input((31, 34, 2), batch_size=1)
    x = layers.ZeroPadding2D(((1, 2), (3, 0)))(image)
    x = convolved(x, 8, 3, 2, "valid")
    x = layers.DepthwiseConv2D(3, padding="same", depth_multiplier=2)(x)
    x = convolved(x, 8, 3, dilation_rate=2)
    x = layers.AveragePooling2D(2)(x)
    return keras.Model(image, convolved(x, 6, 3))


def branches():
    """Channels joined, a mean over the edge, constants per channel, many activations."""
    import keras

    layers = keras.layers
    image = keras.Input((27, 30, 3), batch_size=1)
    left = layers.LeakyReLU()(convolved(image, 8, 3, 2, activation=None))
    right = layers.MaxPool2D(2, 2, padding="same")(image)
    x = convolved(layers.Concatenate()([left, right]), 8, 3, activation="sigmoid")
    x = layers.PReLU(shared_axes=[1, 2])(x)
    x = layers.AveragePooling2D(3, 2, padding="same")(x)
    x = convolved(x, 8, 1, activation="tanh")
    return keras.Model(image, convolved(x * 0.5 + 1.0, 4, 3))


def channels_first():
    """As converters from PyTorch write it: transposed, then PAD before every convolution."""
    import keras

    layers = keras.layers
    image = keras.Input((3, 27, 21), batch_size=1)
    x = layers.ZeroPadding2D(1)(layers.Permute((2, 3, 1))(image))
    x = layers.ZeroPadding2D(1)(convolved(x, 8, 3, 2, "valid"))
    x = layers.ZeroPadding2D(1)(layers.DepthwiseConv2D(3, activation="relu")(x))
    x = layers.DepthwiseConv2D(3, strides=2)(x)
    return keras.Model(image, layers.Permute((3, 1, 2))(convolved(x, 8, 1)))


def squeezed():
    """A gate computed from the whole image, two outputs, two inputs."""
    import keras

    layers = keras.layers
    image, other = (keras.Input((24, 24, 3), batch_size=1) for _ in range(2))
    x = layers.Add()([convolved(image, 8, 3), convolved(other, 8, 5)])
    gate = layers.GlobalAveragePooling2D(keepdims=True)(x)
    x = x * convolved(gate, 8, 1, activation="sigmoid")
    y = convolved(x, 8, 3, 2)
    return keras.Model([image, other], [y, layers.GlobalAveragePooling2D()(convolved(y, 8, 3, 2))])


def batches():
    """Two images at once, windows and strides that differ by axis."""
    import keras

    layers = keras.layers
    image = keras.Input((22, 26, 4), batch_size=2)
    x = layers.Conv2D(8, (3, 5), strides=2, padding="same")(image)
    x = layers.Conv2D(8, (4, 2), padding="same", activation="relu")(x)
    return keras.Model(image, layers.MaxPool2D((2, 3), strides=(1, 2), padding="same")(x))


BUILDERS = {
    builder.__name__: builder
    for builder in (
        odd_sizes,
        residuals,
        paddings,
        branches,
        channels_first,
        squeezed,
        batches,
    )
}


def convert(model, kind):
    """The bytes of a model as `float`, `int8` or `int16`, with weights that are not all alike."""
    import tensorflow as tf

    draw = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(draw.normal(0, 0.3, weight.shape))
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if kind != "float":
        sets = tf.lite.OpsSet
        wide = sets.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: (
            [draw.normal(size=one.shape).astype(np.float32) for one in model.inputs]
            for _ in range(4)
        )
        converter.target_spec.supported_ops = [
            sets.TFLITE_BUILTINS_INT8 if kind == "int8" else wide
        ]
        converter.inference_input_type = converter.inference_output_type = (
            tf.int8 if kind == "int8" else tf.int16
        )
    with warnings.catch_warnings():
        # The converter misses statistics of quantised inputs, which the data set gives it.
        warnings.simplefilter("ignore", UserWarning)
        return converter.convert()


def drawn(details, draw):
    """A random input."""
    shape, kind = details["shape"], np.dtype(details["dtype"])
    if kind == np.float32:
        return draw.standard_normal(shape).astype(kind)
    limits = np.iinfo(kind)
    return draw.integers(limits.min, limits.max + 1, shape).astype(kind)


class Micro:
    """TFLite Micro's interpreter."""

    def __init__(self, data, arena=LARGE):
        main = read_tflite(data).main
        self._counts = len(main.inputs), len(main.outputs)
        self._interpreter = runtime.Interpreter.from_bytes(data, arena_size=int(arena))

    @property
    def inputs(self):
        return [self._interpreter.get_input_details(n) for n in range(self._counts[0])]

    def __call__(self, values):
        for number, value in enumerate(values):
            self._interpreter.set_input(value, number)
        self._interpreter.invoke()
        return [self._interpreter.get_output(n).copy() for n in range(self._counts[1])]


class Lite:
    """LiteRT's interpreter, by default with its reference kernels."""

    def __init__(self, data, kind=KINDS.BUILTIN_REF, shape=None):
        self._interpreter = litert.Interpreter(
            model_content=data, experimental_op_resolver_type=kind
        )
        if shape is not None:
            first = self._interpreter.get_input_details()[0]["index"]
            self._interpreter.resize_tensor_input(first, shape)
        self._interpreter.allocate_tensors()

    @property
    def inputs(self):
        return self._interpreter.get_input_details()

    def __call__(self, values):
        for details, value in zip(self.inputs, values, strict=True):
            self._interpreter.set_tensor(details["index"], value)
        self._interpreter.invoke()
        return [
            self._interpreter.get_tensor(details["index"]).copy()
            for details in self._interpreter.get_output_details()
        ]


def same_outputs(one, other, count=20, seed=0):
    """On how many of so many random inputs two interpreters agree to the bit."""
    draw = np.random.default_rng(seed)
    agreed = 0
    for _ in range(count):
        values = [drawn(details, draw) for details in one.inputs]
        pairs = zip(one(values), other(values), strict=True)
        agreed += all(np.array_equal(left, right) for left, right in pairs)
    return agreed


def stages_of(data):
    """Every run of layers that can be patched."""
    rewriting = Rewriting(data)
    layers = layers_of(rewriting)
    found = [
        stage_of(layers, first, last, rewriting.model.main)
        for first in range(len(layers))
        for last in range(first + 1, len(layers) + 1)
    ]
    return layers, [stage for stage in found if stage is not None]


def with_stage(data, layers, stage, rows, columns):
    """The model with one run of layers in patches."""
    rewriting = Rewriting(data)
    number = 0
    while number < len(layers):
        if number == stage.first:
            write_stage(rewriting, stage, rows, columns)
            number = stage.last
        else:
            write_plain(rewriting, layers[number])
            number += 1
    return rewriting.finish()
