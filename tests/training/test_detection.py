"""pipeline.config: what it says is found, what it costs is added up, a smaller one is written."""

import importlib.util
import struct
from pathlib import Path

import pytest

from snugly.errors import InputError, ProgramNotFoundError, UnreadableProgramError
from snugly.training.detection import (
    detection_data,
    predict_pipeline_config,
    shrink_pipeline_config,
    shrunk_data,
)
from snugly.training.detection.backbones import find_backbone
from snugly.training.detection.edits import set_number
from snugly.training.detection.settings import read_detection
from snugly.training.detection.text_format import parse_text_format
from snugly.units import Size

_spec = importlib.util.spec_from_file_location("configs", Path(__file__).parent / "configs.py")
assert _spec is not None
assert _spec.loader is not None
configs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(configs)


def write(folder, text, name="pipeline.config"):
    path = folder / name
    path.write_text(text)
    return path


def host(folder, text, **options):
    return predict_pipeline_config(write(folder, text), device_bytes=False, threads=8, **options)


def part(prediction, name):
    return next(part for part in prediction.host_parts if name in part.name)


@pytest.mark.parametrize(
    ("text", "kind", "extractor", "side", "batch"),
    [
        (configs.ssd_mobilenet_v2_fpnlite(), "ssd", "ssd_mobilenet_v2_fpn_keras", 320, 128),
        (configs.ssd_mobilenet_v2_fpnlite(640), "ssd", "ssd_mobilenet_v2_fpn_keras", 640, 128),
        (configs.faster_rcnn(), "faster_rcnn", "faster_rcnn_resnet50_keras", 640, 8),
        (configs.EFFICIENTDET_D0, "ssd", "ssd_efficientnet-b0_bifpn_keras", 512, 128),
        (configs.CENTERNET_RESNET50, "center_net", "resnet_v2_50", 512, 128),
    ],
)
def test_model_input_and_batch_are_found(tmp_path, text, kind, extractor, side, batch):  # noqa: PLR0913, PLR0917
    found = host(tmp_path, text)
    assert (found.kind, found.extractor, found.batch_size) == (kind, extractor, batch)
    assert (found.input_size.height, found.input_size.width) == (side, side)


def test_defaults_are_those_of_the_api(tmp_path):
    # GIVEN a reader that states nothing WHEN it is predicted
    found = host(tmp_path, configs.ssd_mobilenet_v2_fpnlite(batch=4), record_bytes=100_000)
    # THEN 2048 records are shuffled, 8 batches made in parallel, 2 wait and one is being made
    assert part(found, "shuffle").bytes == 2048 * 100_000
    assert part(found, "finished").count == 8 * 4
    assert part(found, "waiting").count == 3
    # AND 64 readers have 3 × 64 files open, each with 8 MB and 64 records
    assert part(found, "files").bytes == 192 * (8_000_000 + 64 * 100_000)
    assert found.host == sum(part.bytes for part in found.host_parts)


def test_readers_are_no_more_than_files(tmp_path):
    text = configs.ssd_mobilenet_v2_fpnlite().replace("train2017-?????-of-00256", "train")
    assert part(host(tmp_path, text), "files").count == 3


def test_an_example_holds_image_boxes_and_masks(tmp_path):
    plain = host(tmp_path, configs.faster_rcnn(side=1024, batch=16))
    masked = host(tmp_path, configs.faster_rcnn(side=1024, batch=16, masks=True))
    # 100 masks of 1024 × 1024 float32 are 400 MiB for each example
    difference = part(masked, "finished").each - part(plain, "finished").each
    assert difference == 100 * 1024 * 1024 * 4
    assert masked.host > Size("40GiB")
    assert masked.most_expensive is not None
    assert masked.most_expensive.setting == "num_parallel_batches"


def test_no_shuffle_holds_no_shuffle_buffer(tmp_path):
    text = configs.ssd_mobilenet_v2_fpnlite(
        reader='train_input_reader { shuffle: false tf_record_input_reader { input_path: "a" } }'
    )
    assert part(host(tmp_path, text), "shuffle").bytes == 0


def test_records_that_can_be_read_are_measured(tmp_path):
    # GIVEN a TFRecord file beside the configuration, of records with 1000 bytes
    record = struct.pack("<QI", 1000, 0) + bytes(1000) + bytes(4)
    (tmp_path / "train.tfrecord").write_bytes(record * 3)
    reader = 'train_input_reader { tf_record_input_reader { input_path: "train.tfrecord" } }'
    found = host(tmp_path, configs.ssd_mobilenet_v2_fpnlite(reader=reader))
    # THEN their length is used, and nothing is said of an assumption
    assert part(found, "shuffle").each == 1000
    assert part(found, "shuffle").provenance == "predicted"
    assert not any("records of" in note for note in found.notes)


@pytest.mark.parametrize("junk", [b"", b"\x1f\x8b" + bytes(40), b"\xff" * 100, b"abc"])
def test_a_file_that_is_no_tfrecord_is_not_believed(tmp_path, junk):
    (tmp_path / "train.tfrecord").write_bytes(junk)
    reader = 'train_input_reader { tf_record_input_reader { input_path: "train.tfrecord" } }'
    found = host(tmp_path, configs.ssd_mobilenet_v2_fpnlite(reader=reader))
    assert part(found, "shuffle").provenance == "assumed"


@pytest.mark.parametrize(
    ("extractor", "backbone"),
    [
        ("ssd_resnet50_v1_fpn_keras", "ResNet50"),
        ("faster_rcnn_resnet101_keras", "ResNet101"),
        ("resnet_v2_50", "ResNet50V2"),
        ("resnet_v1_101_fpn", "ResNet101"),
        ("faster_rcnn_inception_resnet_v2_keras", "InceptionResNetV2"),
        ("ssd_mobilenet_v1_fpn_keras", "MobileNet"),
        ("mobilenet_v2_fpn_sep_conv", "MobileNetV2"),
        ("ssd_mobilenet_v3_small", "MobileNetV3Small"),
        ("ssd_efficientnet-b7_bifpn_keras", "EfficientNetB7"),
        ("ssd_inception_v2", "InceptionV3"),
    ],
)
def test_extractors_have_a_comparable_backbone(extractor, backbone):
    found = find_backbone(extractor)
    assert found is not None
    assert found.name == backbone


@pytest.mark.parametrize("extractor", ["hourglass_104", "faster_rcnn_nas", "resnet_v1_18", ""])
def test_what_compares_with_nothing_is_said_to_be_unknown(tmp_path, extractor):
    assert find_backbone(extractor) is None
    text = configs.faster_rcnn(extractor)
    found = predict_pipeline_config(write(tmp_path, text), memory="8GiB")
    assert found.device is None
    assert found.verdict == "uncertain"
    assert any("not known" in note for note in found.notes)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("batch_size: 128", "batch_sise: 128", "no setting 'batch_sise'"),
        ("batch_size: 128", "batch_size: 0", "at least 1"),
        ("batch_size: 128", "batch_size: 12.5", "whole number"),
        ("batch_size: 128", "batch_size: 'many'", "whole number"),
        ("batch_size: 128", "batch_size: 8 batch_size: 9", "twice"),
        ("height: 320", "height: -320", "height cannot be -320"),
        ("      fixed_shape_resizer {", "      round_resizer {", "round_resizer"),
        ("train_config:", "train_confg:", "no setting 'train_confg'"),
        ("num_steps: 50000", "num_steps: 50000 } }", "'}'"),
    ],
)
def test_a_broken_file_names_its_line(tmp_path, old, new, what):
    # GIVEN a configuration with one line made wrong
    text = configs.ssd_mobilenet_v2_fpnlite()
    line = text[: text.index(old)].count("\n") + 1
    with pytest.raises(UnreadableProgramError, match=what) as error:
        host(tmp_path, text.replace(old, new, 1))
    # THEN the message begins with that line, or the one before, where its message opens
    assert error.value.code == "SNG550"
    assert str(error.value).startswith((f"line {line}:", f"line {line - 1}:"))


def test_a_file_without_a_model_is_refused(tmp_path):
    for text in ("", "train_config { }", "model { }", "model { ssd { } faster_rcnn { } }"):
        with pytest.raises(UnreadableProgramError, match="model"):
            host(tmp_path, text)


def test_a_misspelt_setting_is_met_with_the_right_one(tmp_path):
    reader = configs.READER.replace("label_map_path:", "shufle_buffer_size: 10 label_map_path:")
    with pytest.raises(UnreadableProgramError) as error:
        host(tmp_path, configs.ssd_mobilenet_v2_fpnlite(reader=reader))
    assert error.value.hint == "did you mean shuffle_buffer_size?"


def test_no_file_and_no_text_are_told_apart(tmp_path):
    with pytest.raises(ProgramNotFoundError):
        predict_pipeline_config(tmp_path / "none.config")
    (tmp_path / "image.config").write_bytes(b"\x89PNG\r\n\x1a\n\xff")
    with pytest.raises(UnreadableProgramError, match="UTF-8"):
        predict_pipeline_config(tmp_path / "image.config")
    with pytest.raises(UnreadableProgramError, match="cannot read"):
        predict_pipeline_config(tmp_path)


def test_images_of_their_own_size_are_asked_for(tmp_path):
    text = configs.ssd_mobilenet_v2_fpnlite().replace(
        "fixed_shape_resizer {\n        height: 320\n        width: 320\n      }",
        "identity_resizer { }",
    )
    with pytest.raises(UnreadableProgramError) as error:
        host(tmp_path, text)
    assert "image=" in error.value.hint
    assert host(tmp_path, text, image=(1000, 2000)).input_size.width == 2000


def test_a_setting_is_changed_and_all_else_stays():
    text = configs.ssd_mobilenet_v2_fpnlite()
    changed = set_number(text, ("train_config", "batch_size"), 16)
    assert changed == text.replace("batch_size: 128  # for", "batch_size: 16  # for")


@pytest.mark.parametrize(
    "section",
    [
        "train_input_reader { }",
        "train_input_reader: { shuffle: true }",
        "train_input_reader: {  # why\n    shuffle: true\n}",
        "train_input_reader {\n  # a comment first\n  shuffle: true\n}",
        "train_input_reader <\nshuffle: true>",
        "",
    ],
)
def test_a_default_is_written_out_where_it_is_changed(section):
    text = "model { ssd { } }\n" + section
    changed = set_number(text, ("train_input_reader", "num_readers"), 2)
    tree = parse_text_format(changed)
    assert read_detection(tree).reader("num_readers") == 2
    assert changed.count("shuffle: true") == section.count("shuffle: true")


def test_the_host_is_shrunk_with_the_same_result_first(tmp_path):
    # GIVEN masks that take tens of gigabytes, and a budget
    path = write(tmp_path, configs.faster_rcnn(side=1024, batch=2, masks=True))
    shrunk = shrink_pipeline_config(path, host_memory="10GiB", threads=8)
    # THEN only what keeps the result was changed, it fits, and the file itself was left alone
    assert {change.safety for change in shrunk.changes} == {"same-result"}
    assert shrunk.after.host <= Size("10GiB") < shrunk.before.host
    assert shrunk.fits
    assert path.read_text() == configs.faster_rcnn(side=1024, batch=2, masks=True)
    assert "+  num_prefetch_batches: 1" in shrunk.diff
    assert shrunk_data(shrunk)["changes"][0]["safety"] == "same-result"
    # AND predicting the new text gives what was promised
    again = host(tmp_path, shrunk.text)
    assert again.host == shrunk.after.host


def test_what_is_not_allowed_is_not_done(tmp_path):
    path = write(tmp_path, configs.faster_rcnn(side=1024, batch=16, masks=True))
    with pytest.raises(InputError, match="least found") as error:
        shrink_pipeline_config(path, host_memory="2GiB", threads=8)
    assert error.value.code == "SNG551"
    assert "changes-training" in error.value.hint
    shrunk = shrink_pipeline_config(path, None, "changes-training", host_memory="4GiB", threads=8)
    assert shrunk.after.host <= Size("4GiB")
    assert "changes-training" in {change.safety for change in shrunk.changes}


def test_what_cannot_fit_names_the_least(tmp_path):
    path = write(tmp_path, configs.ssd_mobilenet_v2_fpnlite())
    with pytest.raises(InputError) as error:
        shrink_pipeline_config(path, None, "changes-training", host_memory="1KiB", threads=8)
    least = int(error.value.hint.split("at least ")[1].split(" bytes")[0])
    shrunk = shrink_pipeline_config(
        path, None, "changes-training", host_memory="1KiB", threads=8, best_effort=True
    )
    assert not shrunk.fits
    assert int(shrunk.after.host) == least


def test_bad_requests_are_refused(tmp_path):
    path = write(tmp_path, configs.ssd_mobilenet_v2_fpnlite())
    with pytest.raises(InputError, match="allow"):
        shrink_pipeline_config(path, "8GiB", "everything")
    with pytest.raises(InputError, match="no budget"):
        shrink_pipeline_config(path)


@pytest.mark.tensorflow
def test_the_device_is_predicted_and_shrunk(tmp_path):
    # GIVEN a small detector
    path = write(tmp_path, configs.ssd_mobilenet_v2_fpnlite(batch=64))
    found = predict_pipeline_config(path, memory="8GiB")
    assert found.device is not None
    # THEN its backbone's activations and its heads are there, in order
    assert found.device.low < found.device.peak < found.device.high
    assert found.device.backbone == "MobileNetV2"
    data = detection_data(found)
    assert data["device"]["backbone"]["provenance"] == "predicted"
    assert {head["provenance"] for head in data["device"]["heads"]} == {"assumed"}
    # AND the batch cannot shrink with the same result
    budget = found.device.peak // 4
    with pytest.raises(InputError, match="device"):
        shrink_pipeline_config(path, budget)
    # WHEN training may change
    shrunk = shrink_pipeline_config(path, budget, "changes-training")
    # THEN the batch is the largest that fits, and the diff says so
    assert shrunk.after.device is not None
    assert shrunk.after.device.high <= budget
    assert shrunk.after.verdict == "fits"
    assert [change.setting for change in shrunk.changes] == ["train_config.batch_size"]
    assert "-  batch_size: 64  # for eight cores" in shrunk.diff
    assert 8 <= shrunk.after.batch_size <= 16


@pytest.mark.tensorflow
def test_smaller_images_take_their_augmentation_with_them(tmp_path):
    path = write(tmp_path, configs.EFFICIENTDET_D0.replace("batch_size: 128", "batch_size: 4"))
    before = predict_pipeline_config(path)
    assert before.device is not None
    shrunk = shrink_pipeline_config(path, before.device.peak * 6 // 10, "changes-training")
    side = shrunk.after.input_size.height
    assert side in {256, 384}
    assert f"output_size: {side}" in shrunk.text
