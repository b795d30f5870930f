"""A small run, recorded and predicted, that pages are made of in tests."""

from snugly.devices import Budget
from snugly.graph.model import Kind, Origin
from snugly.predicting import Prediction
from snugly.recording.record import Record
from snugly.timeline import Span, Timeline, parts_of
from snugly.units import Size

MIB = 1 << 20


def make_span(size, kind, name, birth, death, layer=None, line=None, allocated=0):  # noqa: PLR0913, PLR0917 - a span has that many sides
    return Span(size, kind, name, birth, death, Origin(layer, line), allocated)


TIMELINE = Timeline(
    [
        make_span(8 * MIB, Kind.WEIGHT, "dense/kernel", 0, 9, "dense", "train.py:10", 8 * MIB),
        make_span(
            4 * MIB, Kind.ACTIVATION, "model/dense/Relu", 2, 7, "dense", "train.py:12", 5 * MIB
        ),
        make_span(2 * MIB, Kind.GRADIENT, "gradient_tape/MatMul", 4, 6, allocated=2 * MIB),
        make_span(100, Kind.WORKSPACE, "gradient_tape/MatMul", 7, 8, allocated=256),
    ],
    9,
)


def make_record(**fields):
    known = {
        "program": "train.py",
        "device": "CPU:0",
        "peak": Size(15 * MIB),
        "timeline": TIMELINE,
        "notes": ("seen from the second step on",),
        "facts": {"tensorflow": "2.21.0", "command": ["train.py", "--epochs", "1"]},
    }
    return Record(**(known | fields))


def make_prediction(**fields):
    moment, requested = TIMELINE.peak()
    tensors = TIMELINE.tensors_at(moment)
    known = {
        "program": "train.py:model",
        "training": True,
        "peak": Size(15 * MIB),
        "low": Size(14 * MIB),
        "high": Size(17 * MIB),
        "requested": Size(requested),
        "resident": Size(8 * MIB),
        "building": Size(8 * MIB),
        "parts": parts_of(tensors),
        "tensors": tensors,
        "timeline": TIMELINE,
        "budget": Budget(Size(12 * MIB), "measured", "GPU:0", "gpu:0"),
        "peak_where": "backward pass of dense (train.py:12)",
        "suggestions": ("batch_size=21 fits with nothing else changed",),
        "tensorflow": "2.21.0",
        "elapsed": 1.5,
    }
    return Prediction(**(known | fields))
