"""What a pipeline.config says that costs memory, with the defaults of the API's own definitions.

Defaults are those of object_detection/protos (`input_reader.proto`, `train.proto`,
`image_resizer.proto`, `faster_rcnn.proto`, `anchor_generator`), TensorFlow models repository.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from snugly.training.detection.text_format import Message, Scalar, broken

if TYPE_CHECKING:
    from collections.abc import Mapping

Path: TypeAlias = tuple[str, ...]
"""Where a setting stands: ("train_input_reader", "num_readers")."""

READER: Final = "train_input_reader"
TRAIN: Final = "train_config"

READER_DEFAULTS: Final[Mapping[str, int | bool | str]] = {
    "shuffle": True,
    "shuffle_buffer_size": 2048,
    "num_readers": 64,
    "num_parallel_batches": 8,
    "num_prefetch_batches": 2,
    "queue_capacity": 2000,
    "read_block_length": 32,
    "num_additional_channels": 0,
    "max_number_of_boxes": 100,
    "load_instance_masks": False,
    "mask_type": "NUMERICAL_MASKS",
}
TRAIN_DEFAULTS: Final[Mapping[str, int]] = {
    "batch_size": 32,
    "max_number_of_boxes": 100,
    "batch_queue_capacity": 150,
    "prefetch_queue_capacity": 5,
}

_READER_NAMES: Final = frozenset(READER_DEFAULTS) | frozenset(
    """name label_map_path filenames_shuffle_buffer_size num_epochs sample_1_of_n_examples
    min_after_dequeue prefetch_size num_parallel_map_calls num_keypoints keypoint_type_weight
    load_multiclass_scores load_context_features load_context_image_ids load_dense_pose
    load_track_id load_keypoint_depth_features use_display_name include_source_id input_type
    tf_record_input_reader external_input_reader expand_labels_hierarchy frame_index image_resizer
    sample_from_datasets_weights""".split()  # noqa: SIM905 - a list of forty lines reads worse
)
_TRAIN_NAMES: Final = frozenset(TRAIN_DEFAULTS) | frozenset(
    """data_augmentation_options use_bfloat16 sync_replicas keep_checkpoint_every_n_hours optimizer
    gradient_clipping_by_norm fine_tune_checkpoint fine_tune_checkpoint_type
    fine_tune_checkpoint_version from_detection_checkpoint load_all_detection_checkpoint_vars
    num_steps startup_delay_steps bias_grad_multiplier update_trainable_variables freeze_variables
    replicas_to_aggregate num_batch_queue_threads merge_multiple_label_boxes
    use_multiclass_scores add_regularization_loss unpad_groundtruth_tensors retain_original_images
    summarize_gradients retain_original_image_additional_channels""".split()  # noqa: SIM905
)
_TOP_NAMES: Final = frozenset(
    (
        TRAIN,
        READER,
        "model",
        "eval_config",
        "eval_input_reader",
        "graph_rewriter",
        "eval_input_config",
    )
)


@dataclass(frozen=True, slots=True)
class InputSize:
    """The size to which images are brought, and how sure that is."""

    height: int
    width: int
    resizer: str
    exact: bool
    """False where images keep their shape and are not padded: then this is the largest."""


@dataclass(frozen=True, slots=True)
class Detection:
    """A configuration's tree, with the questions that a prediction asks it."""

    tree: Message
    kind: str
    extractor: str

    @property
    def model(self) -> Message:
        """The model's own message: what stands in `model { ssd { … } }`."""
        found = message_at(self.tree, ("model", self.kind))
        assert found is not None
        return found

    def reader(self, name: str) -> int:
        """A whole number of the training reader, or its default."""
        return whole(
            self.tree, (READER, name), int(READER_DEFAULTS[name]), least=_LEAST.get(name, 0)
        )

    def train(self, name: str) -> int:
        """A whole number of the training settings, or its default."""
        return whole(self.tree, (TRAIN, name), int(TRAIN_DEFAULTS[name]), least=_LEAST.get(name, 0))

    def flag(self, name: str) -> bool:
        """A truth value of the training reader, or its default."""
        return truth(self.tree, (READER, name), default=bool(READER_DEFAULTS[name]))

    def augmentations(self) -> tuple[tuple[str, Message], ...]:
        """The data augmentation options in their order."""
        train = message_at(self.tree, (TRAIN,))
        steps = [] if train is None else train.all("data_augmentation_options")
        return tuple(
            (field.name, field.value)
            for step in steps
            if isinstance(step, Message)
            for field in step.fields
            if isinstance(field.value, Message)
        )

    def input_size(self, image: tuple[int, int] | None = None) -> InputSize:
        """Height and width after the resizer; `image` is the size of the images themselves."""
        return _input_size(self.model, image)


_OF_THEIR_OWN_SIZE: Final = frozenset(
    ("identity_resizer", "pad_to_multiple_resizer", "conditional_shape_resizer")
)

_LEAST: Final = {
    "batch_size": 1,
    "num_readers": 1,
    "num_parallel_batches": 1,
    "num_prefetch_batches": -1,
    "read_block_length": 1,
    "max_number_of_boxes": 1,
}


def read_detection(tree: Message) -> Detection:
    """Find the model in a parsed configuration, and refuse settings that are misspelt.

    Raises:
        UnreadableProgramError: There is no model in it, or a setting's name is not one.
    """
    _refuse_misspelt(tree, _TOP_NAMES, "the file")
    for name, known in ((TRAIN, _TRAIN_NAMES), (READER, _READER_NAMES)):
        section = message_at(tree, (name,))
        if section is not None:
            _refuse_misspelt(section, known, name)
    model = message_at(tree, ("model",))
    if model is None:
        raise broken(1, "there is no `model { … }` in the file", hint="is this a pipeline.config?")
    kinds = [field for field in model.fields if isinstance(field.value, Message)]
    if len(kinds) != 1:
        what = "no model kind" if not kinds else f"{len(kinds)} model kinds"
        raise broken(model.line, f"`model` has {what}; one such as `ssd {{ … }}` belongs there")
    extractor = text_at(tree, ("model", kinds[0].name, "feature_extractor", "type"), "")
    return Detection(tree, kinds[0].name, extractor)


def one(message: Message, name: str) -> Message | Scalar | None:
    """The value of a field that may be given once."""
    found = [field for field in message.fields if field.name == name]
    if len(found) > 1:
        raise broken(
            found[1].line, f"{name} is given twice; it is already given in line {found[0].line}"
        )
    return found[0].value if found else None


def message_at(tree: Message, path: Path) -> Message | None:
    """The message at a path, or None where there is none."""
    here: Message = tree
    for name in path:
        value = one(here, name)
        if value is None:
            return None
        if not isinstance(value, Message):
            raise broken(value.line, f"{name} should be a message in braces")
        here = value
    return here


def scalar_at(tree: Message, path: Path) -> Scalar | None:
    """The value at a path, or None where it is left out."""
    section = message_at(tree, path[:-1])
    value = None if section is None else one(section, path[-1])
    if isinstance(value, Message):
        raise broken(value.line, f"{path[-1]} should be a value, not a message")
    return value


def whole(tree: Message, path: Path, default: int, *, least: int = 0) -> int:
    """A whole number at a path, or its default."""
    found = scalar_at(tree, path)
    if found is None:
        return default
    if isinstance(found.value, bool) or not isinstance(found.value, int):
        raise broken(found.line, f"{path[-1]} should be a whole number, not {found.value!r:.40}")
    if not least <= found.value < 2**31:
        raise broken(found.line, f"{path[-1]} cannot be {found.value}; at least {least} is needed")
    return found.value


def truth(tree: Message, path: Path, *, default: bool) -> bool:
    """A truth value at a path, or its default."""
    found = scalar_at(tree, path)
    if found is None:
        return default
    if found.value in (1, "t"):  # True is 1
        return True
    if found.value in (0, "f"):
        return False
    raise broken(found.line, f"{path[-1]} should be true or false, not {found.value!r:.40}")


def text_at(tree: Message, path: Path, default: str) -> str:
    """A text or the name of an enum's value at a path, or its default."""
    found = scalar_at(tree, path)
    if found is None:
        return default
    if not isinstance(found.value, str):
        raise broken(found.line, f"{path[-1]} should be a text, not {found.value!r:.40}")
    return found.value


def _refuse_misspelt(section: Message, known: frozenset[str], where: str) -> None:
    for field in section.fields:
        if field.name in known:
            continue
        near = difflib.get_close_matches(field.name, known, n=1, cutoff=0.85)
        if near:
            # Left standing, it would mean the default, silently.
            raise broken(
                field.line,
                f"{where} has no setting {field.name!r}",
                hint=f"did you mean {near[0]}?",
            )


def _input_size(model: Message, image: tuple[int, int] | None) -> InputSize:
    resizer = message_at(model, ("image_resizer",))
    if resizer is None or not resizer.fields:
        raise broken(model.line, "the model has no image_resizer, so its input size is not known")
    kind = resizer.fields[0].name
    path = (kind,)
    if kind == "fixed_shape_resizer":
        height = whole(resizer, (*path, "height"), 300, least=1)
        return InputSize(height, whole(resizer, (*path, "width"), 300, least=1), kind, exact=True)
    if kind == "keep_aspect_ratio_resizer":
        largest = whole(resizer, (*path, "max_dimension"), 1024, least=1)
        smallest = whole(resizer, (*path, "min_dimension"), 600, least=1)
        if truth(resizer, (*path, "pad_to_max_dimension"), default=False):
            return InputSize(largest, largest, kind, exact=True)
        # The shorter side reaches min_dimension unless the longer would pass max_dimension.
        return InputSize(min(smallest, largest), largest, kind, exact=smallest == largest)
    if kind in _OF_THEIR_OWN_SIZE:
        if image is None:
            raise broken(
                resizer.line,
                f"with {kind} images keep a size of their own, which the file does not tell",
                hint="give image=(height, width), the size of your images",
            )
        multiple = whole(resizer, (*path, "multiple"), 1, least=1)
        height, width = (-(-side // multiple) * multiple for side in image)
        return InputSize(height, width, kind, exact=False)
    raise broken(resizer.line, f"{kind} is not an image resizer that is known")
