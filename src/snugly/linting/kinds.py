"""Kinds: whether an expression is a model, a dataset, a tensor, an array, a session, ….

From what it was made with where that can be seen, and from its name where it cannot: `model`,
`train_ds`, `sess`. Names decide only in files that use TensorFlow, and never against what is seen.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from snugly.linting.names import keras_name, numpy_name, tensorflow_name
from snugly.linting.scopes import FUNCTIONS
from snugly.linting.vocabulary import (
    APPLICATIONS,
    CONVERTERS,
    DATASET_METHODS,
    DATASET_SOURCES,
    FOREIGN,
    MODEL_CONSTRUCTORS,
    MODEL_LOADERS,
    NOT_OPERATIONS,
    SESSIONS,
)

if TYPE_CHECKING:
    from snugly.linting.program import Program

Kind: TypeAlias = Literal[
    "model",
    "layer",
    "dataset",
    "tensor",
    "variable",
    "array",
    "session",
    "optimizer",
    "keras",
    "python",
    "foreign",
]

_DEPTH: Final = 6

_MODEL_NAME: Final = re.compile(
    r"(?i)(?!_*(get|build|make|create|load|save|define|init|new|setup|train|run|fit|test|eval|compile|"
    r"prepare|construct|clone|copy|export|update|reset|set|is|has|use|num|n)_)(\w*_)?(model|net|network|classifier|autoencoder|encoder|decoder|generator|"
    r"discriminator|critic|actor|policy|regressor|estimator|resnet\w*|vgg\w*|unet|bert|dqn|cnn|rnn|mlp)"
    r"(_?\d+|_net|_network|_model)?|mdl"
)
_DATASET_NAME: Final = re.compile(
    r"(?i)(\w*_)?(ds|dataset)(_?\d+|_(train|training|test|testing|val|valid|validation|eval|raw|"
    r"batched|shuffled|labell?ed|unlabell?ed|all|full|one|two|[abxy]))?"
)
_SESSION_NAME: Final = re.compile(r"(?i)s|sess|session|\w*_sess(ion)?")


def kind_of(program: Program, node: ast.AST | None, depth: int = _DEPTH) -> Kind | None:
    """What an expression is, from how it was made; None where that cannot be seen."""
    if node is None or depth <= 0:
        return None
    if depth < _DEPTH:
        return _kind(program, node, depth)
    key = ("kind", node)
    if key not in program.remembered:
        program.remembered[key] = None  # whoever asks for itself learns nothing
        program.remembered[key] = _kind(program, node, depth)
    return program.remembered[key]  # type: ignore[return-value]


def is_model(program: Program, node: ast.AST | None) -> bool:
    """Whether an expression is a Keras model, by what made it or by its name."""
    kind = kind_of(program, node)
    if kind is not None:
        return kind == "model"
    return _named(program, node, _MODEL_NAME)


def is_dataset(program: Program, node: ast.AST | None) -> bool:
    """Whether an expression is a `tf.data.Dataset`, by what made it or by its name."""
    kind = kind_of(program, node)
    if kind is not None:
        return kind == "dataset"
    return _named(program, node, _DATASET_NAME)


def is_session(program: Program, node: ast.AST | None) -> bool:
    """Whether an expression is a session of TensorFlow 1."""
    kind = kind_of(program, node)
    if kind is not None:
        return kind == "session"
    return _named(program, node, _SESSION_NAME)


def last_name(node: ast.AST | None) -> str | None:
    """`model` of `model` and of `self.model`."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def makes_model(program: Program, call: ast.Call) -> bool:
    """Whether a call builds a Keras model: a constructor, an application, a local subclass."""
    dotted = program.name_of_call(call)
    name = keras_name(dotted)
    if name is not None and dotted is not None:
        if name in MODEL_CONSTRUCTORS:
            return not (name == "Model" and not call.args and not call.keywords)
        return ".applications." in dotted and name in APPLICATIONS
    if isinstance(call.func, ast.Name):
        owner = program.definition(call.func)
        return isinstance(owner, ast.ClassDef) and is_model_class(program, owner)
    return False


def loads_model(program: Program, call: ast.Call) -> bool:
    """Whether a call loads a model from a file."""
    dotted = program.name_of_call(call)
    if keras_name(dotted) in MODEL_LOADERS:
        return True
    return dotted in {"tensorflow.saved_model.load", "tensorflow_hub.load"}


def is_model_class(program: Program, owner: ast.ClassDef, depth: int = 3) -> bool:
    """Whether a class of this file is a Keras model."""
    for base in owner.bases:
        if keras_name(program.resolve(base)) in {"Model", "Sequential", "Functional"}:
            return True
        if depth and isinstance(base, ast.Name):
            parent = program.definition(base)
            if isinstance(parent, ast.ClassDef) and parent is not owner:
                return is_model_class(program, parent, depth - 1)
    return False


def is_layer_class(program: Program, owner: ast.ClassDef) -> bool:
    """Whether a class of this file is a Keras layer or a `tf.Module`."""
    for base in owner.bases:
        dotted = program.resolve(base) or ""
        if keras_name(dotted) == "Layer" or dotted == "tensorflow.Module":
            return True
        if dotted.startswith("keras.layers."):
            return True
    return False


def _named(program: Program, node: ast.AST | None, pattern: re.Pattern[str]) -> bool:
    name = last_name(node)
    return name is not None and program.uses_tensorflow and bool(pattern.fullmatch(name))


def _kind(program: Program, node: ast.AST, depth: int) -> Kind | None:  # noqa: C901, PLR0911, PLR0912 - one case a line
    match node:
        case ast.Call():
            return _kind_of_call(program, node, depth)
        case ast.Name():
            return _kind_of_name(program, node, depth)
        case ast.Attribute():
            return _kind_of_values(program, program.attribute_values(node), depth)
        case ast.Constant() | ast.JoinedStr() | ast.Dict() | ast.Set():
            return "python"
        case ast.List() | ast.Tuple() | ast.ListComp() | ast.Compare() | ast.BoolOp():
            return "python"
        case ast.Subscript(value=value):
            kind = kind_of(program, value, depth - 1)
            return kind if kind in {"tensor", "array", "variable"} else None
        case ast.BinOp(left=left, right=right):
            kinds = {kind_of(program, one, depth - 1) for one in (left, right)}
            if kinds & {"tensor", "variable"}:
                return "tensor"
            if "array" in kinds:
                return "array"
            return "python" if kinds == {"python"} else None
        case ast.UnaryOp(operand=operand):
            return kind_of(program, operand, depth - 1)
        case ast.IfExp(body=body, orelse=orelse):
            return kind_of(program, body, depth - 1) or kind_of(program, orelse, depth - 1)
        case ast.Await(value=value):
            return kind_of(program, value, depth - 1)
        case _:
            return None


def _kind_of_name(program: Program, node: ast.Name, depth: int) -> Kind | None:  # noqa: PLR0911 - one case a line
    bindings = program.bindings(node)
    for binding in reversed(bindings):
        if binding.how == "parameter" and isinstance(binding.value, ast.arg):
            return _kind_of_annotation(program, binding.value.annotation)
        if binding.how in {"value", "with"}:
            kind = kind_of(program, binding.value, depth - 1)
            if kind is not None:
                return kind
        if binding.how == "class":
            return "python"
        if binding.how == "import":
            top = (binding.dotted or "").partition(".")[0]
            return "foreign" if top in FOREIGN else None
        if binding.how == "part" and isinstance(binding.value, ast.Call):
            dotted = program.name_of_call(binding.value)
            if (dotted or "").startswith("keras.datasets."):
                return "array"
            return None
    return None


def _kind_of_annotation(program: Program, annotation: ast.expr | None) -> Kind | None:
    if annotation is None:
        return None
    dotted = program.resolve(annotation)
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        dotted = annotation.value.replace("tf.keras.", "keras.").replace("tf.", "tensorflow.")
    if keras_name(dotted) in {"Model", "Sequential"}:
        return "model"
    if dotted == "tensorflow.data.Dataset":
        return "dataset"
    if dotted == "numpy.ndarray":
        return "array"
    if dotted == "tensorflow.Tensor":
        return "tensor"
    return "python" if dotted is None and getattr(annotation, "id", "") in {"int", "str"} else None


def _kind_of_values(program: Program, values: list[ast.expr], depth: int) -> Kind | None:
    for value in reversed(values):
        kind = kind_of(program, value, depth - 1)
        if kind is not None and kind != "python":
            return kind
    return None


def _kind_of_call(program: Program, call: ast.Call, depth: int) -> Kind | None:  # noqa: C901, PLR0911, PLR0912
    if makes_model(program, call) or loads_model(program, call):
        return "model"
    dotted = program.name_of_call(call)
    if dotted is not None:
        known = _kind_of_library_call(dotted)
        if known is not None:
            return known
    function = call.func
    if isinstance(function, ast.Name):
        if function.id in CONVERTERS and not program.bindings(function):
            return "python"
        definition = program.definition(function)
        if isinstance(definition, ast.ClassDef):
            if is_layer_class(program, definition):
                return "layer"
            return "python" if not definition.bases else None
        if isinstance(definition, FUNCTIONS):
            return kind_returned(program, definition, depth - 1)
    if isinstance(function, ast.Attribute):
        owner = kind_of(program, function.value, depth - 1)
        name = function.attr
        if name in {"numpy", "predict", "predict_on_batch"} and owner != "foreign":
            return "array"
        if name in {"item", "tolist", "train_on_batch", "test_on_batch", "evaluate"}:
            return "python"
        if owner in {"tensor", "array"} and name in {"astype", "copy", "reshape", "transpose"}:
            return owner
        if owner == "dataset" and (name in DATASET_METHODS):
            return "dataset"
        if owner is None and name in {"prefetch", "padded_batch", "as_numpy_iterator", "unbatch"}:
            return "dataset"
        if owner == "foreign":
            return "foreign"
    if kind_of(program, function, depth - 1) in {"model", "layer"}:
        return "tensor"
    callee = program.callee(call)
    return None if callee is None else kind_returned(program, callee, depth - 1)


def kind_returned(program: Program, function: ast.AST, depth: int = _DEPTH) -> Kind | None:
    """What a function of this file returns, where all of its returns agree."""
    if isinstance(function, ast.Lambda):
        return kind_of(program, function.body, depth)
    kinds: set[Kind | None] = {
        kind_of(program, node.value, depth)
        for node in program.body_nodes(function)
        if isinstance(node, ast.Return) and node.value is not None
    }
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of_library_call(dotted: str) -> Kind | None:  # noqa: C901, PLR0911, PLR0912
    name = keras_name(dotted)
    if name is not None:
        if dotted.startswith("keras.layers."):
            return "layer"
        if dotted.startswith("keras.optimizers."):
            return "optimizer"
        if name in DATASET_SOURCES:
            return "dataset"
        if dotted.startswith(("keras.ops.", "keras.random.")) or name == "Input":
            return "tensor"
        return "keras" if name[:1].isupper() else None
    name = tensorflow_name(dotted)
    if name is not None:
        if name in DATASET_SOURCES or name.rpartition(".")[2] in DATASET_SOURCES:
            return "dataset"
        if name in SESSIONS:
            return "session"
        if name == "Variable":
            return "variable"
        head = name.partition(".")[0]
        if name.rpartition(".")[2].startswith(("set_", "get_", "is_")):
            return None
        if head in NOT_OPERATIONS or name[:1].isupper() or name.rpartition(".")[2][:1].isupper():
            return None
        return "tensor"
    if dotted == "tensorflow_datasets.load":
        return "dataset"
    name = numpy_name(dotted)
    if name is not None:
        return None if name == "random.default_rng" else "array"
    return "foreign" if dotted.partition(".")[0] in FOREIGN else None
