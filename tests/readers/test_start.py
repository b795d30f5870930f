"""TensorFlow is loaded quietly, and only when it is needed."""

import subprocess
import sys

import pytest

from snugly.errors import MissingDependencyError
from snugly.readers.start import load_tensorflow


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.tensorflow
def test_loading_says_nothing_but_hides_nothing():
    # GIVEN something that is written past Python while TensorFlow is loaded
    outcome = run(
        "import os, sys, threading\n"
        "from snugly.readers.start import load_tensorflow\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'tensorflow':\n"
        "            os.write(2, b'a real problem\\n')\n"
        "sys.meta_path.insert(0, Finder())\n"
        "print(load_tensorflow().__name__)\n"
        "os.write(2, b'afterwards\\n')\n"
    )
    # WHEN it is loaded, THEN that is all there is to read
    assert outcome.stdout == "tensorflow\n"
    assert outcome.stderr == "a real problem\nafterwards\n"


@pytest.mark.tensorflow
def test_a_gpu_on_paper_is_predicted_quietly_though_tensorflow_talks():
    # GIVEN a program that imported TensorFlow at its own log level
    program = (
        "import os; os.environ['TF_CPP_MIN_LOG_LEVEL'] = '0'\n"
        "import keras, snugly\n"
        "model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(4, 3)])\n"
        "from snugly.readers import start\n"
    )
    asked = "snugly.predict(model, batch_size=2, device='t4')\nos.write(2, b'afterwards\\n')\n"
    # WHEN it asks for a GPU that is not here THEN nothing is said of kernels that are missing
    quiet = run(program + asked)
    assert quiet.returncode == 0, quiet.stderr
    assert "OpKernel" not in quiet.stderr
    assert "device='" not in quiet.stderr
    assert quiet.stderr.endswith("afterwards\n")
    # The test above can fail:
    loud = run(program + "start._PLACED_ON_PAPER = ()\n" + asked)
    assert "OpKernel" in loud.stderr


def test_reading_rooms_are_imported_without_tensorflow():
    code = "import sys, snugly.readers.read; print({'tensorflow', 'keras'} & set(sys.modules))"
    assert run(code).stdout == "set()\n"
    # The test above can fail:
    assert run("import sys, json; print({'json'} & set(sys.modules))").stdout == "{'json'}\n"


def test_without_tensorflow_the_install_command_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)  # as Python marks what cannot be imported
    with pytest.raises(MissingDependencyError) as caught:
        load_tensorflow()
    assert caught.value.hint == "pip install 'snugly[tensorflow]'"
