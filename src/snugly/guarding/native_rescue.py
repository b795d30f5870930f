"""Memory for native code that does not look whether it got it, as few instructions.

Most of TensorFlow checks whether memory was refused, and raises. Some of it does not: scratch
memory of kernels, text, stacks of threads, batches of input pipelines. There a refusal is a crash.
So these calls are diverted to the instructions below. They make the call, and where it failed they
raise the limit that refused and make it again; the watcher lowers the limit at its next look, sees
what is held, and stops what runs. They must not call Python, for the thread may hold any lock; so
they are instructions for x86-64 on Linux. Elsewhere there are none, and `make` says so.

A function that gives memory (arguments in rdi, rsi, rdx, rcx; it fails with 0, or with a code)::

    push rbx; push r12; push r13; push r14; sub rsp, 8
    mov rbx, rdi; mov r12, rsi; mov r13, rdx; mov r14, rcx
    movabs rax, FIRST; call rax
    test rax, rax; jnz done       ; or: test eax, eax; nop; jz done
    movabs rsi, ROOM              ; _Room, which begins with {lifted, hard}
    lock inc qword [rsi+16]       ; calls
    mov edi, 2; mov eax, 160      ; setrlimit(RLIMIT_DATA, {lifted, hard})
    syscall
    mov rdi, rbx; mov rsi, r12; mov rdx, r13; mov rcx, r14
    add rsp, 8; pop r14; pop r13; pop r12; pop rbx
    movabs rax, AGAIN; jmp rax
  done:
    add rsp, 8; pop r14; pop r13; pop r12; pop rbx; ret

A constructor of a tensor begins likewise, and is called again as long as it made none::

    push rbx; push r12; push r13; push r14; push r15
    mov rbx, rdi; mov r12, rsi; mov r13, rdx; mov r14, rcx
    mov r15d, STEP
    movabs rax, FIRST; call rax
  look:
    mov rax, [rbx+24]; test rax, rax; jz done     ; Tensor::buf_, none where it has no elements
    cmp qword [rax+16], 0; jne done               ; TensorBuffer::data_
    test r15, r15; jz done                        ; that was the last attempt
    movabs rax, ROOM
    lock inc qword [rax+40]                       ; tensors
    mov rcx, [rax+24]; mov rdx, [rax+32]; mov rdi, [rcx]
    add rdi, r15; add r15, r15                    ; *limit + step, and twice the step
    cmp rdi, rdx; jb less
    mov rdi, rdx; xor r15d, r15d                  ; most, for the last time
  less:
    mov [rcx], rdi
    lea rsi, [rax+48]; mov edi, 2; mov eax, 160   ; setrlimit(RLIMIT_DATA, {tensors' own, hard})
    syscall
    mov rdi, rbx; mov rsi, r12; mov rdx, r13; mov rcx, r14
    movabs rax, AGAIN; call rax
    jmp look
  done:
    pop r15; pop r14; pop r13; pop r12; pop rbx; ret

TensorFlow's allocator takes as large a region for one tensor as its limit lets it, and never gives
address space back; so the limit rises by small steps until the tensor is there. Tensors are given
a little less than all others: for a region the allocator makes a list of its pieces, 8 bytes for
each 256, with `operator new`, and there must be room for that.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
from typing import Final, Literal, TypeAlias

_BEGIN: Final = bytes.fromhex("53 4154 4155 4156 4883ec08 4889fb 4989f4 4989d5 4989ce 48b8")
_CALL: Final = bytes.fromhex("ffd0")
_FAILS: Final = {
    "nothing": bytes.fromhex("4885c0 753e"),  # test rax, rax; jnz done
    "code": bytes.fromhex("85c090 743e"),  # test eax, eax; nop; jz done
}
_RAISE: Final = bytes.fromhex("48be")
_RAISED: Final = bytes.fromhex("f048ff4610 bf02000000 b8a0000000 0f05")
_AGAIN: Final = bytes.fromhex("4889df 4c89e6 4c89ea 4c89f1 4883c408 415e 415d 415c 5b 48b8")
_END: Final = bytes.fromhex("ffe0 4883c408 415e 415d 415c 5b c3")
_BEGIN_TENSOR: Final = bytes.fromhex("53 4154 4155 4156 4157 4889fb 4989f4 4989d5 4989ce 41bf")
_FIRST_TENSOR: Final = bytes.fromhex("48b8")
_LOOK: Final = bytes.fromhex("ffd0 488b4318 4885c0 7464 4883781000 755d 4d85ff 7458 48b8")
_RAISE_TENSORS: Final = bytes.fromhex(
    "f048ff4028 488b4818 488b5020 488b39 4c01ff 4d01ff 4839d7 7206 4889d7 4531ff 488939"
    "488d7030 bf02000000 b8a0000000 0f05 4889df 4c89e6 4c89ea 4c89f1 48b8"
)
_END_TENSOR: Final = bytes.fromhex("ffd0 eb93 415f 415e 415d 415c 5b c3")
STEP: Final = 32 << 20
"""By so much the limit of tensors rises first, then by twice as much: less would cut the memory of
large tensors into many regions, more would be reserved and not used."""
_UNLIMITED: Final = 2**64 - 1
_READ_EXECUTE: Final = mmap.PROT_READ | mmap.PROT_EXEC
_ALIGNED: Final = 16
_PIECES: Final = 16
"""Of what others may have, a share of so much is kept from tensors: twice what lists of a region's
pieces take (kMinAllocationSize, xla/tsl/framework/bfc_allocator.h, TensorFlow 2.21)."""

Failure: TypeAlias = Literal["nothing", "code", "tensor"]


class _Room(ctypes.Structure):
    """What the instructions read and write; the order is theirs."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            *("lifted", "hard", "calls", "limit", "most", "tensor_calls"),
            *("lifted_for_tensors", "hard_again"),
        )
    ]


class NativeRescue:
    """The instructions of this process; they and what they read stay where they are for ever."""

    def __init__(self) -> None:
        self._room = _Room()
        self.allow(-1, -1)
        self._spare = ctypes.c_uint64(0)
        self._room.limit = ctypes.addressof(self._spare)
        self._code: mmap.mmap | None = None
        self._used = 0

    @property
    def calls(self) -> int:
        """How often memory was given that had been refused."""
        return int(self._room.calls)

    @property
    def tensor_calls(self) -> int:
        """How often the limit was raised for tensors that had been refused."""
        return int(self._room.tensor_calls)

    @property
    def allowed(self) -> tuple[int, ...]:
        """What the soft limit may be raised to: for tensors, and for all else."""
        return int(self._room.lifted_for_tensors), int(self._room.lifted)

    def allow(self, lifted: int, hard: int, soft: int = 0) -> None:
        """How far the soft RLIMIT_DATA, as it stands, may be raised; negative: without limit."""
        most = _UNLIMITED if hard < 0 else hard
        every = _UNLIMITED if lifted < 0 else min(lifted, most)
        tensors = every if lifted < 0 else min(every, max(soft, every - every // _PIECES))
        self._room.hard = self._room.hard_again = most
        self._room.lifted, self._room.lifted_for_tensors = every, tensors

    def allow_tensors(self, address: int, most: int) -> None:
        """Where the limit of tensors lies, and how far it may be raised."""
        self._room.most = most
        self._room.limit = address

    def forget_tensors(self) -> None:
        """Raise no limit of tensors any more."""
        self._room.most = 0
        self._room.limit = ctypes.addressof(self._spare)

    def make(self, fails: Failure, first: int, again: int) -> int | None:
        """Instructions that call `first`, and where that failed, `again`; None where none can be.

        They are written before any of them runs: `seal` comes between.
        """
        if sys.platform != "linux" or platform.machine() != "x86_64":
            return None
        if self._code is None:
            self._code = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        words = instructions(fails, first, again, ctypes.addressof(self._room))
        begin = -(-self._used // _ALIGNED) * _ALIGNED
        if begin + len(words) > mmap.PAGESIZE:
            return None
        self._code[begin : begin + len(words)] = words
        self._used = begin + len(words)
        return ctypes.addressof(ctypes.c_char.from_buffer(self._code)) + begin

    def seal(self) -> bool:
        """Let the instructions run, and nobody write them; False where the system forbids it."""
        if self._code is None:
            return False
        library = ctypes.CDLL(None, use_errno=True)
        library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._code))
        return library.mprotect(address, mmap.PAGESIZE, _READ_EXECUTE) == 0


def instructions(fails: Failure, first: int, again: int, room: int) -> bytes:
    """The instructions that are drawn above."""
    if fails == "tensor":
        parts = (
            _BEGIN_TENSOR + STEP.to_bytes(4, "little"),
            _FIRST_TENSOR + first.to_bytes(8, "little"),
            _LOOK + room.to_bytes(8, "little"),
            _RAISE_TENSORS + again.to_bytes(8, "little") + _END_TENSOR,
        )
    else:
        parts = (
            _BEGIN + first.to_bytes(8, "little") + _CALL + _FAILS[fails],
            _RAISE + room.to_bytes(8, "little") + _RAISED,
            _AGAIN + again.to_bytes(8, "little") + _END,
        )
    return b"".join(parts)
