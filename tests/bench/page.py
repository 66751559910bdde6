"""Every page and its API call with many stored failures, on both databases, through the real HTTP server.

usage: python -m tests.bench.page [--sqlite ROWS] [--postgres ROWS] [--days DAYS] [--per-url TIMES] [--rate PER_S]
                                  [--alone TIMES] [--only TEXT] [--url DATABASE_URL]

Each URL is requested at fixed times, `--rate` a second, independent of earlier answers (an open loop); latency
counts from the scheduled time. With `--alone` each URL is also requested without other load, which separates the
server's processor time for a request from other load on the machine. `--url` measures an already filled database.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO
from zoneinfo import ZoneInfo

from service.clock import SystemClock
from service.db.session import Store
from service.reports.publish import ReportService
from service.weeks import last_complete
from tests.bench import fill, open_loop
from tests.bench.routes import FIRST_BYTE, places, routes
from tests.labs import postgres

SQLITE, POSTGRES, DAYS = 1_000_000, 3_000_000, 365.0
PER_URL, RATE, LIMIT_MS = 20, 10.0, 200.0
SERVER = {"shared_buffers": "1GB", "max_wal_size": "8GB"}


@dataclass(frozen=True, slots=True)
class Plan:
    """The amount of loaded rows and requests."""

    sqlite: int = SQLITE
    postgres: int = POSTGRES
    days: float = DAYS
    per_url: int = PER_URL
    rate: float = RATE
    alone: int = 0
    only: str = ""


@contextmanager
def served(url: str) -> Iterator[tuple[str, int]]:
    """Start the real server on the database; yield its address and process."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE_")}
    environ["FAULTLINE_DATABASE_URL"] = url
    command = [sys.executable, "-m", "service", "serve", "--port", "0"]
    # Its output goes to a file: a pipe that nobody reads would fill up and block it.
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as words,
        subprocess.Popen(command, env=environ, stderr=words, text=True) as process,
    ):
        try:
            yield _address(words, process), process.pid
        finally:
            process.terminate()


def _address(words: IO[str], process: subprocess.Popen[str]) -> str:
    """Return the address that the server reports."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        words.seek(0)
        output = words.read()
        if match := re.search(r"http://127\.0\.0\.1:\d+", output):
            return match[0]
        if process.poll() is not None:
            raise RuntimeError(f"the server did not start: {output}")
        time.sleep(0.1)
    raise RuntimeError("the server did not start within two minutes")


def streams(url: str) -> bool:
    """Return whether an answer is a stream, for which the first byte counts."""
    return any(name in url for name in FIRST_BYTE)


def asked(url: str, only: str) -> Mapping[str, Sequence[str]]:
    """Return the URLs by route, for the content of a database."""
    with closing(Store(url)) as store:
        found = routes(places(store, datetime.now(UTC)))
    kept = {route: tuple(one for one in urls if only in one) for route, urls in found.items()}
    return {route: urls for route, urls in kept.items() if urls}


def measure(url: str, plan: Plan) -> list[str]:
    """Print the latencies of each URL; return those over the limit."""
    wanted = asked(url, plan.only)
    with served(url) as (base, pid):
        for urls in wanted.values():  # one request each: compiles templates, opens connections
            for one in urls:
                open_loop.ask(base, one, first_byte=streams(one))
        before, began = open_loop.processor_ms(pid), time.monotonic()
        found = open_loop.measure(base, wanted, per_url=plan.per_url, rate=plan.rate, first_byte=streams)
        busy = (open_loop.processor_ms(pid) - before) / max(len(found) * plan.per_url, 1)
        seconds = time.monotonic() - began
        by_itself = {
            one: open_loop.alone(base, one, pid, times=plan.alone, first_byte=streams(one))
            for one in found
            if plan.alone
        }
        peak = peak_mib(pid)
    over = []
    for urls in wanted.values():
        for one in urls:
            at = found[one]
            slow = at.p95 > LIMIT_MS or at.failed > 0
            over += [one] * slow
            more = "   alone {:6.1f}   processor {:6.1f}".format(*by_itself[one]) if plan.alone else ""
            mark = " <-- failed" if at.failed else " <--" if slow else ""
            print(f"  {one[:78]:78} p50 {at.p50:7.1f}   p95 {at.p95:7.1f} ms{more}{mark}", flush=True)
    requests = len(found) * plan.per_url
    print(
        f"  {requests:,} requests at {plan.rate:g}/s in {seconds:.0f} s: "
        f"{len(over)} of {len(found)} URLs over {LIMIT_MS:g} ms at p95"
    )
    print(f"  the server's processor time: {busy:.1f} ms a request; its peak memory {peak:.0f} MiB")
    return over


def peak_mib(pid: int) -> float:
    """Return the peak memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024


def report_s(url: str) -> tuple[float, float]:
    """Return the seconds to build the last complete week's report, and the processor time of this process for it."""
    with closing(Store(url)) as store:
        clock = SystemClock()
        made = ReportService(store, ZoneInfo("UTC"), clock)
        began, spent = time.monotonic(), time.process_time()
        made.current(last_complete(clock.now(), ZoneInfo("UTC")))
        return time.monotonic() - began, time.process_time() - spent


def tell(name: str, url: str, filled: fill.Filled, size: int, plan: Plan) -> list[str]:
    """Print the results of one database."""
    print(
        f"{name}: {filled.failures:,} failures and {filled.jobs:,} jobs of {plan.days:g} days loaded in "
        f"{filled.seconds:.0f} s; {size / 2**20:,.0f} MiB on disk, "
        f"{size / max(filled.failures, 1):,.0f} bytes a failure",
        flush=True,
    )
    over = measure(url, plan)
    wall, spent = report_s(url)
    print(f"  weekly report built in {wall:.1f} s ({spent:.1f} s of this process's own)", flush=True)
    return over


def run(plan: Plan | None = None) -> list[str]:
    """Fill and measure both databases; return the URLs over the limit."""
    wanted = plan or Plan()
    over: list[str] = []
    if wanted.sqlite:
        with tempfile.TemporaryDirectory(prefix="faultline-bench-") as folder:
            path = Path(folder) / "bench.sqlite3"
            filled = fill.fill(f"sqlite:///{path}", wanted.sqlite, wanted.days)
            over += tell("SQLite", f"sqlite:///{path}", filled, path.stat().st_size, wanted)
    if wanted.postgres:
        with postgres.server(**SERVER) as database:
            url = database.create("pages")
            filled = fill.fill(url, wanted.postgres, wanted.days)
            size = int(database.sql("SELECT pg_database_size('pages')"))
            over += tell("PostgreSQL", url, filled, size, wanted)
    return over


def main() -> None:
    """Run the benchmark with the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.page")
    parser.add_argument("--sqlite", type=int, default=SQLITE, help="failures in SQLite, 0: not at all")
    parser.add_argument("--postgres", type=int, default=POSTGRES, help="failures in PostgreSQL, 0: not at all")
    parser.add_argument("--days", type=float, default=DAYS, help="the time they are spread over")
    parser.add_argument("--per-url", type=int, default=PER_URL, help="how often each URL is asked for")
    parser.add_argument("--rate", type=float, default=RATE, help="requests a second")
    parser.add_argument("--alone", type=int, default=0, help="how often each URL is asked for by itself as well")
    parser.add_argument("--only", default="", help="only URLs with this text in them")
    parser.add_argument("--url", default="", help="a database that is filled already")
    args = vars(parser.parse_args())
    url = args.pop("url")
    plan = Plan(**args)
    if url:
        with closing(Store(url)) as store:
            store.upgrade()
        measure(url, plan)
        print("  weekly report built in {:.1f} s ({:.1f} s of this process's own)".format(*report_s(url)))
    else:
        run(plan)


if __name__ == "__main__":
    main()
