"""Nodes made ready for walking, and which loop each belongs to."""

import pytest

from snugly.readers.frames import Frame, find_frames
from snugly.readers.node import Value
from snugly.readers.prepare import PreparedNode, depth_first, prepare
from snugly.readers.signatures import Attributes


def node(name, *sources, operator="NoOp", frame=None):
    return PreparedNode(
        name=name,
        type=operator,
        data=tuple(f"{source}:0" for source in sources),
        control=(),
        outputs=(Value("float32", 4, (1,)),),
        attributes={"frame_name": frame} if frame else {},  # a mapping, as Attributes are
    )


def test_each_node_comes_after_its_sources():
    nodes = [node("c", "b"), node("b", "a", "outside"), node("a")]
    assert [n.name for n in depth_first(nodes)] == ["a", "b", "c"]


def test_a_long_chain_needs_no_deep_stack():
    nodes = [node(str(i), str(i + 1)) for i in range(5000)]
    assert depth_first(nodes)[-1].name == "0"


def names(frame):
    return [
        (unit.name, names(unit)) if isinstance(unit, Frame) else unit.name for unit in frame.units
    ]


def test_a_graph_without_loops_is_one_frame_in_the_order_given():
    frame = find_frames([node("b"), node("a"), node("c", "a")])
    assert names(frame) == ["b", "a", "c"]


def test_nested_loops_are_frames_in_frames():
    # GIVEN a loop inside a loop, and something that waits for the outer one
    nodes = [
        node("x"),
        node("enter", "x", operator="Enter", frame="outer"),
        node("inner_enter", "enter", operator="Enter", frame="inner"),
        node("work", "inner_enter"),
        node("inner_exit", "work", operator="Exit"),
        node("more", "inner_exit"),
        node("exit", "more", operator="Exit"),
        node("after", "exit"),
        node("before", "x"),
    ]
    # WHEN the frames are found, THEN each loop is one unit of the frame around it
    assert names(find_frames(nodes)) == [
        "x",
        ("outer", ["enter", ("inner", ["inner_enter", "work", "inner_exit"]), "more", "exit"]),
        "after",
        "before",
    ]


def test_a_loop_comes_after_what_any_of_its_nodes_waits_for():
    nodes = [
        node("enter", operator="Enter", frame="loop"),
        node("late"),
        node("second", "late", operator="Enter", frame="loop"),
        node("work", "enter", "second"),
    ]
    assert names(find_frames(nodes)) == ["late", ("loop", ["enter", "second", "work"])]


@pytest.mark.tensorflow
def test_a_graph_def_is_read_node_by_node():
    import tensorflow as tf

    # GIVEN a graph whose nodes come in the wrong order, with a control edge and an open dimension
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, (None, 3), name="x")
        first = tf.constant([1, 2], name="first")
        with tf.control_dependencies([first]):
            tf.split(x, 3, axis=1, name="parts")
    definition = graph.as_graph_def(add_shapes=True)
    # WHEN they are prepared
    prepared = {n.name: n for n in prepare(reversed(list(definition.node)))}
    # THEN inputs, control edges, types and shapes are as TensorFlow says
    assert list(prepared)[-1] == "parts"
    parts = prepared["parts"]
    assert parts.data == ("parts/split_dim:0", "x:0")
    assert parts.sources() == ["parts/split_dim", "x"]
    assert prepared["parts/split_dim"].control == ("first",)
    assert prepared["parts/split_dim"].sources() == ["first"]
    assert parts.outputs == (Value("float32", 4, None),) * 3
    assert parts.attributes["num_split"] == 3
    assert prepared["first"].outputs == (Value("int32", 4, (2,)),)
    assert prepared["first"].attributes.array("value").tolist() == [1, 2]


@pytest.mark.tensorflow
def test_attributes_are_plain_values():
    import tensorflow as tf

    proto = tf.compat.v1.NodeDef().attr
    proto["whole"].i = 3
    proto["part"].f = 0.5
    proto["truth"].b = True
    proto["text"].s = b"VALID"
    proto["type"].type = tf.float16.as_datatype_enum
    proto["shape"].shape.dim.add(size=4)
    proto["function"].func.name = "body"
    proto["numbers"].list.i.extend([1, 2])
    proto["texts"].list.s.append(b"a")
    proto["types"].list.type.append(tf.int32.as_datatype_enum)
    proto["functions"].list.func.add(name="branch")
    proto["empty"].list.SetInParent()
    proto["tensor"].tensor.SetInParent()
    attributes = Attributes(proto)
    assert dict(attributes) == {
        "whole": 3,
        "part": 0.5,
        "truth": True,
        "text": "VALID",
        "type": "float16",
        "shape": (4,),
        "function": "body",
        "numbers": [1, 2],
        "texts": ["a"],
        "types": ["int32"],
        "functions": ["branch"],
        "empty": [],
        "tensor": None,
    }
    assert len(attributes) == 13
    # Asking for what is not there adds nothing, though protobuf's own maps would.
    assert attributes.get("missing") is None
    assert "missing" not in proto
