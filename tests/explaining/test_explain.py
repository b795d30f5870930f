"""`explain`: texts, paths and clues that belong together."""

import io
import random
from pathlib import Path

import pytest

import snugly
from snugly.errors import InputError
from snugly.explaining.explain import MOST_FINDINGS, explain, explain_stream

OOM = (
    "OOM when allocating tensor with shape[16,12,512,512] and type float on"
    " /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"
)
KERNEL = (
    "Memory cgroup out of memory: Killed process 9 (python) total-vm:9kB, anon-rss:2097152kB, UID:0"
)


def codes(*arguments, **named):
    return [finding.code for finding in explain(*arguments, **named)]


def test_a_text_a_path_and_bytes_say_the_same(tmp_path):
    log = tmp_path / "train.log"
    log.write_text(f"{OOM}\n")
    assert codes(OOM) == codes(log) == codes(str(log)) == codes(OOM.encode()) == ["SNG701"]
    finding = explain(log)[0]
    assert (finding.path, finding.line) == (str(log), 1)
    assert explain(OOM)[0].path is None


def test_what_is_not_known_gives_nothing():
    assert explain("") == []
    assert explain("all is well") == []
    assert explain(b"\x00\xff\xfe" * 1000) == []
    assert explain("done", exit_code=0) == []
    assert explain("done", exit_code=1) == []


@pytest.mark.parametrize("path", ["gone.log", "logs/gone.txt"])
def test_a_path_that_does_not_exist_is_an_error_not_a_text(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="cannot read") as raised:
        explain(path)
    assert raised.value.hint


def test_a_folder_is_an_error(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        explain(tmp_path)


def test_numbers_are_said_with_the_cause():
    finding = explain(OOM)[0]
    assert "192 MiB (float [16,12,512,512]) was asked for (as the log says)" in finding.cause


def test_a_kill_without_words_is_possible_not_certain():
    finding = explain("", exit_code=137)[0]
    assert finding.code == "SNG724"
    assert finding.is_memory
    assert finding.confidence < 0.7
    assert "nothing here proves which" in finding.cause


def test_the_kernels_word_makes_a_kill_certain():
    finding = explain(f"Epoch 1\nKilled\n{KERNEL}", exit_code=137)[0]
    assert finding.code == "SNG719"
    assert finding.confidence > 0.95
    assert any("exit code 137" in text for text in finding.evidence)
    assert "The killed process held 2 GiB" in finding.cause


def test_growing_memory_before_a_kill_is_a_second_clue():
    alone = explain("Epoch 1", exit_code=137)[0]
    warned = "Allocation of 17198850112 exceeds 10% of free system memory."
    joined = explain(warned, exit_code=137)[0]
    assert joined.code == alone.code == "SNG724"
    assert joined.confidence > alone.confidence
    assert any("17198850112" in text for text in joined.evidence)


def test_a_time_limit_speaks_against_memory():
    log = "*** JOB 1 ON n CANCELLED AT 2024-03-02T11:00:21 DUE TO TIME LIMIT ***\nKilled"
    finding = explain(log, exit_code=137)[0]
    assert (finding.code, finding.is_memory) == ("SNG743", False)


def test_a_crash_after_the_cpus_memory_ran_out_is_the_convolutions_defect():
    log = (
        "I port.cc:113] oneDNN custom operations are on.\n"
        "Allocator (mklcpu) ran out of memory trying to allocate 2.00GiB (rounded to 2147483648)\n"
    )
    finding = explain(log, exit_code=139)[0]
    assert (finding.code, finding.is_memory) == ("SNG901", True)
    assert "TF_ENABLE_ONEDNN_OPTS=0" in finding.remedy


def test_a_crash_alone_is_not_memory():
    finding = explain("Epoch 1", exit_code=139)[0]
    assert (finding.code, finding.is_memory) == ("SNG793", False)


def test_an_exit_code_of_0_makes_what_was_said_less_sure():
    sure, unsure = explain(OOM)[0], explain(OOM, exit_code=0)[0]
    assert unsure.confidence < sure.confidence
    assert "The exit code was 0" in unsure.cause


def test_contradicting_clues_are_both_shown():
    # GIVEN a message that is not memory and a kill that may be
    found = codes("too many resources requested for launch", exit_code=137)
    assert found[0] == "SNG750"
    assert "SNG724" in found


def test_a_card_held_by_another_is_told_from_one_that_is_too_small():
    log = (
        "totalMemory: 10.91GiB freeMemory: 200.00MiB\n"
        "Created TensorFlow device (/device:GPU:0 with 55 MB memory) -> physical GPU\n"
        "InternalError: Dst tensor is not initialized.\n"
    )
    assert codes(log)[:2] == ["SNG705", "SNG703"]


def test_no_more_findings_than_anybody_reads():
    from snugly.explaining.catalogue import catalogue

    everything = "\n".join(sample for entry in catalogue() for sample in entry.samples)
    assert len(explain(everything)) == MOST_FINDINGS


def test_a_line_repeated_a_million_times_is_counted_not_kept():
    finding = explain_stream(io.BytesIO(f"{OOM}\n".encode() * 5000))[0]
    assert len(finding.evidence) <= 7
    assert any("more lines like these" in text for text in finding.evidence)


def test_what_was_skipped_is_said(monkeypatch):
    from snugly.explaining import evidence

    monkeypatch.setattr(evidence, "CHUNK", 1000)
    log = f"{'progress' * 12}\n" * 2000 + f"{OOM}\n"
    finding = explain_stream(io.BytesIO(log.encode()))[0]
    assert "bytes in the middle of the log were not looked at" in finding.evidence[-1]


def test_control_characters_of_a_log_are_not_passed_on():
    finding = explain(f"\x1b]0;gotcha\x07\x1b[2J{OOM}\x1b[31m\x9b5m")[0]
    assert all(text.isprintable() for text in finding.evidence)


def test_the_public_name_is_the_function():
    assert snugly.explain is explain


LOGS = Path(__file__).parent / "logs"
"""What TensorFlow 2.21 printed with TF_CPU_ALLOCATOR_USE_BFC=1 and a limit of 200 MiB."""


def test_a_real_log_of_a_refused_product():
    finding, *others = explain(LOGS / "matmul-cpu-oom.log", exit_code=1)
    assert (finding.code, finding.is_memory) == ("SNG702", True)
    assert "610.4 MiB (float [4000,40000]) was asked for" in finding.cause
    assert "of 200 MiB was in use" in finding.cause
    assert "SNG701" not in [other.code for other in others]


def test_a_real_log_of_a_convolution_that_crashed():
    finding = explain(LOGS / "convolution-exit-139.log", exit_code=139)[0]
    assert (finding.code, finding.is_memory) == ("SNG901", True)
    assert finding.confidence >= 0.9


@pytest.mark.tensorflow
def test_tensorflows_own_exceptions():
    import tensorflow as tf

    def raised_by(work):
        with pytest.raises(Exception) as raised:  # noqa: PT011 - which one is what is explained
            work()
        return explain(raised.value)[0]

    shapes = raised_by(lambda: tf.matmul(tf.zeros([2, 3]), tf.zeros([4, 5])))
    assert (shapes.code, shapes.is_memory) == ("SNG767", False)
    types = raised_by(lambda: tf.matmul(tf.zeros([2, 2]), tf.zeros([2, 2], tf.float64)))
    assert (types.code, types.is_memory) == ("SNG768", False)
    infinite = raised_by(lambda: tf.debugging.check_numerics(tf.constant([float("nan")]), "x"))
    assert (infinite.code, infinite.is_memory) == ("SNG769", False)
    overflow = raised_by(lambda: tf.zeros([2**40, 2**40]))
    assert not overflow.is_memory
    missing = raised_by(lambda: tf.io.read_file("gone.bin"))
    assert (missing.code, missing.is_memory) == ("SNG777", False)
    labels = raised_by(
        lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[9], logits=[[0.0, 1.0]])
    )
    assert (labels.code, labels.is_memory) == ("SNG782", False)


def test_an_error_that_nobody_knows_is_told_as_the_programs_own():
    [finding] = explain("Loading rules\nerror: the widget is upside down\n")
    assert (finding.code, finding.is_memory) == ("SNG799", False)
    assert finding.confidence < 0.5
    assert "upside down" in finding.evidence[0]


def test_words_of_failure_are_told_only_at_the_end_and_where_nothing_else_is_known():
    # GIVEN a failure that was got over THEN nothing is said of it
    went_on = "Could not open cache, making a new one\n" + "Epoch 1\n" * 9
    assert codes(went_on) == []
    assert codes("Epoch 1\nCould not open the pipeline\n") == ["SNG799"]
    assert codes(f"{OOM}\nCould not open the pipeline\n")[0] == "SNG701"


@pytest.mark.parametrize(
    ("line", "code", "is_memory"),
    [
        ("RESOURCE_EXHAUSTED: Out of memory while trying", "SNG700", True),
        # Where it happened is no word of memory: files and messages end there as well.
        (
            "ResourceExhaustedError: {{function_node __inference_5}} Graph execution error:",
            "SNG799",
            False,
        ),
        ("ResourceExhaustedError: ./model/model-49.tempstate57", "SNG740", False),
        ("RESOURCE_EXHAUSTED: Too many concurrent requests", "SNG742", False),
        ("\tstatus = StatusCode.RESOURCE_EXHAUSTED", "SNG742", False),
        ("ResourceExhaustedError: the licence server has no seats", "SNG799", False),
    ],
)
def test_a_status_that_says_exhausted_is_memory_only_with_words_of_memory(line, code, is_memory):
    first = explain(line)[0]
    assert (first.code, first.is_memory) == (code, is_memory)


def test_windows_says_by_its_exit_code_that_a_library_is_missing():
    assert codes("", exit_code=-1073741515) == codes("", exit_code=3221225781) == ["SNG775"]
    assert codes("", exit_code=-1073740940) == ["SNG794"]
    assert codes("", exit_code=-1073741510) == ["SNG796"]


@pytest.mark.parametrize(
    "line",
    [
        "E (5120) model: Failed to allocate 250 kB of PSRAM",
        "error: unable to reserve 2.5 GB of GPU memory",
        "Error: allocation of 4294967296 bytes failed",
        "loader: Out of GPU memory",
        "not enough contiguous memory",
        "malloc error: insufficient free heap",
    ],
)
def test_a_refusal_of_memory_is_read_in_any_programs_words(line):
    first = explain(line)[0]
    assert (first.code, first.is_memory) == ("SNG700", True)
    assert first.confidence < 0.7


@pytest.mark.parametrize(
    "line",
    [
        "warn: insufficient training samples in memory replay buffer",
        "failed to allocate port, heap dump saved to /tmp",
        "Could not allocate a device for memory test",
        "RuntimeError: failed to obtain the memory growth setting of GPU 0",
        "Failed to acquire the lock on memory file",
        "To avoid running out of memory, lower the batch size.",
        "Done. Not out of memory this time",
        "Not Enough GPU memory? INTERNAL: something else",
        "Failed to allocate 0 bytes of RAM",
        "Requested amount of memory (18446744065119617096 bytes) could not be allocated.",
        "insufficient memory bandwidth measured: 3 GB/s",
        "ncclSystemError: unhandled system error",
        "failed to alloc 47987818496 bytes unified memory; result: CUDA_ERROR_INVALID_VALUE: bad",
    ],
)
def test_words_of_memory_that_are_no_refusal_are_not_taken_for_one(line):
    assert not any(finding.is_memory for finding in explain(line)[:1])


NO_ALGORITHM = "NOT_FOUND: No algorithm worked!  Error messages:"


@pytest.mark.parametrize(
    ("end", "exit_code"), [("Aborted (core dumped)", 134), ("Killed", 137), ("", 139), ("", 143)]
)
def test_a_message_goes_before_the_signal_that_followed_it(end, exit_code):
    first = explain(f"{NO_ALGORITHM}\n{end}\n", exit_code)[0]
    assert (first.code, first.is_memory) == ("SNG761", False)


def test_a_message_long_before_a_signal_was_survived():
    log = f"{NO_ALGORITHM}\n" + "step\n" * 500
    assert codes(log, 137)[0] == "SNG724"


def test_the_exit_code_of_a_wrapper_does_not_hide_that_of_the_program_inside():
    assert codes("Process 3 exit with status code 247", 1)[0] == "SNG724"
    assert codes("process exited with exit code 139", 1)[0] == "SNG793"
    assert "SNG793" not in codes("process exited with exit code 139", 0)


def test_a_keyword_that_a_layer_does_not_take_is_about_the_file_only_where_one_is_loaded():
    message = "TypeError: __init__() got an unexpected keyword argument 'ragged'"
    loading = f"----> 1 model = load_model('m.h5')\n\n{message}"
    assert codes(loading)[0] == "SNG787"
    assert codes(message)[0] == "SNG799"


def test_the_beginning_of_a_line_in_pytests_summary_says_no_more_than_the_line():
    begins = "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.76GiB"
    benign = f"E   {begins}. The caller indicates that this is not a failure, but may mean"
    summary = f"FAILED t.py::t - {begins}..."
    assert not any(finding.is_memory for finding in explain(f"{benign}\n{summary}"))
    assert explain(summary)[0].is_memory


HANDLE = (
    "E external/xla/xla/stream_executor/cuda/cuda_dnn.cc:439] Could not create cudnn handle:"
    " CUDNN_STATUS_INTERNAL_ERROR\n"
    "E external/xla/xla/stream_executor/cuda/cuda_dnn.cc:443] Memory usage: {free} bytes free,"
    " 47587131392 bytes total.\n"
)


@pytest.mark.parametrize(("free", "is_memory"), [(46637514752, False), (209715200, True)])
def test_a_library_that_does_not_start_on_an_empty_card_is_no_matter_of_memory(free, is_memory):
    finding = explain(HANDLE.format(free=free))[0]
    assert (finding.code, finding.is_memory) == ("SNG711", is_memory)
    assert ("were free on the card" in finding.cause) is not is_memory


NO_TENSORRT = (
    "W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning:"
    " Could not find TensorRT\n"
)
CREATED = (
    "I tensorflow/core/common_runtime/gpu/gpu_device.cc:1532] Created device /job:localhost/"
    "replica:0/task:0/device:GPU:0 with 6882 MB memory:  -> device: 0, name: Tesla P4\n"
)


def test_that_no_gpu_is_used_is_not_said_where_the_log_shows_one_in_use():
    assert codes(NO_TENSORRT) == ["SNG759"]
    assert codes(NO_TENSORRT + CREATED) == []
    # A failure to load is no notice: it ended something, whatever another process uses.
    missing = (
        "ImportError: libcudnn.so.8: cannot open shared object file: No such file or directory"
    )
    assert codes(CREATED + missing)[0] == "SNG759"


TRACEBACK = (
    'Traceback (most recent call last):\n  File "train.py", line 4, in <module>\n    run()\n'
)
REFUSED = (
    "W external/local_tsl/tsl/framework/bfc_allocator.cc:485] Allocator (GPU_0_bfc) ran out of"
    " memory trying to allocate 9.00GiB (rounded to 9663676416)requested by op Conv2D\n"
)


@pytest.mark.parametrize("exit_code", [137, -9, 139, 134, 143])
def test_a_traceback_at_the_end_contradicts_a_signal(exit_code):
    # GIVEN a program that ended with an exception, of which Python makes exit code 1
    first, second = explain(f"{TRACEBACK}ValueError: unknown optimiser 'adamz'", exit_code)
    # THEN the exception is the cause, and the signal is told as what it is: a contradiction
    assert (first.code, first.is_memory) == ("SNG799", False)
    assert second.severity == "warning"
    assert second.confidence <= 0.3
    assert "traceback" in second.cause


def test_an_exit_code_that_a_wrapper_mentions_is_contradicted_alike():
    log = "".join(f"trainer_1  | {line}\n" for line in TRACEBACK.splitlines())
    found = codes(f"{log}trainer_1  | KeyError: 'lr'\ntrainer_1 exited with code 137")
    assert found == ["SNG799", "SNG724"]


@pytest.mark.parametrize(
    "log",
    [
        # The program went on.
        f"{TRACEBACK}ValueError: try again\nEpoch 2\nEpoch 3\n",
        # It is a thread's, which programs outlive.
        f"Exception in thread Thread-3 (prefetch):\n{TRACEBACK}ValueError: closed file",
        # It tells how another process ended.
        f"{TRACEBACK}EOFError",
        f"{TRACEBACK}RuntimeError: a worker process died unexpectedly",
        f"{TRACEBACK}ChildFailedError: train.py failed",
    ],
)
def test_what_does_not_end_a_program_does_not_contradict_a_signal(log):
    first = explain(log, exit_code=137)[0]
    assert (first.code, first.is_memory) == ("SNG724", True)


def test_a_refusal_that_a_program_survived_did_not_end_it():
    # GIVEN a refusal, then work, then a mistake of the program's own
    log = f"{REFUSED}trying a batch of 128\nEpoch 1/1\n{TRACEBACK}"
    first, *others = explain(f"{log}TypeError: not JSON serializable")
    assert (first.code, first.is_memory) == ("SNG799", False)
    assert {one.severity for one in others} == {"warning"}
    # WHEN nothing says that it went on, or what ended it is TensorFlow's THEN memory is the cause
    assert codes(f"{REFUSED}{TRACEBACK}TypeError: not JSON serializable")[0] == "SNG701"
    assert codes(f"{log}InternalError: Dst tensor is not initialized.")[0] == "SNG701"
    assert codes(f"{log}NameError: name 'history' is not defined")[0] == "SNG701"


@pytest.mark.parametrize(
    "line",
    [
        "E       AssertionError: assert 'out of memory' in 'batch_size=12 fits'",
        "E       assert 'CUDA_ERROR_OUT_OF_MEMORY' in log",
        "FileNotFoundError: [Errno 2] No such file or directory: 'logs/out of memory.txt'",
        "AttributeError: module 'torch.cuda' has no attribute 'OutOfMemoryError'",
        "from tensorflow.errors import ResourceExhaustedError",
        "container OOM-killed: false",
    ],
)
def test_the_name_of_a_lack_is_not_a_lack(line):
    assert not any(one.is_memory for one in explain(line))


def test_any_name_in_a_module_of_exceptions_is_one():
    finding = explain("google.api_core.exceptions.PermissionDenied: 403 on projects/p")[0]
    assert finding.code == "SNG784"
    assert codes("google.api_core.exceptions.Unknown: 500 try again") == ["SNG799"]
    assert codes("there were several errors. Nothing: fine") == []


def test_noise_and_nothing_are_nothing():
    noise = bytes(random.Random(5).randrange(256) for _ in range(100_000))  # noqa: S311 - no secret
    for content in (noise, b"", b"\n\n", b"\x00" * 4096):
        assert explain(content) == []
