"""Dense networks, optimizers, and training steps that are not the stock one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.accuracy.zoo.images import CLASSES, cnn, compiled
from tests.accuracy.zoo.program import FIRST, HELD_OUT, TRAIN_ONLY, Array, model

if TYPE_CHECKING:
    import keras


def mlp(
    optimizer: Any = "adam", widths: tuple[int, ...] = (512, 512), **options: Any
) -> keras.Model:
    import keras
    from keras import layers

    x = inputs = keras.Input((784,))
    for width in widths:
        x = layers.Dense(width, activation="relu")(x)
    network = keras.Model(inputs, layers.Dense(10, activation="softmax")(x))
    network.compile(optimizer=optimizer, loss=CLASSES, **options)
    return network


@model("mlp", (32, 128, 512), FIRST)
def _mlp() -> keras.Model:
    return mlp()


@model("mlp-sgd", (32, 128, 512), FIRST, TRAIN_ONLY, optimizer="sgd")
def _mlp_sgd() -> keras.Model:
    return mlp("sgd")


@model("mlp-wide", (32, 128, 512), optimizer="momentum")
def _mlp_wide() -> keras.Model:
    import keras

    return mlp(keras.optimizers.SGD(0.01, momentum=0.9, nesterov=True), (2048, 1024, 1024))


@model("mlp-metrics", (32, 256, 1024), optimizer="rmsprop")
def _mlp_metrics() -> keras.Model:
    return mlp("rmsprop", (256, 256, 256), metrics=["accuracy"])


@model("mlp-clipnorm", (32, 128, 512), TRAIN_ONLY, optimizer="adam clipnorm")
def _mlp_clipnorm() -> keras.Model:
    import keras

    return mlp(keras.optimizers.Adam(clipnorm=1.0))


@model("cnn-global-clipnorm", (8, 32, 64), HELD_OUT, optimizer="adam global_clipnorm")
def _cnn_global_clipnorm() -> keras.Model:
    import keras

    return cnn(keras.optimizers.Adam(global_clipnorm=1.0), 24)


@model("mlp-ema", (32, 128, 512), TRAIN_ONLY, optimizer="adamw ema")
def _mlp_ema() -> keras.Model:
    import keras

    return mlp(keras.optimizers.AdamW(use_ema=True))


@model("mlp-accumulate", (32, 128, 512), TRAIN_ONLY, optimizer="adam accumulated")
def _mlp_accumulate() -> keras.Model:
    import keras

    return mlp(keras.optimizers.Adam(gradient_accumulation_steps=2))


@model("mlp-regularised", (32, 128, 512), HELD_OUT, optimizer="adagrad")
def _mlp_regularised() -> keras.Model:
    import keras
    from keras import layers

    x = inputs = keras.Input((300,))
    for width in (700, 400, 900):
        x = layers.Dense(width, activation="tanh", kernel_regularizer="l2")(x)
        x = layers.BatchNormalization()(layers.Dropout(0.2)(x))
    return compiled(inputs, layers.Dense(40, activation="softmax")(x), keras.optimizers.Adagrad())


@model("two-heads", (16, 64, 128))
def _two_heads() -> keras.Model:
    import keras
    from keras import layers

    image = keras.Input((32, 32, 3))
    facts = keras.Input((200,))
    x = layers.Flatten()(layers.Conv2D(32, 3, strides=2, activation="relu")(image))
    x = layers.Concatenate()([x, layers.Dense(256, activation="relu")(facts)])
    x = layers.Dense(256, activation="relu")(x)
    outputs = [layers.Dense(10, activation="softmax")(x), layers.Dense(4)(x)]
    return compiled([image, facts], outputs, "adam", [CLASSES, "mse"])


@model(
    "subclassed",
    (32, 128, 512),
    inputs=(Array((None, 256)),),
    targets=(Array((None,), "int32", 10),),
)
def _subclassed() -> keras.Model:
    """Layers made in `__init__`, a residual in `call`, and a `train_step` of its own."""
    import keras
    import tensorflow as tf

    class Residual(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.wide = keras.layers.Dense(512, activation="relu")
            self.narrow = keras.layers.Dense(256)
            self.head = keras.layers.Dense(10)

        def call(self, x: Any) -> Any:
            return self.head(x + self.narrow(self.wide(x)))

        def train_step(self, data: Any) -> dict[str, Any]:
            x, y = data[0], data[1]
            with tf.GradientTape() as tape:
                loss = self.compute_loss(y=y, y_pred=self(x, training=True))
            variables = self.trainable_variables
            gradients = tape.gradient(loss, variables)
            self.optimizer.apply(gradients, variables)
            return {"loss": loss}

    network = Residual()
    network.build((None, 256))
    network.compile(
        optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    return network


@model(
    "gan",
    (8, 32, 64),
    TRAIN_ONLY,
    inputs=(Array((None, 28, 28, 1)),),
    targets=(),
    optimizer="two adams",
)
def _gan() -> keras.Model:
    """A generator and a discriminator, each with its optimizer, trained in one step."""
    import keras
    import tensorflow as tf
    from keras import layers

    discriminator = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(64, 4, strides=2, padding="same", activation="leaky_relu"),
            layers.Conv2D(128, 4, strides=2, padding="same", activation="leaky_relu"),
            layers.Dropout(0.3),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )
    generator = keras.Sequential(
        [
            keras.Input((64,)),
            layers.Dense(7 * 7 * 128),
            layers.Reshape((7, 7, 128)),
            layers.Conv2DTranspose(64, 4, strides=2, padding="same", activation="relu"),
            layers.Conv2DTranspose(1, 4, strides=2, padding="same", activation="sigmoid"),
        ]
    )
    entropy = keras.losses.BinaryCrossentropy(from_logits=True)

    class Adversaries(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.generator = generator
            self.discriminator = discriminator
            self.generator_optimizer = keras.optimizers.Adam(1e-4)
            self.discriminator_optimizer = keras.optimizers.Adam(1e-4)
            self.generator_optimizer.build(generator.trainable_variables)
            self.discriminator_optimizer.build(discriminator.trainable_variables)

        def call(self, images: Any) -> Any:
            return self.discriminator(images)

        def train_step(self, data: Any) -> dict[str, Any]:
            images = data[0] if isinstance(data, tuple) else data
            noise = tf.random.normal((tf.shape(images)[0], 64))
            with tf.GradientTape() as tape:
                faked = self.discriminator(self.generator(noise, training=True), training=True)
                real = self.discriminator(images, training=True)
                loss = entropy(tf.ones_like(real), real) + entropy(tf.zeros_like(faked), faked)
            weights = self.discriminator.trainable_variables
            self.discriminator_optimizer.apply(tape.gradient(loss, weights), weights)
            with tf.GradientTape() as tape:
                faked = self.discriminator(self.generator(noise, training=True), training=True)
                fooled = entropy(tf.ones_like(faked), faked)
            weights = self.generator.trainable_variables
            self.generator_optimizer.apply(tape.gradient(fooled, weights), weights)
            return {"discriminator": loss, "generator": fooled}

    network = Adversaries()
    network.build((None, 28, 28, 1))
    network.compile()
    return network
