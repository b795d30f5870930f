"""What source code would leave behind with every turn of a loop: part of SNG4xx."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG401",
        "A model is built in a loop",
        "Each model that is compiled and trained leaves behind what was traced for it, even when"
        " nobody holds it any more: 3.2 MB a model without `clear_session()`, 2.7 MB with it"
        " (measured with TensorFlow 2.21 and Keras 3.15, two dense layers, Adam). Without it"
        " Keras's own state, which grows with every layer, stays as well.",
        "Build one model and set its first weights again (`model.set_weights(first)`), or give"
        " each trial a process of its own. `keras.backend.clear_session()` in the loop frees"
        " Keras's part, which is the smaller one on TensorFlow 2.21.",
    ),
    Code(
        "SNG402",
        "A function that builds a model is called in a loop",
        "The model is not built in the loop itself, but in a function that the loop calls; what"
        " SNG401 says holds here too.",
        "Build one model and set its first weights again, or give each trial a process of its"
        " own; `keras.backend.clear_session()` at the start of every turn frees Keras's part.",
    ),
    Code(
        "SNG403",
        "A model is loaded in a loop",
        "Loading builds a model and traces its functions; parts of the earlier ones stay"
        " (tensorflow/tensorflow#27511).",
        "Load once, before the loop, and exchange weights with `load_weights`; where every turn"
        " needs another model, call `keras.backend.clear_session()` first, or use a process each.",
    ),
    Code(
        "SNG404",
        "predict or evaluate is called for every piece",
        "`predict` and `evaluate` are made for many batches: each call sets up a data pipeline,"
        " callbacks and, with new shapes, another trace. In a loop that is slow, and memory grows"
        " (tensorflow/tensorflow#33009, #44711).",
        "Call the model itself, `model(x, training=False)`, or `predict_on_batch`; or give"
        " `predict` everything at once.",
    ),
    Code(
        "SNG405",
        "A tf.function is called with changing Python values",
        "A tf.function is traced for every Python number, string or flag that it has not seen;"
        " each trace stays in memory, 90 KB for the smallest (measured with TensorFlow 2.21).",
        "Pass a tensor: `tf.constant(i)`, `tf.range`, a `tf.Variable`; or give the function an"
        " `input_signature`.",
    ),
    Code(
        "SNG406",
        "A tf.function is made in a loop",
        "Every `tf.function(…)` has traces of its own, so that nothing is ever reused.",
        "Make it once, before the loop or in `__init__`.",
    ),
    Code(
        "SNG407",
        "A tf.function is called with changing shapes",
        "Without a signature a tf.function is traced for new shapes, and keeps every trace"
        " (tensorflow/tensorflow#124972).",
        "Give it `input_signature=[tf.TensorSpec([None, …])]` or `reduce_retracing=True`, or pad"
        " to a few sizes.",
    ),
    Code(
        "SNG408",
        "A tf.function is given a new function object in every call",
        "A bound method, lambda or partial that is written in the call is another object each"
        " time, and functions are told apart by identity (tensorflow/tensorflow#31175).",
        "Keep it in a name before the loop, or let the traced function use it directly.",
    ),
    Code(
        "SNG409",
        "A persistent tape is not needed, or not let go",
        "A persistent tape keeps all that was recorded until it is deleted; another lets go with"
        " its first gradient.",
        "Leave `persistent=True` out where one gradient is asked for; else `del tape` when the"
        " gradients are there.",
    ),
    Code(
        "SNG410",
        "A tape is open around the whole loop over the data",
        "A tape keeps what was computed for every batch until a gradient is asked for: the memory"
        " of one step times the number of steps.",
        "Open the tape inside of the loop, one for each batch; add up gradients, not losses.",
    ),
    Code(
        "SNG411",
        "Tensors of every step are kept in a list",
        "A tensor keeps its memory on the device for as long as a list holds it.",
        "Keep numbers: `float(loss)`, `loss.numpy()`; or a metric such as `keras.metrics.Mean`.",
    ),
    Code(
        "SNG412",
        "A callback keeps something of every batch",
        "What a callback appends with every batch stays for the whole training.",
        "Keep numbers (`float(logs['loss'])`), the last few (`collections.deque(maxlen=…)`), or"
        " write to a file.",
    ),
    Code(
        "SNG413",
        "A copy of all weights is kept for every turn",
        "`get_weights()` copies every weight to the host.",
        "Keep the best one only, or save to files with `save_weights`.",
    ),
    Code(
        "SNG419",
        "A graph grows in a session's loop",
        "Operations that are made inside of the loop are added to the graph, which never gets"
        " smaller; every `run` is slower than the one before (tensorflow/tensorflow#10408).",
        "Build the graph before the loop and feed what changes; `graph.finalize()` finds who adds"
        " to it.",
    ),
    Code(
        "SNG428",
        "XLA compiles a function for changing shapes",
        "With `jit_compile=True` every new shape is compiled, even where one trace serves all, and"
        " the code is kept: 190 KB for a small function (measured with TensorFlow 2.21).",
        "Pad to a few sizes, or leave `jit_compile` out where shapes change.",
    ),
    Code(
        "SNG429",
        "Figures are opened in a loop and not closed",
        "pyplot keeps every figure until it is closed, and warns from the twenty-first on.",
        "`plt.close(fig)` at the end of every turn, or one figure that is cleared.",
    ),
    Code(
        "SNG432",
        "A model is deleted, and nothing is cleared",
        "`del model` removes one name. Keras's state and what was traced stay"
        " (tensorflow/tensorflow#30324).",
        "`keras.backend.clear_session()` after it frees Keras's part; only the end of a process"
        " frees all.",
    ),
    Code(
        "SNG434",
        "Any error is answered by another attempt",
        "While a handler runs, the traceback holds the frames of what failed, with their tensors;"
        " running the model there needs both at once. And a broad handler hides what went wrong.",
        "Catch `tf.errors.ResourceExhaustedError` alone, leave the handler, and try again after"
        " it with a smaller batch.",
    ),
)
