"""A bar for long work, on standard error."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn


class Bar:
    """One bar, drawn until it is closed and gone afterwards."""

    def __init__(self, title: str) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        # The title may have a file's name in it, which may have anything in it.
        shown = "".join(letter if letter.isprintable() else "�" for letter in title)
        self._task = self._progress.add_task(shown, total=1.0)
        self._progress.start()

    def advance(self, share: float) -> None:
        """Show that so much is done, from 0 to 1."""
        self._progress.update(self._task, completed=share)

    def close(self) -> None:
        """Take the bar away."""
        self._progress.stop()
