# ruff: noqa: E501, ISC004 - lines of logs, as they are
"""What logs wear: prefixes, frames, noise and ends that change nothing about the cause."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Final, TypeAlias

Dice: TypeAlias = random.Random
Frame: TypeAlias = Callable[[list[str], Dice], list[str]]

BEFORE: Final = (
    "2025-03-02 14:21:07.113254: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on."
    " You may see slightly different numerical results due to floating-point round-off errors from"
    " different computation orders. To turn them off, set the environment variable"
    " `TF_ENABLE_ONEDNN_OPTS=0`.",
    "E0000 00:00:1740925267.131871    4242 cuda_dnn.cc:8579] Unable to register cuDNN factory:"
    " Attempting to register factory for plugin cuDNN when one has already been registered",
    "2025-03-02 14:21:07.128411: E external/local_xla/xla/stream_executor/cuda/cuda_blas.cc:1575]"
    " Unable to register cuBLAS factory: Attempting to register factory for plugin cuBLAS when one"
    " has already been registered",
    "2025-03-02 14:21:08.001211: I external/local_xla/xla/stream_executor/cuda/cuda_executor.cc:1015]"
    " successful NUMA node read from SysFS had negative value (-1), but there must be at least one"
    " NUMA node, so returning NUMA node zero.",
    "2025-03-02 14:21:08.104211: W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT"
    " Warning: Could not find TensorRT",
    "2025-03-02 14:21:08.143254: I tensorflow/core/platform/cpu_feature_guard.cc:210] This TensorFlow"
    " binary is optimized to use available CPU instructions in performance-critical operations.",
    "To enable the following instructions: AVX2 AVX512F FMA, in other operations, rebuild TensorFlow"
    " with the appropriate compiler flags.",
    "I0000 00:00:1740925268.301871    4242 gpu_device.cc:2022] Created device"
    " /job:localhost/replica:0/task:0/device:GPU:0 with 13775 MB memory:  -> device: 0, name: Tesla"
    " T4, pci bus id: 0000:00:04.0, compute capability: 7.5",
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
    "/usr/lib/python3/dist-packages/keras/src/layers/core/dense.py:87: UserWarning: Do not pass an"
    " `input_shape`/`input_dim` argument to a layer.",
    "  super().__init__(activity_regularizer=activity_regularizer, **kwargs)",
    "DeprecationWarning: `np.bool8` is a deprecated alias for `np.bool_`.",
    "WARNING:tensorflow:From train.py:31: The name tf.losses.sparse_softmax_cross_entropy is"
    " deprecated. Please use tf.compat.v1.losses.sparse_softmax_cross_entropy instead.",
    "Found 1208 images belonging to 5 classes.",
    "Epoch 1/10",
    "\r  1/313 [..............................] - ETA: 2:11 - loss: 2.31\r 12/313 [>................."
    "............] - ETA: 9s - loss: 2.20",
    "\x1b[1m313/313\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m2s\x1b[0m"
    " 6ms/step - accuracy: 0.8512 - loss: 0.5011",
    "Downloading data from https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
    "Collecting tensorflow==2.16.1",
    "I0000 00:00:1740925270.1     4242 service.cc:148] XLA service 0x7f2a initialized for platform"
    " CUDA (this does not guarantee that XLA will be used).",
    "I0000 00:00:1740925271.1     4242 device_compiler.h:186] Compiled cluster using XLA!  This line"
    " is logged at most once for the lifetime of the process.",
    "INFO:absl:Using default tf glob",
    "loss: 0.3412, validation error: 0.12, memory usage: 3.1 GiB of 16 GiB",
)
"""Lines of healthy programs."""

AFTER: Final = (
    "##[error]Process completed with exit code 1.",
    "make: *** [Makefile:12: train] Error 1",
    "srun: error: gpu07: task 0: Exited with exit code 1",
    "command terminated with exit code 1",
    "subprocess.CalledProcessError: Command '['python', 'train.py']' returned non-zero exit status 1.",
    "wandb: You can sync this run to the cloud by running: wandb sync wandb/offline-run-20250302",
    "Finished at Sun Mar  2 14:31:00 UTC 2025",
    "ERROR conda.cli.main_run:execute(49): `conda run python train.py` failed. (See above for error)",
    "Exception ignored in: <function AtomicFunction.__del__ at 0x7f2a4c0>",
    "(venv) user@box:~/project$ ",
)
"""What comes after a failure and names none."""

TRACEBACK: Final = (
    "Traceback (most recent call last):",
    '  File "/home/user/project/train.py", line 48, in <module>',
    "    model.fit(images, labels, batch_size=BATCH)  # may run out of memory",
    '  File "/opt/venv/lib/python3.11/site-packages/keras/src/utils/traceback_utils.py", line 122,'
    " in error_handler",
    "    raise e.with_traceback(filtered_tb) from None",
)


def _prefixed(make: Callable[[int, Dice], str]) -> Frame:
    def frame(lines: list[str], dice: Dice) -> list[str]:
        made = [make(place, dice) + line for place, line in enumerate(lines)]
        healthy = [line in BEFORE for line in lines]
        return [
            line.replace("ERROR", "INFO", 1).replace("E0302", "I0302", 1) if good else line
            for line, good in zip(made, healthy, strict=True)
        ]

    return frame


def _second(place: int) -> str:
    return f"{place // 60 % 60:02d}:{place % 60:02d}"


def _docker_json(lines: list[str], _: Dice) -> list[str]:
    return [
        json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "2025-03-02T14:21:08.1Z"})
        for line in lines
    ]


def _coloured(lines: list[str], dice: Dice) -> list[str]:
    colour = dice.choice(("31", "0;31", "1;38;5;196"))
    return [f"\x1b[{colour}m{line}\x1b[0m" for line in lines]


def _coloured_words(lines: list[str], _: Dice) -> list[str]:
    return [re.sub(r"^(\w[\w.]*Error)(?=: )", "\x1b[0;31m\\1\x1b[0m", line) for line in lines]


def _rich(lines: list[str], _: Dice) -> list[str]:
    width = 100
    top = "╭─" + "─ Traceback (most recent call last) ".ljust(width, "─") + "─╮"
    return [
        top,
        f"│ {'/home/user/project/train.py:48 in <module>':<{width}} │",
        f"│ {'❱ 48 model.fit(images, labels)':<{width}} │",
        "╰─" + "─" * width + "─╯",
        *lines,
    ]


def _jupyter(lines: list[str], _: Dice) -> list[str]:
    return [
        "\x1b[0;31m---------------------------------------------------------------------------\x1b[0m",
        "\x1b[0;31mError\x1b[0m                             Traceback (most recent call last)",
        "Cell \x1b[0;32mIn[7], line 3\x1b[0m",
        "\x1b[1;32m      1\x1b[0m model \x1b[38;5;241m=\x1b[39m build()  # out of memory here before",
        "\x1b[0;32m----> 3\x1b[0m history \x1b[38;5;241m=\x1b[39m model.fit(x, y)",
        "",
        "File \x1b[0;32m/opt/conda/lib/python3.11/site-packages/keras/src/utils/traceback_utils.py"
        ":122\x1b[0m, in \x1b[0;36mfilter_traceback.<locals>.error_handler\x1b[0;34m\x1b[0m",
        *lines,
    ]


def _pytest(lines: list[str], _: Dice) -> list[str]:
    return [
        "=================================== FAILURES ===================================",
        "___________________________________ test_fit ___________________________________",
        "    def test_fit(model):",
        ">       model.fit(images, labels)",
        "",
        "tests/test_train.py:18: ",
        *(f"E       {line}" for line in lines),
        "",
        "tests/test_train.py:18: Exception",
        "=========================== short test summary info ============================",
        f"FAILED tests/test_train.py::test_fit - {lines[0][:70]}...",
        "========================= 1 failed, 3 passed in 12.31s =========================",
    ]


def _python(lines: list[str], _: Dice) -> list[str]:
    return [*TRACEBACK, *lines]


FRAMES: Final[dict[str, Frame]] = {
    "plain": lambda lines, _: lines,
    "windows line ends": lambda lines, _: [f"{line}\r" for line in lines],
    "time": _prefixed(lambda place, _: f"2025-03-02 14:{_second(place)},123 "),
    "time and level": _prefixed(lambda place, _: f"2025-03-02 14:{_second(place)},123 - train - ERROR - "),
    "level in brackets": _prefixed(lambda place, _: f"[2025-03-02 14:{_second(place)}] [ERROR] "),
    "github": _prefixed(lambda place, _: f"2025-03-02T14:{_second(place)}.1234567Z "),
    "container runtime": _prefixed(lambda place, _: f"2025-03-02T14:{_second(place)}.123456789Z stderr F "),
    "compose": _prefixed(lambda _, dice: f"trainer-{dice.randint(1, 3)}  | "),
    "kubectl": _prefixed(lambda _, dice: f"[pod/train-{dice.randint(10, 99)}x7q/main] "),
    "docker json": _docker_json,
    "journal": _prefixed(lambda place, _: f"Mar 02 14:{_second(place)} gpu07 python[4242]: "),
    "syslog": _prefixed(lambda place, _: f"2025-03-02T14:{_second(place)}.123456+00:00 gpu07 train[4242]: "),
    "slurm": _prefixed(lambda _, dice: f"{dice.randint(0, 7)}: "),
    "rank": _prefixed(lambda _, dice: f"[rank{dice.randint(0, 7)}]: "),
    "mpi": _prefixed(lambda _, dice: f"[1,{dice.randint(0, 7)}]<stderr>:"),
    "ray": _prefixed(lambda _, dice: f"(train_fn pid={dice.randint(100, 9999)}, ip=10.0.0.7) "),
    "airflow": _prefixed(lambda place, _: f"[2025-03-02, 14:{_second(place)} UTC] {{subprocess.py:93}} INFO - "),
    "celery": _prefixed(lambda place, _: f"[2025-03-02 14:{_second(place)},123: ERROR/ForkPoolWorker-1] "),
    "loguru": _prefixed(lambda place, _: f"2025-03-02 14:{_second(place)}.123 | ERROR    | __main__:<module>:12 - "),
    "spark": _prefixed(lambda place, _: f"25/03/02 14:{_second(place)} ERROR Executor: "),
    "absl": _prefixed(lambda place, dice: f"E0302 14:{_second(place)}.123456 {dice.randint(100, 9999)} train.py:48] "),
    "cloud": _prefixed(lambda place, _: f"ERROR 2025-03-02T14:{_second(place)}.123456789Z "),
    "gitlab": _prefixed(lambda place, _: f"2025-03-02T14:{_second(place)}.123456Z 01E "),
    "quoted mail": _prefixed(lambda *_: "> "),
    "indented": _prefixed(lambda *_: "    "),
    "colour": _coloured,
    "coloured words": _coloured_words,
    "jupyter": _jupyter,
    "rich": _rich,
    "pytest": _pytest,
    "python": _python,
}  # fmt: skip

TRACEBACK_FRAMES: Final = frozenset({"jupyter", "rich", "pytest", "python"})
"""Frames of one failure; healthy lines stand outside of them."""

ENDS: Final[tuple[tuple[str, int | None], ...]] = (
    ("Aborted (core dumped)", 134),
    ("Segmentation fault (core dumped)", 139),
    ("Killed", 137),
    ("", 1),
    ("", -9),
    ("", 143),
    ("The kernel for train.ipynb appears to have died. It will restart automatically.", None),
    ("tensorflow.python.framework.errors_impl.CancelledError: Operation was cancelled", 1),
    ("subprocess.CalledProcessError: Command '['t']' died with <Signals.SIGABRT: 6>.", None),
)
"""How programs end after a failure, with the exit code; none of it says why."""
