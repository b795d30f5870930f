"""The rules of `snugly lint`, one file each: what to look for, and examples that are its tests."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from snugly.linting.rule import Rule

_FILES: Final = (
    "model_in_loop",
    "model_in_called_function",
    "load_in_loop",
    "predict_in_loop",
    "python_scalar",
    "function_in_loop",
    "varying_shape",
    "bound_method_argument",
    "persistent_tape",
    "tape_around_loop",
    "tensors_in_list",
    "callback_keeps",
    "weights_history",
    "shuffle_after_decode",
    "cache_after_decode",
    "dataset_from_array",
    "dataset_in_loop",
    "py_function_in_map",
    "op_in_session_loop",
    "session_not_closed",
    "gpu_config_late",
    "variable_after_import",
    "dataset_to_memory",
    "float64_input",
    "dense_one_hot",
    "flatten_into_dense",
    "call_on_full_array",
    "compiled_varying_shape",
    "figure_not_closed",
    "fork_after_start",
    "large_prefetch",
    "deleted_model",
    "map_captures_tensor",
    "retry_in_except",
    "impossible_size",
    "removed_name",
    "graph_mode_in_eager",
)


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, in the order of their codes."""
    modules = [import_module(f"snugly.linting.rules.{name}") for name in _FILES]
    return tuple(sorted((module.RULE for module in modules), key=lambda rule: rule.code))
