"""Calling graphs of TensorFlow in a way that the watcher can stop, and with options of our own.

One manager a thread is kept for cancelling, because making one and noting it takes more than all
else that is done here. Once it has cancelled, the next call gets a new one.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from snugly.guarding.enclosure import ENCLOSURE
from snugly.integrations.tensor_refusals import raise_interrupted, raise_refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snugly.integrations.tensorflow_parts import Parts

_MARK: Final = 77
"""ConfigProto.placement_period, which nothing reads in this mode: a function that is called with
another configuration is prepared a second time, and both stay."""


@dataclass
class GraphCalls:
    """How graphs are called while a guard holds."""

    parts: Parts
    _managers: dict[int, Any] = field(default_factory=dict)
    _options: dict[bytes, Any] = field(default_factory=dict)

    def run(
        self, context: Any, name: bytes, inputs: Any, outputs: int, *, careful: bool = False
    ) -> Any:
        """Call a graph by its name, as `Context.call_function` does."""
        options = context.function_call_options
        if careful:
            options = self._careful_options(options)
        attributes = tuple(word for pair in options.as_attrs().items() for word in pair)
        return self.execute(name.decode(), outputs, inputs, attributes, context) or None

    def execute(
        self, name: str, outputs: int, inputs: Sequence[Any], attributes: Any, context: Any
    ) -> list[Any]:
        """Run an operation that may take long, or hold many others."""
        try:
            return self.parts.execute.execute_with_cancellation(
                name,
                num_outputs=outputs,
                inputs=inputs,
                attrs=attributes,
                ctx=context,
                cancellation_manager=self._manager(),
            )
        except Exception as problem:
            raise_refused(problem)
            raise_interrupted(problem)
            raise

    def end(self) -> None:
        """No guard holds any more."""
        for thread in self._managers:
            ENCLOSURE.interrupters.pop(thread, None)
        self._managers = {}

    def _manager(self) -> Any:
        """What cancels the native calls of this thread."""
        thread, stops = threading.get_ident(), ENCLOSURE.interrupters
        manager = self._managers.get(thread)
        if manager is None or thread not in stops:
            manager = self._managers[thread] = self.parts.cancellation.CancellationManager()
            stops[thread] = manager.start_cancel
        return manager

    def _careful_options(self, options: Any) -> Any:
        """The same, told apart from those of calls with oneDNN."""
        key = options.config_proto_serialized
        if key not in self._options:
            settings = import_module("tensorflow.core.protobuf.config_pb2").ConfigProto
            changed = settings.FromString(key)
            changed.placement_period = _MARK
            self._options[key] = type(options)(
                executor_type=options.executor_type, config_proto=changed
            )
        return self._options[key]
