"""A training step cut in two: the worker's part, and that of each parameter server."""

from snugly.graph import Access, Graph, Kind, Operation, Resident, Tensor
from snugly.graph.check import faults
from snugly.predicting.servers import (
    RECEIVE,
    SEND,
    is_remote,
    part_of_server,
    part_of_worker,
    served_bytes,
    waiting_bytes,
)

MARK = "on_its_server"
# Tensors of the graph below, by what they are.
KERNEL, BIAS, KERNEL_SLOT, BIAS_SLOT, COUNTER, CONSTANT = range(6)
INPUT, READ_KERNEL, READ_BIAS, PRODUCT, LOSS, KERNEL_GRADIENT, BIAS_GRADIENT = range(6, 13)
KERNEL_STEP, BIAS_STEP, READ_COUNTER, READ_AGAIN = range(13, 17)
BYTES = [4000, 4000, 4000, 4000, 8, 64, 800, 4000, 4000, 80, 4, 4000, 4000, 4000, 4000, 8, 8]


def step() -> Graph:
    """A dense layer with two variables, a slot for each, and a counter that both updates read."""
    kinds = {KERNEL: Kind.WEIGHT, BIAS: Kind.WEIGHT, CONSTANT: Kind.WEIGHT}
    kinds |= dict.fromkeys((KERNEL_SLOT, BIAS_SLOT, COUNTER), Kind.OPTIMIZER)

    def read(name, variable, output):
        return Operation(
            name, "ReadVariableOp", (), (output,), variables=(variable,), access=Access.READ
        )

    def update(name, value, *variables):
        return Operation(name, "Apply", (value,), variables=variables, access=Access.UPDATE)

    return Graph(
        operations=[
            read("dense/read", KERNEL, READ_KERNEL),
            read("dense/bias/read", BIAS, READ_BIAS),
            Operation("dense/product", "MatMul", (INPUT, READ_KERNEL, READ_BIAS), (PRODUCT,)),
            Operation("loss", "Loss", (PRODUCT, CONSTANT), (LOSS,)),
            Operation("grad/kernel", "MatMul", (INPUT, PRODUCT), (KERNEL_GRADIENT,)),
            Operation("grad/bias", "Sum", (PRODUCT,), (BIAS_GRADIENT,)),
            read(f"adam/{MARK}/read", COUNTER, READ_COUNTER),
            Operation(f"adam/{MARK}/mul", "Mul", (KERNEL_GRADIENT, READ_COUNTER), (KERNEL_STEP,)),
            update(f"adam/{MARK}/apply", KERNEL_STEP, KERNEL, KERNEL_SLOT),
            read(f"adam/{MARK}_1/read", COUNTER, READ_AGAIN),
            Operation(f"adam/{MARK}_1/mul", "Mul", (BIAS_GRADIENT, READ_AGAIN), (BIAS_STEP,)),
            update(f"adam/{MARK}_1/apply", BIAS_STEP, BIAS, BIAS_SLOT),
        ],
        tensors=[
            Tensor(size, kinds.get(index, Kind.ACTIVATION)) for index, size in enumerate(BYTES)
        ],
        resident=[
            Resident(KERNEL, "kernel"),
            Resident(BIAS, "bias"),
            Resident(COUNTER, "iteration"),
            Resident(KERNEL_SLOT, "kernel_momentum"),
            Resident(BIAS_SLOT, "bias_momentum", shares=KERNEL_SLOT),
            Resident(CONSTANT, "constant"),
        ],
        inputs=[INPUT],
        outputs=[LOSS],
    )


def test_the_graph_of_these_tests_is_sound():
    assert faults(step()) == []


def test_what_touches_a_variable_or_belongs_to_its_update_runs_on_a_server():
    remote = {operation.name for operation in step().operations if is_remote(operation, MARK)}
    assert "dense/read" in remote
    assert f"adam/{MARK}/mul" in remote
    assert not {"dense/product", "loss", "grad/kernel", "grad/bias"} & remote
    assert is_remote(Operation("rows", "ResourceGather", (1, 2), (3,)), MARK)


def test_a_worker_keeps_no_variable_and_receives_each_in_a_buffer_of_its_own():
    # GIVEN a training step WHEN the worker's part is cut out
    part = part_of_worker(step(), MARK)
    # THEN it is a sound graph in which only constants stay
    assert faults(part) == []
    assert [entry.name for entry in part.resident] == ["constant"]
    # AND weights are received, as weights, and gradients are sent
    received = [one for one in part.operations if one.type == RECEIVE]
    sent = [one for one in part.operations if one.type == SEND]
    assert [one.outputs for one in received] == [(READ_KERNEL,), (READ_BIAS,)]
    assert {part.tensors[one.outputs[0]].kind for one in received} == {Kind.WEIGHT}
    assert [one.inputs for one in sent] == [(KERNEL_GRADIENT,), (BIAS_GRADIENT,)]
    assert not any(one.variables for one in part.operations)
    # AND the gradients are what may have to wait
    assert waiting_bytes(step(), MARK) == BYTES[KERNEL_GRADIENT] + BYTES[BIAS_GRADIENT]


def test_variables_go_round_the_servers_and_slots_stay_with_them():
    # GIVEN two servers WHEN each one's part is cut out
    parts = [part_of_server(step(), MARK, index, 2) for index in range(2)]
    # THEN the first has the first variable and the third, the second the other
    assert [faults(part) for part in parts] == [[], []]
    names = [[entry.name for entry in part.resident] for part in parts]
    assert names == [["kernel", "iteration", "kernel_momentum"], ["bias", "bias_momentum"]]
    # AND a slot whose zeros were another's has its own where that is not
    assert parts[1].resident[1].shares is None
    # AND each computes the update of what it has, from what it receives
    applied = [[one.name for one in part.operations if one.type == "Apply"] for part in parts]
    assert applied == [[f"adam/{MARK}/apply"], [f"adam/{MARK}_1/apply"]]
    made = [one.outputs for one in parts[1].operations if one.type == RECEIVE]
    assert made == [(BIAS_GRADIENT,), (READ_AGAIN,)]


def test_one_server_has_everything():
    part = part_of_server(step(), MARK, 0, 1)
    assert faults(part) == []
    assert len(part.resident) == 5
    assert part.resident[-1].shares == KERNEL_SLOT
    assert part.resident_bytes() == sum(BYTES[:5])
    # AND what workers fetch from it is what they train with, not what updates read
    assert served_bytes(part) == BYTES[KERNEL] + BYTES[BIAS]


def test_variables_that_a_step_does_not_use_count_too():
    # GIVEN a seed that was made before the kernel, and a bias before both
    order = ("bias", "seed", "kernel", "iteration")
    names = [
        [entry.name for entry in part_of_server(step(), MARK, index, 2, order).resident]
        for index in range(2)
    ]
    # THEN it has its turn
    assert names == [["kernel", "bias", "kernel_momentum", "bias_momentum"], ["iteration"]]
