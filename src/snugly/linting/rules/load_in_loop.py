"""SNG403: a model is loaded in a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snugly.linting.following import is_kept, loop_clears, loop_of, sites
from snugly.linting.kinds import loads_model
from snugly.linting.rule import Alarm, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snugly.linting.program import Program


def check(program: Program) -> Iterator[Alarm]:
    """Loaders inside a loop that does not start afresh."""
    for site in sites(program, lambda call: loads_model(program, call)):
        loop = loop_of(program, site)
        if loop is not None and not loop_clears(program, loop, site):
            if is_kept(program, site):
                continue
            yield Alarm(
                site.call,
                f"a model is loaded in every turn of the loop{site.told()}, and the earlier ones"
                " are not all given back",
            )


RULE = Rule(
    code="SNG403",
    name="load-model-in-loop",
    severity="error",
    check=check,
    bad=(
        """\
for p in paths:
    m = keras.models.load_model(p)
    m.predict(x)
""",
        """\
from tensorflow.keras.models import load_model as load
def score(path):
    net = load(path, compile=False)
    return net.evaluate(x, y)
results = [score(path) for path in paths]
""",
        """\
while not queue.empty():
    served = tf.saved_model.load(queue.get())
    served(x)
""",
        """\
class Server:
    def fetch(self, name):
        return tf.keras.saving.load_model(name)
    def answer(self, requests):
        for request in requests:
            self.fetch('model.keras')(request)
""",
    ),
    good=(
        """\
for p in paths:
    keras.backend.clear_session()
    m = keras.models.load_model(p)
    m.predict(x)
""",
        """\
m = keras.models.load_model('model.keras')
for batch in batches:
    m(batch, training=False)
""",
        """\
class Server:
    def __init__(self):
        self.model = tf.keras.models.load_model('model.keras')
    def answer(self, requests):
        for request in requests:
            self.model(request)
""",
        """\
m = keras.models.load_model('model.keras')
for path in paths:
    m.load_weights(path)
    m.predict(x)
""",
        """\
models = {name: keras.models.load_model(path) for name, path in paths.items()}
""",
        """\
def evaluate(net, restore=True):
    if restore:
        net = keras.models.load_model('best.keras')
    return net
for step in range(steps):
    evaluate(model, restore=False)
""",
    ),
)
