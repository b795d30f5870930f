"""SNG404: `predict` or `evaluate` on one piece at a time in a loop."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from snugly.linting.folding import argument, fold_int
from snugly.linting.kinds import is_model, kind_of, last_name
from snugly.linting.loops import (
    Loop,
    assignments_in,
    changing_names,
    is_short_list,
    loops_around,
    nodes_of_loop,
    repeated,
    trip_count,
    used_names,
)
from snugly.linting.rule import Alarm, Rule
from snugly.linting.scopes import FUNCTIONS, parameters_of
from snugly.linting.vocabulary import FOREIGN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program

METHODS: Final = frozenset({"predict", "evaluate"})
_NO_MODELS: Final = frozenset({"env", "environment", "client", "api", "service", "tokenizer"})
_CHUNK: Final = 32
"""A piece for which a batch of that size or more is asked is no row."""
_SHOWN: Final = 20
"""So many turns that are known are pictures to look at."""
_FEW: Final = 8
"""So many pieces that are written down are sets of data (train, test), not rows."""


def check(program: Program) -> Iterator[Alarm]:
    """`model.predict(row)` where the row changes with the loop."""
    asking: dict[ast.AST, tuple[ast.Call, str]] = {}
    for call in program.calls:
        if not _asks_a_model(program, call):
            continue
        given = argument(call, 0, "x")
        if given is None:
            continue
        loop = repeated(program, call)
        if loop is not None and _differs(program, loop, call, given):
            yield _alarm(call, call)
        function = program.function_of(call)
        if isinstance(function, FUNCTIONS):
            for parameter in parameters_of(function):
                if parameter.arg not in {"self", "cls"} and parameter.arg in used_names(given):
                    asking.setdefault(function, (call, parameter.arg))
    yield from _through_functions(program, asking)


def _through_functions(
    program: Program, asking: dict[ast.AST, tuple[ast.Call, str]]
) -> Iterator[Alarm]:
    if not asking:
        return
    for call in program.calls:
        callee = program.callee(call)
        if callee is None or callee not in asking:
            continue
        loop = repeated(program, call)
        if loop is None or is_short_list(program, loop, _FEW):
            continue
        inner, parameter = asking[callee]
        names = [one.arg for one in parameters_of(callee)]
        place = names.index(parameter) - (names[0] in {"self", "cls"})
        given = argument(call, place, parameter)
        owner = getattr(inner.func, "value", None)
        owner_name = last_name(owner)
        if owner_name in names:
            owner = argument(call, names.index(owner_name), owner_name)
        if given is None or _made_in(loop, owner):
            continue
        if used_names(given) & changing_names(loop, loosely=True):
            yield _alarm(call, inner)


def _alarm(place: ast.Call, inner: ast.Call) -> Alarm:
    name = inner.func.attr if isinstance(inner.func, ast.Attribute) else "predict"
    where = "" if place is inner else f" (in line {inner.lineno})"
    return Alarm(
        place,
        f"`{name}` is called for every piece in the loop{where}: each call sets up a data"
        " pipeline and callbacks of its own, and what they hold is given back late",
    )


def _asks_a_model(program: Program, call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in METHODS:
        return False
    owner = call.func.value
    if program.resolve(call.func) is not None or last_name(owner) in {"self", "super"}:
        return False
    if (last_name(owner) or "") in _NO_MODELS:
        return False
    if is_model(program, owner):
        return True
    # Of a receiver of which nothing is known, the file decides: in one that also uses
    # scikit-learn it may be anything.
    name = last_name(owner)
    if kind_of(program, owner) is not None or name is None or program.modules & FOREIGN:
        return False
    return program.definition(owner) is None if isinstance(owner, ast.Name) else True


def _differs(program: Program, loop: Loop, call: ast.Call, given: ast.expr) -> bool:
    if is_short_list(program, loop, _FEW) or _is_shown(program, call, loop):
        return False
    assert isinstance(call.func, ast.Attribute)
    if _made_in(loop, call.func.value) or _is_trained_in(program, loop, call.func.value):
        return False
    size = fold_int(program, argument(call, 1, "batch_size"))
    if size is not None and size >= _CHUNK:
        return False
    return bool(used_names(given) & changing_names(loop, loosely=True))


def _is_shown(program: Program, call: ast.Call, loop: Loop) -> bool:
    """A few turns in all: `for image in ds.take(9)`, and no loop around them."""
    around = list(loops_around(program, call))
    return len(around) == 1 and (trip_count(program, loop) or _SHOWN + 1) <= _SHOWN


def _is_trained_in(program: Program, loop: Loop, owner: ast.expr) -> bool:
    """A loop over folds or seeds: the model is trained for epochs, and then asked."""
    for node in nodes_of_loop(loop.node):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr != "fit" or ast.dump(node.func.value) != ast.dump(owner):
            continue
        for keyword in node.keywords:
            if keyword.arg in {"epochs", "nb_epoch"} and fold_int(program, keyword.value) != 1:
                return True
            if keyword.arg in {"validation_data", "validation_split"}:
                return True
    return False


def _made_in(loop: Loop, owner: ast.expr | None) -> bool:
    """A model that is new in every turn is asked once each."""
    if owner is None:
        return False
    names = used_names(owner)
    if names & loop.targets:
        return True
    return any(stored & names for stored, _value, _statement in assignments_in(loop.node))


RULE = Rule(
    code="SNG404",
    name="predict-in-loop",
    severity="warning",
    check=check,
    bad=(
        """\
for row in rows:
    y = model.predict(row[None])
""",
        """\
while not done:
    q = agent.model.predict(np.expand_dims(state, 0), verbose=0)
    state, reward, done = env.step(int(np.argmax(q)))
""",
        """\
answers = [net.predict(image[np.newaxis]) for image in images]
""",
        """\
class Scorer:
    def __init__(self):
        self.model = tf.keras.models.load_model('m.keras')
    def score(self, row):
        return self.model.predict(row[None])
    def run(self, rows):
        for i in range(len(rows)):
            self.score(rows[i])
""",
        """\
for x_batch, y_batch in test_ds:
    scores.append(model.evaluate(x_batch, y_batch, verbose=0))
""",
        """\
answers = list(map(lambda row: model.predict(row[None]), rows))
""",
    ),
    good=(
        """\
for row in rows:
    y = model(row[None], training=False)
""",
        """\
for row in rows:
    y = model.predict_on_batch(row[None])
""",
        """\
for epoch in range(10):
    model.fit(x, y)
    model.evaluate(x_test, y_test)
""",
        """\
for name, data in {'train': train_ds, 'test': test_ds}.items():
    print(name, model.evaluate(data))
""",
        """\
y = model.predict(np.stack([row for row in rows]))
""",
        """\
from sklearn.linear_model import Ridge
clf = Ridge()
for row in rows:
    clf.predict(row[None])
""",
        """\
for train, test in folds.split(x):
    model.fit(x[train], y[train], epochs=50, validation_data=(x[test], y[test]))
    scores.append(model.predict(x[test]))
""",
        """\
for frame, sample in env.iter_test():
    env.predict(sample)
""",
        """\
for chunk in chunks:
    parts.append(model.predict(chunk, batch_size=4096))
""",
    ),
)
