"""SNG421: the GPU is set up after TensorFlow has started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from snugly.linting.order import after_start
from snugly.linting.rule import Alarm, Rule

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from snugly.linting.program import Program

_SETTING: Final = frozenset(
    {
        *("set_memory_growth", "set_logical_device_configuration", "set_visible_devices"),
        *("set_virtual_device_configuration", "set_inter_op_parallelism_threads"),
        *("set_intra_op_parallelism_threads",),
    }
)


def check(program: Program) -> Iterator[Alarm]:
    """`set_memory_growth` and its like behind the first operation."""
    if not any(_sets(program, call) for call in program.calls):
        return
    for node, line in after_start(program, lambda call: _sets(program, call)):
        yield Alarm(
            node,
            f"TensorFlow's runtime has started in line {line}; this raises RuntimeError or has no"
            " effect after that",
        )


def _sets(program: Program, call: ast.Call) -> bool:
    name = program.name_of_call(call) or ""
    return name.startswith("tensorflow.config.") and name.rpartition(".")[2] in _SETTING


RULE = Rule(
    code="SNG421",
    name="gpu-config-after-first-op",
    severity="error",
    in_tests=True,
    check=check,
    bad=(
        """\
a = tf.constant(1.0)
for g in tf.config.list_physical_devices('GPU'):
    tf.config.experimental.set_memory_growth(g, True)
""",
        """\
def setup():
    gpus = tf.config.list_physical_devices('GPU')
    try:
        tf.config.set_logical_device_configuration(gpus[0], [])
    except RuntimeError as error:
        print(error)
def main():
    model = keras.applications.ResNet50()
    setup()
    model.fit(x, y)
if __name__ == '__main__':
    main()
""",
        """\
from tensorflow import config
print(len(config.list_logical_devices('GPU')))
config.set_visible_devices([], 'GPU')
""",
        """\
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
[tf.config.experimental.set_memory_growth(g, True) for g in gpus]
""",
    ),
    good=(
        """\
for g in tf.config.list_physical_devices('GPU'):
    tf.config.experimental.set_memory_growth(g, True)
a = tf.constant(1.0)
""",
        """\
def setup():
    for g in tf.config.list_physical_devices('GPU'):
        tf.config.experimental.set_memory_growth(g, True)
def main():
    setup()
    x = tf.zeros([3])
main()
""",
        """\
tf.random.set_seed(1)
tf.config.set_visible_devices([], 'GPU')
x = tf.random.normal([3])
""",
        """\
if fast:
    x = tf.constant(1.0)
else:
    tf.config.set_visible_devices([], 'GPU')
""",
    ),
)
