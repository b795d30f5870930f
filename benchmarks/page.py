"""How fast a page of 100,000 tensors is: made, opened in headless Chromium, looked around on.

The goals are 2 s until it is drawn and frames under 50 ms while one points, zooms and scrolls. No
peer draws such a page from one file; the page of an almost empty record stands beside it, so that
the browser's own share can be seen. Needs a Chromium on the PATH: `make browser`.
"""

import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from snugly.graph.model import Kind, Origin
from snugly.recording.record import Record
from snugly.reporting.html import page_of_record, write_page
from snugly.timeline import Span, Timeline
from snugly.units import Size

TENSORS = 100_000
REPEATS = 5
GOAL_SECONDS = 2.0
GOAL_FRAME = 50.0  # milliseconds; the slowest frame of twenty
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPERATORS = ("MatMul", "Relu", "Conv2D", "AddV2", "Mul", "Softmax")
LARGE, KEPT = 0.3, 0.5  # shares of tensors
WATCH_FRAMES = """() => {
  window.frames = [];
  let before = 0;
  const next = (now) => {
    if (before) frames.push(now - before);
    before = now;
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
}"""


def training_step(tensors: int) -> Timeline:
    """A step of so many tensors: a fifth is resident, activations are kept, gradients free them."""
    draw = random.Random(7)  # noqa: S311 - the same page every time
    layers = max(4, tensors // 40)
    resident = tensors // 5
    passing = tensors - resident
    forward = int(0.4 * passing)
    length = 2 * passing
    spans: list[Span] = []

    def add(size: float, kind: Kind, name: str, layer: int, birth: int, death: int) -> None:  # noqa: PLR0913, PLR0917 - a span has that many sides
        requested = int(2**size)
        chunk = -(-requested // 256) * 256
        origin = Origin(f"layer_{layer}", f"train.py:{40 + layer % 90}")
        spans.append(Span(requested, kind, name, birth, min(death, length), origin, chunk))

    for index in range(resident):
        kind = Kind.WEIGHT if index % 3 else Kind.OPTIMIZER
        name = f"layer_{index % layers}/kernel_{index}"
        add(draw.uniform(8, 20), kind, name, index % layers, 0, length)
    for index in range(passing):
        ahead = index < forward
        share = index / forward if ahead else 1 - (index - forward) / (passing - forward)
        layer = min(layers - 1, int(share * layers))
        size = draw.uniform(10, 22) if draw.random() < LARGE else draw.uniform(6, 14)
        kind = Kind.ACTIVATION if ahead else Kind.GRADIENT
        kept = ahead and draw.random() < KEPT
        birth = 2 * index + 1
        # What was made first is needed last.
        death = 2 * int(passing - share * (passing - forward)) if kept else birth + 12
        way = "train_step/model" if ahead else "gradient_tape/model"
        name = f"{way}/layer_{layer}/{draw.choice(OPERATORS)}_{index}"
        add(size, kind, name, layer, birth, max(birth + 1, death))
    return Timeline(spans, length)


def record_of(timeline: Timeline) -> Record:
    """A record of a timeline."""
    moment, _ = timeline.peak()
    peak = Size(sum(span.allocated for span in timeline.live_at(moment)))
    return Record(program="train.py", device="CPU:0", peak=peak, timeline=timeline)


def milliseconds_to_open(browser: Any, path: Path) -> float:
    """From the start of the navigation until the page has been drawn; the median of some."""
    times: list[float] = []
    for _ in range(REPEATS):
        page = open_page(browser, path)
        mark = "performance.getEntriesByName('snugly-drawn')[0].startTime"
        times.append(page.evaluate(mark))
        page.close()
    return statistics.median(times)


def open_page(browser: Any, path: Path) -> Any:
    """The page, drawn."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.goto(path.as_uri())
    while not page.evaluate("performance.getEntriesByName('snugly-drawn').length"):
        page.wait_for_timeout(10)
    return page


def frames_while(page: Any, act: Callable[[], None]) -> tuple[float, float, float]:
    """Median, slowest of twenty, and slowest frame while something is done, in milliseconds."""
    page.evaluate("frames.length = 0")
    act()
    page.wait_for_timeout(100)
    frames = sorted(page.evaluate("frames"))
    return statistics.median(frames), frames[int(0.95 * len(frames)) - 1], frames[-1]


def look_around(page: Any) -> dict[str, Callable[[], None]]:
    """What somebody does on the page, by name."""
    page.evaluate("document.getElementById('time').scrollIntoView()")
    box = page.locator("#blocks").bounding_box()
    x, y = box["x"] + 500, box["y"] + box["height"] / 2

    def point() -> None:
        for step in range(150):
            page.mouse.move(box["x"] + 90 + 7 * step, box["y"] + 10 + 37 * step % 300)

    def turn(by: int) -> None:
        page.mouse.move(x, y)
        for _ in range(25):
            page.mouse.wheel(0, by)
            page.wait_for_timeout(16)

    def scroll() -> None:
        for _ in range(60):
            page.evaluate("document.getElementById('scroll').scrollTop += 3000")
            page.wait_for_timeout(10)

    return {
        "point at blocks": point,
        "zoom in": lambda: turn(-120),
        "point, zoomed": point,
        "zoom out": lambda: turn(160),
        "scroll the table": scroll,
    }


def main() -> int:
    """Print the table; 1 if a goal was missed."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        print("needs a browser: `make browser` installs one")
        return 0
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        record = record_of(training_step(TENSORS))
        start = time.perf_counter()
        large = write_page(page_of_record(record), Path(folder) / "large.html")
        made = time.perf_counter() - start
        small = write_page(
            page_of_record(record_of(training_step(10))), Path(folder) / "small.html"
        )
        size = large.stat().st_size / 1e6
        print(f"{TENSORS:,} tensors: {size:.1f} MB, made in {made:.1f} s")
        browser = playwright.chromium.launch(executable_path=program)
        milliseconds = milliseconds_to_open(browser, large)
        empty = milliseconds_to_open(browser, small)
        print(f"until drawn: {milliseconds:.0f} ms; a page of ten tensors: {empty:.0f} ms")
        page = open_page(browser, large)
        page.evaluate(WATCH_FRAMES)
        print(f"{'frames in ms':<20}{'median':>8}{'95 %':>8}{'slowest':>9}")
        slow = 0.0
        for name, act in look_around(page).items():
            median, most, slowest = frames_while(page, act)
            print(f"{name:<20}{median:>8.1f}{most:>8.1f}{slowest:>9.1f}")
            slow = max(slow, most)
        browser.close()
    late = milliseconds > 1000 * GOAL_SECONDS
    print(f"goal {GOAL_SECONDS} s until drawn: {'missed' if late else 'met'}")
    print(f"goal {GOAL_FRAME:.0f} ms a frame: {'missed' if slow > GOAL_FRAME else 'met'}")
    return int(late or slow > GOAL_FRAME)


if __name__ == "__main__":
    sys.exit(main())
