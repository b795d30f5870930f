"""What may be done to a result, in the order of the harm it does."""

import pytest

from snugly.errors import InputError
from snugly.planning.safety import SAFETIES, harm_of


def test_harm_grows_from_the_same_result_to_other_training():
    assert [harm_of(safety) for safety in SAFETIES] == [0, 1, 2]
    assert SAFETIES[0] == "same-result"


@pytest.mark.parametrize(("given", "hint"), [("same-results", "same-result"), ("x" * 99, "one of")])
def test_what_is_no_safety_is_refused_with_a_hint(given, hint):
    with pytest.raises(InputError, match="allow cannot be") as refusal:
        harm_of(given)
    assert hint in refusal.value.hint
    assert len(refusal.value.message) < 80
