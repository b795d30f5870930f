"""What `strategy=` may be, and what it says about batches and processes."""

import pytest

from snugly.errors import InputError
from snugly.predicting.strategies import Strategy, strategy_from


@pytest.mark.parametrize(
    ("text", "workers", "devices", "servers"),
    [
        ("mirrored:4", 1, 4, 0),
        ("multiworker:2x4", 2, 4, 0),
        ("multiworker:2", 2, 1, 0),
        ("parameter-server:4x2", 4, 1, 2),
        (" mirrored:1 ", 1, 1, 0),
    ],
)
def test_descriptions_are_read(text, workers, devices, servers):
    found = strategy_from(text)
    assert (found.workers, found.devices, found.servers) == (workers, devices, servers)
    assert strategy_from(str(found)) == found
    assert strategy_from(found) is found


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("mirored:4", "did you mean mirrored?"),
        ("", "mirrored:4"),
        ("mirrored", "write mirrored:4"),
        ("mirrored:0", "write mirrored:4"),
        ("mirrored:4x2", "write mirrored:4"),
        ("mirrored:-1", "write mirrored:4"),
        ("mirrored:9999999", "write mirrored:4"),
        ("multiworker:2x", "write multiworker:2x4"),
        ("multiworker:2x0", "write multiworker:2x4"),
        ("parameter-server:4", "write parameter-server:4x2"),
    ],
)
def test_anything_else_is_refused_with_what_to_write(text, hint):
    with pytest.raises(InputError) as caught:
        strategy_from(text)
    assert caught.value.code == "SNG109"
    assert hint in caught.value.hint


@pytest.mark.parametrize("given", [4, object(), ["mirrored:4"]])
def test_things_that_are_no_strategy_are_refused(given):
    with pytest.raises(InputError, match="cannot be predicted") as caught:
        strategy_from(given)
    assert caught.value.code == "SNG109"


def test_the_largest_share_of_a_batch_is_rounded_up():
    # GIVEN 7 examples and 4 replicas WHEN divided THEN 2, 2, 2 and 1
    assert strategy_from("multiworker:2x2").largest_share(7) == 2
    assert strategy_from("mirrored:4").largest_share(8) == 2
    assert strategy_from("mirrored:4").largest_share(1) == 1
    # AND a worker of parameter servers takes a batch of its own
    assert strategy_from("parameter-server:4x2").largest_share(8) == 8


def test_what_carries_gradients_depends_on_the_device_and_on_what_was_chosen():
    assert Strategy("mirrored", devices=2).carried_by(on_gpu=False) == "ring"
    assert Strategy("mirrored", devices=2).carried_by(on_gpu=True) == "nccl"
    assert Strategy("multiworker", workers=2).carried_by(on_gpu=True) == "ring"
    chosen = Strategy("multiworker", workers=2, communication="nccl")
    assert chosen.carried_by(on_gpu=True) == "nccl"
    assert chosen.carried_by(on_gpu=False) == "ring"
