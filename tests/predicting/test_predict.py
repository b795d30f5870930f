"""The whole answer on small programs, against numbers worked out by hand."""

import pytest

import snugly
from snugly.devices import Budget
from snugly.errors import InputError
from snugly.predicting.prediction import Prediction
from snugly.predicting.suggest import suggest_batch_size
from snugly.units import Size

tensorflow_tests = pytest.mark.tensorflow


def prediction(high: int, budget: int, low: int | None = None) -> Prediction:
    return Prediction(
        program="p",
        training=True,
        peak=Size(high),
        low=Size(high if low is None else low),
        high=Size(high),
        requested=Size(high),
        resident=Size(0),
        building=Size(0),
        parts={},
        tensors=(),
        budget=Budget(Size(budget), "assumed", "the stated budget"),
    )


@pytest.fixture(scope="module")
def dense():
    keras = pytest.importorskip("keras", reason="needs TensorFlow")
    model = keras.Sequential(
        [
            keras.layers.Input((256,)),
            keras.layers.Dense(512, name="hidden"),
            keras.layers.Dense(4, name="scores"),
        ],
        name="dense",
    )
    model.compile("adam", "mse")
    return model


@tensorflow_tests
def test_a_training_step_is_made_of_what_it_must_be_made_of(dense):
    # GIVEN two dense layers with Adam, WHEN a training step is predicted
    said = snugly.predict(dense, batch_size=8, training=True)
    # THEN weights and two slots for each are resident, with a few scalars beside them
    weights = 4 * (256 * 512 + 512 + 512 * 4 + 4)
    assert 3 * weights <= said.resident <= 3 * weights + 4096
    # AND the parts are what was requested, the peak holds it, the range holds the peak
    assert sum(said.parts.values()) == said.requested
    assert said.low <= said.peak <= said.high
    assert said.requested <= said.peak
    assert {"weight", "optimizer", "gradient"} <= set(said.parts)
    assert said.tensors[0].bytes >= said.tensors[-1].bytes
    assert "hidden" in {tensor.layer for tensor in said.tensors if tensor.kind == "weight"}
    assert said.peak_where


@tensorflow_tests
def test_the_same_program_gets_the_same_answer(dense):
    assert snugly.predict(dense, batch_size=8).peak == snugly.predict(dense, batch_size=8).peak


@tensorflow_tests
def test_the_verdict_follows_the_range(dense):
    # GIVEN the range of a prediction
    said = snugly.predict(dense, batch_size=8, training=True)
    # WHEN budgets above, below and inside it are given, THEN the verdict says so
    assert said.verdict is None
    above = snugly.predict(dense, batch_size=8, training=True, memory=int(said.high))
    assert above.verdict == "fits"
    assert not above.suggestions
    below = snugly.predict(dense, batch_size=8, training=True, memory=int(said.low) - 1)
    assert below.verdict == "does-not-fit"
    inside = snugly.predict(dense, batch_size=8, training=True, memory=int(said.peak))
    assert inside.verdict == "uncertain"
    assert inside.suggestions


@tensorflow_tests
def test_a_compiled_step_is_what_xla_says(dense):
    # GIVEN the same step, WHEN XLA compiles it as a whole
    said = snugly.predict(dense, batch_size=8, training=True, jit_compile=True)
    # THEN there is one launch, and its scratch holds at least the largest gradient
    assert {tensor.op for tensor in said.tensors if tensor.kind == "workspace"} == {"XlaLaunch"}
    assert said.parts["workspace"] >= 4 * 256 * 512
    # AND the runtime of that name means the same
    again = snugly.predict(dense, batch_size=8, training=True, runtime="xla")
    assert again.peak == said.peak
    # AND the model is still as it was: nothing was built, nothing compiled
    assert not dense.optimizer.built


@pytest.mark.parametrize("batch_size", [0, -3])
def test_a_batch_has_at_least_one_example(batch_size):
    with pytest.raises(InputError, match="at least 1"):
        snugly.predict("nothing.keras", batch_size=batch_size)


def test_a_runtime_that_is_not_for_this_program_is_refused():
    with pytest.raises(InputError, match="'micro'"):
        snugly.predict("nothing.keras", runtime="micro")


def test_the_largest_batch_that_fits_is_found_by_a_line_and_confirmed():
    # GIVEN memory of 100 + 10 a batch, and a budget of 255
    asked: list[int] = []

    def at(size: int) -> Prediction:
        asked.append(size)
        return prediction(100 + 10 * size, 255)

    # WHEN 32 does not fit
    hints = suggest_batch_size(at(32), 32, at)
    # THEN 15 does, and was predicted before it was said
    assert hints == ("batch_size=15 fits with nothing else changed",)
    assert asked == [32, 1, 15]


def test_a_candidate_that_does_not_fit_is_not_suggested():
    # GIVEN memory that grows faster than a line foresees
    def at(size: int) -> Prediction:
        return prediction(100 + size * size, 300)

    # WHEN the line's candidates do not fit, THEN something smaller that does is said
    (hint,) = suggest_batch_size(at(32), 32, at)
    said = int(hint.partition("=")[2].partition(" ")[0])
    assert at(said).verdict == "fits"


def test_where_not_even_one_example_fits_that_is_said():
    (hint,) = suggest_batch_size(prediction(900, 100), 32, lambda _: prediction(500, 100))
    assert "not even batch_size=1" in hint
    (hint,) = suggest_batch_size(prediction(900, 100), 1, lambda _: prediction(900, 100))
    assert "not even one example" in hint
