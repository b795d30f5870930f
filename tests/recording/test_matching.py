"""Names that differ by numbers alone are paired; nothing is joined and nothing is lost."""

from hypothesis import given
from hypothesis import strategies as st

from snugly.recording import matching
from snugly.recording.matching import match

LAYERS = st.dictionaries(
    st.sampled_from(
        ["dense", "dense_1", "dense_2", "dense_10", "conv", "conv_1", "m/dense_1", "m_1/dense", ""]
    ),
    st.integers(0, 1000),
)


@given(LAYERS, LAYERS)
def test_every_name_is_in_exactly_one_pair(before, after):
    pairs = match(before, after)
    assert sorted(old for old, _ in pairs if old is not None) == sorted(before)
    assert sorted(new for _, new in pairs if new is not None) == sorted(after)
    assert (None, None) not in pairs


@given(LAYERS)
def test_a_run_is_matched_with_itself(layers):
    assert all(old == new for old, new in match(layers, layers))


@given(LAYERS, LAYERS)
def test_only_names_of_one_stem_are_paired(before, after):
    for old, new in match(before, after):
        if old is not None and new is not None:
            assert matching._NUMBER.sub("", old) == matching._NUMBER.sub("", new)


def test_a_model_built_second_is_matched_in_order():
    before = {"dense": 10, "dense_1": 20, "conv2d": 5}
    after = {"dense_2": 10, "dense_3": 21, "conv2d_1": 5}
    assert sorted(match(before, after), key=str) == [
        ("conv2d", "conv2d_1"),
        ("dense", "dense_2"),
        ("dense_1", "dense_3"),
    ]


def test_numbers_that_moved_by_one_are_followed():
    # dense_1 is on both sides, but it is not the same layer
    assert match({"dense": 100, "dense_1": 200}, {"dense_1": 100, "dense_2": 200}) == [
        ("dense", "dense_1"),
        ("dense_1", "dense_2"),
    ]


def test_a_layer_that_was_added_is_new_and_the_others_keep_their_names():
    pairs = match({"dense": 100, "dense_1": 200}, {"dense": 200, "dense_1": 100, "dense_2": 100})
    assert pairs == [("dense", "dense"), ("dense_1", "dense_1"), (None, "dense_2")]


def test_a_layer_added_to_a_model_built_second_is_found_by_its_size():
    pairs = match({"dense": 100, "dense_1": 300}, {"dense_5": 100, "dense_6": 7, "dense_7": 300})
    assert pairs == [("dense", "dense_5"), (None, "dense_6"), ("dense_1", "dense_7")]


def test_ten_comes_after_two():
    before = {"dense_2": 1, "dense_10": 2}
    after = {"dense_3": 1, "dense_11": 2}
    assert match(before, after) == [("dense_2", "dense_3"), ("dense_10", "dense_11")]


def test_numbers_of_models_are_followed_as_well():
    assert match({"sequential/dense": 4}, {"sequential_1/dense_1": 4}) == [
        ("sequential/dense", "sequential_1/dense_1")
    ]


def test_names_that_only_look_alike_are_not_paired():
    pairs = match({"block1": 10, "conv_a": 1}, {"block2": 10, "conv_b": 1})
    assert all(old is None or new is None for old, new in pairs)


def test_very_many_names_of_one_stem_are_paired_by_name_alone(monkeypatch):
    monkeypatch.setattr(matching, "_MOST_PAIRS", 3)
    pairs = match({"dense": 1, "dense_1": 1}, {"dense_1": 1, "dense_2": 1})
    assert pairs == [("dense", None), ("dense_1", "dense_1"), (None, "dense_2")]
