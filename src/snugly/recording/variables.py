"""Which buffer is whose: variables, noted when they are made, with the layer and line behind them.

The allocator knows addresses, a variable knows its name; for a moment both are known. A buffer is
named by the address it had at that time, so a later tensor at the same address is not taken for it.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import time
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from snugly.graph.model import Kind, Origin
from snugly.readers.layers import existing_layers, line_of
from snugly.readers.origin import own_variables, slots_of
from snugly.readers.user_code import running_line
from snugly.readers.variables import Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

LOOK_AGAIN: Final = 20_000_000  # nanoseconds between two looks for variables without a buffer yet
MOST_WEIGHTS: Final = 100_000  # whose paths are remembered
# Methods of Keras's variables: keras/src/backend/tensorflow/core.py, Keras 3.3 to 3.15.
_INITIALISING: Final = frozenset({"_initialize", "_deferred_initialize"})
_DEEPEST: Final = 40  # frames between a variable and the layer or optimizer that makes it


@dataclass(frozen=True, slots=True)
class Owner:
    """What a variable is for, and where it comes from."""

    kind: Kind
    name: str
    layer: str | None = None
    line: str | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """At this time, the buffer at this address was this owner's."""

    time: int  # nanoseconds of the system's clock
    address: int
    bytes: int
    device: str  # "CPU:0", "GPU:0"
    owner: Owner

    def to_data(self) -> list[Any]:
        """A row for the record's file."""
        owner = self.owner
        return [
            self.time,
            self.address,
            self.bytes,
            str(owner.kind),
            owner.name,
            owner.layer,
            owner.line,
            self.device,
        ]


class Variables:
    """Notes variables as they are made, without keeping them alive."""

    def __init__(self) -> None:
        self._alive: dict[int, tuple[weakref.ref[Any], Owner]] = {}
        self._unplaced: set[int] = set()
        self._weights: dict[str, Owner] = {}  # by path, so that slots find their layer
        self._held: list[Held] = []
        self._looked = 0
        self._undo: list[Callable[[], None]] = []

    def watch(self) -> None:
        """Begin to listen; TensorFlow must have been imported."""
        from tensorflow.python.ops import resource_variable_ops

        kind: Any = resource_variable_ops.BaseResourceVariable
        original = kind.__init__

        def noted(variable: Any, *arguments: Any, **named: Any) -> None:
            original(variable, *arguments, **named)
            if type(variable).__name__ == "_UnreadVariable":  # a view, made by every assignment
                return
            frame = sys._getframe(1)  # noqa: SLF001 - a stack of all frames costs
            self._note(variable, _owner(variable, frame, self._weights))

        kind.__init__ = noted
        self._undo.append(lambda: setattr(kind, "__init__", original))

    def watch_keras(self) -> None:
        """Begin to note whose weights are whose: a buffer may be given to them much later."""
        import keras

        kind: Any = keras.layers.Layer
        original = vars(kind)["add_weight"]

        def noted(layer: Any, *arguments: Any, **named: Any) -> Any:
            weight = original(layer, *arguments, **named)
            if len(self._weights) < MOST_WEIGHTS:
                path = str(weight.path)
                self._weights[path] = Owner(Kind.WEIGHT, path, layer.name, line_of(layer))
            return weight

        kind.add_weight = noted
        self._undo.append(lambda: setattr(kind, "add_weight", original))

    def remove(self) -> None:
        """Put TensorFlow and Keras back as they were."""
        while self._undo:
            self._undo.pop()()

    def note_existing(self) -> None:
        """Variables, and tensors kept in Python, that were there before anybody listened."""
        owners = _existing_owners()
        for thing, is_variable in _existing():
            if is_variable:
                if id(thing) not in self._alive:
                    self._note(thing, owners.get(id(thing)) or Owner(Kind.WEIGHT, _name(thing)))
            else:
                shape = "×".join(str(size) for size in thing.shape) or "scalar"
                self.note_input(thing, f"kept in Python: {thing.dtype.name} {shape}")

    def note_input(self, tensor: Any, name: str) -> None:
        """A tensor that the program is given, or keeps outside of any step."""
        place = place_of(tensor)
        if place is not None:
            self._held.append(Held(time.time_ns(), *place, Owner(Kind.INPUT, name)))

    @property
    def has_unplaced(self) -> bool:
        """Whether there are variables that have no buffer yet."""
        return bool(self._unplaced)

    def look(self) -> None:
        """See whether variables that had no buffer yet have one by now."""
        now = time.time_ns()
        if not self._unplaced or now - self._looked < LOOK_AGAIN:
            return
        self._looked = now
        for position, number in enumerate(tuple(self._unplaced)):
            if not self._place(number) and position == 0:
                return  # variables made in one function get their buffers all at once

    def take(self) -> list[Held]:
        """Every buffer known since the last time, and those that variables have now."""
        for number in tuple(self._alive):
            self._place(number)
        held, self._held = self._held, []
        return held

    def _note(self, variable: Any, owner: Owner) -> None:
        number = id(variable)

        def forget(_: Any) -> None:
            self._alive.pop(number, None)
            self._unplaced.discard(number)

        self._alive[number] = (weakref.ref(variable, forget), owner)
        if not self._place(number):
            self._unplaced.add(number)

    def _place(self, number: int) -> bool:
        """Note where a variable's buffer is; whether it has one."""
        weak, owner = self._alive.get(number, (None, None))
        variable = weak() if weak is not None else None
        if variable is None or owner is None:
            self._unplaced.discard(number)
            return True
        place = place_of(variable)
        if place is None:
            return False
        self._held.append(Held(time.time_ns(), *place, owner))
        self._unplaced.discard(number)
        return True


def place_of(thing: Any) -> tuple[int, int, str] | None:
    """Address, bytes and device of a variable's or tensor's buffer; None without one.

    DLPack hands out the buffer itself, so nothing is copied or allocated.
    """
    from tensorflow.python.dlpack import dlpack
    from tensorflow.python.eager import context
    from tensorflow.python.ops import gen_resource_variable_ops

    # TensorFlow ends the process where DLPack is asked for handles or strings (2.21, tensor.cc).
    plain = thing.dtype.is_floating or thing.dtype.is_integer or thing.dtype.is_complex
    if not (plain or thing.dtype.is_bool) or not context.executing_eagerly():
        return None
    try:
        value = thing
        if hasattr(thing, "handle"):
            value = gen_resource_variable_ops.read_variable_op(thing.handle, thing.dtype)
        size = value.dtype.size * value.shape.num_elements()
        device = str(value.backing_device).rpartition("/device:")[2]
        capsule = dlpack.to_dlpack(value)
        description = _pointer(capsule, b"dltensor")
    except Exception:  # noqa: BLE001 - not initialised yet, of strings, in a graph: no address
        return None
    address = ctypes.c_void_p.from_address(description).value
    return (address, size, device) if address and size else None


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _name(variable: Any) -> str:
    """As Keras writes a path: `dense/kernel`."""
    return str(getattr(variable, "name", "") or "variable").removesuffix(":0")


def _owner(variable: Any, frame: FrameType | None, weights: dict[str, Owner]) -> Owner:
    """Look outwards for the layer's `add_weight` or the optimizer's `add_variable…`.

    A layer that is built before it is first run gets its buffers later, outside of both; then the
    Keras variable is on the stack, and its path is known.
    """
    name, path = _name(variable), None
    innermost, kind = frame, Kind.WEIGHT
    for _ in range(_DEEPEST):
        if frame is None:
            break
        function, file = frame.f_code.co_name, frame.f_code.co_filename.replace("\\", "/")
        if "/keras/src/" in file:
            if path is None and function in _INITIALISING:
                path = getattr(frame.f_locals.get("self"), "path", None)
                name = str(path or name)
            if function == "add_weight":
                layer = frame.f_locals.get("self")
                return Owner(Kind.WEIGHT, name, getattr(layer, "name", None), line_of(layer))
            if "/optimizers/" in file:
                kind = Kind.OPTIMIZER
                reference = frame.f_locals.get("reference_variable")
                if reference is not None:
                    weight = weights.get(str(getattr(reference, "path", "")))
                    return _slot(name, weight, innermost)
        frame = frame.f_back
    known = weights.get(str(path))
    return known or Owner(kind, name, None, running_line(innermost))


def _slot(name: str, weight: Owner | None, frame: FrameType | None) -> Owner:
    """A slot belongs to the layer of its weight."""
    if weight is None:
        return Owner(Kind.OPTIMIZER, name, None, running_line(frame))
    return Owner(Kind.OPTIMIZER, name, weight.layer, weight.line or running_line(frame))


def _existing() -> Iterator[tuple[Any, bool]]:
    """All variables and eager tensors that Python knows of, each with whether it is a variable."""
    import tensorflow as tf

    kinds: dict[type, bool | None] = {}
    for thing in gc.get_objects():
        kind = type(thing)
        if kind not in kinds:
            is_variable = issubclass(kind, tf.Variable) and hasattr(kind, "handle")
            kinds[kind] = is_variable or (False if kind.__name__ == "EagerTensor" else None)
        known = kinds[kind]
        if known is not None:
            yield thing, known


def _existing_owners() -> dict[int, Owner]:
    """What Keras's layers and optimizers say of variables that nobody saw being made."""
    if "keras" not in sys.modules:
        return {}
    import keras

    owners: dict[int, Owner] = {}
    paths: dict[str, Origin] = {}
    for layer in existing_layers():
        for variable in own_variables(layer):
            origin = Origin(layer.name, line_of(layer))
            paths[variable.path] = origin
            owners[id(variable._value)] = Owner(  # noqa: SLF001 - TensorFlow's, inside Keras's
                Kind.WEIGHT, variable.path, origin.layer, origin.line
            )
    kind = keras.optimizers.Optimizer
    optimizers = [thing for thing in gc.get_objects() if issubclass(type(thing), kind)]
    for optimizer in optimizers:
        slots = [Variable(Kind.OPTIMIZER, variable.path) for variable in optimizer.variables]
        origins = slots_of(paths, slots)
        for variable in optimizer.variables:
            origin = origins.get(variable.path, Origin())
            owners[id(variable._value)] = Owner(  # noqa: SLF001
                Kind.OPTIMIZER, variable.path, origin.layer, origin.line
            )
    return owners
