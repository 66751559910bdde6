"""Scrolls a log in the log viewer from its first line to its last, and jumps in it; counts what the frames tell."""

import re
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from playwright.sync_api import Page

GAP_AIM_MS = 100.0
WHEEL_PX = 600
MOST_PAGES = 10
# Times between animation frames and tasks of more than 50 ms, from now on.
WATCH = """() => {
  const seen = window.seenByBenchmark = { gaps: [], tasks: [] };
  let last = performance.now();
  const next = (at) => { seen.gaps.push(at - last); last = at; requestAnimationFrame(next); };
  requestAnimationFrame(next);
  const note = (list) => seen.tasks.push(...list.getEntries().map((one) => one.duration));
  new PerformanceObserver(note).observe({ type: "longtask" });
}"""
SEEN = "() => window.seenByBenchmark"
# The tasks of loading, once there is nothing left to do.
LOADED = """() => new Promise((done) => {
  const found = [];
  const note = (list) => found.push(...list.getEntries().map((one) => one.duration));
  new PerformanceObserver(note).observe({ type: "longtask", buffered: true });
  requestIdleCallback(() => requestAnimationFrame(() => requestAnimationFrame(() => done(found))));
})"""
# The place after two further frames: what was asked for before is drawn by then.
PLACE = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(
  [scrollY, Math.ceil(scrollY + innerHeight) >= document.documentElement.scrollHeight]))))"""


@dataclass(slots=True)
class Frames:
    """What was seen while a log was scrolled, in milliseconds; loads of pages are apart.

    Attributes:
        gaps: times between frames.
        tasks: tasks of more than 50 ms while it was scrolled.
        loading: tasks of more than 50 ms while pages were loaded.
        pages: pages that were scrolled.
    """

    gaps: list[float] = field(default_factory=list)
    tasks: list[float] = field(default_factory=list)
    loading: list[float] = field(default_factory=list)
    pages: int = 0

    def add(self, seen: dict[str, Any]) -> None:
        """Add what one page has seen."""
        self.gaps += seen["gaps"]
        self.tasks += seen["tasks"]

    def __str__(self) -> str:
        over = sum(gap > GAP_AIM_MS for gap in self.gaps)
        return (
            f"{self.pages} pages, {len(self.gaps):,} frames, the longest gap {max(self.gaps, default=0):.0f} ms, "
            f"{over} over {GAP_AIM_MS:g} ms; {len(self.tasks)} tasks over 50 ms while scrolling (longest "
            f"{max(self.tasks, default=0):.0f} ms), {len(self.loading)} while loading (longest "
            f"{max(self.loading, default=0):.0f} ms)"
        )


def scrolled(page: Page, address: str) -> Frames:
    """Scroll pages from the begin of a log to its end with the wheel; then search, and jump to evidence and both ends.

    Of more than `MOST_PAGES` pages, as many at equal distances are scrolled, the first and the last among them.
    """
    found = Frames()
    for line in _first_lines(page, address):
        page.goto(f"{address}?line={line}")
        _scroll_to_the_end(page, found)
    for jump in (f"{address}?q=e", f"{address}?line=50000#L50000"):
        page.goto(jump)
        _jump(page, found)
    evidence = page.locator(".jumps a")
    if evidence.count():
        page.goto(str(evidence.first.get_attribute("href")))
        _jump(page, found)
    return found


def _first_lines(page: Page, address: str) -> list[int]:
    """The first lines of the pages to scroll; pages are followed by their links without drawing them."""
    found, at = [], address
    while at:
        answer = page.request.get(at).text()
        found.append(int(re.findall(r'<tr id="L(\d+)"', answer)[0]))
        later = re.search(r'rel="next" href="([^"]+)"', answer)
        at = unescape(later[1]) if later else ""
    if len(found) <= MOST_PAGES:
        return found
    return [found[number * (len(found) - 1) // (MOST_PAGES - 1)] for number in range(MOST_PAGES)]


def _scroll_to_the_end(page: Page, found: Frames) -> None:
    """Scroll a page with the wheel until nothing follows."""
    _begin(page, found)
    page.mouse.move(200, 500)
    before, (place, at_end) = -1.0, page.evaluate(PLACE)
    while not at_end and place != before:
        before = place
        page.mouse.wheel(0, WHEEL_PX)
        place, at_end = page.evaluate(PLACE)
    found.add(page.evaluate(SEEN))


def _jump(page: Page, found: Frames) -> None:
    """Go to the end of a page and to its begin by keys."""
    _begin(page, found)
    for key in ("End", "Home", "End"):
        page.keyboard.press(key)
        page.evaluate(PLACE)
    found.add(page.evaluate(SEEN))


def _begin(page: Page, found: Frames) -> None:
    found.loading += page.evaluate(LOADED)
    found.pages += 1
    page.evaluate(WATCH)
