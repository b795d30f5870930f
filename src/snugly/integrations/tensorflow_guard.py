"""What a guard does inside TensorFlow: refuses before, chooses kernels that raise, and interrupts.

Four functions of TensorFlow are replaced while a guard holds: the one that runs an eager operation,
the one that calls a graph, and two that turn arrays into tensors. Without a guard TensorFlow is
untouched. TensorFlow is found in `sys.modules`, never imported here.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from snugly.guarding.enclosure import ENCLOSURE
from snugly.integrations.function_uses import ALWAYS_LEFT, LOOK_EVERY, SAFETY, FunctionUses
from snugly.integrations.graph_calls import GraphCalls
from snugly.integrations.idle_memory import release_idle_memory
from snugly.integrations.onednn import Switch, find_switch
from snugly.integrations.operation_needs import (
    CRASHING,
    KNOWN,
    PIPELINES,
    TEXT,
    UNCHECKED,
)
from snugly.integrations.pipeline_needs import pipeline_needs
from snugly.integrations.tensor_limit import TensorLimit
from snugly.integrations.tensor_refusals import (
    bytes_in_use,
    raise_refused,
    refuse,
    refuse_text,
    refuse_threads,
    with_scratch,
)
from snugly.integrations.tensorflow_parts import Parts, find_parts, is_ready
from snugly.integrations.unchecked_memory import UncheckedMemory
from snugly.recording.allocator import device_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from snugly.integrations.function_uses import FunctionUse

_SMALL: Final = 1 << 20
_SMALL_ARRAY: Final = 1 << 16
_EXHAUSTED: Final = 8  # tensorflow::error::RESOURCE_EXHAUSTED
_REGISTRY: Final = "tensorflow.python.framework.op_def_registry"
_NEXT: Final = frozenset({"IteratorGetNext", "IteratorGetNextSync"})
_TYPES: Final = "output_types"
_PLAIN: Final = "fiubc"  # kinds of numbers, in NumPy's letters
_ALIGNED: Final = 64  # EIGEN_MAX_ALIGN_BYTES with AVX-512, the largest


@dataclass
class TensorFlowGuard:
    """The replacements, while they are in place."""

    uses: FunctionUses = field(default_factory=FunctionUses)
    careful: bool = False
    """oneDNN is off until the guard ends."""
    _parts: Parts | None = None
    _originals: dict[str, Any] = field(default_factory=dict)
    _switch: Switch | None = None
    _tensors: TensorLimit = field(default_factory=TensorLimit)
    _unchecked: UncheckedMemory = field(default_factory=UncheckedMemory)
    _fed_by_python: bool = False
    """Python code has given elements to an input pipeline, or results to a graph."""
    _calls: GraphCalls | None = None
    _handlers: dict[str, Callable[[tuple[Any, ...]], None] | None] = field(default_factory=dict)

    def prepare(self) -> None:
        """Find what needs some memory to be found, before a limit holds."""
        if is_ready():
            self._unchecked.prepare()

    def install(self, *, importing: bool = False) -> None:
        """Replace the functions, if TensorFlow is there and they are not replaced yet."""
        if self._parts is not None or not (importing or is_ready()):
            return
        parts = self._parts = find_parts()
        if self._calls is None:  # kept: its options name functions that are prepared already
            self._calls = GraphCalls(parts)
        self._switch = find_switch()
        if "GPU:0" in device_names():
            self._switch = None  # what runs on a card does not use oneDNN
        self._originals = {
            "execute": parts.runtime.TFE_Py_FastPathExecute,
            "call": parts.context.Context.call_function,
            "convert": parts.constants.convert_to_eager_tensor,
            "result": parts.scripts.FuncRegistry._convert,  # noqa: SLF001 - there is no other
            "read": parts.datasets.DatasetV2._apply_debug_options,  # noqa: SLF001 - as above
            "single": parts.datasets.DatasetV2.get_single_element,
        }
        parts.runtime.TFE_Py_FastPathExecute = self._make_execute()
        parts.context.Context.call_function = self._make_call()
        parts.constants.convert_to_eager_tensor = self._make_convert()
        parts.scripts.FuncRegistry._convert = staticmethod(self._make_result())  # noqa: SLF001
        parts.datasets.DatasetV2._apply_debug_options = self._make_read("read")  # noqa: SLF001
        parts.datasets.DatasetV2.get_single_element = self._make_read("single")
        ENCLOSURE.releasers.append(release_idle_memory)
        ENCLOSURE.followers.append(self._tensors.follow)
        self._unchecked.prepare()
        self._unchecked.begin(ENCLOSURE)
        self._tensors.search()

    def remove(self) -> None:
        """Put everything back."""
        parts = self._parts
        if parts is None:
            return
        parts.runtime.TFE_Py_FastPathExecute = self._originals["execute"]
        parts.context.Context.call_function = self._originals["call"]
        parts.constants.convert_to_eager_tensor = self._originals["convert"]
        original = staticmethod(self._originals["result"])
        parts.scripts.FuncRegistry._convert = original  # noqa: SLF001
        parts.datasets.DatasetV2._apply_debug_options = self._originals["read"]  # noqa: SLF001
        parts.datasets.DatasetV2.get_single_element = self._originals["single"]
        ENCLOSURE.releasers.remove(release_idle_memory)
        ENCLOSURE.followers.remove(self._tensors.follow)
        self._unchecked.end(ENCLOSURE)
        self._tensors.end()
        if self._calls is not None:
            self._calls.end()
        self._parts = None
        if self.careful and self._switch is not None:
            self._switch.on()
            self.careful = False
            parts.context.context().clear_kernel_cache()

    def be_careful(self) -> None:
        """Take no oneDNN kernel any more; what was prepared with them is prepared anew."""
        if self._switch is None or self.careful or self._parts is None:
            return
        self.careful = True
        self._switch.off()
        self._parts.context.context().clear_kernel_cache()

    # ------------------------------------------------------------------ eager operations

    def _make_execute(self) -> Callable[..., Any]:
        original, handlers = self._originals["execute"], self._handlers
        parts = self._parts
        assert parts is not None
        array, status, unknown, tensors = parts.array, parts.status, object(), self._tensors
        special = _NEXT | CRASHING.keys()

        def execute(*words: Any) -> Any:
            handler: Any = handlers.get(words[1], unknown)
            if handler is unknown:
                handler = handlers[words[1]] = self._handler(words[1])
            if handler is not None:
                handler(words)
            if tensors.allocator is None:
                tensors.search()
            for word in words:
                if type(word) is array and self._is_scarce(word):
                    words = tuple(map(self._shared_if_array, words))
                    break
            try:
                return original(*words) if words[1] not in special else self._special(words)
            except status as problem:
                if getattr(problem, "code", None) != _EXHAUSTED:
                    raise
                if not self._may_try_again(words[1]):
                    raise_refused(problem, exhausted=True)
                    raise
            return execute(*words)

        return execute

    def _may_try_again(self, name: str) -> bool:
        """Whether tensors may have more by now, and the operation changes nothing but its results.

        Their limit is as old as the watcher's last look; an array may have been freed since.
        """
        before = self._tensors.more()
        if before is None or import_module(_REGISTRY).get(name).is_stateful:
            return False
        ENCLOSURE.adjust(ENCLOSURE.look())
        return (self._tensors.more() or 0) > before + _SMALL

    def _special(self, words: tuple[Any, ...]) -> Any:
        """Operations that are run in another way than others."""
        if words[1] in _NEXT and words[4] == _TYPES:
            return self._next(words)
        original = self._originals["execute"]
        return with_scratch(original, words) if self.careful else original(*words)

    def _shared_if_array(self, word: Any) -> Any:
        parts = self._parts
        if parts is None or type(word) is not parts.array or word.nbytes <= _SMALL_ARRAY:
            return word
        return self._shared_tensor(word, parts.context.context())

    def _handler(self, name: str) -> Callable[[tuple[Any, ...]], None] | None:
        if name in CRASHING and self._switch is not None:
            return lambda words: self._before_crashing(name, words)
        if name in UNCHECKED or name in CRASHING:
            need = UNCHECKED.get(name) or CRASHING[name]
            return lambda words: refuse(name, need(words[3:]), recyclable=False)
        if name in KNOWN:
            return lambda words: refuse(name, KNOWN[name](words[3:]))
        if name.startswith(TEXT):
            return lambda words: refuse_text(name, words[3:])
        if name in PIPELINES:
            return lambda _words: refuse_threads(name)
        return None

    def _before_crashing(self, name: str, words: tuple[Any, ...]) -> None:
        if self.careful:
            return
        need = CRASHING[name](words[3:])
        if need is not None and need < _SMALL:
            need = 0
        refuse(name, need)
        if need is None or SAFETY * need + ALWAYS_LEFT > ENCLOSURE.room():
            self.be_careful()

    # ------------------------------------------------------------------ graphs

    def _make_call(self) -> Callable[..., Any]:
        original, parts, calls = self._originals["call"], self._parts, self._calls
        assert parts is not None
        assert calls is not None
        own_context, run = parts.cancellation.context, calls.run
        uses, tensors = self.uses, self._tensors

        def call_function(context: Any, name: bytes, inputs: Any, outputs: int) -> Any:
            if own_context() is not None:
                return original(context, name, inputs, outputs)  # the user's own cancelling
            if tensors.allocator is None:
                tensors.search()
            ENCLOSURE.notice_freed()
            use = uses.of(name, context)
            if use.starts_threads:
                refuse_threads(name.decode())
            if not use.risky:
                return run(context, name, inputs, outputs)
            size = use.size(inputs) if use.open_inputs else 0
            if self._must_be_careful(use, size):
                return self._run_carefully((context, name, inputs, outputs), use, size)
            if not self.careful:
                return run(context, name, inputs, outputs)
            return with_scratch(run, (context, name, inputs, outputs))

        return call_function

    def _run_carefully(self, words: tuple[Any, ...], use: FunctionUse, size: int) -> Any:
        """Run a graph without oneDNN, and note what it needed."""
        calls = self._calls
        assert calls is not None
        before, began = bytes_in_use(), time.perf_counter()
        ENCLOSURE.lift()
        try:
            if self._switch is not None:
                self._switch.off()
            given = calls.run(*words, careful=True)
        finally:
            ENCLOSURE.lower()
            if self._switch is not None and not self.careful:
                self._switch.on()
        use.note_careful(time.perf_counter() - began, self._tensors.needed(before), size)
        return given

    def _must_be_careful(self, use: FunctionUse, size: int) -> bool:
        if not use.risky or self._switch is None or self.careful:
            return False
        if not use.is_known() or size > use.largest:
            return True
        if self._fed_by_python and use.open_batches:
            use.unsure = True  # a generator may give anything next
        use.fast_runs += 1
        if use.fast_runs % LOOK_EVERY == 0:
            use.need = max(use.need, self._tensors.needed(bytes_in_use()))
        # The watcher's last look is young enough where much more is left than needed.
        if ENCLOSURE.last_room() > SAFETY * use.wanted():
            return False
        return not use.fits(ENCLOSURE.room())

    # ------------------------------------------------------------------ input pipelines

    def _make_read(self, name: str) -> Callable[..., Any]:
        """Where somebody begins to read a dataset: an iterator, `reduce`, one element."""
        original, parts = self._originals[name], self._parts
        assert parts is not None

        def read(dataset: Any, *words: Any, **named: Any) -> Any:
            needs = pipeline_needs(dataset)
            refuse(needs.what, needs.least, recyclable=False)
            context = parts.context.context()
            if any(self.uses.of(function, context).risky for function in needs.functions):
                self.be_careful()
            return original(dataset, *words, **named)

        return read

    def _next(self, words: tuple[Any, ...]) -> Any:
        """The next element for Python code, in a way that the watcher can stop.

        One call may fill a buffer for minutes, and Python raises only when it returns.
        """
        parts, calls = self._parts, self._calls
        assert parts is not None
        assert calls is not None
        types, shapes = words[5], words[7]
        return calls.execute(
            words[1],
            len(types),
            [words[3]],
            (
                _TYPES,
                [parts.execute.make_type(kind, _TYPES) for kind in types],
                words[6],
                [parts.execute.make_shape(shape, words[6]) for shape in shapes],
            ),
            words[0],
        )

    # ------------------------------------------------------------------ arrays

    def _make_convert(self) -> Callable[..., Any]:
        original, parts = self._originals["convert"], self._parts
        assert parts is not None
        array = parts.array

        def convert_to_eager_tensor(value: Any, ctx: Any, dtype: Any = None) -> Any:
            if type(value) is array and self._is_scarce(value):
                shared = self._shared_tensor(value, ctx)
                return shared if dtype is None else parts.casts.cast(shared, dtype)
            return original(value, ctx, dtype)

        return convert_to_eager_tensor

    def _is_scarce(self, array: Any) -> bool:
        """Whether TensorFlow may find no room for its copy of an array; then it would crash."""
        need = SAFETY * array.nbytes
        if array.nbytes <= _SMALL_ARRAY:
            return False
        more = self._tensors.more()
        if more is not None and need > more:
            return True
        # The watcher's last look is good enough where much is left, and costs nothing.
        return need + ALWAYS_LEFT > ENCLOSURE.last_room() and need > ENCLOSURE.refused_beyond()

    def _shared_tensor(self, array: Any, context: Any) -> Any:
        """A tensor of an array, without TensorFlow's copy: NumPy makes it, and can refuse it.

        TensorFlow shares an array's memory where it begins at a multiple of 64.
        """
        parts = self._parts
        if parts is None or array.dtype.kind not in _PLAIN:
            return parts and parts.tensors.EagerTensor(array, context.device_name, None)
        context.ensure_initialized()
        return parts.tensors.EagerTensor(self._aligned(array), context.device_name, None)

    def _aligned(self, array: Any) -> Any:
        """A copy that TensorFlow takes as it is: it begins at a multiple of 64."""
        parts = self._parts
        if parts is None:
            return array
        room = parts.numpy.empty(array.nbytes + _ALIGNED, "u1")
        begin = -room.ctypes.data % _ALIGNED
        copy = room[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
        copy[...] = array
        return copy

    def _make_result(self) -> Callable[..., Any]:
        """What a py_function gives back becomes a tensor in native code."""
        original, parts = self._originals["result"], self._parts
        assert parts is not None
        array = parts.array

        def convert(value: Any, dtype: Any = None) -> Any:
            self._fed_by_python = True
            result = original(value, dtype)
            is_plain = type(result) is array and result.dtype.kind in _PLAIN
            return self._aligned(result) if is_plain and self._is_scarce(result) else result

        return convert
