"""`snugly pack`: a table of buffers in, the same with offsets and an exit code out."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from snugly.cli import main
from snugly.cli import pack as command

SHARED = Path(__file__).parents[3] / "shared/data/minimalloc"

THREE = "id,lower,upper,size\na,0,2,4\nb,1,3,4\nc,2,4,4\n"

# Never more than 7 bytes are live, but every arrangement needs 8.
GAPPED = (
    "id,lower,upper,size\na,2,5,3\nb,1,4,1\nc,0,3,2\nd,0,1,5\ne,1,2,4\nf,2,3,1\ng,3,4,3\nh,4,5,4\n"
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "three.csv").write_text(THREE)
    (tmp_path / "gapped.csv").write_text(GAPPED)
    return tmp_path


@pytest.fixture
def _damaged(folder, monkeypatch):
    """Files that cannot be read, and a bound on their size that a small one is above."""
    (folder / "bytes.csv").write_bytes(b"id,lower\xff\xfe")
    (folder / "empty.csv").touch()
    (folder / "long.csv").write_text(THREE * 100)
    monkeypatch.setattr(command, "LARGEST_FILE", 1000)


def read(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def test_a_packing_that_fits_is_written_and_told(folder, capsys):
    assert main(["pack", "three.csv", "--capacity", "8", "-o", "out.csv"]) == 0
    rows = read(folder / "out.csv")
    assert [row["id"] for row in rows] == ["a", "b", "c"]
    assert sorted({int(row["offset"]) for row in rows}) == [0, 4]
    assert rows[0]["offset"] == rows[2]["offset"]
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == "fits: 8 B of 8 B"
    assert "proven to be the lowest" in said.out
    assert said.err == "written: out.csv\n"


def test_without_a_capacity_the_lowest_is_found(capsys):
    assert main(["pack", "gapped.csv"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("packed: 8 B\n")
    assert "live at once  7 B at most" in said
    assert "no packing is lower than 8 B" in said


def test_more_live_bytes_than_the_capacity_say_the_least(folder, capsys):
    assert main(["pack", "three.csv", "--capacity", "7", "-o", "out.csv"]) == 1
    said = capsys.readouterr()
    assert said.out.startswith("does not fit[SNG591]: 8 B are live at once; the capacity is 7 B\n")
    assert "hint: " in said.out
    assert said.err == "not written: out.csv\n"
    assert not (folder / "out.csv").exists()


def test_a_proof_by_search_is_told_as_one(capsys):
    assert main(["pack", "gapped.csv", "--capacity", "7"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("does not fit[SNG592]: it is proven that no packing fits 7 B\n")


def test_the_time_limit_is_told_with_the_lowest_found(capsys):
    assert main(["pack", "gapped.csv", "--capacity", "7", "--time-limit", "1e-9"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("undecided[SNG593]: no packing within 7 B was found;")
    assert "above what is proven" in said


def test_json_has_the_offsets_and_what_is_proven(capsys):
    words = ["pack", "three.csv", "--capacity", "1KiB", "--alignment", "16"]
    assert main([*words, "--output-format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    buffers = data.pop("buffers")
    assert data == {
        "schema_version": 1,
        "status": "packed",
        "code": None,
        "height": 20,
        "capacity": 1024,
        "alignment": 16,
        "live": 8,
        "lower_bound": 20,
        "optimal": True,
        "positions_tried": 0,
    }
    assert buffers[0] == {"id": "a", "lower": 0, "upper": 2, "size": 4, "offset": 0}


def test_the_alignment_is_shown(capsys):
    assert main(["pack", "three.csv", "--alignment", "1KiB"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("packed: 1,028 B (")
    assert "alignment     1,024 B" in said


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("nowhere.csv", "SNG002", "cannot read 'nowhere.csv': No such file"),
        (".", "SNG002", "cannot read '.': Is a directory"),
        ("a\0b", "SNG002", "cannot read"),
        ("bytes.csv", "SNG590", "not text in UTF-8"),
        ("empty.csv", "SNG590", "the file is empty"),
        ("long.csv", "SNG594", "is larger than 0 MiB"),
        ("three.csv --capacity 4Q", "SNG004", "4Q"),
        ("three.csv --capacity -1", "SNG004", "-1"),
        ("three.csv --capacity=-1", "SNG004", "-1"),
        ("three.csv --alignment 0", "SNG002", "alignment of 0"),
        ("three.csv --time-limit 0", "SNG002", "--time-limit must be a number of seconds above 0"),
        ("three.csv --time-limit nan", "SNG002", "--time-limit"),
        ("three.csv --time-limit inf", "SNG002", "--time-limit"),
        ("three.csv --time-limit soon", "SNG002", "'soon'"),
        ("three.csv -o nowhere/out.csv", "SNG002", "cannot write 'nowhere/out.csv'"),
        ("three.csv -o .", "SNG002", "cannot write '.'"),
        ("three.csv -o a\0b", "SNG002", "cannot write"),
        (f"three.csv -o {'x' * 5000}", "SNG002", "cannot write 'xxx"),
        ("three.csv -o /dev/full", "SNG002", "cannot write '/dev/full': No space left"),
    ],
)
@pytest.mark.usefixtures("_damaged")
def test_bad_input_is_refused_with_a_hint(capsys, words, code, says):
    assert main(["pack", *words.split(" ")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"error[{code}]: ")
    assert says in said.err
    assert "\nhint: " in said.err


def test_tensorflow_is_not_loaded():
    check = (
        "import sys; from snugly.cli import main; code = main(['pack', 'three.csv']);"
        "sys.exit(code or 'tensorflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


@pytest.mark.parametrize("name", ["G", "J", "K"])
def test_hard_problems_of_others_are_solved(name, folder):
    table = SHARED / f"{name}.1048576.csv"
    if not table.exists():
        pytest.skip("needs shared data: minimalloc")
    assert main(["pack", str(table), "--capacity", "1048576", "-o", "out.csv"]) == 0
    # The table is looked at by comparing all pairs, without Snugly.
    rows = [
        tuple(int(row[key]) for key in ("lower", "upper", "offset", "size"))
        for row in read(folder / "out.csv")
    ]
    assert len(rows) == len(table.read_text().splitlines()) - 1
    for place, (lower, upper, offset, size) in enumerate(rows):
        assert 0 <= offset <= 1048576 - size
        for begin, end, start, length in rows[:place]:
            apart_in_time = upper <= begin or end <= lower
            assert apart_in_time or offset + size <= start or start + length <= offset
