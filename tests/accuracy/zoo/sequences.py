"""Recurrent networks, text convolutions and transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.accuracy.zoo.images import compiled
from tests.accuracy.zoo.program import FIRST, HELD_OUT, TRAIN_ONLY, model

if TYPE_CHECKING:
    import keras


def recurrent(optimizer: Any = "adam") -> keras.Model:
    """Two stacked LSTMs over feature vectors."""
    import keras
    from keras import layers

    x = inputs = keras.Input((50, 64))
    x = layers.LSTM(128, return_sequences=True)(x)
    x = layers.LSTM(128)(x)
    return compiled(inputs, layers.Dense(10, activation="softmax")(x), optimizer)


@model("lstm", (8, 32, 64), FIRST)
def _lstm() -> keras.Model:
    return recurrent()


@model("lstm-sgd", (8, 32, 64), FIRST, TRAIN_ONLY, optimizer="sgd")
def _lstm_sgd() -> keras.Model:
    return recurrent("sgd")


@model("lstm-text", (8, 32, 64))
def _lstm_text() -> keras.Model:
    import keras
    from keras import layers

    x = inputs = keras.Input((80,), dtype="int32")
    x = layers.LSTM(96)(layers.Embedding(10_000, 64)(x))
    return compiled(
        inputs, layers.Dense(1, activation="sigmoid")(x), "rmsprop", "binary_crossentropy"
    )


@model("gru", (8, 32, 64))
def _gru() -> keras.Model:
    import keras
    from keras import layers

    x = inputs = keras.Input((40, 48))
    x = layers.GRU(96, return_sequences=True)(x)
    return compiled(inputs, layers.Dense(20, activation="softmax")(x))


@model("bilstm", (8, 16, 32))
def _bilstm() -> keras.Model:
    import keras
    from keras import layers

    x = inputs = keras.Input((40, 32))
    x = layers.Bidirectional(layers.LSTM(64, return_sequences=True))(x)
    x = layers.GlobalMaxPooling1D()(x)
    return compiled(inputs, layers.Dense(5, activation="softmax")(x))


@model("rnn-dropout", (8, 32, 64), HELD_OUT)
def _rnn_dropout() -> keras.Model:
    import keras
    from keras import layers

    x = inputs = keras.Input((30, 40))
    x = layers.GRU(64, return_sequences=True, dropout=0.2, recurrent_dropout=0.2)(x)
    x = layers.SimpleRNN(80)(x)
    return compiled(inputs, layers.Dense(3, activation="softmax")(x))


@model("convlstm", (2, 4, 8))
def _convlstm() -> keras.Model:
    import keras
    from keras import layers

    x = inputs = keras.Input((8, 24, 24, 1))
    x = layers.ConvLSTM2D(16, 3, padding="same", return_sequences=True)(x)
    x = layers.ConvLSTM2D(16, 3, padding="same")(x)
    return compiled(inputs, layers.Conv2D(1, 1)(x), "adam", "mse")


@model("text-cnn", (8, 32, 64))
def _text_cnn() -> keras.Model:
    import keras
    from keras import layers

    tokens = keras.Input((128,), dtype="int32")
    x = layers.Embedding(8_000, 128)(tokens)
    branches = [
        layers.GlobalMaxPooling1D()(layers.Conv1D(100, k, activation="relu")(x)) for k in (3, 4, 5)
    ]
    x = layers.Dropout(0.5)(layers.Concatenate()(branches))
    return compiled(tokens, layers.Dense(4, activation="softmax")(x))


def attention_block(
    x: Any, heads: int, width: int, *, causal: bool = False, normalise_first: bool = False
) -> Any:
    """Self-attention and a feed-forward part, each with its residual."""
    from keras import layers

    def feed_forward(y: Any) -> Any:
        return layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(y))

    attend = layers.MultiHeadAttention(heads, width // heads)
    if normalise_first:
        y = layers.LayerNormalization()(x)
        x = layers.Add()([x, attend(y, y, use_causal_mask=causal)])
        return layers.Add()([x, feed_forward(layers.LayerNormalization()(x))])
    y = layers.Dropout(0.1)(attend(x, x, use_causal_mask=causal))
    x = layers.LayerNormalization()(layers.Add()([x, y]))
    return layers.LayerNormalization()(layers.Add()([x, layers.Dropout(0.1)(feed_forward(x))]))


def transformer(
    optimizer: Any = "adam", width: int = 128, length: int = 64, blocks: int = 2
) -> keras.Model:
    """An encoder that classifies token sequences."""
    import keras
    from keras import layers

    tokens = keras.Input((length,), dtype="int32")
    x = layers.Embedding(5_000, width)(tokens)
    for _ in range(blocks):
        x = attention_block(x, 4, width)
    x = layers.GlobalAveragePooling1D()(x)
    return compiled(tokens, layers.Dense(10, activation="softmax")(x), optimizer)


@model("transformer", (4, 16, 32), FIRST)
def _transformer() -> keras.Model:
    return transformer()


@model("transformer-sgd", (4, 16, 32), FIRST, TRAIN_ONLY, optimizer="sgd")
def _transformer_sgd() -> keras.Model:
    return transformer("sgd")


@model("transformer-float16", (4, 16, 32), "mixed")
def _transformer_float16() -> keras.Model:
    import keras

    keras.mixed_precision.set_global_policy("mixed_float16")
    return transformer()


@model("transformer-deep", (4, 8, 16), HELD_OUT, optimizer="adamw")
def _transformer_deep() -> keras.Model:
    return transformer("adamw", 96, 100, 4)


@model("decoder", (2, 4, 8))
def _decoder() -> keras.Model:
    """A causal language model: logits over the vocabulary for each position."""
    import keras
    from keras import layers

    tokens = keras.Input((64,), dtype="int32")
    x = layers.Embedding(4_000, 128)(tokens)
    for _ in range(2):
        x = attention_block(x, 4, 128, causal=True, normalise_first=True)
    logits = layers.Dense(4_000)(layers.LayerNormalization()(x))
    return compiled(
        tokens, logits, "adamw", keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )


@model("vit", (4, 8, 16))
def _vit() -> keras.Model:
    import keras
    from keras import layers

    x = inputs = keras.Input((64, 64, 3))
    x = layers.Reshape((64, 96))(layers.Conv2D(96, 8, strides=8)(x))
    for _ in range(3):
        x = attention_block(x, 4, 96, normalise_first=True)
    x = layers.LayerNormalization()(x)
    return compiled(inputs, layers.Dense(10, activation="softmax")(layers.Flatten()(x)), "adamw")
