"""Every page in the system's Chromium: first contentful paint, bytes over the network, and scrolling of long logs.

usage: python -m tests.bench.browser [--loads TIMES] [--only TEXT] [--url DATABASE_URL] [--part pages|logs]

The real server serves the demo's month with a failure whose logs are long (tests/bench/browser_store.py). Each page is
opened with an empty cache in a narrow and in a wide window. First contentful paint includes the server's time, and is
the median of the loads; bytes are those of the answers with their headers as they were sent, compressed or not.
"""

import argparse
import re
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import APIResponse, Browser, BrowserContext, CDPSession

from tests.bench import browser_scrolling, browser_store
from tests.bench.page import served
from tests.flows.chromium import chromium
from tests.flows.every_page.page_paths import PATHS

WIDTHS = (390, 1440)
LOADS = 3
PAINT_AIM_MS = 500.0
WEIGHT_AIM = 400_000  # bytes
WORST = 5
PARTS = ("pages", "logs")
# Lists as long as one may ask for.
LONGEST_LISTS = ("/failures?limit=200", "/groups?limit=200")
# The route of audits needs a failure of the week's sample.
AUDIT = "/feedback/audit/{week}/{failure_id}"
PAINTED = """() => new Promise((done) => {
  new PerformanceObserver((list) => {
    for (const one of list.getEntriesByName("first-contentful-paint")) done(one.startTime);
  }).observe({ type: "paint", buffered: true });
})"""
ANSWERED = "() => performance.getEntriesByType('navigation')[0].responseStart"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured: how often each page is opened, only addresses with a text, and the parts."""

    loads: int = LOADS
    only: str = ""
    parts: Sequence[str] = PARTS


@dataclass  # without slots: Playwright sets attributes of the object whose methods it calls
class Wire:
    """Counts the bytes of a tab's answers by their kind (Document, Script, ...), with redirects."""

    sent: Counter[str] = field(default_factory=Counter)
    _kinds: dict[str, str] = field(default_factory=dict)

    def listen(self, session: CDPSession) -> None:
        """Count from now on."""
        session.on("Network.requestWillBeSent", self._redirected)
        session.on("Network.responseReceived", self._received)
        session.on("Network.loadingFinished", self._finished)
        session.send("Network.enable")

    def _redirected(self, event: Mapping[str, Any]) -> None:
        if "redirectResponse" in event:
            self.sent["Document"] += int(event["redirectResponse"]["encodedDataLength"])

    def _received(self, event: Mapping[str, Any]) -> None:
        self._kinds[event["requestId"]] = event["type"]

    def _finished(self, event: Mapping[str, Any]) -> None:
        self.sent[self._kinds.get(event["requestId"], "Other")] += int(event["encodedDataLength"])


@dataclass(frozen=True, slots=True)
class Opened:
    """One page in a window of one width.

    Attributes:
        paint_ms: first contentful paint, median of the loads.
        answer_ms: the first byte of the document, median of the loads.
        cold: bytes by kind with an empty cache.
        warm: bytes by kind when the page is opened again.
    """

    path: str
    width: int
    paint_ms: float
    answer_ms: float
    cold: Counter[str]
    warm: Counter[str]

    @property
    def weight(self) -> int:
        """All bytes with an empty cache."""
        return sum(self.cold.values())


def addresses(content: browser_store.Content) -> list[str]:
    """Every page with the values of the database, the longest lists, and the other long logs."""
    audit = AUDIT.format(week=content.values["audit_week"], failure_id=content.values["audited"])
    filled = [
        audit if path == AUDIT else re.sub(r"{(\w+)(?::path)?}", lambda found: content.values[found[1]], path)
        for path in PATHS
    ]
    return list(dict.fromkeys([*filled, *LONGEST_LISTS, *content.logs]))


@contextmanager
def empty_context(browser: Browser, base: str, width: int) -> Iterator[BrowserContext]:
    """Yield a context of its own: nothing is in its cache."""
    context = browser.new_context(base_url=base, viewport={"width": width, "height": 900})
    try:
        yield context
    finally:
        context.close()


def is_page(answer: APIResponse) -> bool:
    """Return whether an answer is a page. Raises RuntimeError if the server failed."""
    if answer.status >= 500:
        raise RuntimeError(f"{answer.url}: {answer.status}")
    return answer.headers.get("content-type", "").startswith("text/html")


def opened(browser: Browser, base: str, path: str, width: int, loads: int) -> Opened:
    """Open a page a few times, each time with an empty cache, and once more with what is in the cache then."""
    paints, answers = [], []
    for _ in range(loads):
        with empty_context(browser, base, width) as context:
            page, wire = context.new_page(), Wire()
            wire.listen(context.new_cdp_session(page))
            page.goto(path)
            paints.append(page.evaluate(PAINTED))
            answers.append(page.evaluate(ANSWERED))
            cold, wire.sent = wire.sent, Counter()
            page.goto(path)
            page.evaluate(PAINTED)
            warm = wire.sent
    return Opened(path, width, statistics.median(paints), statistics.median(answers), cold, warm)


def every_page(browser: Browser, base: str, paths: Sequence[str], loads: int) -> list[Opened]:
    """Open every page in both widths; each is asked for once before, so that its template is compiled."""
    found = []
    with empty_context(browser, base, WIDTHS[0]) as context:
        pages = [path for path in paths if is_page(context.request.get(path, max_redirects=0))]
    for path in pages:
        found += [opened(browser, base, path, width, loads) for width in WIDTHS]
    return found


def described(one: Opened) -> str:
    """One line of the table."""
    kinds = ", ".join(f"{kind.lower()} {size / 1000:.0f}" for kind, size in one.cold.most_common())
    return (
        f"  {one.path[:60]:60} {one.width:5} px   paint {one.paint_ms:6.0f} ms (first byte {one.answer_ms:5.0f})   "
        f"{one.weight / 1000:6.1f} kB ({kinds}), again {sum(one.warm.values()) / 1000:.1f}"
    )


def tell_pages(found: Sequence[Opened]) -> None:
    """Print the slowest and the heaviest pages, and how many miss the aims."""
    print(f"  the {WORST} slowest of {len(found)} (pages in {len(WIDTHS)} widths):")
    for one in sorted(found, key=lambda one: -one.paint_ms)[:WORST]:
        print(described(one))
    wide = [one for one in found if one.width == WIDTHS[-1]]
    print(f"  the {WORST} heaviest pages:")
    for one in sorted(wide, key=lambda one: -one.weight)[:WORST]:
        print(described(one))
    slow = sum(one.paint_ms > PAINT_AIM_MS for one in found)
    heavy = sum(one.weight > WEIGHT_AIM for one in found)
    print(f"  first contentful paint over {PAINT_AIM_MS:g} ms: {slow} of {len(found)}")
    print(f"  over {WEIGHT_AIM / 1000:g} kB with an empty cache: {heavy} of {len(found)}")
    middle = statistics.median(one.paint_ms for one in found)
    print(
        f"  {len(wide)} pages: paint {middle:.0f} ms at the median; {sum(one.weight for one in wide) / 1000:.0f} kB "
        f"with an empty cache, {sum(sum(one.warm.values()) for one in wide) / 1000:.0f} kB again, all together",
        flush=True,
    )


def measure(url: str, plan: Plan) -> None:
    """Measure a filled database and print the results."""
    content = browser_store.content(url)
    with served(url) as (base, _), chromium() as browser:
        if "pages" in plan.parts:
            paths = [path for path in addresses(content) if plan.only in path]
            tell_pages(every_page(browser, base, paths, plan.loads))
        if "logs" in plan.parts:
            for address, kept, name in zip(content.logs, content.kept, browser_store.STREAMS, strict=True):
                for width in WIDTHS:
                    with empty_context(browser, base, width) as context:
                        seen = browser_scrolling.scrolled(context.new_page(), address)
                    print(f"  {name} ({kept:,} kept), {width} px: {seen}", flush=True)


def run(plan: Plan | None = None, url: str = "") -> None:
    """Fill a database unless one is given, and measure it."""
    wanted = plan or Plan()
    if url:
        measure(url, wanted)
        return
    with tempfile.TemporaryDirectory(prefix="faultline-bench-") as folder:
        measure(browser_store.fill(Path(folder)), wanted)


def main() -> None:
    """Run the benchmark with the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.browser")
    parser.add_argument("--loads", type=int, default=LOADS, help="how often each page is opened")
    parser.add_argument("--only", default="", help="only pages with this text in their address")
    parser.add_argument("--url", default="", help="a database that `browser_store.fill` has filled")
    parser.add_argument("--part", choices=PARTS, help="only this part")
    given = parser.parse_args()
    run(Plan(given.loads, given.only, (given.part,) if given.part else PARTS), given.url)


if __name__ == "__main__":
    main()
