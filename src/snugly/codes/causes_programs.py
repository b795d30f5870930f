"""The program, its data or its installation: SNG767 to SNG787. Never memory."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG767",
        "Shapes do not fit together",
        "An operation or layer was given tensors whose shapes it cannot combine.",
        "The message names both shapes; print `tensor.shape` on the line that the traceback names.",
    ),
    Code(
        "SNG768",
        "Types do not fit together",
        "An operation was given tensors of different types, or a type it does not take.",
        "Convert one of them: `tf.cast(x, tf.float32)`. NumPy's default is float64, TensorFlow's"
        " float32.",
    ),
    Code(
        "SNG769",
        "Numbers became NaN or infinite",
        "A computation overflowed or divided by zero. Memory is not involved.",
        "`tf.debugging.enable_check_numerics()` finds the op; try a smaller learning rate, gradient"
        " clipping, loss scaling with float16; check the data for NaN.",
    ),
    Code(
        "SNG770",
        "A package is missing",
        "Python does not find a module in the environment that runs the program.",
        "Install it into that environment: `python -m pip install NAME`, with the same `python`.",
    ),
    Code(
        "SNG771",
        "Two installed packages were not built for each other",
        "A compiled module was built against another version of NumPy, Python, protobuf or the"
        " system's libraries than the one it finds (undefined symbols, GLIBC, 'size changed').",
        "Reinstall the package that is named, or the version of the other that it asks for. A fresh"
        " environment is often quickest.",
    ),
    Code(
        "SNG772",
        "A library found no room in the thread's static storage",
        "'cannot allocate memory in static TLS block' is about a small reserve that the loader"
        " keeps, not about RAM. It depends on the order of imports, mostly on aarch64.",
        "Import the library that is named first, or `LD_PRELOAD` it.",
    ),
    Code(
        "SNG773",
        "Two OpenMP runtimes are loaded",
        "Two packages bring an OpenMP of their own, and the second aborts the process. Notebooks"
        " show it as a dead kernel.",
        "Install both packages from one source (all of conda, or all of pip)."
        " `KMP_DUPLICATE_LIB_OK=TRUE` hides it and can give wrong results.",
    ),
    Code(
        "SNG774",
        "The processor lacks instructions that TensorFlow was compiled with",
        "The build uses AVX or other instructions that this processor, or virtual machine, does not"
        " have. The process ends at import (exit code 132).",
        "Use a build without them, another machine, or let the virtual machine pass the"
        " processor's features through.",
    ),
    Code(
        "SNG775",
        "A native library could not be loaded",
        "Windows or the loader did not find a library that TensorFlow needs, or it is of the wrong"
        " kind ('DLL load failed', 'wrong ELF class', 'mach-o').",
        "Install what is missing (on Windows the Visual C++ redistributable), and a build for this"
        " system and processor.",
    ),
    Code(
        "SNG776",
        "Devices were configured too late, or in two ways",
        "Memory growth, limits and visible devices must be set before TensorFlow uses a device, for"
        " all GPUs alike, and growth and a limit exclude each other.",
        "Set them right after `import tensorflow`; in a notebook restart the kernel; or use"
        " `TF_FORCE_GPU_ALLOW_GROWTH=true` in the environment.",
    ),
    Code(
        "SNG777",
        "A file is missing, damaged or of another kind",
        "A model, checkpoint or record could not be read: the path does not exist, the file is cut"
        " short, or its contents do not match the model.",
        "Check the path and the file's size; for checkpoints, that the model is built as it was"
        " saved.",
    ),
    Code(
        "SNG778",
        "The program is written for TensorFlow 1",
        "Names and habits of TensorFlow 1 (sessions, placeholders, `contrib`) do not exist in"
        " TensorFlow 2.",
        "`import tensorflow.compat.v1 as tf; tf.disable_v2_behavior()` as a first step;"
        " `tf_upgrade_v2` rewrites scripts.",
    ),
    Code(
        "SNG779",
        "A variable was used before it had a value",
        "A variable or table was not initialised in this session or graph.",
        "Run the initialiser, or restore the checkpoint, before it is used; do not mix graphs.",
    ),
    Code(
        "SNG780",
        "A symbolic tensor was used as if it had a value",
        "Inside of a tf.function or a Keras model a tensor has no value yet: Python's `if`, `for`"
        " or NumPy cannot use it, and it cannot leave its function.",
        "Use `tf.cond`, `tf.while_loop` or `keras.ops`; return the tensor instead of keeping it.",
    ),
    Code(
        "SNG781",
        "There is no gradient to apply",
        "No path leads from the loss to the variables: something in between is not differentiable"
        " or left TensorFlow.",
        "Look for NumPy calls, `argmax`, casts to integers, and variables made after the tape"
        " began to record.",
    ),
    Code(
        "SNG782",
        "An index or label is out of range",
        "An id is not below the size of the table it points into, such as a label not below the"
        " number of classes. On a GPU the same mistake gives zeros or an illegal access.",
        "Compare the largest id with the size of the layer: `num_classes`, `input_dim`.",
    ),
    Code(
        "SNG783",
        "An operation does not exist on this device or in this build",
        "There is no kernel for the op with that type on that device, or the op is not registered.",
        "Let TensorFlow place it (`tf.config.set_soft_device_placement(True)`), change the type, or"
        " import the library that brings the op.",
    ),
    Code(
        "SNG784",
        "Access was refused",
        "A file, device or service may not be used by this user.",
        "Check owner and rights of what is named; in a container, the user it runs as.",
    ),
    Code(
        "SNG785",
        "A connection failed",
        "Another machine or service did not answer, refused, or could not be verified.",
        "Check address, port, proxy and certificates; then try again.",
    ),
    Code(
        "SNG786",
        "The data ended early",
        "The input gave fewer batches than were asked for.",
        "Use `.repeat()`, or set `steps_per_epoch` to what the data has.",
    ),
    Code(
        "SNG787",
        "A saved model cannot be rebuilt",
        "Loading found a layer, function or setting that this version does not know, or weights"
        " that do not match.",
        "Pass `custom_objects=`, load with the version that saved it, or build the model in code"
        " and load the weights.",
    ),
)
