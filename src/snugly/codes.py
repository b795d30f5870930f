"""Every message code Snugly can print, with what it means and what to do.

One registry, so that each code is used once, tested once, and has one page in the documentation
(`docs/messages/`, written from here). The hundreds tell where a message comes from:

    SNG0xx  how the command was called, its settings, the installation
    SNG1xx  reading a program and predicting its memory
    SNG2xx  devices and budgets
    SNG3xx  recording a run, reading a record, leaks
    SNG6xx  running under a limit
    SNG9xx  hazards of this machine, reported by `snugly doctor`
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Code:
    """One message code: its title, what it means, and what to do about it."""

    code: str
    title: str
    meaning: str
    remedy: str


_ALL: Final = (
    Code(
        "SNG001",
        "Snugly itself failed",
        "Something happened that Snugly did not expect. This is a defect in Snugly.",
        "Run the command again with `--debug` and report what it prints, together with the output"
        " of `snugly doctor`.",
    ),
    Code(
        "SNG002",
        "The command was called wrongly",
        "An argument is missing, unknown, or cannot be combined with another.",
        "`snugly COMMAND --help` lists the arguments and shows examples.",
    ),
    Code(
        "SNG003",
        "A setting cannot be used",
        "A key under `[tool.snugly]` in pyproject.toml, or a `SNUGLY_*` variable, is unknown or has"
        " a value that cannot be read.",
        "Correct or remove the setting that the message names. Known settings are `memory`,"
        " `device` and `output-format`.",
    ),
    Code(
        "SNG004",
        "A size cannot be read",
        "A size of memory was given in a form that could mean nothing, or two things.",
        "Write `512MiB` (1024-based), `2 GB` (1000-based), or a whole number of bytes.",
    ),
    Code(
        "SNG005",
        "A package is missing",
        "The command needs a package that is not installed, most often TensorFlow. Snugly does not"
        " bring TensorFlow along, because many people already have a build of it.",
        "Install it: `pip install 'snugly[tensorflow]'`.",
    ),
    Code(
        "SNG101",
        "The program does not fit",
        "Even the low end of the predicted peak is above what the device offers.",
        "The hints below the message name changes that would make it fit, by prediction alone.",
    ),
    Code(
        "SNG102",
        "The program may not fit",
        "The budget lies inside the range of the prediction: some runs would fit, some would not.",
        "Treat it as not fitting, or measure it. The hints name changes that would surely fit.",
    ),
    Code(
        "SNG103",
        "A dimension is not known",
        "The program has a dimension, such as the batch or the length of a sequence, that the"
        " prediction depends on. Snugly asks for it; it never guesses.",
        "Give `--batch-size N`, or `--dimension NAME=N` for any other.",
    ),
    Code(
        "SNG104",
        "The program was not found",
        "The path does not exist, or the module or script has no such name.",
        "Give a file (`model.keras`, a SavedModel folder, `model.tflite`) or `script.py:name`.",
    ),
    Code(
        "SNG105",
        "The program cannot be read",
        "The file is damaged, or is not of the kind its name says.",
        "Save the model again, or give the script that builds it as `script.py:name`.",
    ),
    Code(
        "SNG106",
        "The program carries code",
        "The file contains Python code (a Lambda layer, for instance) that loading it would run."
        " A model file is untrusted input, so Snugly does not run it unasked.",
        "If you trust the file, allow it: `--allow-code`.",
    ),
    Code(
        "SNG107",
        "The program cannot be predicted",
        "Snugly read the program, but something in it has a size that it cannot derive.",
        "The message names the part. Please report it with a small example.",
    ),
    Code(
        "SNG108",
        "The program failed while it was built",
        "The script or builder that was named raised an error of its own.",
        "Run the script by itself first; the message names the line that failed.",
    ),
    Code(
        "SNG201",
        "The device is not known",
        "The catalogue has no device of this name.",
        "`snugly devices` lists all names. For a device that is not there, give its memory instead:"
        " `--memory 4GiB`.",
    ),
    Code(
        "SNG202",
        "Two budgets were given",
        "A budget is either a number of bytes or what a device offers, not both.",
        "Give `--memory` or `--device`, not both.",
    ),
    Code(
        "SNG203",
        "No such GPU on this machine",
        "The GPU that was asked for is not visible through NVIDIA's management library.",
        "`snugly devices host` shows what is visible. Check the driver with `nvidia-smi`.",
    ),
    Code(
        "SNG301",
        "The record cannot be read",
        "The file is not a record, is damaged, or ends before its first complete part.",
        "Record the run again: `snugly profile -o run.snugly SCRIPT`.",
    ),
    Code(
        "SNG302",
        "The record is of a newer version",
        "The file was written by a later version of Snugly, in a form this one does not know.",
        "Update Snugly: `pip install --upgrade snugly`.",
    ),
    Code(
        "SNG303",
        "The script cannot be run",
        "What is to be recorded does not exist, or is not Python.",
        "Give a Python script and its arguments: `snugly profile train.py --epochs 3`.",
    ),
    Code(
        "SNG304",
        "There is no room for the output",
        "The file cannot be written: the folder does not exist, is read-only, or is full.",
        "Give another place: `-o FOLDER/run.snugly`.",
    ),
    Code(
        "SNG305",
        "The trace has no memory events",
        "The profiler's file was read, but no allocator reported anything in it. On a CPU that is"
        " so unless `TF_CPU_ALLOCATOR_USE_BFC=1` was set before TensorFlow was imported; on a GPU,"
        " with `TF_GPU_ALLOCATOR=cuda_malloc_async`.",
        "Record it with `snugly profile SCRIPT`, which sets what is needed.",
    ),
    Code(
        "SNG306",
        "The program cannot be carried into a fresh process",
        "A model or function is measured in a process of its own, and this one cannot be sent"
        " there.",
        'Measure it here: `with snugly.record("run.snugly"): …`, or name it as'
        ' `snugly.measure("script.py:name")`.',
    ),
    Code(
        "SNG307",
        "The program failed while it was measured",
        "The model or function raised an error of its own, or its process died.",
        "Run it by itself first; the message has its last words.",
    ),
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
    Code(
        "SNG601",
        "The memory limit was exceeded",
        "A guarded computation asked for more memory than its limit allows and was refused.",
        "Raise the limit, or make the computation smaller; the process can go on.",
    ),
    Code(
        "SNG901",
        "A oneDNN convolution segfaults when memory runs out",
        "With oneDNN on (the default on x86), a convolution whose output cannot be allocated ends"
        " the process with a segmentation fault (exit code 139) where TensorFlow should raise"
        " ResourceExhaustedError. Seen with TensorFlow 2.21 on CPU.",
        "Where memory is short, set `TF_ENABLE_ONEDNN_OPTS=0` before importing TensorFlow:"
        " convolutions then raise an error that can be caught.",
    ),
    Code(
        "SNG902",
        "TensorFlow is not installed",
        "Predicting Keras models and functions needs TensorFlow. Everything else works without.",
        "`pip install 'snugly[tensorflow]'`, or install the build that suits your machine.",
    ),
    Code(
        "SNG903",
        "More than one build of TensorFlow is installed",
        "Builds of TensorFlow install the same `tensorflow` folder and overwrite one another.",
        "Uninstall all of them, then install one.",
    ),
    Code(
        "SNG904",
        "This version of TensorFlow has not been seen",
        "Snugly is tested with TensorFlow 2.16 to 2.21. Other versions usually work; constants read"
        " from TensorFlow's sources may differ.",
        "Compare a prediction with a measured run before relying on it.",
    ),
    Code(
        "SNG905",
        "The container allows less memory than the machine has",
        "A control group caps this process. When the cap is reached the kernel kills the process"
        " (exit code 137) without an error from TensorFlow.",
        "Plan with the cap, not with the machine's memory: `--device host` does.",
    ),
    Code(
        "SNG906",
        "TensorFlow's own memory figures are switched off",
        'With `TF_ENABLE_ONEDNN_OPTS=0` and no BFC allocator, `get_memory_info("CPU:0")` raises'
        " and the profiler records no allocations.",
        "To measure on a CPU, set `TF_CPU_ALLOCATOR_USE_BFC=1` before importing TensorFlow.",
    ),
    Code(
        "SNG907",
        "Allocations on the GPU cannot be recorded",
        "`TF_GPU_ALLOCATOR=cuda_malloc_async` emits no allocation events and does not follow the"
        " allocator that predictions replay.",
        "Unset `TF_GPU_ALLOCATOR` for recording and for predictions to apply.",
    ),
    Code(
        "SNG908",
        "A limit on address space breaks CUDA",
        "`ulimit -v` (RLIMIT_AS) is set. CUDA reserves address space at twice the card's memory, so"
        " GPU programs fail although memory is free.",
        "`ulimit -v unlimited`; limit data instead (`ulimit -d`).",
    ),
    Code(
        "SNG909",
        "TensorFlow takes the whole GPU",
        "Without memory growth TensorFlow reserves nearly all free memory of every visible GPU at"
        " start, so tools such as nvidia-smi show a full card whatever the program needs.",
        "Set `TF_FORCE_GPU_ALLOW_GROWTH=true` to see, and share, what is really used.",
    ),
)

REGISTRY: Final = MappingProxyType({entry.code: entry for entry in _ALL})
"""All codes, in order. The documentation and its test read this."""
