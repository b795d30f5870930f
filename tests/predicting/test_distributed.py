"""Training under a strategy: what a replica, a worker and a server are said to need."""

import json
import subprocess
import sys

import pytest

import snugly
from snugly.errors import InputError, UnpredictableProgramError

tensorflow_tests = pytest.mark.tensorflow

KERNEL, BIAS, SCORES = 4 * 256 * 512, 4 * 512, 4 * (512 * 4 + 4)
WEIGHTS = KERNEL + BIAS + SCORES


def build(**options):
    keras = pytest.importorskip("keras", reason="needs TensorFlow")
    model = keras.Sequential(
        [keras.layers.Input((256,)), keras.layers.Dense(512), keras.layers.Dense(4)], name="dense"
    )
    model.compile("adam", "mse", **options)
    return model


@pytest.fixture(scope="module")
def dense():
    return build()


@tensorflow_tests
def test_a_replica_has_its_share_of_the_batch_and_all_gradients_at_once(dense):
    # GIVEN four replicas and a batch that does not divide
    said = snugly.predict(dense, batch_size=30, training=True, strategy="multiworker:2x2")
    alone = snugly.predict(dense, batch_size=8, training=True)
    found = said.distribution
    # THEN the largest share is predicted, and said
    assert (found.batch_size, found.batch_size_per_replica, found.is_even) == (30, 8, False)
    # AND the gradients are packed, reduced in pieces of which three come from others, and unpacked
    assert found.exchange["packed"] == WEIGHTS
    assert 0.75 * WEIGHTS <= found.exchange["received"] <= 0.75 * WEIGHTS + 3 * 64
    assert found.exchange["unpacked"] == WEIGHTS
    # AND what is resident is what one device alone has, what one step adds is more
    assert abs(said.resident - alone.resident) < 1024
    assert said.requested >= alone.resident + 2 * WEIGHTS
    assert said.peak > alone.peak
    assert said.parts["gradient"] >= 2 * WEIGHTS
    # AND a worker has two of them
    assert found.worker.peak == 2 * found.replica.peak
    assert found.worker.high == 2 * said.high
    assert said.low < found.worker.low < 2 * said.low


@tensorflow_tests
def test_smaller_packs_are_reduced_one_by_one(dense):
    from snugly.predicting.strategies import Strategy

    # GIVEN packs that are closed once they have more than a byte
    small = Strategy("mirrored", devices=2, bytes_per_pack=1)
    said = snugly.predict(dense, batch_size=8, training=True, strategy=small)
    whole = snugly.predict(dense, batch_size=8, training=True, strategy="mirrored:2")
    # THEN every gradient goes by itself, without a copy on either side
    assert said.distribution.exchange["packed"] == WEIGHTS
    assert said.distribution.exchange["unpacked"] == 0
    assert said.peak < whole.peak


@tensorflow_tests
def test_nccl_keeps_its_buffers_elsewhere_and_that_is_said(dense):
    given = {"batch_size": 8, "training": True, "device": "v100-16gb"}
    mirrored = snugly.predict(dense, strategy="mirrored:2", **given)
    assert mirrored.distribution.exchange["received"] == 0
    assert any("NCCL" in note for note in mirrored.notes)
    assert mirrored.distribution.exchange["packed"] == WEIGHTS
    # AND between machines TensorFlow takes a ring, and gRPC
    several = snugly.predict(dense, strategy="multiworker:2x1", **given)
    assert several.distribution.exchange["received"] >= WEIGHTS // 2
    assert any("gRPC" in note for note in several.notes)
    # AND a range without XLA is narrower than one that stands in for it
    plain = snugly.predict(dense, strategy="mirrored:2", jit_compile=False, **given)
    assert plain.high < mirrored.high


@tensorflow_tests
def test_one_replica_exchanges_nothing(dense):
    said = snugly.predict(dense, batch_size=8, training=True, strategy="mirrored:1")
    alone = snugly.predict(dense, batch_size=8, training=True)
    assert said.peak == alone.peak
    assert not any(said.distribution.exchange.values())


@tensorflow_tests
def test_variables_are_with_the_servers(dense):
    # GIVEN two servers: kernels on one, biases on the other
    said = snugly.predict(dense, batch_size=8, training=True, strategy="parameter-server:3x2")
    first, second = said.distribution.parameter_servers
    # THEN a worker keeps nothing between steps, receives every weight, and may at worst have
    # gradients beside them that wait for the network
    assert said.resident < 1024
    received = [span.bytes for span in said.timeline.spans if span.kind == "weight"]
    assert sum(received) >= WEIGHTS
    assert said.high >= said.peak + WEIGHTS
    # AND a batch is a worker's own
    assert said.distribution.batch_size_per_replica == 8
    # AND a server has its variables with their slots, at worst three gradients at a time
    assert first.low >= 3 * KERNEL
    assert first.high >= 3 * KERNEL + 3 * KERNEL
    assert 3 * BIAS <= second.low < second.high < KERNEL


@tensorflow_tests
def test_servers_of_a_model_that_is_yet_to_be_built_may_get_any_variable(tmp_path):
    pytest.importorskip("keras", reason="needs TensorFlow")
    # GIVEN a script, of which nobody knows in which order it makes variables
    script = tmp_path / "train.py"
    script.write_text(
        "import keras\n"
        "def build():\n"
        "    model = keras.Sequential([keras.layers.Input((256,)), keras.layers.Dense(512)])\n"
        "    model.compile('adam', 'mse')\n"
        "    return model\n"
    )
    said = snugly.predict(
        f"{script}:build", batch_size=8, training=True, strategy="parameter-server:2x2"
    )
    # THEN each server may have everything or nothing, and that is said
    first, second = said.distribution.parameter_servers
    assert first == second
    assert first.low == 0
    assert first.high >= 3 * (KERNEL + BIAS) + 2 * KERNEL
    assert any("holds any order" in note for note in said.notes)


@tensorflow_tests
def test_a_sparse_gradient_is_gathered_from_all_replicas():
    keras = pytest.importorskip("keras", reason="needs TensorFlow")
    model = keras.Sequential(
        [
            keras.layers.Input((64,), dtype="int32"),
            keras.layers.Embedding(500, 64),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(4),
        ]
    )
    model.compile("sgd", "mse")
    few, many = (
        snugly.predict(model, batch_size=8 * count, training=True, strategy=f"mirrored:{count}")
        for count in (2, 8)
    )
    # 8 examples of 64 tokens, 64 floats each: that many rows from every further replica
    assert many.requested - few.requested >= 6 * 8 * 64 * 64 * 4
    assert many.distribution.exchange["packed"] < 500 * 64 * 4


@tensorflow_tests
def test_the_verdict_and_the_suggestion_are_about_one_replica(dense):
    budget = snugly.predict(dense, batch_size=8, training=True, strategy="mirrored:4").high
    fits = snugly.predict(dense, batch_size=8, training=True, strategy="mirrored:4", memory=budget)
    assert fits.verdict == "fits"
    tight = snugly.predict(
        dense, batch_size=40_000, training=True, strategy="mirrored:4", memory=budget
    )
    assert tight.verdict == "does-not-fit"
    assert tight.suggestions[0].startswith("batch_size=")


@tensorflow_tests
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 8}, "inference was asked for"),
        ({"training": True}, "known only from the batch size"),
        ({"training": True, "batch_size": 8, "jit_compile": True}, "what XLA makes"),
        ({"training": True, "batch_size": 8, "runtime": "xla"}, "what XLA makes"),
        ({"training": True, "batch_size": 8, "strategy": "mirrored"}, "cannot read the strategy"),
    ],
)
def test_what_cannot_be_spread_is_refused(dense, options, message):
    with pytest.raises(InputError, match=message) as caught:
        snugly.predict(dense, **({"strategy": "mirrored:2"} | options))
    assert caught.value.code == "SNG109"


def test_a_tflite_file_is_refused_before_it_is_opened():
    with pytest.raises(InputError, match=r"\.tflite file does not train") as caught:
        snugly.predict("nowhere.tflite", training=True, batch_size=8, strategy="mirrored:2")
    assert caught.value.code == "SNG109"


@tensorflow_tests
def test_an_example_must_leave_its_batch_open(dense):
    tf = pytest.importorskip("tensorflow", reason="needs TensorFlow")
    given = {"batch_size": 8, "training": True, "strategy": "mirrored:2"}
    with pytest.raises(InputError, match="no batch to divide"):
        snugly.predict(dense, tf.TensorSpec((8, 256)), **given)
    opened = snugly.predict(dense, tf.TensorSpec((None, 256)), **given)
    assert opened.peak == snugly.predict(dense, **given).peak


@tensorflow_tests
def test_a_step_without_gradients_is_not_guessed_at():
    tf = pytest.importorskip("tensorflow", reason="needs TensorFlow")
    spec = tf.TensorSpec((None, 8))
    given = {"batch_size": 8, "training": True}
    for strategy in ("mirrored:2", "parameter-server:2x1"):
        with pytest.raises(UnpredictableProgramError, match="no gradients"):
            snugly.predict(tf.function(lambda x: x * 2.0), spec, strategy=strategy, **given)


OBJECTS = """
import json, sys
import tensorflow as tf, keras, snugly
from snugly.errors import InputError
from snugly.predicting.strategies import strategy_from

(processor,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()] * 2)

def build():
    model = keras.Sequential([keras.layers.Input((256,)), keras.layers.Dense(64)])
    model.compile("adam", "mse")
    return model

strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    model = build()
    try:
        snugly.predict(model, batch_size=8, training=True, strategy=strategy)
    except InputError as error:
        inside = [error.code, error.hint]
given = {"batch_size": 8, "training": True}
peaks = [
    int(snugly.predict(model, strategy=strategy, **given).peak),
    int(snugly.predict(build(), strategy="mirrored:2", **given).peak),
]
model.fit(tf.zeros((8, 256)), tf.zeros((8, 64)), batch_size=8, verbose=0)
options = tf.distribute.experimental.CommunicationOptions(bytes_per_pack=1024)
alone = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
packs = strategy_from(alone).bytes_per_pack
reduction = tf.distribute.ReductionToOneDevice()
refused = []
for other in (
    tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=reduction),
    tf.distribute.OneDeviceStrategy("CPU:0"),
):
    try:
        strategy_from(other)
    except InputError as error:
        refused.append(str(error))
found = {
    "strategy": str(strategy_from(strategy)), "peaks": peaks, "inside": inside, "packs": packs,
    "refused": refused, "alone": str(strategy_from(alone)),
}
print(json.dumps(found))
"""


@tensorflow_tests
def test_a_strategy_says_of_itself_what_a_description_would():
    # GIVEN a fresh process with two logical CPUs, WHEN strategies themselves are given
    done = subprocess.run(
        [sys.executable, "-c", OBJECTS], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    # THEN one that mirrors on two devices is that, and a model of its scope is predicted
    assert found["strategy"] == "mirrored:2"
    assert found["peaks"][0] == found["peaks"][1]
    # AND what it was asked to do is heeded, and what is not known is refused
    assert found["packs"] == 1024
    assert found["alone"] == "multiworker:1x1"
    assert "ReductionToOneDevice" in found["refused"][0]
    assert "OneDeviceStrategy" in found["refused"][1]
    assert found["inside"][0] == "SNG109"
    assert "after the `with strategy.scope():` block" in found["inside"][1]
