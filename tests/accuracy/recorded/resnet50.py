"""ResNet50 from keras.applications, trained with fit."""

import keras
import numpy as np

SIDE, BATCH, STEPS = 96, 4, 3

model = keras.applications.ResNet50(weights=None, input_shape=(SIDE, SIDE, 3), classes=10)
model.compile("adam", "sparse_categorical_crossentropy")
images = np.random.default_rng(0).normal(size=(BATCH * STEPS, SIDE, SIDE, 3)).astype("float32")
labels = np.zeros(BATCH * STEPS, "int64")
model.fit(images, labels, batch_size=BATCH, verbose=0)
