"""Findings: as data, in a terminal, as annotations, as SARIF."""

import json

import pytest

from snugly.codes import REGISTRY
from snugly.findings import Finding
from snugly.reporting.findings import (
    code_data,
    draw_code,
    draw_findings,
    findings_data,
    in_words,
)
from snugly.reporting.github import to_github
from snugly.reporting.sarif import sarif_data, to_sarif
from snugly.reporting.terminal import make_console


def make(code="SNG750", **fields):
    known = {
        "title": REGISTRY[code].title,
        "cause": "because, of: 100 %\nand more",
        "remedy": "do this",
        "severity": "error",
        "is_memory": False,
        "confidence": 0.97,
        "evidence": ("line 3: too many resources",),
    }
    return Finding(code=code, **(known | fields))


def drawn(drawing):
    console = make_console()
    with console.capture() as capture:
        console.print(drawing)
    return capture.get()


def test_data_has_what_the_contract_says():
    (entry,) = findings_data([make()])["findings"]
    keys = {"code", "title", "cause", "remedy", "is_memory", "confidence", "evidence"}
    assert keys <= entry.keys()
    assert json.loads(json.dumps(entry)) == entry


def test_the_drawing_says_whether_it_is_memory_how_sure_and_what_to_do():
    text = drawn(draw_findings([make(), make("SNG724", is_memory=True, confidence=0.6)]))
    assert text.startswith("error[SNG750]: ")
    assert "no, memory is not the cause" in text
    assert "nearly certain (97%, assumed)" in text
    assert "line 3: too many resources" in text
    assert "hint: do this" in text
    assert "also seen" in text
    assert "SNG724" in text
    assert "(memory, possible)" in text


def test_one_finding_is_not_followed_by_others():
    assert "also seen" not in drawn(draw_findings([make()]))


def test_nothing_found_is_said_to_be_unknown():
    assert drawn(draw_findings([])).startswith("unknown: ")


@pytest.mark.parametrize(
    ("confidence", "words"),
    [(1.0, "nearly certain"), (0.8, "likely"), (0.6, "possible"), (0.2, "a guess")],
)
def test_confidence_in_words(confidence, words):
    assert in_words(confidence) == words


def test_a_code_is_shown_with_its_samples():
    text = drawn(draw_code(REGISTRY["SNG750"], ["one\ntwo"]))
    assert text.startswith("SNG750: ")
    assert "  one\n  two" in text
    assert "it looks like" not in drawn(draw_code(REGISTRY["SNG203"], []))
    assert code_data(REGISTRY["SNG750"], ["x"])["samples"] == ["x"]


def test_annotations_are_escaped():
    text = to_github([make(path="a,b:c.log", line=7), make(severity="note")])
    first, second = text.splitlines()
    assert first.startswith("::error file=a%2Cb%3Ac.log,line=7,title=SNG750%3A ")
    assert "because, of: 100 %25%0Aand more What to do: do this" in first
    assert second.startswith("::notice title=")


def test_sarif_has_a_rule_for_each_code_and_a_place_where_there_is_one():
    data = sarif_data([make(path="logs\\a.log", line=7), make(), make("SNG724")])
    (run,) = data["runs"]
    assert data["version"] == "2.1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["SNG750", "SNG724"]
    first, second, third = run["results"]
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "logs/a.log"},
        "region": {"startLine": 7},
    }
    assert "locations" not in second
    assert third["ruleIndex"] == 1
    assert third["properties"]["is_memory"] is False
    assert json.loads(to_sarif([])) == sarif_data([])
