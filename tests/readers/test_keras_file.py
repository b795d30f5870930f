"""`.keras` files: untrusted input, read from their configuration alone."""

import json
import zipfile

import keras
import pytest
import tensorflow as tf

from snugly.errors import UnreadableProgramError, UnsafeProgramError
from snugly.readers.keras_file import LARGEST_CONFIGURATION

pytestmark = [
    pytest.mark.tensorflow,
    # Keras's own saving of TensorFlow's variables, with NumPy 2.
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword"),
]

FLOAT = 4


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model that was trained and saved, with a loss given as a function."""
    inputs = keras.Input((4,), name="x")
    outputs = keras.layers.Dense(3, keras.activations.gelu)(keras.ops.sin(inputs) * 2)
    model = keras.Model(inputs, outputs, name="saved")
    model.compile("adam", keras.losses.mean_squared_error, metrics=["mae"])
    path = tmp_path_factory.mktemp("saved") / "model.keras"
    model.save(path)
    return path


@pytest.fixture
def write(tmp_path):
    """Write a `.keras` file around a configuration."""

    def write(configuration, name="config.json"):
        path = tmp_path / "model.keras"
        text = configuration if isinstance(configuration, str) else json.dumps(configuration)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, text)
        return path

    return write


def configuration_of(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("config.json"))


def test_a_saved_model_is_read_without_its_weights(read, look, saved, write):
    reading = read(saved, batch_size=2)
    assert reading.name == "model.keras"
    assert look(reading).resident >= (4 * 3 + 3) * FLOAT
    assert look(reading).inputs == 2 * 4 * FLOAT
    # The configuration alone gives the same.
    alone = read(write(configuration_of(saved)), batch_size=2)
    assert look(alone).made == look(reading).made


def test_it_trains_as_it_was_compiled(read, look, saved):
    seen = look(read(str(saved), batch_size=2, training=True))
    assert seen.inputs == 2 * (4 + 3) * FLOAT
    assert seen.resident >= 3 * (4 * 3 + 3) * FLOAT  # weights, and two slots for each


def broken(path, kind):
    content = path.read_bytes()
    path.write_bytes({"cut": content[: len(content) // 2], "text": b"not a zip", "": b""}[kind])
    return path


@pytest.mark.parametrize("kind", ["cut", "text", ""])
def test_a_damaged_file_is_said_to_be_damaged(read, write, kind):
    with pytest.raises(UnreadableProgramError) as caught:
        read(broken(write({"class_name": "Sequential"}), kind))
    assert "model.keras is not a .keras file, or is damaged" in caught.value.message
    assert "model.save" in caught.value.hint
    assert "\n" not in caught.value.message


def test_bytes_changed_inside_are_noticed(read, saved, tmp_path):
    content = bytearray(saved.read_bytes())
    start = content.find(b"config.json") + 40
    content[start : start + 20] = b"\xff" * 20
    path = tmp_path / "model.keras"
    path.write_bytes(content)
    with pytest.raises(UnreadableProgramError):
        read(path, batch_size=1)


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        ("[1, 2]", "holds no model: its configuration is not an object"),
        ("null", "holds no model: its configuration is not an object"),
        ("", "holds no model: its configuration is not an object"),
        ("{", "is damaged"),
        ("[" * 100_000, "is damaged"),
        ("{}", "holds no model: its configuration is that of a dict"),
        ({"class_name": "Dense"}, "holds no model"),
        ({"module": "keras.layers", "class_name": "Dense", "config": {"units": 3}}, "of a Dense"),
        ({"module": "keras.layers", "class_name": "Dense", "config": 7}, "Keras cannot rebuild"),
        ({"module": "keras", "class_name": "NoSuch", "config": {}}, "Keras cannot rebuild"),
        (
            {"module": "keras", "class_name": "Sequential", "config": {"layers": [{}]}},
            "Keras cannot rebuild",
        ),
    ],
)
def test_a_configuration_of_the_wrong_kind_is_refused(read, write, configuration, message):
    with pytest.raises(UnreadableProgramError) as caught:
        read(write(configuration), batch_size=1)
    assert message in caught.value.message
    assert caught.value.hint
    assert "\n" not in caught.value.message


def test_a_file_without_a_configuration_is_refused(read, write):
    with pytest.raises(UnreadableProgramError, match=r"config\.json"):
        read(write({}, name="metadata.json"))


def test_a_configuration_larger_than_any_models_is_not_read(read, tmp_path):
    path = tmp_path / "model.keras"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("config.json", "w") as file,
    ):
        for _ in range(LARGEST_CONFIGURATION >> 20):
            file.write(bytes(1 << 20))
        file.write(b" ")
    assert path.stat().st_size < 1 << 20  # a bomb is small
    with pytest.raises(UnreadableProgramError, match="is larger than any model's"):
        read(path)


def test_a_compilation_that_makes_no_sense_is_refused(read, write, saved):
    configuration = configuration_of(saved)
    configuration["compile_config"]["optimizer"] = {"class_name": "NoSuch", "config": {}}
    with pytest.raises(UnreadableProgramError, match="Keras cannot compile"):
        read(write(configuration), batch_size=1)


# Code.


@pytest.fixture
def lambda_file(tmp_path):
    """A model with a lambda that leaves a trace when it runs. Gives the file and the trace."""
    trace = tmp_path / "it-ran"
    target = str(trace)
    model = keras.Sequential(
        [
            keras.Input((4,)),
            # A Path, or a module, would not be saved with the lambda.
            keras.layers.Lambda(lambda x: (open(target, "w").close(), x * 2)[1]),  # noqa: PTH123
        ]
    )
    path = tmp_path / "lambda.keras"
    model.save(path)
    trace.unlink()  # it ran when the model was built, which shows that it does
    return path, trace


def test_a_lambda_is_refused_and_never_run(read, lambda_file):
    path, trace = lambda_file
    with pytest.raises(UnsafeProgramError) as caught:
        read(path, batch_size=1)
    assert caught.value.message == "lambda.keras carries Python code in a Lambda layer"
    assert "--allow-code" in caught.value.hint
    assert not trace.exists()


def test_a_lambda_runs_when_that_is_allowed(read, look, lambda_file):
    path, trace = lambda_file
    seen = look(read(path, batch_size=2, allow_code=True))
    assert "Mul" in seen.types
    assert trace.exists()


def layer(**parts):
    inner = {"module": "keras.layers", "class_name": "Dense", "config": {"units": 2}} | parts
    start = {
        "module": "keras.layers",
        "class_name": "InputLayer",
        "config": {"batch_shape": [None, 4]},
    }
    layers = {"name": "model", "layers": [start, inner]}
    return {"module": "keras", "class_name": "Sequential", "config": layers}


def activation(module, name):
    function = {"module": module, "class_name": "function", "config": name}
    return layer(config={"units": 2, "activation": function | {"registered_name": name}})


@pytest.mark.parametrize(
    "configuration",
    [
        layer(module="os", class_name="system"),
        layer(module="my_package.layers", class_name="Mine"),
        layer(module="keras.utils", class_name="get_file"),
        layer(module="kerasevil", class_name="Dense"),
        layer(module="builtins", class_name="eval"),
        layer(module=["os"], class_name="system"),
        activation("os", "system"),
        activation("builtins", "eval"),
        activation("builtins", "exec"),
        activation("keras.utils", "get_file"),
        activation("keras.saving", "load_model"),
        activation(None, "system"),
        layer(config={"units": 2, "activation": {"class_name": "__lambda__", "config": {}}}),
    ],
)
def test_code_that_is_not_a_models_is_refused(read, write, configuration):
    with pytest.raises(UnsafeProgramError) as caught:
        read(write(configuration), batch_size=1)
    assert "--allow-code" in caught.value.hint


@pytest.mark.parametrize(
    "configuration",
    [layer(), activation("builtins", "relu"), activation("keras.activations", "relu")],
)
def test_code_that_is_keras_own_is_not_refused(read, look, write, configuration):
    configuration["config"]["layers"][1]["config"].setdefault("activation", "relu")
    assert look(read(write(configuration), batch_size=3)).outputs == 3 * 2 * FLOAT


def test_a_custom_layer_is_taken_from_its_module_when_that_is_allowed(read, look, tmp_path):
    @keras.saving.register_keras_serializable("tests")
    class Scale(keras.layers.Layer):
        def call(self, x):
            return tf.sin(x)

    path = tmp_path / "custom.keras"
    keras.Sequential([keras.Input((4,)), Scale()]).save(path)
    with pytest.raises(UnsafeProgramError, match="'Scale' of"):
        read(path, batch_size=1)
    assert look(read(path, batch_size=1, allow_code=True)).types == ["Sin"]
