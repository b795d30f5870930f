"""TensorFlow and its GPU ran out of memory: SNG700 to SNG717."""

from __future__ import annotations

from typing import Final

from snugly.codes.code import Code

CODES: Final = (
    Code(
        "SNG700",
        "Memory ran out",
        "The message says that memory ran out, but not which and not how much: no allocator,"
        " device or size is named.",
        "Look at the lines above it for the allocator and the size. `snugly predict` says what the"
        " program needs, `snugly devices host` what this machine offers.",
    ),
    Code(
        "SNG701",
        "A tensor did not fit on the GPU",
        "TensorFlow's allocator on the GPU could not find room for one more tensor. The tensor it"
        " names is the last straw, not always the largest: what is live at that moment plus this"
        " request is above the limit.",
        "Make the batch smaller, use mixed precision, or recompute activations. `snugly predict"
        " SCRIPT:MODEL --train --batch-size N --device NAME` says what fits before it runs.",
    ),
    Code(
        "SNG702",
        "A tensor did not fit in the computer's memory",
        "An allocator of the CPU refused one tensor: the machine, its container or a limit has no"
        " room for it. The GPU is not involved.",
        "Read the data in pieces (`tf.data`, `np.memmap`), use float32 in place of float64, make"
        " the batch smaller. `snugly devices host` shows what there is.",
    ),
    Code(
        "SNG703",
        "A copy to the GPU found no room",
        "The destination of a copy from the computer to the GPU could not be allocated."
        " TensorFlow reports it as an internal error; it is the GPU's memory that is full.",
        "As for any tensor that does not fit: a smaller batch or input, fewer prefetched batches"
        " on the GPU, and no other program on the card (`nvidia-smi`).",
    ),
    Code(
        "SNG704",
        "Memory was free, but in pieces",
        "As much as was asked for was free, but no single free block was as large: the memory is"
        " fragmented.",
        "Set `TF_GPU_ALLOCATOR=cuda_malloc_async`, keep shapes and batch sizes constant, and do"
        " not let memory grow (no `set_memory_growth`), so that regions are not split.",
    ),
    Code(
        "SNG705",
        "The GPU's driver had no memory to give",
        "CUDA itself refused memory. Most often another process holds the card; else a limit on"
        " address space (`ulimit -v`) is below what CUDA reserves, or the context alone (0.3 to"
        " 0.5 GiB a process) does not fit any more. A falling series of sizes at the start is"
        " TensorFlow trying for its pool.",
        "`nvidia-smi` shows who holds the card; end that process, or choose another card with"
        " `CUDA_VISIBLE_DEVICES`. `ulimit -v` must say unlimited. Then"
        " `TF_FORCE_GPU_ALLOW_GROWTH=true`.",
    ),
    Code(
        "SNG706",
        "Pinned memory of the computer ran out",
        "Transfers to a GPU go through memory of the computer that cannot be swapped out. That pool"
        " is exhausted; the GPU's own memory is not.",
        "Feed smaller pieces with `tf.data`; in Docker `--ulimit memlock=-1`; under WSL 2 raise"
        " `memory=` in .wslconfig; `TF_GPU_HOST_MEM_LIMIT_IN_MB` sets the pool's size.",
    ),
    Code(
        "SNG707",
        "A program compiled by XLA did not fit",
        "XLA lays out all buffers of a compiled program beforehand, and their sum is above what"
        " the device has. The listing after the message names the largest with their lines.",
        "Make the batch smaller, or turn compilation off for a comparison (`jit_compile=False`):"
        " XLA needs more memory for some programs, and less for others.",
    ),
    Code(
        "SNG708",
        "CUDA graphs found no memory",
        "XLA runs parts of a program as CUDA graphs, which need memory of the driver outside of"
        " TensorFlow's pool, and the pool has left none.",
        "`XLA_FLAGS=--xla_gpu_enable_command_buffer=` turns them off; or give TensorFlow a smaller"
        " pool (`LogicalDeviceConfiguration(memory_limit=…)`).",
    ),
    Code(
        "SNG709",
        "cuDNN found no memory to work in",
        "A convolution or recurrent layer needs scratch memory on the GPU, or cuDNN itself does,"
        " and there was none left.",
        "Leave some memory outside of TensorFlow's pool (`TF_FORCE_GPU_ALLOW_GROWTH=true`), make"
        " the batch smaller, or cap the scratch: `TF_CUDNN_WORKSPACE_LIMIT_IN_MB=512`.",
    ),
    Code(
        "SNG710",
        "cuBLAS found no memory to start in",
        "cuBLAS needs memory of its own on the card, and the card was already full: TensorFlow's"
        " pool took all of it, or another process holds it. The matrix product that fails next"
        " ('Blas GEMM launch failed') only shows it; its shapes do not matter.",
        "Close the other notebook or process (`nvidia-smi`), or `TF_FORCE_GPU_ALLOW_GROWTH=true`.",
    ),
    Code(
        "SNG711",
        "cuDNN did not start",
        "cuDNN could not be initialised. Mostly no memory was left for it because TensorFlow had"
        " taken the whole card or another process holds it; sometimes its version does not fit"
        " TensorFlow's, which a line above would say.",
        "`TF_FORCE_GPU_ALLOW_GROWTH=true` first. If that changes nothing, compare the versions of"
        " cuDNN that the log names, and the driver's (`nvidia-smi`).",
    ),
    Code(
        "SNG712",
        "Apple's GPU ran out of memory",
        "Metal gives a process about 70 to 75 % of the machine's memory, and aborts it beyond"
        " that.",
        "Make the batch smaller and close other programs; `sudo sysctl iogpu.wired_limit_mb=…`"
        " raises the limit.",
    ),
    Code(
        "SNG713",
        "A function is traced again and again",
        "Each distinct Python value, shape or object makes a new graph that is never freed, so the"
        " process grows. TensorFlow warns at 5 retraces in 10 calls, and only twice: silence"
        " afterwards is no good sign.",
        "Pass tensors in place of Python numbers, give an `input_signature`, and make the function"
        " once, outside of the loop. `snugly profile --leaks SCRIPT` names the line.",
    ),
    Code(
        "SNG714",
        "A persistent tape records its own gradients",
        "`gradient` is called inside of a persistent tape, so the tape records that as well: memory"
        " and time grow.",
        "Call `gradient` after the `with` block, and `del tape` when its gradients are there.",
    ),
    Code(
        "SNG715",
        "A shuffle buffer fills the computer's memory",
        "`shuffle(buffer_size)` holds so many elements at once, decoded as they are. The two"
        " numbers of the message are elements, not bytes.",
        "Shuffle file names or indices instead, put `shuffle` before `map` and `batch`, or make the"
        " buffer smaller.",
    ),
    Code(
        "SNG716",
        "One tensor takes a large part of the free memory",
        "TensorFlow warns of a single allocation above 10 % of the memory that is free. It went on;"
        " but it is often the last line before the kernel kills a process.",
        "If the process died right after it, this is the allocation to make smaller.",
    ),
    Code(
        "SNG717",
        "An optional workspace did not fit, which is harmless",
        "cuDNN asked for scratch memory to be faster, was refused, and took a slower way."
        " TensorFlow says so itself: 'the caller indicates that this is not a failure'. Nothing"
        " failed because of it.",
        "Nothing needs to be done. If something did fail, the cause is another message.",
    ),
)
