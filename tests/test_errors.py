"""The exception tree, its codes and its hints."""

import pickle
import re

import pytest

from snugly import codes, errors
from snugly.errors import InputError, MemoryLimitExceeded, SnuglyError, missing_tensorflow, suggest
from snugly.guarding.async_raise import Raised


def all_errors(kind=SnuglyError):
    yield kind
    for child in kind.__subclasses__():
        if child is not Raised:  # Python makes it in another thread, without arguments
            yield from all_errors(child)


@pytest.mark.parametrize("kind", list(all_errors()))
def test_every_error_has_a_registered_code_and_a_hint(kind):
    error = kind("it happened")
    assert error.code in codes.REGISTRY
    assert error.hint == codes.REGISTRY[error.code].remedy
    assert str(error) == "it happened"


@pytest.mark.parametrize("kind", list(all_errors()))
def test_every_error_is_drawn_in_the_tree(kind):
    assert re.search(rf"\b{kind.__name__}\b", errors.__doc__)


@pytest.mark.parametrize("kind", list(all_errors()))
def test_errors_survive_the_way_between_processes(kind):
    # GIVEN an error with a code and a hint of its own
    error = kind("it happened", code="SNG202", hint="do this")
    # WHEN it is sent to another process
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    # THEN nothing is lost
    assert (type(copy), str(copy), copy.code, copy.hint) == (
        kind,
        "it happened",
        "SNG202",
        "do this",
    )


def test_a_message_reads_what_happened_then_a_blank_line_then_the_hint():
    error = InputError("no such thing", code="SNG104", hint="try another")
    assert error.render() == "error[SNG104]: no such thing\n\nhint: try another"


def test_an_exceeded_limit_is_a_memory_error():
    with pytest.raises(MemoryError):
        raise MemoryLimitExceeded("asked for 5 GiB of 4 GiB")


def test_missing_tensorflow_names_the_install_command():
    error = missing_tensorflow()
    assert isinstance(error, ImportError)
    assert error.hint == "pip install 'snugly[tensorflow]'"


def test_near_names_are_suggested_and_far_ones_are_not():
    assert suggest("jetson-nono", ["jetson-nano", "t4"]) == "did you mean jetson-nano?"
    assert suggest("banana", ["jetson-nano", "t4"]) == ""


def test_codes_are_unique_and_well_formed():
    assert len(codes.REGISTRY) == len(codes._ALL)
    for code, entry in codes.REGISTRY.items():
        assert re.fullmatch(r"SNG\d{3}", code)
        assert entry.title
        assert entry.meaning.endswith(".")
        assert entry.remedy
