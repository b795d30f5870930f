"""What in source code is too large, comes too late, or is gone: part of SNG4xx."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG414",
        "A shuffle buffer holds what is already large",
        "`shuffle(n)` keeps n elements in memory, as they are at that place of the pipeline:"
        " thousand decoded images of 600 × 600 take 4 GiB.",
        "Shuffle names or records first, and decode after it; or make the buffer smaller.",
    ),
    Code(
        "SNG415",
        "Decoded elements are cached in memory",
        "`cache()` without a file name keeps the whole dataset, decoded.",
        "`cache(filename)` keeps it on disk; or cache before decoding.",
    ),
    Code(
        "SNG416",
        "A dataset is made of a large array",
        "`from_tensor_slices` copies its array into the graph as a constant; it is copied again"
        " where the graph is, and a graph cannot pass 2 GB.",
        "`from_generator` with an `output_signature`, TFRecord files, or a memory map that a"
        " generator reads.",
    ),
    Code(
        "SNG417",
        "The same dataset is built again in every turn",
        "Each dataset has functions and buffers of its own; those of `from_generator` stay"
        " registered (tensorflow/tensorflow#37653).",
        "Build it once, before the loop; iterating over it again starts it again.",
    ),
    Code(
        "SNG418",
        "tf.py_function is used in a dataset",
        "`tf.py_function` records what it does, in case somebody asks for a gradient, which nobody"
        " asks of a dataset; what it records was seen to stay (tensorflow/tensorflow#35010).",
        "`tf.numpy_function` gives the function arrays and records nothing; or use TensorFlow's"
        " own operations.",
    ),
    Code(
        "SNG420",
        "A session is not closed",
        "A session holds its variables, and its part of the GPU, until it is closed.",
        "`with tf.compat.v1.Session() as session:`, or `session.close()`.",
    ),
    Code(
        "SNG421",
        "The GPU is set up after TensorFlow has started",
        "Memory growth, logical devices and visible devices are read when TensorFlow starts its"
        " runtime, with the first operation, variable, optimizer or model whose input is known.",
        "Move it directly behind `import tensorflow`.",
    ),
    Code(
        "SNG422",
        "An environment variable is set after TensorFlow was imported",
        "TensorFlow reads its variables when it is imported, the GPU's when the GPU is first used;"
        " whether a later assignment counts depends on what ran before.",
        "Set it above `import tensorflow`, or in the shell.",
    ),
    Code(
        "SNG423",
        "A whole dataset is read into memory",
        "A list of a dataset holds every element at once.",
        "Iterate over it, or `take` what is needed.",
    ),
    Code(
        "SNG424",
        "A large float64 array goes into Keras",
        "NumPy's default is float64, twice the bytes of float32, and Keras makes a float32 copy of"
        " it beside.",
        "`dtype=np.float32` where the array is made, or `.astype('float32')` once.",
    ),
    Code(
        "SNG425",
        "Labels of many classes as dense vectors",
        "A one-hot vector takes 4 bytes for every class; a label takes 4.",
        "Keep the labels and use `sparse_categorical_crossentropy`.",
    ),
    Code(
        "SNG426",
        "A large picture is flattened into a wide layer",
        "The weights of a dense layer are inputs times units, and behind Flatten the inputs are"
        " every pixel of every channel.",
        "`GlobalAveragePooling2D` instead of `Flatten`, or pooling and strides before it.",
    ),
    Code(
        "SNG427",
        "A model is called on all data at once",
        "`model(x)` runs one batch of all that it is given, with every activation in memory.",
        "`model.predict(x, batch_size=64)`, or call it in a loop over batches.",
    ),
    Code(
        "SNG430",
        "The process forks after TensorFlow has started",
        "TensorFlow's threads and the GPU's context do not survive a fork: children hang, or hold"
        " a copy of what the parent holds.",
        "`multiprocessing.get_context('spawn')`, or fork before anything of TensorFlow runs.",
    ),
    Code(
        "SNG431",
        "Many whole batches are prefetched",
        "Behind `batch`, `prefetch(n)` keeps n whole batches ready.",
        "`prefetch(tf.data.AUTOTUNE)`, or 1 to 2.",
    ),
    Code(
        "SNG433",
        "A dataset's function captures a large tensor",
        "What a mapped function refers to is copied into the graph of each `map`"
        " (tensorflow/tensorflow#62788).",
        "Keep it in a `tf.Variable`, which is referred to, or make it part of the dataset.",
    ),
    Code(
        "SNG440",
        "A size that cannot be had",
        "Shape times type, computed from what is written, is more than a machine has.",
        "Make it smaller, make it in pieces, or keep it in a file (`np.memmap`, Zarr).",
    ),
    Code(
        "SNG441",
        "A name that TensorFlow 2 does not have",
        "The name belongs to TensorFlow 1; in TensorFlow 2 it raises AttributeError. This is not a"
        " matter of memory.",
        "Use its successor, or `import tensorflow.compat.v1 as tf` for code that stays as it is.",
    ),
    Code(
        "SNG442",
        "Graph mode is assumed, and TensorFlow 2 executes eagerly",
        "Placeholders, sessions and `tf.gradients` work on a graph. TensorFlow 2 executes every"
        " operation at once, unless told otherwise. This is not a matter of memory.",
        "Write a function and call it; or `tf.compat.v1.disable_eager_execution()` at the start,"
        " or `with tf.Graph().as_default():`.",
    ),
)
