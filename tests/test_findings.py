"""Finding: plain data, checked when it is made."""

import json

import pytest

from snugly.findings import Finding


def test_data_of_a_finding_leaves_out_what_does_not_apply():
    finding = Finding(code="SNG901", title="it segfaults", evidence=("seen here",))
    data = finding.to_data()
    assert data["evidence"] == ["seen here"]
    assert data["is_memory"] is True
    assert "path" not in data
    assert json.loads(json.dumps(data)) == data


def test_data_of_a_finding_in_source_code_has_its_place():
    finding = Finding(code="SNG801", title="grows", path="train.py", line=4, message="list grows")
    assert {
        "path": "train.py",
        "line": 4,
        "message": "list grows",
    }.items() <= finding.to_data().items()


@pytest.mark.parametrize("confidence", [-0.1, 1.1, float("nan")])
def test_confidence_lies_between_0_and_1(confidence):
    with pytest.raises(ValueError, match="between 0 and 1"):
        Finding(code="SNG901", title="it", confidence=confidence)
