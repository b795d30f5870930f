"""Models put together at random: shrunk, they give the same answers in the real interpreter."""

import random

import pytest
from tests.lite import micro_models as micro

from snugly.lite import shrink


class Drawing:
    """A model that grows operator by operator, each on a tensor that is drawn."""

    def __init__(self, seed):
        self.draw = random.Random(seed)  # noqa: S311 - the same model each time
        self.kind = self.draw.choice(["INT8", "INT8", "FLOAT32", "INT16"])
        self.model = micro.Model(seed)
        self.tensors = self.model._graph.tensors
        self.known = [self.value(self.shape()) for _ in range(self.draw.randint(1, 2))]
        self.inputs = list(self.known)

    def shape(self):
        return (1, *(self.draw.choice(one) for one in ((4, 7, 12), (4, 6, 12), (1, 3, 8))))

    def value(self, shape, like=None):
        scale = 1.0
        if like is not None and self.kind != "FLOAT32":
            scale = self.tensors[like].quantization.scale[0]
        return self.model.tensor(shape, self.kind, scale=scale)

    def grow(self):
        recent = self.known[-4:] if self.draw.random() < 0.7 else self.known
        given = self.draw.choice(recent)
        name = self.draw.choice([one for one in dir(self) if one.startswith("add_")])
        made = getattr(self, name)(given, self.tensors[given].shape)
        if made is not None:
            self.known.append(made)

    def add_convolution(self, given, shape):
        del shape
        stride, same = self.draw.choice([1, 1, 2]), self.draw.random() < 0.8
        count, side = self.draw.choice([1, 2, 8, 16]), self.draw.choice([1, 3] if same else [1])
        return self.model.convolution(given, count, side, self.kind, stride=stride, same=same)

    def add_depthwise(self, given, shape):
        del shape
        stride = self.draw.choice([1, 2])
        return self.model.depthwise(given, self.draw.choice([1, 2]), 3, self.kind, stride=stride)

    def add_sum(self, given, shape):
        others = [one for one in self.known if self.tensors[one].shape == shape]
        return self.model.add(given, self.draw.choice(others), self.kind)

    def add_gate(self, given, shape):
        stride = max(shape[1:3])
        gate = self.model.convolution(given, shape[3], 1, self.kind, stride=stride)
        output = self.value(shape)
        self.model.operator("MUL", (given, gate), (output,), "MulOptions")
        return output

    def add_padding(self, given, shape):
        amounts = [[0, 0], *([self.draw.randint(0, 2) for _ in "ab"] for _ in "hw"), [0, 1]]
        grown = [size + sum(more) for size, more in zip(shape, amounts, strict=True)]
        output = self.value(grown, given)
        self.model.operator("PAD", (given, self.model.integers(amounts)), (output,))
        return output

    def add_pooling(self, given, shape):
        side, stride = self.draw.choice([2, 3]), self.draw.choice([1, 2])
        sizes = [micro.out_size(one, side, stride, same=True) for one in shape[1:3]]
        output = self.value((1, *sizes, shape[3]), given)
        options = {"strideW": stride, "strideH": stride, "filterWidth": side, "filterHeight": side}
        name = self.draw.choice(["MAX_POOL_2D", "AVERAGE_POOL_2D"])
        self.model.operator(name, (given,), (output,), "Pool2DOptions", **options)
        return output

    def add_activation(self, given, shape):
        output = self.value(shape)
        self.model.operator("RELU", (given,), (output,))
        return output

    def add_reshape(self, given, shape):
        turned = [1, shape[2], shape[1], shape[3]]
        output = self.value(turned, given)
        inputs = (given, self.model.integers(turned))
        self.model.operator("RESHAPE", inputs, (output,), "ReshapeOptions")
        return output

    def add_join(self, given, shape):
        alike = [
            one
            for one in self.known
            if list(self.tensors[one].shape[:3]) == list(shape[:3])
            and (self.kind == "FLOAT32" or self.scale(one) == self.scale(given))
        ]
        other = self.draw.choice(alike)
        output = self.value((*shape[:3], shape[3] + self.tensors[other].shape[3]), given)
        options = {"axis": 3}
        inputs = (given, other)
        self.model.operator("CONCATENATION", inputs, (output,), "ConcatenationOptions", **options)
        return output

    def scale(self, one):
        return self.tensors[one].quantization.scale[0]

    def add_enlarging(self, given, shape):
        if self.kind == "INT16" or max(shape[1:3]) > 12:
            return None
        size = [2 * shape[1], 2 * shape[2]]
        output = self.value((1, *size, shape[3]), given)
        inputs = (given, self.model.integers(size))
        table = "ResizeNearestNeighborOptions"
        self.model.operator("RESIZE_NEAREST_NEIGHBOR", inputs, (output,), table)
        return output

    def finish(self):
        taken = {one for operator in self.model._graph.operators for one in operator.inputs}
        made = self.known[len(self.inputs) :]
        outputs = [one for one in made if one not in taken]
        if self.draw.random() < 0.3:
            outputs.append(self.draw.choice(made))
        return self.model.finish(self.inputs, list(dict.fromkeys(outputs)))


def drawn(seed):
    drawing = Drawing(seed)
    for _ in range(drawing.draw.randint(2, 14)):
        drawing.grow()
    if len(drawing.known) == len(drawing.inputs):
        drawing.known.append(drawing.add_activation(*_first(drawing)))
    return drawing.finish()


def _first(drawing):
    return drawing.known[0], drawing.tensors[drawing.known[0]].shape


@pytest.mark.parametrize("seed", range(60))
def test_a_model_drawn_at_random_answers_as_before(seed):
    # GIVEN a model WHEN it is shrunk for the reference kernels, and for any
    source = drawn(seed)
    before = micro.run(source, 4)
    for kernels in ("reference", "any"):
        shrunk = shrink(source, kernels=kernels, time_limit=1)
        # THEN it answers the same in the arena that was promised, which is no larger
        assert micro.run(shrunk.data, 4, arena=int(shrunk.after.arena)) == before
        assert shrunk.after.arena <= shrunk.before.arena


def test_orders_and_plans_are_both_among_them():
    applied = {
        step.name for seed in range(20) for step in shrink(drawn(seed)).steps if step.applied
    }
    assert applied == {"offline plan", "operator order"}
