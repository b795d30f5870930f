"""The doctor's report: facts, findings, and what to set."""

import json

from snugly.devices import Host
from snugly.devices.examination import Examination, find_hazards
from snugly.devices.limits import Limit
from snugly.devices.software import Software
from snugly.reporting.doctor import doctor_data, draw_doctor
from snugly.reporting.terminal import make_console
from snugly.units import Size

LIMITS = (Limit("stack", "ulimit -s", Size("8 MiB")), Limit("data", "ulimit -d", None))


def make_examination(**fields):
    known = {
        "python": "3.12.1",
        "machine": "x86_64",
        "flavours": (("tensorflow", "2.21.0"),),
        "keras": "3.15.0",
        "cuda_build": True,
        "variables": (("XLA_FLAGS", "--x"),),
    }
    software = Software(**(known | fields))
    host = Host(Size("16 GiB"), Size("12 GiB"), None, (), None)
    return Examination(software, host, LIMITS, tuple(find_hazards(software, host, LIMITS)))


def drawn(examination):
    console = make_console()
    with console.capture() as capture:
        console.print(draw_doctor(examination))
    return capture.get()


def test_data_is_plain_and_complete():
    data = doctor_data(make_examination())
    assert json.loads(json.dumps(data)) == data
    assert data["tensorflow"]["version"] == "2.21.0"
    assert data["tensorflow"]["onednn"] is True
    assert data["limits"] == {"stack": 8 * 1024**2, "data": None}
    assert [finding["code"] for finding in data["findings"]] == ["SNG901"]


def test_the_drawing_names_the_hazard_and_what_to_set():
    text = drawn(make_examination())
    assert "warning[SNG901]" in text
    assert "TF_ENABLE_ONEDNN_OPTS=0" in text
    assert "tensorflow 2.21.0" in text
    assert "unlimited  (ulimit -d)" in text
    assert "--x" in text
    assert "1 finding;" in text


def test_without_tensorflow_the_drawing_says_so_and_how_to_install_it():
    text = drawn(make_examination(flavours=(), keras=None, cuda_build=None, variables=()))
    assert "not installed" in text
    assert "pip install 'snugly[tensorflow]'" in text
    assert "none set" in text


def test_nothing_found_is_said():
    quiet = (("TF_ENABLE_ONEDNN_OPTS", "0"), ("TF_CPU_ALLOCATOR_USE_BFC", "1"))
    assert "nothing found" in drawn(make_examination(variables=quiet))
