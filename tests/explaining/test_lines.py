"""Lines as they were before terminals, loggers and test runners dressed them up."""

import pytest

from snugly.explaining.lines import (
    Line,
    asks_for_nothing,
    beside_traceback,
    exception_on,
    is_complaint,
    may_be_complaint,
    printable,
    without_colours,
)
from snugly.explaining.prefixes import core_of
from snugly.explaining.wrapping import unwrapped


@pytest.mark.parametrize(
    "dressed",
    [
        "MemoryError: x",
        "2024-05-01T12:00:00.1234567Z MemoryError: x",
        "2024-05-01 12:00:00,123 MemoryError: x",
        "trainer-1  | MemoryError: x",
        "May 04 12:01:00 host python[12]: MemoryError: x",
        "апр 28 01:23:30 host python[12]: MemoryError: x",
        "août 4 12:01:00 host python[12]: MemoryError: x",
        "[ 4711.123456] MemoryError: x",
        "[stderr] MemoryError: x",
        "3: MemoryError: x",
        "(train pid=123) MemoryError: x",
        "E   MemoryError: x",
        "ERROR:root:MemoryError: x",
        "##[error]MemoryError: x",
        "2024-05-01T12:00:00Z app-1  | MemoryError: x",
        "Aug 1, 2023, 1:12:13 PM | WARNING | MemoryError: x",
        '"Jul 29, 2023, 4:32:52 PM",WARNING,MemoryError: x',
        "[1,0]<stderr>:MemoryError: x",
        "[Fri Apr  5 21:29:39 2024] MemoryError: x",
        "E/AndroidRuntime(11822): MemoryError: x",
        "05-01 12:00:00.123  1234  1240 E tflite  : MemoryError: x",
        "(train pid=311, ip=10.0.0.4) MemoryError: x",
        "[pod/train-0/main] MemoryError: x",
        "2024-05-01 12:00:00,123 - train - ERROR - MemoryError: x",
        "2024-05-01T12:00:00.123456789Z stderr F MemoryError: x",
        "2024-05-01T12:00:00.123456+00:00 gpu07 train[4242]: MemoryError: x",
        "[2024-05-01, 12:00:00 UTC] {subprocess.py:93} INFO - MemoryError: x",
        "[2024-05-01 12:00:00,123: ERROR/ForkPoolWorker-1] MemoryError: x",
        "2024-05-01 12:00:00.123 | ERROR    | __main__:<module>:12 - MemoryError: x",
        "24/05/01 12:00:00 ERROR Executor: MemoryError: x",
        "ERROR 2024-05-01T12:00:00.123456789Z MemoryError: x",
        "2024-05-01T12:00:00.123456Z 01E MemoryError: x",
        "> MemoryError: x",
    ],
)
def test_what_a_logger_put_before_a_line_is_taken_off(dressed):
    assert core_of(dressed) == "MemoryError: x"


def test_what_looks_like_a_prefix_may_be_the_message():
    # GIVEN zsh's word for a kill, which begins as a rank does THEN it is kept beside what is left
    stages = Line(1, "2024-05-01 12:00:00 [1]    4242 killed     python train.py").stages
    assert "[1]    4242 killed     python train.py" in stages
    assert "Terminated: 15" in Line(1, "2024-05-01 12:00:00 ERROR Terminated: 15").stages
    assert Line(1, "**Killed**").stages[-1] == "Killed"


def test_who_wrote_a_line_is_no_part_of_what_it_says():
    assert Line(1, "Mar 02 14:00:01 gpu07 python[4242]: ValueError: x").said == "ValueError: x"
    assert Line(1, "WARNING:tensorflow:slow").said == "WARNING:tensorflow:slow"


def test_a_json_record_is_opened_and_an_escaped_traceback_divided():
    assert unwrapped('{"log":"MemoryError: x\\n","stream":"stderr"}') == ["MemoryError: x"]
    assert unwrapped('{"jsonPayload": {"message": "a\\nb", "exc_info": "E: c"}}') == [
        "a",
        "b",
        "E: c",
    ]
    escaped = "Traceback (most recent call last):\\n  File x\\nMemoryError: x"
    assert unwrapped(escaped)[-1] == "MemoryError: x"
    for whole in (
        '{"Status": "exited", "OOMKilled": true}',
        "{broken",
        "{}",
        r"C:\new\name",
        "{[" * 9,
    ):
        assert unwrapped(whole) == [whole]


def test_colours_are_taken_off_also_where_json_has_escaped_them():
    assert without_colours("\x1b[0;31mValueError\x1b[0m: bad") == "ValueError: bad"
    assert without_colours(r"\u001b[0;31mValueError\u001b[0m: bad") == "ValueError: bad"
    assert without_colours("plain") == "plain"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("ValueError: bad", ("ValueError", "bad")),
        ("MemoryError", ("MemoryError", "")),
        ("tensorflow.python.framework.errors_impl.InternalError: x", ("InternalError", "x")),
        ("KeyboardInterrupt", ("KeyboardInterrupt", "")),
        (
            'Exception in thread "main" java.lang.OutOfMemoryError: Java',
            ("OutOfMemoryError", "Java"),
        ),
        (
            "NotFoundError (see above for traceback): Key w not found",
            ("NotFoundError", "Key w not found"),
        ),
        ("Error in py_call_impl(callable, dots$args) : ValueError: bad", ("ValueError", "bad")),
        ("FAILED tests/test_a.py::test_b - MemoryError: full", ("MemoryError", "full")),
        ("http.client.RemoteDisconnected: gone", ("RemoteDisconnected", "gone")),
        ("RemoteDisconnected: gone", None),
        ("an Error in a sentence", None),
        ("except ValueError: pass", None),
        ("Epoch 1/10", None),
        ("", None),
        ("x" * 100_000, None),
    ],
)
def test_an_exception_is_recognised_by_its_place(line, found):
    assert exception_on(line) == found


def test_what_is_shown_has_no_control_characters_and_is_not_too_long():
    assert printable("a\x1b]0;title\x07b\tc") == "a�]0;title�b�c"
    assert len(printable("x" * 10_000)) <= 300
    assert printable("  kept  ") == "kept"


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("error: creating server: Internal - failed to load all models", True),
        ("FAILED: Build did NOT complete successfully", True),
        ("ld.so: fatal: relocation error", True),
        ("sagemaker-containers ERROR    ExecuteUserScriptError", True),
        ("2021-10-05 02:19:10.1: W data/worker_impl.cc:311] Failed: Not found: Task 4 gone", True),
        ("E :254] HIB Error. hib_error_status = 2200", True),
        ("E0000 00:00:1736 144 cuda_dnn.cc:8310] Unable to register cuDNN factory: twice", False),
        ("W redzone_allocator.cc:312] Internal: Invoking GPU asm compilation is supported", False),
        ("938/938 - 5s - mean_absolute_error: 0.1", False),
        ("Error: 0.031", False),
        ("an error: of no kind", False),
    ],
)
def test_a_program_says_by_itself_what_is_an_error(line, is_one):
    assert is_complaint(core_of(line)) is is_one


def test_words_of_failure_count_where_they_begin_a_line():
    assert may_be_complaint("Could not get lock /var/lib/dpkg/lock")
    assert not may_be_complaint("Epoch 3: could not be better")


@pytest.mark.parametrize(
    ("line", "ended_badly"),
    [
        ("Process finished with exit code -1", True),
        ("The command '/bin/sh -c python train.py' returned a non-zero code: 1", True),
        ("Initialization of backend webgl failed", True),
        ("I compiler/xla/util.cc:70] INTERNAL: Unknown platform.", True),
        ("I core/gpu_device.cc:847] Peer access not supported between ordinals 0 and 5", False),
        ("All 12 tests passed, 0 failed", False),
        ("evaluate wait_for_completion:0 failure: Overflow error", True),
        ("Training finished without errors", False),
        ("Test error: 0.0123", False),
        ("Process finished with exit code 0", False),
    ],
)
def test_the_last_lines_may_say_that_it_ended_badly(line, ended_badly):
    assert may_be_complaint(line) is ended_badly


def test_another_process_may_write_on_the_line_of_a_traceback():
    marker = "Traceback (most recent call last):"
    said = "DLL load failed: The paging file is too small."
    assert beside_traceback(f"{said}{marker}").startswith(said)
    assert said in beside_traceback(f"{marker} {said}")
    # IPython's heading and a logger's name are no sentences.
    assert beside_traceback(f"ResourceExhaustedError                {marker}") == ""
    assert beside_traceback(f"[stderr] {marker}") == ""


@pytest.mark.parametrize(
    ("line", "nothing"),
    [
        ("Failed to allocate 0 bytes in PSRAM for 'modelfile'", True),
        ("tried to allocate 0 bytes", True),
        ("Out of memory allocating 0B", True),
        ("Failed to allocate 10 bytes", False),
        ("Failed to allocate 0.5 GiB", False),
        ("allocated 12 of 0 slots", False),
    ],
)
def test_an_allocation_of_nothing_is_told(line, nothing):
    assert asks_for_nothing(line) is nothing


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("cv2.error: OpenCV(4.5.5) bad", ("error", "OpenCV(4.5.5) bad")),
        (
            "struct.error: unpack requires a buffer of 4 bytes",
            ("error", "unpack requires a buffer of 4 bytes"),
        ),
        ("error: no module before it", None),
        ("metrics.val_error: 0.1", None),
    ],
)
def test_some_modules_call_their_exception_error(line, found):
    assert exception_on(line) == found
