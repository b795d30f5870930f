"""The code on the pages of answers runs, and prints what the pages say."""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

import pytest

pytestmark = pytest.mark.tensorflow

PAGES = sorted((Path(__file__).parents[1] / "docs/answers").glob("*.md"))
QUESTIONS = [page for page in PAGES if page.name != "index.md"]
REFERENCE = [
    Path(__file__).parents[1] / "docs" / f"{name}.md"
    for name in ("determinants", "jacobians", "checkpoint", "training", "input-pipelines")
]
FENCE = re.compile(r"^```(?P<language>\w+)?(?P<marker>.*)$")
# ```python not-run: needs a GPU
REASONS = ("not-run: needs a GPU", "not-run: needs a Jetson", "not-run: not built yet")
NAMED = re.compile(r"# (\w+\.py)$")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# Predictions follow the version of TensorFlow and the kernels of the machine. From 2 to 64 cores
# those on the pages differ by 0.5 %.
TOLERANCE = 0.1
SECONDS = 120  # a machine that does other things as well took 36
# A page that runs out of memory sets a limit of its own; this is for one that forgets to.
BYTES = 6 << 30
END = "=== end of a block ==="


@dataclass
class Page:
    """A page as a script: its code stands on the page's own lines, so that an error names them."""

    script: str
    files: dict[str, str] = field(default_factory=dict)
    said: list[tuple[int, list[str]]] = field(default_factory=list)  # the line, what is printed
    left_out: list[str] = field(default_factory=list)


def read_page(text):
    """A block that begins with `# name.py` is that file; a `text` block is what was printed."""
    page = Page("")
    lines = text.splitlines()
    script = [""] * len(lines)
    # The page's first line is its title.
    script[0] = f"import resource; resource.setrlimit(resource.RLIMIT_DATA, ({BYTES}, {BYTES}))"
    for language, marker, first, body in blocks(lines):
        last = first + len(body)
        name = NAMED.match(body[0]) if body else None
        if marker:
            page.left_out.append(f"{language} {marker}")
        elif language == "python" and name:
            page.files[name[1]] = "\n".join(body) + "\n"
        elif language == "python":
            compile("\n".join(body), "<block>", "exec")  # each block is whole
            script[first:last] = body
            script[last] = f"print({END!r}, flush=True)"
            page.said.append((first, []))
        elif language == "console":
            script[first] = as_call(body[0])
            script[last] = f"print({END!r}, flush=True)"
            page.said.append((first, body[1:]))
        elif language == "text":
            page.said[-1] = (first, body)
    page.script = "\n".join(script)
    return page


def blocks(lines):
    """Language, marker, index of the first line, and lines of each fenced block."""
    opening, start = None, 0
    for index, line in enumerate(lines):
        fence = FENCE.match(line)
        if fence is None:
            assert "```" not in line, f"line {index + 1}: an indented block would not be run"
        elif opening is None:
            opening, start = fence, index + 1
        else:
            yield opening["language"], opening["marker"].strip(), start, lines[start:index]
            opening = None
    assert opening is None, "a block without an end"


def as_call(command):
    """A command line as one line of Python. Exit code 1 is an answer: it does not fit."""
    prompt, program, *arguments = shlex.split(command)
    assert (prompt, program) == ("$", "snugly")
    call = [sys.executable, "-m", "snugly", *arguments]
    return f"import subprocess; assert subprocess.run({call!r}).returncode in (0, 1)"


def run(page, folder, name="page"):
    """Run it in a process of its own, and give back what each block printed."""
    for file, content in page.files.items():
        (folder / file).write_text(content)
    script = folder / f"{name.replace('-', '_')}.py"
    script.write_text(page.script)
    # The numbers on the pages are a CPU's, with the settings that TensorFlow starts with where it
    # turns oneDNN on by itself.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TF_")}
    environment |= {"CUDA_VISIBLE_DEVICES": "-1", "COLUMNS": "120", "PYTHONUNBUFFERED": "1"}
    environment["TF_ENABLE_ONEDNN_OPTS"] = "1"
    done = subprocess.run(
        [sys.executable, script.name],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [printed.strip("\n").splitlines() for printed in done.stdout.split(END)[:-1]]


def is_as_said(printed, said):
    """Whether lines are as the page says: the words exactly, the numbers nearly.

    `...` stands for any number of lines.
    """
    if "..." not in said:
        return len(printed) == len(said) and all(
            is_same_line(*pair) for pair in zip(printed, said, strict=True)
        )
    cut = said.index("...")
    head, tail = said[:cut], said[cut + 1 :]
    return is_as_said(printed[:cut], head) and any(
        is_as_said(printed[start:], tail) for start in range(cut, len(printed) + 1)
    )


def is_same_line(printed, said):
    if NUMBER.split(printed.rstrip()) != NUMBER.split(said.rstrip()):
        return False
    return all(
        as_number(one) == pytest.approx(as_number(other), rel=TOLERANCE)
        for one, other in zip_longest(NUMBER.findall(printed), NUMBER.findall(said))
    )


def as_number(text):
    return float(text.replace(",", ""))


@pytest.mark.parametrize("path", [*QUESTIONS, *REFERENCE], ids=lambda path: path.stem)
def test_the_code_of_an_answer_runs_and_prints_what_the_page_says(path, tmp_path):
    page = read_page(path.read_text())
    printed = run(page, tmp_path, path.stem)
    assert len(printed) == len(page.said) >= 1
    for lines, (line, said) in zip(printed, page.said, strict=True):
        assert is_as_said(lines, said), f"{path.name}:{line} prints\n" + "\n".join(lines)


def test_hardly_any_code_is_left_out_and_that_with_a_reason():
    left_out = [mark for path in PAGES for mark in read_page(path.read_text()).left_out]
    left_out = [mark for mark in left_out if not mark.startswith("None")]  # Sphinx's directives
    assert all(mark.partition(" ")[2].startswith(REASONS) for mark in left_out)
    assert len(left_out) <= 2


PAGE = """\
# A page?

```python
# other.py
answer = 42
```

```python
import other
print(f"{other.answer} words")
```

```text
41.5 words
```

```python not-run: needs a GPU
raise SystemError
```

```console
$ snugly devices jetson-nano
...
  registers a block      32,768
...
```
"""


def test_a_page_is_run_block_by_block(tmp_path):
    page = read_page(PAGE)
    assert page.files == {"other.py": "# other.py\nanswer = 42\n"}
    assert page.left_out == ["python not-run: needs a GPU"]
    first, second = run(page, tmp_path)
    assert first == ["42 words"]
    assert is_as_said(second, page.said[1][1])


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("import other\n", "import other\n1 / 0\n", "line 10, in <module>"),
        ("jetson-nano", "no-such-device", "line 22, in <module>"),
        ("import other\n", "import other\nbytes(16 << 30)\n", "MemoryError"),
    ],
)
def test_a_block_that_fails_fails_the_page_and_names_its_line(tmp_path, before, after, reason):
    with pytest.raises(AssertionError) as caught:
        run(read_page(PAGE.replace(before, after)), tmp_path)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("printed", "said", "same"),
    [
        (["peak 4.3 GiB"], ["peak 4.2 GiB"], True),
        (["peak 4.3 GiB"], ["peak 3.2 GiB"], False),
        (["peak 4.3 GiB"], ["peak 4.3 MiB"], False),
        (["inf"], ["inf"], True),
        (["inf"], ["2,953"], False),
        (["a", "b"], ["a"], False),
        (["a"], ["a", "b"], False),
        (["a", "x", "y", "b"], ["a", "...", "b"], True),
        (["a", "x", "y"], ["a", "...", "b"], False),
        (["x", "a"], ["...", "a"], True),
        ([], ["..."], True),
    ],
)
def test_what_is_printed_is_compared_by_words_and_nearly_by_numbers(printed, said, same):
    assert is_as_said(printed, said) is same


def test_a_block_that_would_not_be_run_is_noticed():
    with pytest.raises(AssertionError, match="indented"):
        read_page("# Title\n\n- list\n  ```python\n  x\n  ```\n")
    with pytest.raises(AssertionError, match="without an end"):
        read_page("# Title\n```python\nx\n")
