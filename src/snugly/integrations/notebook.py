"""Notebook magics, after `%load_ext snugly`: `%%snugly_profile` and `%%snugly_guard`.

Both run the cell as it would run without them: what its last expression gives is shown, its names
stay, its errors are the notebook's to show, with the cell's own line numbers.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import (
    Magics,
    cell_magic,
    magics_class,
    no_var_expand,
    output_can_be_silenced,
)
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from snugly.errors import SnuglyError
from snugly.integrations.guard import guard
from snugly.integrations.picture import picture_data

if TYPE_CHECKING:
    from collections.abc import Callable

    from IPython.core.interactiveshell import InteractiveShell

    from snugly.recording.context import Recording
    from snugly.recording.record import Record

_NUMBER = re.compile(r"\d+")
MAGICS = ("snugly_profile", "snugly_guard")


def load(shell: InteractiveShell) -> None:
    """Make the magics known to a notebook."""
    shell.register_magics(SnuglyMagics)


def unload(shell: InteractiveShell) -> None:
    """Take the magics away again."""
    for name in MAGICS:
        shell.magics_manager.magics["cell"].pop(name, None)


@magics_class
class SnuglyMagics(Magics):
    """The magics of one notebook."""

    shell: InteractiveShell  # pyright: ignore[reportIncompatibleVariableOverride] - never None

    @magic_arguments()
    @argument("-o", "--output", metavar="FILE", help="keep the record, for `snugly report FILE`")
    @argument("--html", metavar="PAGE", help="write the whole page as well")
    @argument("--no-picture", action="store_true", help="say the peak in one line only")
    @argument("--name", metavar="NAME", help="give the record this name in the notebook")
    @no_var_expand
    @output_can_be_silenced
    @cell_magic
    def snugly_profile(self, line: str, cell: str) -> Any:
        """Run the cell and show what it held at its peak: by kind, layer and line."""
        __tracebackhide__ = True
        arguments = parse_argstring(self.snugly_profile, line)
        body = self._compile(cell)
        recording = ExitStack()
        running = _begin(recording, arguments)
        try:
            with recording:
                return body(self.shell.user_ns)
        finally:
            # Complete by now, also where the cell raised an error.
            self._show(running.record, arguments)

    @no_var_expand
    @output_can_be_silenced
    @cell_magic
    def snugly_guard(self, line: str, cell: str) -> Any:
        """Run the cell under a limit: `%%snugly_guard 14GiB`.

        What is refused raises `MemoryLimitExceeded` at the cell's line, and the kernel goes on.
        """
        __tracebackhide__ = True
        limit = _guarding(line.strip())
        body = self._compile(cell)
        let_go(self.shell)
        with limit:
            return body(self.shell.user_ns)

    def _compile(self, cell: str) -> Callable[[dict[str, Any]], Any]:
        """The cell as a function of the notebook's names that gives its last expression."""
        # One line for the magic, so that line numbers are those that the notebook shows.
        source = f"\n{self.shell.transform_cell(cell)}"
        compiler = self.shell.compile
        name = compiler.cache(source, self._cell_number(), raw_code=source)
        tree: Any = self.shell.transform_ast(compiler.ast_parse(source, name))
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = compiler(ast.Expression(tree.body.pop().value), name, "eval")  # pyright: ignore[reportArgumentType]
        first = compiler(tree, name, "exec")

        def run(names: dict[str, Any]) -> Any:
            __tracebackhide__ = True
            exec(first, names)  # noqa: S102 - running the cell is what was asked for
            return None if last is None else eval(last, names)  # noqa: S307 - likewise

        return run

    def _cell_number(self) -> int:
        """The n of In[n]: that of the cell in which the magic stands.

        The shell's own counter is one ahead of it or not, by the version of IPython.
        """
        frame = inspect.currentframe()
        while frame is not None:
            cell = self.shell.compile.format_code_name(frame.f_code.co_filename)
            number = cell and _NUMBER.search(cell[1])
            if number:
                return int(number[0])
            frame = frame.f_back
        return self.shell.execution_count

    def _show(self, record: Record, arguments: Any) -> None:
        if arguments.name:
            self.shell.user_ns[arguments.name] = record
        picture = picture_data(record, self._place)
        if arguments.no_picture:
            print(picture.headline)  # noqa: T201 - a notebook shows what is printed
        else:
            display(picture)
        if arguments.html:
            from snugly.reporting.html import page_of_record, write_page

            write_page(page_of_record(record), arguments.html)

    def _place(self, line: str) -> str:
        """A line as the notebook names it: `In[3]:2` rather than the name of a file in /tmp."""
        file, _, number = line.rpartition(":")
        for name in list(linecache.cache):
            if Path(name).name == file:
                cell = self.shell.compile.format_code_name(name)
                return f"{cell[1]}:{number}" if cell else line
        return line


def let_go(shell: InteractiveShell) -> None:
    """Let go of what the last error keeps alive: its frames hold all that the cell had made."""
    shell.last_execution_result = None  # type: ignore[assignment]
    for name in ("last_exc", "last_value", "last_traceback", "last_type"):
        if hasattr(sys, name):
            delattr(sys, name)
    tracebacks = getattr(shell, "InteractiveTB", None)
    if hasattr(tracebacks, "tb"):
        tracebacks.tb = None  # pyright: ignore[reportOptionalMemberAccess]


def _begin(recording: ExitStack, arguments: Any) -> Recording:
    import snugly
    from snugly.reporting.html import refuse_unwritable

    try:
        if arguments.html:
            refuse_unwritable(arguments.html)
        return recording.enter_context(snugly.record(arguments.output))
    except SnuglyError as problem:
        raise _usage(problem) from None


def _guarding(limit: str) -> guard:
    if not limit:
        raise UsageError("say how much the cell may hold\n\nhint: %%snugly_guard 14GiB")
    try:
        return guard(limit)
    except SnuglyError as problem:
        raise _usage(problem) from None


def _usage(problem: SnuglyError) -> UsageError:
    """An error about what was typed, which IPython shows without a traceback."""
    return UsageError(f"{problem.message}\n\nhint: {problem.hint}")
