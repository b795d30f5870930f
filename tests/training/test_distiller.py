"""A student that learns from a teacher: what it learns, what it leaves alone, what it saves."""

import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers, ops

import snugly
from snugly.errors import InputError
from snugly.training import Distiller
from snugly.training.compression.softening import are_logits

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
]


def network(width, activation=None, classes=3, **options):
    entry = keras.Input((6,))
    x = layers.Dense(width, "relu", **options)(entry)
    x = layers.BatchNormalization()(x)
    x = layers.Dropout(0.3)(x)
    return keras.Model(entry, layers.Dense(classes, activation)(x))


def examples(count=64):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(count, 6)).astype("float32")
    return x, generator.integers(0, 3, count)


def step(distiller, *data, **options):
    """The loss of one step of training."""
    return float(distiller.train_on_batch(*data, **options)[0])


def softmax(x, temperature=1.0):
    e = np.exp((x - x.max(-1, keepdims=True)) / temperature)
    return e / e.sum(-1, keepdims=True)


def values_of(model):
    return [weight.numpy() for weight in model.weights]


def test_the_loss_is_that_of_the_data_and_of_softened_classes():
    # GIVEN a student without dropout, so that its outputs in training are known
    keras.utils.set_random_seed(0)
    student = keras.Sequential([keras.Input((6,)), layers.Dense(3, kernel_regularizer="l2")])
    teacher = network(16, "softmax")
    x, y = examples()
    weights = np.random.default_rng(1).uniform(0.5, 2, 64).astype("float32")
    logits, answers = student(x).numpy(), teacher(x, training=False).numpy()
    # WHEN one step is made
    distiller = Distiller(student, teacher, alpha=0.25, temperature=2.0)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    distiller.compile(keras.optimizers.SGD(0.1), loss)
    regular = 0.01 * (student.layers[0].kernel.numpy() ** 2).sum()
    found = step(distiller, x, y, sample_weight=weights)
    # THEN its loss is what the definition says, weighted by example, regularised in full
    hard = -np.log(softmax(logits)[np.arange(64), y])
    wanted, given = softmax(np.log(answers), 2.0), softmax(logits, 2.0)
    soft = 4 * (wanted * (np.log(wanted) - np.log(given))).sum(-1)
    expected = np.mean(weights * (0.25 * hard + 0.75 * soft)) + regular
    assert found == pytest.approx(expected, rel=1e-4)


def test_yes_or_no_and_numbers_have_their_losses():
    x, _ = examples()
    y = np.random.default_rng(2).integers(0, 2, (64, 3)).astype("float32")
    keras.utils.set_random_seed(0)
    teacher, student = network(8, "sigmoid"), keras.Sequential([keras.Input((6,)), layers.Dense(3)])
    z, p = student(x).numpy(), teacher(x, training=False).numpy()
    distiller = Distiller(student, teacher, alpha=0, temperature=3.0)
    distiller.compile("sgd", keras.losses.BinaryCrossentropy(from_logits=True))
    wanted = 1 / (1 + np.exp(-np.log(p / (1 - p)) / 3))
    given = 1 / (1 + np.exp(-z / 3))
    soft = wanted * np.log(wanted / given) + (1 - wanted) * np.log((1 - wanted) / (1 - given))
    assert step(distiller, x, y) == pytest.approx(9 * soft.mean(), rel=1e-3)
    student = keras.Sequential([keras.Input((6,)), layers.Dense(3)])
    expected = np.mean((student(x).numpy() - p) ** 2)
    distiller = Distiller(student, teacher, alpha=0)
    distiller.compile("sgd", "mse")
    assert step(distiller, x, y) == pytest.approx(expected, rel=1e-4)


def test_a_student_comes_to_agree_with_its_teacher_and_the_teacher_stays():
    keras.utils.set_random_seed(0)
    teacher, student = network(64), network(16)
    before = values_of(teacher)
    trainable = [weight.trainable for weight in teacher.weights]
    x, _ = examples(512)
    answers = teacher(x, training=False).numpy().argmax(-1)
    distiller = Distiller(student, teacher, alpha=0.0, temperature=2.0)
    distiller.compile(
        keras.optimizers.Adam(0.02),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    # The labels are wrong on purpose: with alpha=0 only the teacher is heard.
    history = distiller.fit(x, (answers + 1) % 3, epochs=30, verbose=0).history
    assert {"loss", "accuracy", "student_loss", "teacher_loss"} == set(history)
    found = distiller.predict(x, verbose=0).argmax(-1)
    assert np.mean(found == answers) > 0.75  # by chance, a third
    for weight, value in zip(teacher.weights, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value)
    assert [weight.trainable for weight in teacher.weights] == trainable
    owned = {id(weight) for weight in distiller.weights}
    assert owned.isdisjoint(id(weight) for weight in teacher.weights)


def test_it_is_evaluated_and_asked_as_the_student_alone():
    keras.utils.set_random_seed(0)
    teacher, student = network(8, "softmax"), network(4, "softmax")
    x, y = examples()
    distiller = Distiller(student, teacher)
    distiller.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    student.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    found = distiller.evaluate(x, y, verbose=0, return_dict=True)
    assert found == pytest.approx(student.evaluate(x, y, verbose=0, return_dict=True), rel=1e-5)
    np.testing.assert_allclose(
        distiller.predict(x, verbose=0), student.predict(x, verbose=0), rtol=1e-6
    )
    history = distiller.fit(x, y, validation_data=(x, y), verbose=0).history
    assert "val_loss" in history
    assert "val_teacher_loss" not in history


def test_what_is_saved_is_the_student_alone(tmp_path):
    teacher, student = network(8, "softmax"), network(4, "softmax")
    x, y = examples()
    distiller = Distiller(student, teacher)
    distiller.compile("adam", "sparse_categorical_crossentropy")
    best = keras.callbacks.ModelCheckpoint(tmp_path / "best.keras", monitor="loss")
    distiller.fit(x, y, verbose=0, callbacks=[best])
    distiller.save(tmp_path / "student.keras")
    distiller.save_weights(tmp_path / "student.weights.h5")
    for name in ("best.keras", "student.keras"):
        loaded = keras.models.load_model(tmp_path / name)
        assert loaded.count_params() == student.count_params()
        np.testing.assert_allclose(loaded(x), student(x), rtol=1e-5)
    other = network(4, "softmax")
    other.load_weights(tmp_path / "student.weights.h5")
    np.testing.assert_allclose(other(x), student(x), rtol=1e-5)
    again = Distiller(network(4, "softmax"), teacher)
    again.load_weights(tmp_path / "student.weights.h5")
    np.testing.assert_allclose(again(x), student(x), rtol=1e-5)
    with pytest.raises(InputError, match="no configuration") as problem:
        distiller.get_config()
    assert problem.value.code == "SNG535"


def test_half_precision_is_compared_in_float32_and_its_losses_are_scaled():
    teacher = network(8)
    keras.config.set_dtype_policy("mixed_float16")
    try:
        student = network(4)
    finally:
        keras.config.set_dtype_policy("float32")
    distiller = Distiller(student, teacher)
    distiller.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    assert isinstance(distiller.optimizer, keras.optimizers.LossScaleOptimizer)
    x, y = examples()
    history = distiller.fit(x, y, epochs=3, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert student(x).dtype.name == "float16"


def test_a_student_that_builds_its_graph_as_it_runs_learns_too():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(3)

        def call(self, x):
            return self.dense(x)

    teacher = network(8)
    student = Own()
    distiller = Distiller(student, teacher, alpha=0.5)
    distiller.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = examples()
    assert np.isfinite(distiller.fit(x, y, verbose=0).history["loss"]).all()
    assert len(student.trainable_weights) == 2


def test_a_loss_of_ones_own_compares_raw_outputs():
    x, y = examples()
    teacher, student = network(8), keras.Sequential([keras.Input((6,)), layers.Dense(3)])
    wanted = np.abs(teacher(x, training=False).numpy() - student(x).numpy()).max(-1).mean()

    def largest(one, other):
        return ops.max(ops.abs(one - other), axis=-1)

    distiller = Distiller(student, teacher, alpha=0, distillation_loss=largest)
    distiller.compile("sgd")
    assert step(distiller, x, y) == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("options", [{}, {"run_eagerly": True}, {"jit_compile": True}])
def test_named_inputs_and_datasets_are_learnt_from_however_steps_are_run(options, tmp_path):
    def two_inputs(width):
        left, right = keras.Input((6,), name="left"), keras.Input((2,), name="right")
        x = layers.Dense(width, "relu")(layers.Concatenate()([left, right]))
        return keras.Model({"left": left, "right": right}, layers.Dense(3, "softmax")(x))

    keras.utils.set_random_seed(0)
    x, y = examples()
    given = {"left": x, "right": x[:, :2]}
    distiller = Distiller(two_inputs(4), two_inputs(16))
    distiller.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", **options)
    dataset = tf.data.Dataset.from_tensor_slices((given, y)).batch(16)
    history = distiller.fit(
        dataset, shuffle=False, epochs=4, verbose=0, class_weight={0: 1.0, 1: 2.0, 2: 1.0}
    )
    assert history.history["loss"][-1] < history.history["loss"][0]
    distiller.save(tmp_path / "student.keras")
    loaded = keras.models.load_model(tmp_path / "student.keras")
    np.testing.assert_array_equal(loaded(given), distiller.student(given))


def test_layers_of_the_teacher_may_be_the_students_where_they_are_frozen():
    entry, shared = keras.Input((6,)), layers.Dense(4, "relu", name="shared")
    teacher = keras.Model(entry, layers.Dense(3)(shared(entry)))
    shared.trainable = False
    student = keras.Model(entry, layers.Dense(3)(shared(entry)))
    before = values_of(teacher)
    distiller = Distiller(student, teacher)
    distiller.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    distiller.fit(*examples(), verbose=0)
    for weight, value in zip(teacher.weights, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value)


def test_weights_that_are_not_there_yet_are_not_counted_as_none():
    class Own(keras.Model):
        def __init__(self):
            super().__init__(name="own")
            self.dense = layers.Dense(3)

        def call(self, x):
            return self.dense(x)

    distiller = Distiller(Own(), network(8))
    distiller.compile("adam", "mse")
    x = np.zeros((4, 6), "float32")
    with pytest.raises(InputError, match="own is not built") as problem:
        distiller.plan(x, np.zeros((4, 3), "float32"))
    assert problem.value.code == "SNG103"
    # AND once it was called they are
    distiller.student(x)
    assert distiller.plan(x, np.zeros((4, 3), "float32")).student.parameters == 6 * 3 + 3


def test_the_plan_counts_the_teacher_before_anything_runs():
    teacher, student = network(4096, "softmax"), network(64, "softmax")
    distiller = Distiller(student, teacher)
    distiller.compile("adam", "sparse_categorical_crossentropy")
    plan = distiller.plan(batch_size=32)
    assert plan.teacher.weights == 4 * teacher.count_params()
    assert plan.student.weights == 4 * student.count_params()
    alone = network(64, "softmax")
    alone.compile("adam", "sparse_categorical_crossentropy")
    without = snugly.predict(alone, batch_size=32, training=True)
    assert plan.step.resident >= without.resident + plan.teacher.weights
    assert plan.step.peak > without.peak + plan.teacher.weights
    assert plan.safety == "changes-training"
    text = str(plan)
    assert "teacher's weights" in text
    assert "predicted" in text
    assert distiller.plan(batch_size=32, memory="100KiB").step.verdict == "does-not-fit"


def test_what_a_model_gives_is_read_from_its_last_layer():
    inner = network(4, "softmax")
    entry = keras.Input((6,))
    assert are_logits(network(4)) is True
    assert are_logits(keras.Model(entry, inner(entry))) is False
    assert are_logits(keras.Model(entry, layers.Softmax()(network(4)(entry)))) is False
    linear = layers.Activation("linear", dtype="float32")(network(4)(entry))
    assert are_logits(keras.Model(entry, linear)) is True
    assert are_logits(keras.Model(entry, layers.BatchNormalization()(entry))) is None


def two_outputs():
    entry = keras.Input((6,))
    return keras.Model(entry, [layers.Dense(3)(entry), layers.Dense(3)(entry)])


def wider_input():
    entry = keras.Input((9,))
    return keras.Model(entry, layers.Dense(3)(entry))


def taught_by_itself(student):
    entry = keras.Input((6,))
    return Distiller(student, keras.Model(entry, layers.Activation("tanh")(student(entry))))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Distiller(two_outputs(), network(4)), "student .* has 2 outputs"),
        (lambda: Distiller(network(4), two_outputs()), "teacher .* has 2 outputs"),
        (lambda: Distiller(network(4), network(4, classes=5)), "gives .*5.* and the student .*3"),
        (lambda: Distiller(network(4), network(4), alpha=2), "alpha must be"),
        (lambda: Distiller(network(4), network(4), alpha="half"), "alpha must be"),
        (lambda: Distiller(network(4), network(4), temperature=0), "temperature must be"),
        (lambda: Distiller(network(4), network(4), temperature=float("nan")), "temperature must"),
        (lambda: Distiller(network(4), wider_input()), "teacher takes .*9.* and the student .*6"),
        (lambda: taught_by_itself(network(4)), "both have dense.*kernel and 5 weights more"),
        (lambda: Distiller(network(4), "teacher.keras"), "teacher must be a Keras model"),
        (lambda: Distiller(network(4), network(4)).compile("adam"), "no loss"),
        (lambda: Distiller(network(4), network(4), alpha=0).compile("adam"), "without a loss"),
        (lambda: Distiller(network(4), network(4)).compile("adam", "poisson"), "does not say"),
        (lambda: Distiller(network(4), network(4)).compile("adam", ["mse", "mse"]), "one loss"),
    ],
)
def test_what_cannot_be_taught_is_refused(make, message):
    with pytest.raises(InputError, match=message) as problem:
        make()
    assert problem.value.code == "SNG534"


def test_a_model_is_not_its_own_teacher():
    model = network(4)
    with pytest.raises(InputError, match="its own teacher"):
        Distiller(model, model)


def test_the_names_are_there_without_tensorflow_being_loaded():
    code = "import snugly.training as t, sys; t.__all__; assert 'tensorflow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
