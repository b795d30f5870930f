"""CUDA, cuDNN, driver and card failed for other reasons than memory: SNG750 to SNG766."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG750",
        "A kernel asks for more than a block can have",
        "'too many resources requested for launch' (CUDA error 701, 7 in old versions): one block"
        " of the kernel wants more registers, threads or shared memory than the chip gives to a"
        " block. It is not memory: batch size, memory growth and fractions change nothing. Jetson"
        " Nano, TX1 and TX2 give a block half the registers of other chips.",
        'Run that op on the CPU (`with tf.device("/CPU:0")`), use another algorithm, or a build'
        " for that chip. `snugly devices jetson-nano` shows the limits, `snugly doctor --kernels"
        " LIB --device NAME` lists the kernels concerned.",
    ),
    Code(
        "SNG751",
        "A kernel touched memory that is not its own",
        "An illegal access on the GPU: a defect in a kernel, an index out of range, sometimes a"
        " faulty card. No memory ran out. The CUDA context is dead afterwards, and every later call"
        " fails too.",
        "Restart the process. Look for indices or labels out of range; run the step on the CPU,"
        " where TensorFlow checks them; `compute-sanitizer` names the kernel.",
    ),
    Code(
        "SNG752",
        "The GPU's memory is faulty",
        "The card reported an error that its error correction could not repair. It is hardware, not"
        " a lack of memory.",
        "Reset the card (`nvidia-smi --gpu-reset -i N`) or restart the machine; have it replaced if"
        " it happens again.",
    ),
    Code(
        "SNG753",
        "The driver took the GPU away from a process",
        "The driver reported an Xid: the process had crashed on the GPU, or had been killed before."
        " It is a consequence; no Xid means a lack of memory.",
        "Look for the event just before it in the kernel's log.",
    ),
    Code(
        "SNG754",
        "The GPU, its link or its firmware failed",
        "The card does not answer: it fell off the bus, its NVLink failed, or its firmware timed"
        " out. Power, heat, cabling or the driver; not memory.",
        "Restart the machine, check power and temperature (`nvidia-smi -q`), update the driver.",
    ),
    Code(
        "SNG755",
        "The program was not compiled for this GPU",
        "The library has code for other chips only ('no kernel image is available'): the card is"
        " newer or older than the build.",
        "Install a build for that compute capability. `snugly doctor --kernels LIB --device NAME`"
        " shows what a library was compiled for.",
    ),
    Code(
        "SNG756",
        "The driver is too old for this CUDA",
        "The CUDA that the program was built with needs a newer driver than the one installed, or"
        " library and kernel module of the driver differ.",
        "Update NVIDIA's driver and restart, or install a build for the older CUDA."
        " `nvidia-smi` shows the driver.",
    ),
    Code(
        "SNG757",
        "No GPU was found",
        "CUDA could not be initialised: there is no NVIDIA GPU, the container was not given one, or"
        " the driver does not work. TensorFlow goes on on the CPU, which is harmless if that was"
        " meant.",
        "`nvidia-smi` must list the card; in Docker `--gpus all`; on purpose without a GPU, set"
        " `CUDA_VISIBLE_DEVICES=-1`.",
    ),
    Code(
        "SNG758",
        "The version of cuDNN does not fit",
        "TensorFlow was compiled for another version of cuDNN than the one that was loaded. cuDNN"
        " then refuses to start; memory growth does not help.",
        "Install the version that the message asks for: `pip install 'tensorflow[and-cuda]'` brings"
        " one that fits. Look for an older one on LD_LIBRARY_PATH.",
    ),
    Code(
        "SNG759",
        "A CUDA library was not found",
        "A library of CUDA or cuDNN could not be loaded, so the GPU is not used, or the import"
        " fails.",
        "`pip install 'tensorflow[and-cuda]'`, or put the folder of the library that is named on"
        " LD_LIBRARY_PATH. Without a GPU the warning is harmless.",
    ),
    Code(
        "SNG760",
        "XLA does not find CUDA's compiler",
        "ptxas or libdevice, which XLA needs to compile for a GPU, is missing or too old.",
        "`pip install nvidia-cuda-nvcc-cu12`, or `XLA_FLAGS=--xla_gpu_cuda_data_dir=FOLDER` with"
        " the CUDA toolkit's folder.",
    ),
    Code(
        "SNG761",
        "No algorithm of cuDNN worked",
        "Every algorithm that was tried failed. The lines that follow say why for each: no memory"
        " for scratch in some cases, in others a type, layout or size that cuDNN does not have.",
        "Read the reasons that are listed. If they speak of memory, make the batch smaller; else"
        " change type or layout, or check that driver, CUDA and cuDNN fit together.",
    ),
    Code(
        "SNG762",
        "A kernel ran too long",
        "The driver ends kernels that hold up a display for some seconds"
        " (CUDA_ERROR_LAUNCH_TIMEOUT).",
        "Use a card without a display, raise the watchdog's time (TdrDelay on Windows), or do less"
        " in one call.",
    ),
    Code(
        "SNG763",
        "The GPU that was asked for does not exist",
        "A device number is above what is visible, mostly because of CUDA_VISIBLE_DEVICES.",
        "Numbers start at 0 among the visible ones: `snugly devices host` lists them.",
    ),
    Code(
        "SNG764",
        "A call of cuDNN or cuBLAS failed",
        "The library was asked for something it does not do, or its call failed on the card"
        " (EXECUTION_FAILED, BAD_PARAM, NOT_SUPPORTED). The message does not speak of memory.",
        "Check shapes and types of the layer that is named, and that driver, CUDA and cuDNN fit"
        " together. An earlier error of the card explains it as well.",
    ),
    Code(
        "SNG765",
        "A kernel failed on the GPU",
        "An assertion failed inside of a kernel, or it ended without saying why"
        " (CUDA_ERROR_LAUNCH_FAILED). Often an index or label is out of range.",
        "Run the same step on the CPU, where indices are checked; `CUDA_LAUNCH_BLOCKING=1` makes"
        " the line right.",
    ),
    Code(
        "SNG766",
        "Processes of a distributed run lost one another",
        "NCCL or a collective operation failed or timed out: another process died first, or the"
        " network between them does not work.",
        "Look for the process that failed first, in its own log; `NCCL_DEBUG=INFO` shows the"
        " network that is used.",
    ),
)
