"""Fixing: changes that cannot alter what a program computes, with its formatting kept (libcst).

Three kinds: `persistent=True` is left out where one gradient is asked for, a prefetch of many
batches becomes `tf.data.AUTOTUNE`, and names of TensorFlow 1 that only moved get their new name
(a program that has them does not run). Files are replaced as a whole, so that none is left half
written. Notebooks are not changed.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from snugly.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snugly.linting.rule import Alarm, Rule

_INSTALL: Final = "pip install 'snugly[fix]'"


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one file."""

    path: str
    before: bytes
    after: bytes
    encoding: str
    made: tuple[str, ...]

    def diff(self) -> str:
        """The change as a unified diff."""
        before, after = (data.decode(self.encoding) for data in (self.before, self.after))
        return "".join(
            difflib.unified_diff(
                before.splitlines(keepends=True),
                after.splitlines(keepends=True),
                self.path,
                self.path,
            )
        )

    def write(self) -> None:
        """Replace the file; its mode stays."""
        path = Path(os.path.realpath(self.path))  # a link stays a link
        try:
            if path.read_bytes() != self.before:
                raise InputError(f"{path} has changed meanwhile", hint="run `snugly lint` again")
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(self.after)
                Path(name).chmod(path.stat().st_mode)
                Path(name).replace(path)
            except BaseException:
                with contextlib.suppress(OSError):
                    Path(name).unlink()
                raise
        except OSError as error:
            raise InputError(
                f"cannot write {path}: {error.strerror or error}",
                hint="make the file and its folder writable",
            ) from error


def changes_for(alarms: Mapping[str, Sequence[tuple[Rule, Alarm]]]) -> list[Change]:
    """What `--fix` would do, file by file."""
    changes: list[Change] = []
    for path, found in alarms.items():
        if path.endswith(".ipynb") or path == "<stdin>":
            continue
        change = _change(path, found)
        if change is not None:
            changes.append(change)
    return changes


def _change(path: str, found: Sequence[tuple[Rule, Alarm]]) -> Change | None:
    try:
        import libcst
        from libcst import metadata
    except ImportError:
        raise MissingDependencyError(
            "--fix needs libcst, which is not installed", hint=_INSTALL
        ) from None
    before = Path(path).read_bytes()
    try:
        module = libcst.parse_module(before)
    except (libcst.ParserSyntaxError, UnicodeDecodeError) as error:
        raise InputError(f"cannot change {path}: {error}", hint="change it by hand") from error
    # libcst places nodes in characters, the parser in bytes of UTF-8.
    decoding = "utf-8-sig" if module.encoding == "utf-8" else module.encoding
    lines = before.decode(decoding).splitlines()
    wanted = {_place(lines, alarm): alarm for _rule, alarm in found if alarm.fix is not None}
    wrapper = metadata.MetadataWrapper(module)
    changer = _changer(libcst, metadata, wanted)
    after = wrapper.visit(changer)
    if not changer.made:
        return None
    return Change(path, before, after.bytes, module.encoding, tuple(changer.made))


def _place(lines: list[str], alarm: Alarm) -> tuple[int, int, int, int]:
    node: Any = alarm.node
    ends = ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
    (first, start), (last, end) = (
        (line, len(lines[line - 1].encode()[:column].decode(errors="ignore")))
        for line, column in ends
    )
    return first, start, last, end


def _changer(libcst: Any, metadata: Any, wanted: Mapping[tuple[int, int, int, int], Alarm]) -> Any:
    """The visitor, made where libcst is loaded."""

    class Changer(libcst.CSTTransformer):
        METADATA_DEPENDENCIES = (metadata.PositionProvider,)

        def __init__(self) -> None:
            super().__init__()
            self.made: list[str] = []

        def leave_Call(self, original_node: Any, updated_node: Any) -> Any:  # noqa: N802 - libcst's
            return self._changed(original_node, updated_node)

        def leave_Attribute(self, original_node: Any, updated_node: Any) -> Any:  # noqa: N802
            return self._changed(original_node, updated_node)

        def _changed(self, original: Any, updated: Any) -> Any:
            place = self.get_metadata(metadata.PositionProvider, original)
            key = (place.start.line, place.start.column, place.end.line, place.end.column)
            alarm = wanted.get(key)
            if alarm is None or alarm.fix is None:
                return updated
            changed = _apply(libcst, updated, alarm.fix.action, alarm.fix.replacement)
            if changed is None:
                return updated
            self.made.append(f"line {key[0]}: {alarm.fix.what}")
            return changed

    return Changer()


def _apply(libcst: Any, node: Any, action: str, replacement: str) -> Any | None:
    if action == "rename-attribute" and isinstance(node, libcst.Attribute):
        target = node.value
        for part in replacement.split("."):
            target = libcst.Attribute(value=target, attr=libcst.Name(part))
        return target.with_changes(lpar=node.lpar, rpar=node.rpar)
    if not isinstance(node, libcst.Call):
        return None
    if action == "replace-argument" and node.args:
        value = libcst.parse_expression(replacement)
        return node.with_changes(args=[node.args[0].with_changes(value=value), *node.args[1:]])
    if action == "drop-argument":
        return _without(libcst, node, replacement)
    return None


def _without(libcst: Any, node: Any, name: str) -> Any | None:
    """A call without one argument, written by name or as the first of all."""
    kept = [one for one in node.args if one.keyword is None or one.keyword.value != name]
    if len(kept) == len(node.args):
        if not node.args or node.args[0].keyword is not None or node.args[0].star:
            return None
        if any(one.keyword is None for one in node.args[1:]):
            return None  # the others would move up
        kept = list(node.args[1:])
    if kept and node.args[-1] is not kept[-1]:
        kept[-1] = kept[-1].with_changes(
            comma=libcst.MaybeSentinel.DEFAULT,
            whitespace_after_arg=node.args[-1].whitespace_after_arg,
        )
    return node.with_changes(args=kept)
