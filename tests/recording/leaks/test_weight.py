"""What an item of a container weighs."""

import numpy as np
import pytest

from snugly.recording.leaks.weight import TENSOR_OVERHEAD, weigh


def test_an_array_weighs_its_memory():
    assert weigh(np.zeros(1000)).arrays == 8000


def test_a_view_weighs_what_it_keeps_alive_but_only_once():
    whole = np.zeros(1000)
    assert weigh(whole[:10]).arrays == 8000
    assert weigh(whole[:10], beside=whole[10:20]).bytes == 0


def test_the_same_object_again_weighs_nothing():
    array = np.zeros(1000)
    assert weigh(array, beside=array).bytes == 0


def test_what_lies_in_lists_dictionaries_and_objects_is_added_up():
    class Row:
        __slots__ = ("values",)

        def __init__(self):
            self.values = {"a": [np.zeros(100), np.zeros(200)]}

    assert weigh(Row()).arrays == 2400


def test_plain_data_is_light():
    assert 0 < weigh({"loss": 0.5, "epoch": 3}).bytes < 500


def test_cycles_end():
    circle = []
    circle.append(circle)
    assert weigh(circle).parts < 10


@pytest.mark.tensorflow
def test_tensors_variables_and_models_are_told_apart():
    import tensorflow as tf

    weight = weigh([tf.zeros((10, 10)), tf.Variable(tf.zeros((10, 10)))])
    assert weight.tensors == 400 + TENSOR_OVERHEAD
    assert weight.tensor_count == 1
    assert weight.structures == 1
