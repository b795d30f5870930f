"""Native code that does not look whether it got memory: its calls are found, and helped."""

import platform
import subprocess
import sys

import numpy
import pytest

from snugly.guarding.library_calls import Diversion, find_slots, mapped_libraries
from snugly.guarding.native_rescue import NativeRescue, instructions

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="the instructions are for x86-64 on Linux",
)


def numpys_library():
    from pathlib import Path

    libraries = mapped_libraries(Path(numpy.__file__).parent)
    return next(begin for begin, path in libraries.items() if "_multiarray_umath" in path)


def test_a_librarys_calls_are_found_by_name_and_others_are_not():
    found = find_slots(numpys_library(), ["malloc", "pthread_create_of_nobody", "mallo"])
    # NumPy asks malloc for the memory of its arrays, where its linker has not made slots read-only.
    assert set(found) <= {"malloc"}


def test_a_diversion_is_taken_back_and_leaves_what_others_diverted():
    import ctypes

    words = (ctypes.c_uint64 * 2)(7, 8)
    first, second = ctypes.addressof(words), ctypes.addressof(words) + 8
    diversion = Diversion({first: 70, second: 80})
    diversion.begin()
    diversion.begin()
    assert list(words) == [70, 80]
    words[1] = 800
    diversion.end()
    assert list(words) == [7, 800]


@pytest.mark.parametrize("fails", ["nothing", "code", "tensor"])
def test_instructions_have_their_addresses_and_end_with_a_return(fails):
    code = instructions(fails, 0x1111, 0x2222, 0x3333)
    for address in (0x1111, 0x2222, 0x3333):
        assert address.to_bytes(8, "little") in code
    assert code.endswith(b"\xc3")


def test_too_many_instructions_are_none():
    rescue = NativeRescue()
    made = [rescue.make("nothing", 1, 1) for _ in range(100)]
    assert made[0] is not None
    assert made[-1] is None


CHILD = """\
import ctypes, resource
from snugly.guarding.native_rescue import NativeRescue
from snugly.guarding.own_memory import OwnMemory

plain = ctypes.CDLL(None)
address = lambda function: ctypes.cast(function, ctypes.c_void_p).value
MIB = 1 << 20
rescue = NativeRescue()
giving = rescue.make("nothing", address(plain.malloc), address(plain.malloc))
coded = rescue.make("code", address(plain.posix_memalign), address(plain.posix_memalign))

# A tensor is built as TensorFlow does, of a buffer that is there only where the limit allows it.
limit = ctypes.c_uint64(10)
buffer = (ctypes.c_uint64 * 3)()
@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)
def construct(tensor, size):
    buffer[2] = 0xBEEF if size <= limit.value else 0
    ctypes.c_uint64.from_address(tensor + 24).value = ctypes.addressof(buffer) if size else 0
tensor_of = rescue.make("tensor", address(construct), address(construct))
assert rescue.seal()

malloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(giving)
aligned = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)(coded)
make = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)(tensor_of)

data = OwnMemory().data()
def limit_data(room):
    resource.setrlimit(resource.RLIMIT_DATA, (data + room * MIB, -1))

# GIVEN a limit that refuses WHEN it may be raised THEN the call succeeds, and was counted
rescue.allow(data + 400 * MIB, -1)
limit_data(20)
assert malloc(1 * MIB) and rescue.calls == 0
assert malloc(100 * MIB) and rescue.calls == 1
assert resource.getrlimit(resource.RLIMIT_DATA)[0] == data + 400 * MIB
limit_data(20)
place = ctypes.c_void_p()
assert aligned(ctypes.addressof(place), 64, 100 * MIB) == 0 and place.value and rescue.calls == 2
# beyond that it fails as ever
assert malloc(1 << 40) is None and rescue.calls == 3
assert aligned(ctypes.addressof(place), 64, 1 << 40) == 12
resource.setrlimit(resource.RLIMIT_DATA, (-1, -1))

# GIVEN a tensor that got no memory THEN the limit of tensors is raised, and it is built again
tensor = (ctypes.c_uint64 * 8)()
rescue.allow(-1, -1)
rescue.allow_tensors(ctypes.addressof(limit), 50)
make(tensor, 5); assert buffer[2] and rescue.tensor_calls == 0 and limit.value == 10
make(tensor, 0); assert rescue.tensor_calls == 0
make(tensor, 20); assert buffer[2] and rescue.tensor_calls == 1 and limit.value == 50
# and RLIMIT_DATA, too, by less than for others, but never lowered
limit.value = 10
rescue.allow(data + 320 * MIB, -1)
make(tensor, 20)
raised = resource.getrlimit(resource.RLIMIT_DATA)[0]
assert raised == data + 320 * MIB - (data + 320 * MIB) // 16
limit.value = 10
rescue.allow(data + 320 * MIB, -1, data + 319 * MIB)
make(tensor, 20)
assert resource.getrlimit(resource.RLIMIT_DATA)[0] == data + 319 * MIB
resource.setrlimit(resource.RLIMIT_DATA, (-1, -1))
limit.value = 10
rescue.forget_tensors()
make(tensor, 20); assert not buffer[2] and limit.value == 10
print("well")
"""


def test_a_call_that_was_refused_is_made_again_under_a_raised_limit():
    done = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "well\n"
