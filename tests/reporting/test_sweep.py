"""A sweep's table: what is shown, what is written for spreadsheets."""

import csv
import io

import pytest
from rich.console import Console

from snugly.devices import budget_for
from snugly.reporting.sweep import COLUMNS, draw_sweep, sweep_csv, sweep_data
from snugly.reporting.terminal import show
from snugly.sweeping import Largest, Refusal, Row, Sweep
from snugly.sweeping.table import Found
from snugly.units import Size

T4, NANO = budget_for(None, "t4"), budget_for(None, "jetson-nano")
MISSING = Refusal("SNG104", "there is no file no.keras", "check the path")
SMALLER = Refusal("SNG539", "not even one example fits: it needs 3 GiB at most", "a smaller model")


def found(peak, low, high, **more):
    return Found(Size(peak), Size(low), Size(high), Size(peak), Size("1MiB"), **more)


@pytest.fixture
def table():
    step = found("2GiB", "1.9GiB", "2.1GiB", tensorflow="2.21.0")
    return Sweep(
        rows=(
            Row(model="a.keras", batch_size=8, budget=T4, found=step, verdict="fits"),
            Row(model="a.keras", batch_size=8, budget=NANO, found=step, verdict="uncertain"),
            Row(model="a.keras", batch_size=1024, budget=T4, found=step, verdict="does-not-fit"),
            Row(model="no.keras", batch_size=8, budget=T4, error=MISSING),
            Row(model="no.keras", batch_size=8, budget=NANO, error=MISSING),
        ),
        largest=(
            Largest(model="a.keras", budget=T4, batch_size=1234, high=Size("14GiB")),
            Largest(model="a.keras", budget=NANO, error=SMALLER),
        ),
        training=True,
        predictions=3,
        elapsed=1.25,
    )


def drawn(table, capsys):
    show(draw_sweep(table))
    return capsys.readouterr().out.splitlines()


def test_the_table_has_a_line_for_each_cell(table, capsys):
    lines = drawn(table, capsys)
    assert lines[0] == ("5 cells: 1 fit, 1 do not fit, 1 may not fit, 2 could not be predicted")
    assert lines[2].split() == ["batch", "device", "verdict", "needs", "range", "offers"]
    name, first, second, third, other, error, blank = lines[3:10]
    assert (name, other, blank) == ("a.keras", "no.keras", "")
    assert "8  t4           fits          2 GiB  1.9–2.1 GiB  13.3 GiB  measured" in first
    # A batch that stands above is not repeated.
    assert second.split()[:4] == ["jetson-nano", "may", "not", "fit"]
    assert third.split()[:5] == ["1,024", "t4", "does", "not", "fit"]
    # Of a model that fails in the same way everywhere, a line is enough.
    assert error.split() == ["SNG104"]


def test_printing_it_shows_the_same_table(table, capsys):
    assert str(table).splitlines() == drawn(table, capsys)


def test_in_a_narrow_terminal_names_and_verdicts_are_whole(table):
    console = Console(file=io.StringIO(), width=48)
    with console.capture() as capture:
        console.print(draw_sweep(table))
    lines = capture.get().splitlines()
    assert "no.keras" in lines
    assert sum("does not fit" in line for line in lines) == 1


def test_the_largest_batches_follow(table, capsys):
    lines = drawn(table, capsys)
    start = next(n for n, line in enumerate(lines) if "largest batch" in line)
    assert lines[start + 1] == "a.keras"
    assert lines[start + 2].split()[:4] == ["t4", "1,234", "14", "GiB"]
    assert lines[start + 3].split()[:2] == ["jetson-nano", "SNG539"]


def test_errors_are_told_once_with_their_hints(table, capsys):
    text = "\n".join(drawn(table, capsys))
    assert text.count("error[SNG104]: there is no file no.keras\nhint: check the path") == 1
    assert text.count("error[SNG539]: a.keras: not even one example fits") == 1
    assert "needs: the peak of one training step, predicted" in text
    assert "3 predictions in 1.2 s by this process" in text


def test_without_budgets_there_are_no_columns_for_them(capsys):
    rows = (Row(model="a", batch_size=None, budget=None, found=found("2GiB", "2GiB", "2GiB")),)
    lines = drawn(Sweep(rows=rows), capsys)
    assert lines[0] == "1 cell: 1 predicted"
    assert lines[2].split() == ["batch", "needs", "range"]
    assert lines[3] == "a"
    assert lines[4].split() == ["its", "own", "2", "GiB", "exactly"]


def test_a_row_without_a_budget_still_shows_its_error(capsys):
    lines = drawn(Sweep(rows=(Row(model="a", batch_size=1, budget=None, error=MISSING),)), capsys)
    assert lines[3:5] == ["a", "       SNG104"]


def test_a_model_that_fails_with_one_batch_has_a_line_for_each(capsys):
    rows = (
        Row(model="a", batch_size=1, budget=None, found=found("2GiB", "1GiB", "3GiB")),
        Row(model="a", batch_size=8, budget=None, error=MISSING),
    )
    lines = drawn(Sweep(rows=rows), capsys)
    assert lines[4].split() == ["1", "2", "GiB", "1–3", "GiB"]
    assert lines[5].split() == ["8", "SNG104"]


def test_an_arena_is_what_is_shown_and_the_reason_below(capsys):
    budget = budget_for(None, "esp32-s3")
    lite = found("60KiB", "60KiB", "60KiB", arena=Size("61KiB"))
    row = Row(
        model="a.tflite",
        batch_size=None,
        budget=budget,
        found=lite,
        verdict="does-not-fit",
        reason="the file takes 9 MiB of flash",
    )
    text = "\n".join(drawn(Sweep(rows=(row,)), capsys))
    assert "esp32-s3  does not fit  61 KiB  whole arena" in text
    assert "note: a.tflite on esp32-s3: the file takes 9 MiB of flash" in text


def test_the_spreadsheet_has_bytes_and_the_largest_batch_beside(table):
    first, *_, last = csv.DictReader(sweep_csv(table).splitlines())
    assert list(first) == list(COLUMNS)
    assert first["peak"] == str(2 << 30)
    assert first["budget"] == str(int(T4.bytes))
    assert (first["verdict"], first["largest_batch_size"], first["error"]) == ("fits", "1234", "")
    assert last["error"] == "SNG104: there is no file no.keras"
    assert last["peak"] == ""


def test_the_spreadsheet_of_largest_batches_alone(table):
    alone = Sweep(rows=(), largest=table.largest)
    first, second = csv.DictReader(sweep_csv(alone).splitlines())
    assert (first["device"], first["batch_size"], first["largest_batch_size"]) == ("t4", "", "1234")
    assert second["error"].startswith("SNG539: ")


def test_the_data_has_everything(table):
    data = sweep_data(table)
    assert [row["verdict"] for row in data["rows"]][:3] == ["fits", "uncertain", "does-not-fit"]
    assert data["tensorflow"] == "2.21.0"
    assert data["largest"][0]["high"] == 14 << 30
