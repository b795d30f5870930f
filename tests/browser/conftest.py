"""A real, headless Chromium, and pages that are opened in it from a file."""

import shutil
from dataclasses import dataclass, field
from typing import Any

import pytest

from snugly.reporting.html import write_page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@dataclass
class Opened:
    """A page in the browser, and whatever went wrong with it."""

    page: Any
    address: str
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def until(self, expression):
        """Wait until an expression is true. Playwright's own way is forbidden by the policy."""
        for _ in range(500):
            if self.page.evaluate(expression):
                return
            self.page.wait_for_timeout(20)
        pytest.fail(f"never came true: {expression}")

    def violations(self):
        return self.page.evaluate("window.violations")

    def settle(self):
        """Wait until what was asked for has been drawn."""
        self.page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def view(self):
        """The moments and the bytes in view."""
        self.settle()
        view = self.page.evaluate(
            "(({from, to, bottom, top}) => [from, to, bottom, top])(snugly.view)"
        )
        return [round(value, 3) for value in view]

    def line_view(self):
        """The moments that the line shows."""
        self.settle()
        scale = self.page.evaluate("(({min, max}) => [min, max])(snugly.line.scales.x)")
        return [round(value, 3) for value in scale]

    def block(self, name):
        """The number of the block that an operation made."""
        return self.page.evaluate(
            """(name) => { const { blocks } = snugly.page;
            return [...blocks.operation].findIndex((each) => blocks.operations[each] === name) }""",
            name,
        )

    def middle_of(self, name):
        """Where an operation's block is on the screen."""
        self.page.locator("#blocks").scroll_into_view_if_needed()
        box = self.page.locator("#blocks").bounding_box()
        place = self.page.evaluate("(block) => snugly.placeOf(block)", self.block(name))
        return (
            box["x"] + place["left"] + place["width"] / 2,
            box["y"] + place["top"] + place["height"] / 2,
        )

    def rows(self, column):
        """The texts of a column, of the rows that exist."""
        heads = self.page.locator("#columns th").all_inner_texts()
        cells = self.page.locator(f"#rows tr[data-row] td:nth-child({heads.index(column) + 1})")
        return cells.all_text_contents()

    def tip(self):
        """What the tip says, by name; its first line as `lead`."""
        self.settle()
        tip = self.page.locator("#tip")
        names, values = tip.locator("dt").all_inner_texts(), tip.locator("dd").all_inner_texts()
        return {"lead": tip.locator(".lead").inner_text()} | dict(zip(names, values, strict=True))


# Of a module, not of the session: while Playwright is there, asyncio takes its loop for a running
# one, and other tests of this process could not use theirs.
@pytest.fixture(scope="module")
def browser():
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip("needs a browser: `make browser` installs one")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program)
        yield chromium
        chromium.close()


@pytest.fixture
def open_file(browser):
    """Open a file in a context of its own."""
    contexts = []

    def open_it(path, **options):
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
        context.add_init_script(
            "window.violations = []; addEventListener('securitypolicyviolation',"
            " (event) => window.violations.push(event.violatedDirective + ' ' + event.blockedURI))"
        )
        contexts.append(context)
        opened = Opened(context.new_page(), path.as_uri())
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.on("console", lambda message: opened.errors.append(message.text))
        opened.page.on("pageerror", lambda error: opened.errors.append(str(error)))
        opened.page.on("dialog", lambda dialog: opened.errors.append(dialog.message))
        opened.page.goto(opened.address)
        opened.until("performance.getEntriesByName('snugly-drawn').length > 0")
        return opened

    yield open_it
    for context in contexts:
        context.close()


@pytest.fixture
def open_page(open_file, tmp_path):
    """Write a page and open it; at the end of the test nothing may have gone wrong with it."""
    pages = []

    def open_it(page, **options):
        path = write_page(page, tmp_path / f"page{len(pages)}.html")
        pages.append(open_file(path, **options))
        return pages[-1]

    yield open_it
    for opened in pages:
        assert opened.errors == []
        assert opened.violations() == []
        assert set(opened.requests) == {opened.address}
