"""What grows while a program runs: SNG32x and SNG33x."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG320",
        "A tf.function is traced again and again",
        "Each call with a new Python number, a new shape or a new object is traced anew, and"
        " every trace stays in memory: 90 KB for the smallest function (measured with TensorFlow"
        " 2.21). A function that is made anew in a loop is traced each time as well; so is the"
        " training function of a model that is compiled again, which leaves 0.4 to 3 MB behind.",
        "Pass tensors instead of Python numbers, give an `input_signature` with open"
        " dimensions, and make the function once, outside of the loop. Compile a model once, and"
        " set what changes: `model.optimizer.learning_rate = …`.",
    ),
    Code(
        "SNG321",
        "A function is compiled again and again",
        "With `jit_compile=True` XLA compiles a function for every new shape of its arguments,"
        " even where TensorFlow needs one trace for all of them, and keeps the code: 190 KB for a"
        " small function (measured with TensorFlow 2.21).",
        "Pad to a few sizes, or leave `jit_compile` out where shapes change.",
    ),
    Code(
        "SNG322",
        "Models are built in a loop",
        "Each model has weights, functions and optimizer slots of its own. Those that somebody"
        " keeps stay whole; of those that nobody keeps, what was traced for training is still"
        " not all given back, and `keras.backend.clear_session()` does not change that: 3.2 MB a"
        " model without it, 2.7 MB with it, after collecting garbage (measured with TensorFlow"
        " 2.21 and Keras 3.15, two dense layers, Adam).",
        "Build one model and reset its weights, or give each trial a process of its own.",
    ),
    Code(
        "SNG323",
        "Layers are made in a loop",
        "A layer that is made where it is called gets new weights with every call. They are freed,"
        " but TensorFlow remembers every variable's name: 36 KB each (measured with 2.21).",
        "Make layers once, in `__init__` or outside of the loop.",
    ),
    Code(
        "SNG324",
        "Optimizers are made in a loop",
        "Each optimizer makes slots for all weights, and functions that use it keep them. Even of"
        " one that is freed, 36 KB stay for each of its variables (measured with TensorFlow 2.21).",
        "Make one optimizer, and set its learning rate.",
    ),
    Code(
        "SNG325",
        "Variables are made in a loop",
        "Each `tf.Variable` has memory of its own for as long as somebody holds it.",
        "Make the variable once and `assign` to it.",
    ),
    Code(
        "SNG326",
        "Datasets are made in a loop",
        "Each dataset or iterator that stays alive keeps its functions and buffers. One from"
        " `from_generator` that nobody reads to its end keeps all that its generator refers to."
        " Those that are simply dropped are freed, and are not reported.",
        "Make the dataset once and iterate over it again; read generators to their end.",
    ),
    Code(
        "SNG327",
        "Tensors are kept",
        "A list, dictionary, closure or object holds the tensors of every iteration.",
        "Keep numbers instead (`float(loss)`), or only the last few"
        " (`collections.deque(maxlen=…)`).",
    ),
    Code(
        "SNG328",
        "Arrays are kept",
        "A container holds the NumPy arrays of every iteration.",
        "Write them to a file, or keep what is needed of them.",
    ),
    Code(
        "SNG329",
        "A log in memory keeps growing",
        "A container of plain Python objects grows by more than a little with every iteration.",
        "Write it out as it comes, or keep the last few entries.",
    ),
    Code(
        "SNG330",
        "A callback keeps what it is given",
        "A Keras callback holds weights, batches or logs of every step.",
        "Keep numbers instead of tensors, or write to a file.",
    ),
    Code(
        "SNG331",
        "A persistent tape records on",
        "A `GradientTape(persistent=True)`, or one around the whole loop, keeps everything that"
        " was computed under it.",
        "Open the tape inside the loop, and `del` a persistent one when its gradients are there.",
    ),
    Code(
        "SNG332",
        "Tapes are kept",
        "A container holds the tapes of earlier iterations, and each holds what was recorded.",
        "Let go of a tape once its gradients are there.",
    ),
    Code(
        "SNG333",
        "A graph keeps growing",
        "Operations are added to one graph in a loop; with `tf.compat.v1` a graph never gets"
        " smaller.",
        "Build the graph before the loop and feed what changes; `graph.finalize()` finds who"
        " adds to it.",
    ),
    Code(
        "SNG334",
        "Sessions are left open",
        "Each session holds resources until it is closed.",
        "Open one session, or use `with tf.compat.v1.Session() as session`.",
    ),
    Code(
        "SNG335",
        "Python functions are registered again and again",
        "Each `tf.py_function` that is built stays registered for as long as its graph lives."
        " Called eagerly, every call registers another: 37 KB each (measured with TensorFlow"
        " 2.21). `tf.numpy_function` called eagerly leaves nothing.",
        "Build it once, outside of the loop or inside one tf.function.",
    ),
    Code(
        "SNG336",
        "Lookup tables are made in a loop",
        "A lookup table is a resource outside of Python, and its contents stay although the"
        " object is freed (measured with TensorFlow 2.21).",
        "Make the table once.",
    ),
    Code(
        "SNG337",
        "Something outside of Python keeps growing",
        "The process grows with every iteration, what Python holds does not, and the allocator"
        " does not give it back when asked.",
        "Look at what the line that the message names calls: native code, or a library's cache.",
    ),
)
