"""Scrolls a log in the log viewer to its end, drags it back, jumps in it; counts what the frames tell."""

from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page

GAP_AIM_MS = 100.0
READING_PX, READING_STEPS = 600, 200  # a turn of the wheel while one reads, and how many
FAST_PX = 6_000  # of each further turn, down to the last line
DRAG_STEPS = 240  # positions of the scroll bar from the last line to the first
# Times between animation frames, frames and tasks that took more than 50 ms, and rows of the document, from now on.
WATCH = """() => {
  const seen = window.seenByBenchmark = { gaps: [], slow: [], tasks: [], rows: 0 };
  let last = performance.now();
  const next = (at) => {
    seen.gaps.push(at - last);
    last = at;
    seen.rows = Math.max(seen.rows, document.querySelectorAll(".wide tr").length);
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
  const note = (type, kept) => new PerformanceObserver(
    (list) => kept.push(...list.getEntries().map((one) => one.duration))).observe({ type });
  note("longtask", seen.tasks);
  note("long-animation-frame", seen.slow);
}"""
SEEN = "() => window.seenByBenchmark"
# The tasks of loading, once all lines of the log are there and nothing is left to do.
LOADED = """() => new Promise((done) => {
  const found = [];
  const note = (list) => found.push(...list.getEntries().map((one) => one.duration));
  new PerformanceObserver(note).observe({ type: "longtask", buffered: true });
  requestIdleCallback(() => requestAnimationFrame(() => requestAnimationFrame(() => done(found))));
})"""
# The place after two further frames: what was asked for before is drawn by then.
PLACE = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(
  [scrollY, Math.ceil(scrollY + innerHeight) >= document.documentElement.scrollHeight]))))"""
# As a scroll bar that is dragged: a new place in each frame, here from the end to the begin.
DRAG = """(steps) => new Promise((done) => {
  const height = document.documentElement.scrollHeight;
  let step = 0;
  const next = () => {
    window.scrollTo({ top: height * (1 - ++step / steps), behavior: "instant" });
    if (step < steps) requestAnimationFrame(next); else done();
  };
  requestAnimationFrame(next);
})"""


@dataclass(slots=True)
class Frames:
    """What was seen while a log was scrolled, in milliseconds; loads of the page are apart.

    Attributes:
        gaps: times between frames.
        slow: long animation frames, as the browser reports them (more than 50 ms).
        tasks: tasks of more than 50 ms while it was scrolled.
        loading: tasks of more than 50 ms while the page was loaded.
        rows: most rows of the log that were in the document at once.
    """

    gaps: list[float] = field(default_factory=list)
    slow: list[float] = field(default_factory=list)
    tasks: list[float] = field(default_factory=list)
    loading: list[float] = field(default_factory=list)
    rows: int = 0

    def add(self, seen: dict[str, Any]) -> None:
        """Add what one page has seen."""
        self.gaps += seen["gaps"]
        self.slow += seen["slow"]
        self.tasks += seen["tasks"]
        self.rows = max(self.rows, seen["rows"])

    def __str__(self) -> str:
        over = sum(gap > GAP_AIM_MS for gap in self.gaps)
        return (
            f"{len(self.gaps):,} frames, the longest gap {max(self.gaps, default=0):.0f} ms, {over} over "
            f"{GAP_AIM_MS:g} ms; {len(self.slow)} long animation frames (longest {max(self.slow, default=0):.0f} ms), "
            f"{len(self.tasks)} tasks over 50 ms (longest {max(self.tasks, default=0):.0f} ms), {len(self.loading)} "
            f"while loading (longest {max(self.loading, default=0):.0f} ms); at most {self.rows:,} rows in the page"
        )


def scrolled(page: Page, address: str) -> Frames:
    """Scroll a log to its end with the wheel, drag it back, search, and jump to evidence and to both ends."""
    found = Frames()
    page.goto(address)
    _begin(page, found)
    _scroll_to_the_end(page)
    page.evaluate(DRAG, DRAG_STEPS)
    page.get_by_label("find in this log").fill("e")
    for _ in range(5):
        page.get_by_label("find in this log").press("Enter")
        page.evaluate(PLACE)
    page.locator(".wide").focus()
    for key in ("j", "k", "End", "Home"):
        page.keyboard.press(key)
        page.evaluate(PLACE)
    found.add(page.evaluate(SEEN))
    page.goto(f"{address}?line=50000#L50000")
    _begin(page, found)
    found.add(page.evaluate(SEEN))
    return found


def _scroll_to_the_end(page: Page) -> None:
    """Turn the wheel until nothing follows, first as one reads and then fast."""
    page.mouse.move(200, 500)
    step, before, (place, at_end) = 0, -1.0, page.evaluate(PLACE)
    while not at_end and place != before:
        step += 1
        before = place
        page.mouse.wheel(0, READING_PX if step <= READING_STEPS else FAST_PX)
        place, at_end = page.evaluate(PLACE)


def _begin(page: Page, found: Frames) -> None:
    page.locator(".log.scripted").wait_for()
    found.loading += page.evaluate(LOADED)
    page.evaluate(WATCH)
