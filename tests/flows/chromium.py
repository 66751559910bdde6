"""The system's Chromium, with tabs that fail a test on any console error or request to another machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from tests.labs.need import missing

PROGRAMS = (Path("/usr/bin/chromium-headless-shell"), Path("/usr/bin/chromium"))
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass(frozen=True, slots=True)
class Variant:
    """The settings of a browser window: its width in CSS pixels, and whether scripts run."""

    width: int
    scripts: bool

    def __str__(self) -> str:
        return f"{self.width}px-{'js' if self.scripts else 'nojs'}"

    @property
    def context(self) -> dict[str, Any]:
        """Return the same settings as arguments of a browser context."""
        return {"viewport": {"width": self.width, "height": 900}, "java_script_enabled": self.scripts}


PATIENCE_MS = 30_000  # of waits that end as soon as the page is as expected
# Without scripts the narrow window is the harder one: what fits and can be reached there does on a wide one too.
VARIANTS = [Variant(1440, scripts=True), Variant(390, scripts=True), Variant(390, scripts=False)]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield a running browser; skips the test if none is installed."""
    program = next((program for program in PROGRAMS if program.exists()), None)
    if program is None:
        missing("Chromium is not installed (make test-deps)")
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_MS)
        made = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield made
        made.close()


@contextmanager
def tab(browser: Browser, site: str, **context: Any) -> Iterator[Page]:
    """Yield a tab whose errors and requests are checked."""
    made_context = browser.new_context(base_url=site, **context)
    made = made_context.new_page()
    made.set_default_timeout(PATIENCE_MS)
    faults: list[str] = []
    made.on("console", lambda message: faults.append(message.text) if message.type in {"error", "warning"} else None)
    made.on("pageerror", lambda error: faults.append(str(error)))
    made.on("request", lambda sent: faults.append(sent.url) if urlsplit(sent.url).hostname != "127.0.0.1" else None)
    made.on("dialog", lambda dialog: faults.append(f"dialog {dialog.message}"))
    try:
        yield made
    finally:
        made_context.close()
    assert not faults, faults


def expect_text(place: Locator, words: str) -> None:
    """Wait until an element shows these words: after a click, the former page may still be there."""
    expect(place).to_contain_text(words, use_inner_text=True)


def fits(page: Page) -> bool:
    """Return whether nothing overflows horizontally, once the style sheet is loaded."""
    page.wait_for_load_state()
    inside: bool = page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    return inside


def main_text(page: Page) -> str:
    """Return the text of the page's main part, once the whole page is there."""
    page.wait_for_load_state("domcontentloaded")
    return page.locator("main").inner_text()


def follow(page: Page, name: str) -> None:
    """Follow a link of the navigation, which narrow windows keep behind a button."""
    menu = page.get_by_role("button", name="Menu")
    if menu.is_visible():
        menu.click()
    page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()
