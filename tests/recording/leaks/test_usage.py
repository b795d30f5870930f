"""What is read from a program's text about a container."""

import ast
import textwrap

import pytest

from snugly.recording.leaks.holders import Name
from snugly.recording.leaks.source import Text, loops_at, statement_at
from snugly.recording.leaks.usage import Usage


def usage(text, name="kept", *, owner=None, keyed=False, scope=None):
    tree = ast.parse(textwrap.dedent(text))
    return Usage(
        Text("program.py", tree), Name(name, "program.py", owner, scope=scope), keyed=keyed
    )


@pytest.mark.parametrize(
    "line",
    [
        "kept.append(x)",
        "kept.insert(0, x)",
        "kept += [x]",
        "kept = kept + [x]",
        "kept = [*kept, x]",
        "kept[key].append(x)",
        "kept.setdefault(key, []).append(x)",
        "heapq.heappush(kept, x)",
        "kept = np.concatenate([kept, x])",
    ],
)
def test_lines_that_add(line):
    found = usage(f"for x in xs:\n    {line}\n").additions()
    assert [(each.line, each.loop) for each in found] == [(2, (1, 2))]


def test_assigning_an_item_adds_to_a_dictionary_only():
    text = "for x in xs:\n    kept[x] = 1\n"
    assert usage(text, keyed=True).additions()
    assert not usage(text).additions()


def test_a_function_that_is_given_the_container_adds_to_it():
    text = """
        def remember(store, value):
            store.append(value)

        for x in xs:
            remember(kept, x)
    """
    found = usage(text)
    assert [each.line for each in found.additions()] == [3]
    assert not found.is_used()


def test_another_name_for_an_attribute_adds_to_it():
    class Owner:
        pass

    text = """
        class Owner:
            def run(self):
                buffer = self.kept
                for x in xs:
                    buffer.append(x)
    """
    assert [each.line for each in usage(text, owner=Owner).additions()] == [6]


def test_the_same_attribute_of_another_class_is_another_container():
    class Owner:
        pass

    text = """
        class Other:
            def run(self):
                self.kept.append(1)
    """
    assert not usage(text, owner=Owner).additions()


def test_a_variable_of_another_function_is_another_container():
    text = """
        kept = []

        def other():
            kept = []
            kept.append(1)
    """
    assert not usage(text).additions()
    assert usage(text, scope=4).additions()


@pytest.mark.parametrize(
    "line",
    [
        "kept.pop(0)",
        "kept.clear()",
        "del kept[0]",
        "kept = kept[-10:]",
        "kept[:] = []",
        "kept = []",
    ],
)
def test_lines_that_take_out(line):
    assert usage(f"for x in xs:\n    {line}\n    kept.append(x)\n").takes_out()


def test_a_beginning_takes_nothing_out():
    class Owner:
        pass

    text = """
        class Owner(Callback):
            def on_train_begin(self, logs=None):
                self.kept = []

            def on_epoch_end(self, epoch, logs=None):
                self.kept.append(1)
    """
    found = usage(text, owner=Owner)
    assert not found.takes_out()
    assert [each.in_callback for each in found.additions()] == [True]
    assert not usage("kept = []\nfor x in xs:\n    kept.append(x)\n").takes_out()


@pytest.mark.parametrize(
    ("line", "used"),
    [
        ("tf.concat(kept, 0)", True),
        ("for each in kept: pass", True),
        ("[each for each in kept]", True),
        ("kept.values()", True),
        ("plot(y=kept)", True),
        ("len(kept)", False),
        ("print(kept)", False),
        ("kept[-1]", False),
        ("kept = kept + [1]", False),
    ],
)
def test_what_makes_use_of_the_whole(line, used):
    assert usage(f"{line}\n").is_used() is used


def test_loops_and_statements_of_a_file(tmp_path):
    # GIVEN a loop with a statement over several lines, a comprehension, and a function in the loop
    path = tmp_path / "program.py"
    path.write_text(
        textwrap.dedent("""
        for x in xs:
            y = call(
                x,
            )
            def inner():
                return y
        z = [f(x) for x in xs]
        """)
    )
    # THEN the body is in the loop; the header, the function's body and the rest are not
    assert loops_at(str(path), 4) == ((2, 7),)
    assert loops_at(str(path), 2) == ()
    assert loops_at(str(path), 7) == ()
    assert loops_at(str(path), 8) == ((8, 8),)
    assert statement_at(str(path), 4) == (3, 5)
    assert loops_at(str(tmp_path / "nothing.py"), 1) == ()
