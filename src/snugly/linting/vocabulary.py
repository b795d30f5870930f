"""Vocabulary: the names of TensorFlow and Keras that rules ask for, in one place."""

from __future__ import annotations

from typing import Final

MODEL_CONSTRUCTORS: Final = frozenset(
    {"Sequential", "Model", "Functional", "clone_model", "model_from_json", "model_from_config"}
)
MODEL_LOADERS: Final = frozenset({"load_model", "from_saved_model"})
APPLICATIONS: Final = frozenset(
    {
        *("VGG16", "VGG19", "Xception", "InceptionV3", "InceptionResNetV2", "MobileNet"),
        *("MobileNetV2", "MobileNetV3Small", "MobileNetV3Large", "NASNetMobile", "NASNetLarge"),
        *("DenseNet121", "DenseNet169", "DenseNet201"),
        *("ResNet50", "ResNet101", "ResNet152", "ResNet50V2", "ResNet101V2", "ResNet152V2"),
        *(f"EfficientNetB{number}" for number in range(8)),
        *(f"EfficientNetV2{name}" for name in ("B0", "B1", "B2", "B3", "S", "M", "L")),
        *(f"ConvNeXt{name}" for name in ("Tiny", "Small", "Base", "Large", "XLarge")),
    }
)

CLEARING: Final = frozenset({"clear_session", "reset_default_graph", "reset_uids"})
"""Calls after which Keras's or TensorFlow's global state is fresh."""

SESSIONS: Final = frozenset({"Session", "InteractiveSession"})

DATASET_SOURCES: Final = frozenset(
    {
        *("from_generator", "from_tensor_slices", "from_tensors", "list_files"),
        *("TFRecordDataset", "TextLineDataset", "FixedLengthRecordDataset", "CsvDataset"),
        *("image_dataset_from_directory", "text_dataset_from_directory"),
        *("audio_dataset_from_directory", "timeseries_dataset_from_array", "make_csv_dataset"),
        *("sample_from_datasets", "choose_from_datasets"),
        *("data.Dataset.range", "data.Dataset.zip", "data.Dataset.random"),
    }
)
DATASET_METHODS: Final = frozenset(
    {
        *("map", "batch", "padded_batch", "ragged_batch", "shuffle", "cache", "repeat", "take"),
        *("skip", "prefetch", "filter", "flat_map", "interleave", "unbatch", "window", "shard"),
        *("concatenate", "enumerate", "apply", "with_options", "as_numpy_iterator", "snapshot"),
        *("bucket_by_sequence_length", "take_while", "scan", "unique", "rebatch", "zip"),
    }
)

CONVERTERS: Final = frozenset({"float", "int", "str", "bool", "len", "round", "repr", "format"})
"""Builtins that make a plain Python value of a tensor."""

NOT_OPERATIONS: Final = frozenset(
    {
        *("config", "data", "io", "train", "saved_model", "summary", "test", "debugging", "errors"),
        *(
            "distribute",
            "estimator",
            "function",
            "autograph",
            "compat",
            "dtypes",
            "executing_eagerly",
        ),
        *("lite", "nest", "profiler", "python", "raw_ops", "sysconfig", "tpu", "types", "version"),
        *("experimental", "device", "name_scope", "init_scope", "feature_column", "initializers"),
        *(
            "losses",
            "metrics",
            "optimizers",
            "layers",
            "lookup",
            "mlir",
            "graph_util",
            "random_seed",
        ),
        *("contrib", "app", "flags", "logging", "gfile", "control_dependencies", "custom_gradient"),
        *(
            "is_tensor",
            "get_logger",
            "as_dtype",
            "get_static_value",
            "py_function",
            "numpy_function",
        ),
        *("no_gradient", "recompute_grad", "load_op_library", "load_library", "keras", "group"),
        *(
            "get_default_graph",
            "reset_default_graph",
            "global_variables_initializer",
            "placeholder",
        ),
    }
)
"""What stands directly in `tf.` and does not give a tensor."""

FOREIGN: Final = frozenset(
    {
        *("sklearn", "xgboost", "lightgbm", "catboost", "torch", "torchvision", "statsmodels"),
        *("transformers", "jax", "flax", "mxnet", "joblib", "pickle", "onnxruntime", "spacy"),
        *("wordbatch", "hmmlearn", "gensim", "fasttext", "surprise", "implicit", "tpot", "h2o"),
        *("paddle", "prophet", "pmdarima", "openvino", "tflite_runtime", "ai_edge_litert"),
    }
)
"""Libraries whose models also have `fit` and `predict`, and are none of Keras's."""
