"""The page as data and as text: what is on it, that it is small, and that it loads nothing."""

import base64
import hashlib
import json
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from tests.reporting.example_pages import (
    MIB,
    TIMELINE,
    make_prediction,
    make_record,
    make_span,
)

import snugly
from snugly.cli import main
from snugly.devices import Budget
from snugly.errors import InputError
from snugly.graph.model import Kind
from snugly.reporting.html import contents as contents_module
from snugly.reporting.html import page_of_prediction, page_of_record, render, write_page
from snugly.reporting.html.columns import LONGEST_NAME, page_data, to_script
from snugly.reporting.html.render import shell
from snugly.timeline import Timeline
from snugly.units import Size

HOSTILE = "</script><img src=x onerror=alert(1)>\u2028\u2029'\"&\udc80"


def unfolded(coded):
    names, before = [], ""
    for shared, rest in zip(coded[::2], coded[1::2], strict=True):
        before = before[:shared] + rest
        names.append(before)
    return names


def decoded(data):
    """The blocks of a page as the script unpacks them, with their offsets."""
    blocks = data["blocks"]
    births, offsets = np.cumsum(blocks["birth"]), np.cumsum(blocks["offset"])
    operations, layers, lines = (unfolded(blocks[key]) for key in ("operations", "layers", "lines"))
    return {
        (
            blocks["sizes"][blocks["bytes"][index]],
            blocks["kinds"][blocks["kind"][index]],
            operations[blocks["operation"][index]],
            int(births[index]),
            int(births[index]) + life if life else data["length"],
            layers[blocks["layer"][index]] or None,
            lines[blocks["line"][index]] or None,
        ): int(offsets[index])
        for index, life in enumerate(blocks["life"])
    }


# ------------------------------------------------------------------------------ what is on a page


def test_a_prediction_and_a_record_share_one_page():
    predicted, measured = page_of_prediction(make_prediction()), page_of_record(make_record())
    assert page_data(predicted).keys() == page_data(measured).keys()
    assert (predicted.source, measured.source) == ("predicted", "measured")
    assert predicted.stack == measured.stack


def test_the_verdict_of_a_prediction_is_the_terminals():
    page = page_of_prediction(make_prediction())
    assert page.headline.label == "does not fit"
    assert page.headline.sentence == (
        "one training step needs 15 MiB (14–17 MiB predicted); GPU:0 offers 12 MiB (measured)"
    )
    assert page.headline.where == "backward pass of dense (train.py:12)"
    assert page.suggestions == ("batch_size=21 fits with nothing else changed",)
    assert ("headroom", "-3 MiB (predicted)") in page.facts


def test_the_sentence_of_a_record_says_where_the_peak_was():
    page = page_of_record(make_record())
    assert page.headline.label == "measured"
    assert page.headline.sentence == (
        "the peak was 15 MiB (measured) on CPU:0, in gradient_tape/MatMul"
    )
    later = Timeline([*TIMELINE.spans, make_span(MIB, Kind.ACTIVATION, "x", 5, 6, "d", "t:1")], 9)
    sentence = page_of_record(make_record(timeline=later)).headline.sentence
    assert sentence == "the peak was 15 MiB (measured) on CPU:0, in d (t:1)"


@pytest.mark.parametrize(("offered", "label"), [(15 * MIB, "fits"), (15 * MIB - 1, "does not fit")])
def test_a_record_may_be_held_against_a_budget(offered, label):
    budget = Budget(Size(offered), "assumed", "the budget")
    page = page_of_record(make_record(), budget)
    assert page.headline.label == label
    assert page.headline.sentence.endswith(f"; the budget offers {Size(offered)} (assumed)")


def test_facts_out_of_a_file_are_put_in_words():
    facts = {"exit_code": 0, "complete": True, "peaks": {"CPU:0": MIB}, "command": ["a", "b"]}
    shown = dict(page_of_record(make_record(facts=facts)).facts)
    assert shown["exit code"] == "0"
    assert shown["complete"] == "yes"
    assert shown["peaks"] == "CPU:0 1 MiB (measured)"
    assert shown["command"] == "a b"


def test_blocks_reach_the_page_as_they_are():
    # GIVEN a page WHEN its data is read back THEN every block is there, with its origin
    data = json.loads(to_script(page_of_record(make_record())))
    assert decoded(data).keys() == {
        (
            span.bytes,
            str(span.kind),
            span.operation,
            span.birth,
            span.death,
            span.origin.layer,
            span.origin.line,
        )
        for span in TIMELINE.spans
    }
    assert data["peakMoment"] == 4
    assert data["requested"] == 14 * MIB
    assert dict(data["parts"]) == {
        "weight": 8 * MIB,
        "activation": 4 * MIB,
        "gradient": 2 * MIB,
    }


def test_without_a_timeline_there_is_still_what_is_live_at_the_peak():
    data = page_data(page_of_prediction(make_prediction(timeline=None)))
    assert data["length"] == 0
    assert len(data["blocks"]["kind"]) == 3
    assert any("no timeline" in reason for reason in data["waste"]["why"])


def test_an_empty_record_makes_a_page():
    data = page_data(page_of_record(make_record(timeline=Timeline([], 0), peak=Size(0))))
    assert data["blocks"]["kind"] == []
    assert data["headline"]["sentence"] == "the peak was 0 B (measured) on CPU:0"


def test_of_very_many_blocks_those_at_the_peak_and_the_largest_are_drawn(monkeypatch):
    # GIVEN more blocks than a page takes
    monkeypatch.setattr(contents_module, "MOST_BLOCKS", 3)
    monkeypatch.setattr(contents_module._chosen_spans, "__defaults__", (3,))
    page = page_of_record(make_record())
    # THEN the smallest one is left to the line, and that is said
    assert len(page.stack.spans) == 3
    assert page.left_out is not None
    assert (page.left_out.count, page.left_out.bytes) == (1, 100)
    assert max(page.left_out.most) == 100
    assert any("1 small blocks, at most 100 B" in note for note in page_data(page)["notes"])


# -------------------------------------------------------------------------------- the file itself


def test_without_its_data_the_page_is_under_300_kb():
    assert len(shell().encode()) < 300_000


def test_the_policy_allows_the_pages_own_script_and_style_only():
    text = render(page_of_record(make_record()))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        bodies = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        hashes = [base64.b64encode(hashlib.sha256(body.encode()).digest()) for body in bodies]
        assert rules[f"{tag}-src"].split() == [f"'sha256-{each.decode()}'" for each in hashes]


def test_nothing_is_loaded_from_anywhere():
    text = shell()
    assert not re.findall(r"""\b(?:src|srcset|action|data)\s*=\s*["']""", text.split("<script>")[0])
    assert re.findall(r'\bhref="([^"]*)"', text) == ["#live"]
    for way in (
        "url(",
        "@import",
        "fetch(",
        "XMLHttpRequest",
        "import(",
        "WebSocket",
        "sendBeacon",
    ):
        assert way not in text
    # No way from a name to markup either.
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert way not in text.split("uPlot=function")[0]
        assert way not in text.split('"use strict";\n// Bytes and counts')[1]


def test_hostile_names_cannot_leave_the_data():
    # GIVEN names that try to end the script element
    timeline = Timeline([make_span(10, Kind.INPUT, HOSTILE, 0, 3, HOSTILE, HOSTILE)], 3)
    record = make_record(
        timeline=timeline, program=HOSTILE, notes=(HOSTILE,), facts={HOSTILE: HOSTILE}
    )
    # WHEN the page is made THEN its shell is unchanged and the data is one line of harmless ASCII
    text = render(page_of_record(record))
    before, after = shell().split("@DATA@")
    assert text.startswith(before)
    assert text.endswith(after)
    data = text[len(before) : -len(after)]
    assert data.isascii()
    assert not set("<>&\n") & set(data)
    assert (10, "input", HOSTILE, 0, 3, HOSTILE, HOSTILE) in decoded(json.loads(data))


def test_very_long_names_are_cut_in_their_middle():
    name = "a" * 100_000 + "end"
    timeline = Timeline([make_span(10, Kind.INPUT, name, 0, 3)], 3)
    (block,) = decoded(page_data(page_of_record(make_record(timeline=timeline))))
    assert len(block[2]) <= LONGEST_NAME + 1
    assert block[2].endswith("…" + "a" * 297 + "end")


def test_a_hundred_thousand_blocks_stay_small():
    count = 100_000
    spans = [
        make_span(
            1000 + index % 977, Kind.GRADIENT, f"model/layer_{index % 300}/MatMul_{index}",
            index, index + 5, f"layer_{index % 300}", f"train.py:{index % 90}", 2048,
        )
        for index in range(count)
    ]  # fmt: skip
    text = to_script(page_of_record(make_record(timeline=Timeline(spans, count + 5))))
    assert len(text) < 50 * count
    assert len(json.loads(text)["blocks"]["bytes"]) == count


def test_the_file_is_written(tmp_path):
    page = page_of_prediction(make_prediction())
    path = write_page(page, tmp_path / "page.html")
    assert path.read_text(encoding="utf-8") == render(page)


@pytest.mark.parametrize("place", ["missing/page.html", ".", "a\0b", "x" * 5000])
def test_a_place_that_cannot_be_written_is_said(tmp_path, place):
    with pytest.raises(InputError, match="the page cannot be written to") as error:
        write_page(page_of_prediction(make_prediction()), tmp_path / place)
    assert error.value.code == "SNG304"
    assert "--html page.html" in error.value.hint


def test_making_a_page_loads_no_tensorflow():
    code = "import sys, snugly.reporting.html; print(*{'tensorflow', 'keras'} & sys.modules.keys())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not run.stdout.strip()


# ------------------------------------------------------------------------------- the command line


@pytest.fixture
def folder(monkeypatch, tmp_path):
    predicted = SimpleNamespace(calls=0)

    def predict(*_, **__):
        predicted.calls += 1
        return make_prediction()

    monkeypatch.setattr(snugly, "predict", predict, raising=False)
    monkeypatch.chdir(tmp_path)
    return SimpleNamespace(path=tmp_path, predicted=predicted)


def test_predict_writes_the_page_and_says_where_on_stderr(folder, capsys):
    words = ["predict", "m.keras", "--html", "page.html", "--output-format", "json"]
    assert main(words) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["verdict"] == "does-not-fit"
    assert said.err == "written: page.html\n"
    assert (folder.path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_bad_place_is_refused_before_predicting(folder, capsys):
    assert main(["predict", "m.keras", "--html", "missing/page.html"]) == 2
    assert folder.predicted.calls == 0
    assert "error[SNG304]" in capsys.readouterr().err
