"""The magics in a real Jupyter kernel, driven as a notebook is (nbclient)."""

import nbformat
import pytest
from nbclient import NotebookClient

from snugly.recording.file import read_record

pytestmark = pytest.mark.tensorflow

LOAD = "import os\nos.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\n%load_ext snugly"
TRAIN = """\
%%snugly_profile -o run.snugly --html page.html --name record
import keras
import numpy

model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(4096, name="wide")])
model.compile("adam", "mse")
history = model.fit(numpy.zeros((64, 8)), numpy.zeros((64, 4096)), verbose=0)
len(history.epoch)
"""


class Notebook:
    """A notebook that has been run to its end: outputs of each cell, by what they are."""

    def __init__(self, folder, *cells):
        cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
        notebook = nbformat.v4.new_notebook(cells=cells)
        client = NotebookClient(
            notebook,
            timeout=180,
            kernel_name="python3",
            allow_errors=True,
            resources={"metadata": {"path": str(folder)}},
        )
        client.execute()
        self.cells = notebook.cells

    def result(self, cell):
        """What stands behind Out[n]."""
        return [o.data["text/plain"] for o in self.outputs(cell, "execute_result")]

    def pictures(self, cell):
        return [o.data for o in self.outputs(cell, "display_data") if "text/html" in o.data]

    def printed(self, cell, stream="stdout"):
        return "".join(o.text for o in self.outputs(cell, "stream") if o.name == stream)

    def usage_error(self, cell):
        """What IPython prints, without a traceback, of a magic that is used wrongly."""
        text = self.printed(cell, "stderr")
        assert text.startswith("UsageError: ")
        return text

    def errors(self, cell):
        return self.outputs(cell, "error")

    def outputs(self, cell, kind):
        return [output for output in self.cells[cell].outputs if output.output_type == kind]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module")
def training(folder):
    """A notebook that trains in one cell and goes on in others."""
    return Notebook(
        folder,
        LOAD,
        "%reload_ext snugly\n%load_ext snugly",
        TRAIN,
        "record.peak, sum(record.parts.values()) == record.requested, model.name",
        "%%snugly_profile --no-picture\nx = tf.ones(3)\nx",  # tf is not imported
        "import tensorflow as tf",
        "%%snugly_profile\nkept = tf.ones((1024, 1024))\nraise ValueError('of the cell')",
        "%%snugly_profile --no-picture\nkept.shape.rank;",
        "%%snugly_profile -o missing/run.snugly\n1",
        "%%snugly_profile --html missing/page.html\n1",
        "%%snugly_profile --bananas\n1",
        "%%snugly_profile --no-picture\n!echo from the shell\n%pwd",
        "%%snugly_profile\n1 +",
    )


def test_a_cell_is_run_and_its_memory_drawn(training, folder):
    assert training.result(2) == ["1"]  # the last expression, as ever
    (picture,) = training.pictures(2)
    html = picture["text/html"]
    assert "<svg" in html
    assert "<script" not in html
    assert "wide" in html
    assert "In[3]:5" in html  # the line as the notebook shows it
    assert picture["text/plain"].startswith("peak ")
    assert "live at the peak" in picture["text/plain"]
    record = read_record(folder / "run.snugly")
    assert str(record.peak) in html
    page = (folder / "page.html").read_text()
    assert len(page) > 1000
    assert "wide" in page


def test_the_record_can_be_kept_under_a_name(training):
    (text,) = training.result(3)
    assert text.startswith("(Size(")
    assert ", True, 'sequential" in text


def test_loading_twice_does_no_harm(training):
    assert not training.errors(1)
    assert "already loaded" in training.printed(1)


def test_an_error_of_the_cell_is_the_notebooks_to_show_and_the_picture_is_there(training):
    (error,) = training.errors(6)
    assert (error.ename, error.evalue) == ("ValueError", "of the cell")
    text = "\n".join(error.traceback)
    assert "line 3" in text
    assert "snugly/integrations" not in text  # our own frames are not the user's business
    (picture,) = training.pictures(6)
    assert "4 MiB" in picture["text/html"]
    (missing,) = training.errors(4)
    assert missing.ename == "NameError"


def test_a_semicolon_silences_the_result_and_a_line_can_stand_for_the_picture(training):
    assert training.result(7) == []
    assert training.pictures(7) == []
    assert training.printed(7).startswith("peak ")


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (8, "run.snugly"),
        (9, "page.html"),
        (10, "unrecognized arguments: --bananas"),
    ],
)
def test_what_cannot_be_done_is_said_before_the_cell_is_run(training, cell, message):
    assert message in training.usage_error(cell)
    assert not training.result(cell)


def test_lines_for_the_shell_and_other_magics_work_inside(training, folder):
    assert "from the shell" in training.printed(11)
    assert training.result(11) == [repr(str(folder))]


def test_what_is_not_python_is_a_syntax_error_and_nothing_is_recorded(training):
    (error,) = training.errors(12)
    assert error.ename == "SyntaxError"
    assert not training.pictures(12)


def test_a_guarded_cell_is_refused_at_its_line_and_the_next_one_works(folder):
    notebook = Notebook(
        folder,
        LOAD,
        "%%snugly_guard\n1",
        "%%snugly_guard 4 bananas\n1",
        "%%snugly_guard 1GiB\nleft = 1\nleft + 1",
        "%%snugly_guard 1GiB\nleft = 2\nbytearray(8 << 30)",
        "left + 1",
        "%%snugly_guard 1MiB\n1",
        "%unload_ext snugly",
        "%%snugly_guard 14GiB\n1",
        "%%snugly_profile\n1",
    )
    assert "hint: %%snugly_guard 14GiB" in notebook.usage_error(1)
    assert "bananas" in notebook.usage_error(2)
    assert notebook.result(3) == ["2"]
    (error,) = notebook.errors(4)
    assert error.ename == "MemoryLimitExceeded"
    assert "line 3" in "\n".join(error.traceback)
    assert notebook.result(5) == ["3"]
    (full,) = notebook.errors(6)
    assert "already" in full.evalue
    assert "not found" in notebook.usage_error(8)
    assert "not found" in notebook.usage_error(9)
