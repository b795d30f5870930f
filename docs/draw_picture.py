"""Draw the README's picture (`make picture`): what `make demo` really prints, as an SVG."""

import io
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

import snugly
from snugly.reporting.prediction import draw_prediction

ROOT = Path(__file__).parent.parent
COMMAND = (
    "snugly predict examples/segmentation.py:build --train --batch-size 32 --device jetson-nano"
    " --runtime tensorflow"
)


def main() -> None:
    """Predict, print into a recording console, save."""
    prediction = snugly.predict(
        f"{ROOT / 'examples' / 'segmentation.py'}:build",
        training=True,
        batch_size=32,
        device="jetson-nano",
        runtime="tensorflow",
    )
    console = Console(record=True, width=112, file=io.StringIO(), force_terminal=True)
    console.print(f"[bold]$ {COMMAND}[/]", highlight=False)
    console.print(draw_prediction(prediction))
    svg = console.export_svg(title="snugly", theme=MONOKAI)
    (ROOT / "docs" / "picture.svg").write_text(svg)


if __name__ == "__main__":
    main()
