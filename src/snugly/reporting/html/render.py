"""Page → the text of one HTML file, which loads nothing and runs nothing but its own script.

The file is a shell, the same for every page, and the page's data. Names out of programs are only in
the data; the script puts them on the page as text, never as markup.
"""

from __future__ import annotations

import base64
import hashlib
import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from snugly.errors import InputError
from snugly.reporting.html.columns import to_script

if TYPE_CHECKING:
    from snugly.reporting.html.page import Page

SCRIPTS: Final = (
    "sizes.js",
    "data.js",
    "theme.js",
    "view.js",
    "summary.js",
    "line.js",
    "drawing.js",
    "blocks.js",
    "samples.js",
    "table.js",
    "main.js",
)
"""The page's script, in the order in which its parts are joined."""

STYLES: Final = ("colours.css", "page.css", "parts.css", "media.css")

_DATA: Final = "@DATA@"


def render(page: Page) -> str:
    """The text of the page's file."""
    before, after = shell().split(_DATA)
    return f"{before}{to_script(page)}{after}"


def write_page(page: Page, path: str | os.PathLike[str]) -> Path:
    """Write the page's file and give back its path. InputError (SNG304) where that cannot be."""
    target = refuse_unwritable(path)
    text = render(page)
    try:
        target.write_text(text, encoding="utf-8", newline="\n")
    except (OSError, ValueError) as error:
        raise _unwritable(target, _reason(error)) from None
    return target


def refuse_unwritable(path: str | os.PathLike[str]) -> Path:
    """The path, if a file may be written there as far as can be seen without doing so.

    Worth asking before long work: a page that has no place should not cost a prediction.
    """
    target = Path(path)
    try:
        if target.is_dir():
            raise _unwritable(target, "it is a folder")
        if not target.parent.is_dir():
            raise _unwritable(target, "its folder does not exist")
        if not os.access(target if target.exists() else target.parent, os.W_OK):
            raise _unwritable(target, "no permission")
    except (OSError, ValueError) as error:
        raise _unwritable(target, _reason(error)) from None
    return target


@cache
def shell() -> str:
    """The file without its data; `@DATA@` stands where that goes."""
    assets = files("snugly.reporting.html").joinpath("assets")
    uplot = files("snugly.reporting.html").joinpath("vendor", "uplot")
    style = "\n".join(
        [
            uplot.joinpath("uPlot.min.css").read_text("utf-8"),
            *(assets.joinpath(name).read_text("utf-8") for name in STYLES),
        ]
    )
    own = "\n".join(assets.joinpath(name).read_text("utf-8") for name in SCRIPTS)
    script = "\n".join(
        [
            f"/*\n{uplot.joinpath('LICENSE').read_text('utf-8')}*/",
            uplot.joinpath("uPlot.iife.min.js").read_text("utf-8"),
            f'(() => {{\n"use strict";\n{own}\n}})();',
        ]
    )
    early = assets.joinpath("early.js").read_text("utf-8")
    # No source but these texts, by their hashes; nothing may be fetched from anywhere.
    policy = (
        f"default-src 'none'; script-src '{_hash(early)}' '{_hash(script)}';"
        f" style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'"
    )
    page = assets.joinpath("shell.html").read_text("utf-8")
    parts = {"@POLICY@": policy, "@STYLE@": style, "@EARLY@": early, "@SCRIPT@": script}
    for place, text in parts.items():
        page = page.replace(place, text)
    return page


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _reason(error: OSError | ValueError) -> str:
    """What the system says; a ValueError is a name with a null byte."""
    return getattr(error, "strerror", None) or str(error)


def _unwritable(path: Path, reason: str) -> InputError:
    return InputError(
        f"the page cannot be written to {str(path)[:200]}: {reason}",
        code="SNG304",
        hint="give a file in a folder that exists and can be written: --html page.html",
    )
