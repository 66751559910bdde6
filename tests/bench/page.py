"""The failures page and its API call with a million stored failures in PostgreSQL, through the real HTTP server."""

import os
import re
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime

from service.clock import SystemClock
from service.groups.fold import Fold
from service.store.session import Store
from tests.labs import postgres

FAILURES = 1_000_000
REQUESTS = 60
PAGES = (
    "/failures",
    "/failures?side=hardware",
    "/failures?side=user&cause=USER.1&cluster=c3",
    "/failures?user=user77",
    "/failures?node=gpu0123",
    "/failures?q=nowhere",
    "/api/v1/failures?limit=50",
    "/api/v1/failures?team=team7&limit=50",
    "/",
    "/?since=7d",
    "/?since=28d",
    "/groups",
    "/nodes",
    "/automation",
    "/reports",
)
# A year of failures, newest last; the shares of sides and causes are made up, only their spread matters.
LOAD = """
INSERT INTO jobs (id, event_id, digest, cluster, job_id, attempt, status, name, user_name, team, queue, gpus, ended_at,
                  started_at, received_at, clock_suspect, counted, gpu_hours_lost, failure_id)
SELECT n, 'event-' || n, decode(md5(n::text), 'hex'), 'c' || n % 5, n::text, 0, 'failed', 'job', 'user' || n % 500,
       'team' || n % 30, 'queue' || n % 6, 8, at, at - interval '2 hours', at, false, true, 16, n
FROM (SELECT n, now() - ({count} - n) * interval '30 seconds' AS at FROM generate_series(1, {count}) AS n) AS made;
INSERT INTO failures (id, cluster, status, user_name, team, queue, ended_at, gpu_hours_lost, counted, version, source,
                      side, cause, platform_symptom, confidence, abstained, retry_outlook, fingerprint, decision,
                      resubmit, headline)
SELECT id, cluster, status, user_name, team, queue, ended_at, gpu_hours_lost, true, 1, 'machine',
       (ARRAY['hardware', 'system', 'user', 'user'])[1 + id % 4],
       (ARRAY['HW.GPU.1', 'SYS.5', 'USER.1', 'USER.2'])[1 + id % 4], 'crash', 0.9, id % 20 = 0, 'futile',
       '1:' || md5((id % 4000)::text), 'stop', false, 'RuntimeError: number ' || id % 4000
FROM jobs;
INSERT INTO failure_nodes (failure_id, node, ended_at)
SELECT id, 'gpu' || lpad((id % 1000)::text, 4, '0'), ended_at FROM jobs;
INSERT INTO hour_notes (hour) SELECT DISTINCT date_trunc('hour', ended_at, 'UTC') FROM jobs;
INSERT INTO group_deltas (failure_id, fingerprint, sign)
SELECT id, fingerprint, 1 FROM failures WHERE id > {count} - 20000;
ANALYZE;
"""


@contextmanager
def served(url: str) -> Iterator[str]:
    """The real server on the database."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE_")}
    environ["FAULTLINE_DATABASE_URL"] = url
    command = [sys.executable, "-m", "service", "serve", "--port", "0"]
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        try:
            told = (re.search(r"http://127\.0\.0\.1:\d+", line) for line in process.stderr or ())
            yield next(match[0] for match in told if match)
        finally:
            process.terminate()


def milliseconds(url: str) -> float:
    """How long one request took."""
    began = time.perf_counter()
    with urllib.request.urlopen(url) as answer:
        answer.read()
    return (time.perf_counter() - began) * 1000


def count_hours(url: str) -> int:
    """What the background does: hours that are over, and groups."""
    counted = 0
    with closing(Store(url)) as store:
        while True:
            with store.unit_of_work() as work:
                some = work.rollups.fold(datetime.now(UTC))
            if not some:
                break
            counted += some
        Fold(store, SystemClock())()
    return counted


def run(count: int = FAILURES) -> None:
    """Print p50 and p95 of each page, each request alone."""
    with postgres.server(shared_buffers="512MB") as database:
        url = database.create("pages")
        store = Store(url)
        store.upgrade()
        store.close()
        began = time.monotonic()
        for statement in LOAD.format(count=count).split(";\n"):
            if statement.strip():
                database.sql(statement, "pages")
        print(f"{count:,} failures loaded in {time.monotonic() - began:.0f} s")
        began = time.monotonic()
        hours = count_hours(url)
        print(f"{hours:,} hours counted once in {time.monotonic() - began:.0f} s")
        with served(url) as base:
            for page in PAGES:
                milliseconds(base + page)
                taken = sorted(milliseconds(base + page) for _ in range(REQUESTS))
                p95 = taken[int(len(taken) * 0.95)]
                print(f"{page:45} p50 {statistics.median(taken):6.1f} ms   p95 {p95:6.1f} ms")
