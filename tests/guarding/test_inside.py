"""The parts of a guard inside the process: what is held, what is told, how C++ is helped."""

import subprocess
import sys
import traceback
import weakref

import pytest

from snugly.errors import MemoryLimitExceeded
from snugly.guarding.conversion import at_users_line, converted, is_refusal, let_go
from snugly.guarding.enclosure import ENCLOSURE
from snugly.guarding.own_memory import is_shared_file

MIB = 1 << 20


def held_of(program):
    """Run a program that looks at itself: what other tests left in this process comes and goes."""
    done = subprocess.run(
        [sys.executable, "-c", LOOKING + program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "well\n"


LOOKING = """\
import mmap
from snugly.guarding.own_memory import OwnMemory

MIB = 1 << 20
memory = OwnMemory()
before = memory.look()
"""


def test_what_is_touched_is_held_and_what_is_only_reserved_is_data():
    held_of("""\
room = mmap.mmap(-1, 64 * MIB, flags=mmap.MAP_PRIVATE)
reserved = memory.look()
assert reserved.data - before.data >= 63 * MIB
assert reserved.held - before.held < 8 * MIB
for place in range(0, 64 * MIB, mmap.PAGESIZE):
    room[place] = 1
assert memory.look().held - before.held > 56 * MIB
print("well")
""")


def test_shared_memory_is_held_as_well():
    held_of("""\
with mmap.mmap(-1, 64 * MIB) as room:
    room.write(b"1" * 64 * MIB)
    assert memory.look().held - before.held > 56 * MIB
print("well")
""")


def test_files_on_a_disk_are_no_shared_memory(tmp_path):
    assert not is_shared_file(str(tmp_path / "missing"))
    assert not is_shared_file(object())


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (MemoryError(), True),
        (MemoryError("Unable to allocate 2.98 GiB for an array"), True),
        (MemoryError("mine"), False),
        (MemoryLimitExceeded("told"), False),
        (OSError(12, "Cannot allocate memory"), True),
        (OSError(2, "no such file"), False),
        (ValueError("OOM when allocating tensor"), False),
        (None, False),
    ],
)
def test_a_refusal_is_told_from_errors_of_others(error, refused):
    assert is_refusal(error) is refused


def test_the_error_says_what_was_asked_for_and_what_is_left():
    told = converted(MemoryError("Unable to allocate 2 GiB for an array"), 1000 * MIB, 400 * MIB)
    assert str(told) == (
        "2 GiB was refused: the process holds 400 MiB (measured) of the guard's limit of 1000 MiB,"
        " and 600 MiB are left"
    )
    tensor = RuntimeError("OOM when allocating tensor with shape[1024,1024] and type float on CPU")
    assert "float[1024,1024], 4 MiB" in str(converted(tensor, MIB, 2 * MIB))


def test_a_traceback_ends_at_the_users_line():
    import json

    try:
        json.loads("{")
    except ValueError as problem:
        whole = problem.__traceback__
    assert "json" in traceback.extract_tb(whole)[-1].filename
    assert traceback.extract_tb(at_users_line(whole))[-1].line == 'json.loads("{")'
    assert at_users_line(whole.tb_next) is whole.tb_next  # no line of the user's: whole
    assert at_users_line(None) is None


def test_without_a_guard_nothing_holds():
    assert not ENCLOSURE.active
    assert ENCLOSURE.look().held > 0
    assert ENCLOSURE.refused_beyond() == sys.maxsize
    ENCLOSURE.interrupt()
    ENCLOSURE.release()


HELPED = """
import ctypes, resource
from snugly.guarding.new_handler import NewHandler
from snugly.guarding.own_memory import OwnMemory
handler = NewHandler()
if not handler.is_there: raise SystemExit(7)
new = ctypes.CDLL("libstdc++.so.6")._Znwm
new.restype, new.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
data = OwnMemory().data()
hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
handler.follow(data, hard, data + (64 << 20))
assert handler.install()
resource.setrlimit(resource.RLIMIT_DATA, (data, hard))
assert new(16 << 20)  # operator new gets what malloc is refused
assert handler.calls >= 16
print("helped", flush=True)
try: bytearray(80 << 20)
except MemoryError: print("refused", flush=True)
resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
handler.remove()
"""


def test_operator_new_is_helped_up_to_a_cap_and_nobody_else():
    done = subprocess.run(
        [sys.executable, "-c", HELPED], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode == 7:
        assert sys.platform != "linux" or "x86_64" not in done.args  # nothing to test elsewhere
        return
    assert done.stdout.split() == ["helped", "refused"], done.stderr


def test_what_a_librarys_functions_held_is_let_go_and_what_the_users_did_is_kept():
    # GIVEN a library's function that holds something, asks for too much, and tells in its own words
    class Held:
        pass

    code = "def ask(held):\n    inner(held)\ndef inner(held):\n    raise MemoryError\n"
    library = {}
    exec(compile(code, "/usr/lib/python3/site-packages/library.py", "exec"), library)  # noqa: S102

    def work():
        mine = Held()
        seen.append(weakref.ref(mine))
        theirs = Held()
        seen.append(weakref.ref(theirs))
        held, theirs = theirs, None
        try:
            library["ask"](held)
        except MemoryError as problem:
            held = None
            raise ValueError("refused") from problem

    seen = []
    kept = None
    try:
        work()
    except ValueError as problem:
        kept = problem
    assert [one() is None for one in seen] == [False, False]

    # WHEN it is let go
    assert kept is not None
    let_go(kept, kept.__traceback__)

    # THEN the error is whole, and holds what is the user's
    assert [one() is None for one in seen] == [False, True]
    told = "".join(traceback.format_exception(kept))
    assert "library.py" in told
    assert "in work" in told
    let_go(None, None)


LATE = """\
import resource, time, snugly
from snugly.guarding.enclosure import ENCLOSURE

def soft(): return resource.getrlimit(resource.RLIMIT_DATA)[0]
def guarded():
    with snugly.guard("400MiB"):
        return soft()

# GIVEN native code that raises the guard's limit when the guard has ended already
late = guarded() + (1 << 20)
resource.setrlimit(resource.RLIMIT_DATA, (late, -1))
# WHEN a moment has passed THEN the process has its own limit again
until = time.monotonic() + 10
while soft() == late and time.monotonic() < until: time.sleep(0.01)
assert soft() == -1, soft()
# and the next guard does not take it for the process's own
time.sleep(0.2)
late = guarded() + (1 << 20)
time.sleep(0.2)
resource.setrlimit(resource.RLIMIT_DATA, (late, -1))
guarded()
assert soft() == -1, soft()
# but a limit that the program has set itself stays
time.sleep(0.2)
resource.setrlimit(resource.RLIMIT_DATA, (3 << 30, -1))
guarded()
time.sleep(0.2)
assert soft() == 3 << 30, soft()
print("well")
"""


def test_a_limit_that_native_code_raises_too_late_does_not_stay():
    done = subprocess.run(
        [sys.executable, "-c", LATE], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "well\n"
