"""SNG430: the process forks after TensorFlow has started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from snugly.linting.folding import fold
from snugly.linting.order import after_start
from snugly.linting.rule import Alarm, Rule

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from snugly.linting.program import Program

_FORKING: Final = frozenset(
    {
        *("multiprocessing.Pool", "multiprocessing.Process", "multiprocessing.pool.Pool"),
        *("concurrent.futures.ProcessPoolExecutor", "os.fork"),
        *("concurrent.futures.process.ProcessPoolExecutor", "multiprocessing.context.Process"),
    }
)
_FRESH: Final = frozenset({"spawn", "forkserver"})


def check(program: Program) -> Iterator[Alarm]:
    """Pools and processes of the default kind behind the first operation."""
    if not program.modules & {"multiprocessing", "concurrent", "os"} or _starts_fresh(program):
        return
    if not any(program.name_of_call(call) in _FORKING for call in program.calls):
        return
    for node, line in after_start(program, lambda call: _forks(program, call)):
        yield Alarm(
            node,
            f"the process forks after TensorFlow has started in line {line}: its threads and the"
            " GPU's context do not come along, and what they hold is held twice",
        )


def _forks(program: Program, call: ast.Call) -> bool:
    """Whether a call makes a process of the default kind."""
    named = any(one.arg in {"mp_context", "context"} for one in call.keywords)
    return program.name_of_call(call) in _FORKING and not named


def _starts_fresh(program: Program) -> bool:
    return any(
        (program.name_of_call(call) or "").endswith(".set_start_method")
        and call.args
        and fold(program, call.args[0]) in _FRESH
        for call in program.calls
    )


RULE = Rule(
    code="SNG430",
    name="fork-after-tf-init",
    severity="warning",
    check=check,
    bad=(
        """\
import multiprocessing as mp
a = tf.zeros([1])
with mp.Pool(4) as p:
    p.map(work, items)
""",
        """\
from multiprocessing import Process
def main():
    model = keras.models.load_model('m.keras')
    workers = [Process(target=work, args=(model,)) for _ in range(4)]
    for worker in workers:
        worker.start()
main()
""",
        """\
from concurrent.futures import ProcessPoolExecutor as Executor
class Runner:
    def run(self, items):
        weights = tf.Variable(tf.zeros([3]))
        with Executor(max_workers=4) as pool:
            return list(pool.map(work, items))
""",
        """\
import os
def prepare():
    return tf.random.normal([3])
x = prepare()
pid = os.fork()
""",
    ),
    good=(
        """\
import multiprocessing as mp
ctx = mp.get_context('spawn')
with ctx.Pool(4) as p:
    p.map(work, items)
""",
        """\
import multiprocessing as mp
mp.set_start_method('spawn')
a = tf.zeros([1])
with mp.Pool(4) as p:
    p.map(work, items)
""",
        """\
import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor
a = tf.zeros([1])
with ProcessPoolExecutor(4, mp_context=mp.get_context('spawn')) as pool:
    pool.map(work, items)
""",
        """\
from multiprocessing.pool import ThreadPool
a = tf.zeros([1])
with ThreadPool(4) as pool:
    pool.map(work, items)
""",
        """\
import multiprocessing as mp
with mp.Pool(4) as p:
    rows = p.map(work, items)
a = tf.constant(rows)
""",
    ),
)
