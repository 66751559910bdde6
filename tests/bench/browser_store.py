"""The database that the browser opens: the demo's month, what people do in it, and one failure with long logs."""

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote
from zoneinfo import ZoneInfo

from classifiers.model.site.layer import SiteLayer
from service import compose, settings
from service.contracts.event import from_object
from service.db.session import Store
from service.demo.__main__ import publish
from service.demo.jobs import CLUSTER
from service.demo.month import Month
from service.demo.simulation import Simulation
from service.demo.story import DAYS, DEGRADED, Story, StoryClock
from service.feedback.records import FeedbackInput
from service.groups.records import GroupFilter
from service.learning.records import GateResult
from service.weeks import of as week_of
from tests.service.web.stored_layers import FIGURES, LAYER, SHADOW

LINES = 100_000
ERROR = "RuntimeError: CUDA error: an illegal memory access was encountered"
JOB = "long-logs"
# The streams of that failure. At most 256 KiB of a log are kept, with 32 KiB around its first error if that is earlier:
# 100,000 lines fit only if they have two characters. Of a usual log of as many lines the end is kept.
SHORT_LINES, USUAL_LINES, LONG_LINES = range(3)
STREAMS = ("100,000 lines of two characters", "the end of 100,000 usual lines", "1,000 lines of 250 characters")


@dataclass(frozen=True, slots=True)
class Content:
    """Where the content of the database is found.

    Attributes:
        values: the values for the parameters of addresses, by their names.
        logs: the addresses of the long logs in the log viewer, in the order of `STREAMS`.
        kept: the lines that are kept of each.
    """

    values: dict[str, str]
    logs: tuple[str, ...]
    kept: tuple[int, ...]


def usual_line(number: int) -> str:
    """One of the lines that training writes, 100 characters on average."""
    return (
        f"2026-11-20 11:{number // 60 % 60:02}:{number % 60:02} INFO trainer: step {number} "
        f"loss {2 + number % 97 / 97:.4f} lr 3.0e-04 grad_norm {number % 13 / 10:.3f} {880 + number % 41} samples/s"
    )


def fill(folder: Path) -> str:
    """Fill a new database in a folder; return its URL."""
    url, now = f"sqlite:///{folder / 'browser.sqlite3'}", datetime.now(UTC)
    clock = StoryClock(now - timedelta(days=DAYS))
    read = settings.read(
        {
            "FAULTLINE_DATABASE_URL": url,
            "FAULTLINE_LOG_ROOTS": str(folder),
            "FAULTLINE_LOG_ROOTS_ANY_OWNER": str(folder),
        }
    )
    with closing(compose.build(read, clock)) as services:
        services.store.upgrade()
        since, story = now - timedelta(days=DAYS), Story(now)
        Month(services, clock, story, Simulation(story, since)).play(since, now, lambda _stored, _day: None)
        clock.at = None
        _add_long_logs(services, folder, now)
        publish(services)
        _act_as_people(services)
    return url


def _add_long_logs(services: compose.ProcessServices, folder: Path, now: datetime) -> None:
    """Store a failure with the three logs; the first goes with the event, the second is a file."""
    short = "\n".join(".#"[number % 2] for number in range(LINES - 1))
    file = folder / "usual.log"
    file.write_text("\n".join([*map(usual_line, range(LINES - 1)), ERROR]), encoding="utf-8")
    long = "\n".join(usual_line(number).ljust(250, "=") for number in range(999))
    places = [{"tail": f"{short}\n{ERROR}"}, {"uri": str(file)}, {"tail": f"{long}\n{ERROR}"}]
    logs = [{"rank": rank, "node": DEGRADED, "stream": "stderr", **place} for rank, place in enumerate(places)]
    event = {
        "schema": "job-completion/1",
        "cluster": CLUSTER,
        "job_id": JOB,
        "attempt": 0,
        "name": "a job with long logs",
        "user": "ana",
        "team": "vision",
        "queue": "gpu",
        "status": "failed",
        "exit_code": 1,
        "gpus": 8,
        "nodes": [DEGRADED],
        "started_at": (now - timedelta(hours=3)).isoformat(),
        "ended_at": now.isoformat(),
        "logs": logs,
    }
    services.diagnose([from_object(event)])
    services.group_count_updater()


def _act_as_people(services: compose.ProcessServices) -> None:
    """A person confirms the largest group, an audit sample is drawn, and a site layer waits for its release."""
    with services.store.reading() as reading:
        largest = max(reading.groups.page(GroupFilter(), limit=500).items, key=lambda group: group.failures)
    services.feedback.add_to_group(largest.id, "ana", FeedbackInput("confirm", note="seen before"))
    services.feedback.draw()
    about = {"base": "", "labels": 12, "groups": 4, "labellers": {"ana": 12}, "parents": [], "data": "d1"}
    gate = GateResult("ask", ("12 of 12 labels are by ana: a second person has to agree",), FIGURES, SHADOW)
    with services.store.unit_of_work() as work:
        work.site_layers.add(LAYER, SiteLayer(about=about).text(), "the command line", gate)


def content(url: str) -> Content:
    """Find the values for addresses: the failure with the long logs, the largest group, the newest of the others."""
    with closing(Store(url)) as store, store.reading() as reading:
        failure = next(row for row in reading.failures.page(limit=500).items if row.job_id == JOB)
        logs = reading.failures.get(failure.id).logs[0]
        group = max(reading.groups.page(limit=500).items, key=lambda one: one.failures)
        incident = reading.incidents.page(limit=1).items[0]
        audit_week = reading.audit_samples.audit_weeks(limit=1)[0]
        audited = reading.audit_samples.audit(audit_week)[0].failure_id
    viewer = f"/failures/{failure.id}/logs/{logs.attempt_id}"
    values = {
        "failure_id": str(failure.id),
        "attempt_id": str(logs.attempt_id),
        "index": str(SHORT_LINES),
        "group_id": str(group.id),
        "incident_id": str(incident.id),
        "cluster": CLUSTER,
        "node": quote(DEGRADED, safe=""),
        "layer_id": LAYER,
        "week": str(week_of(datetime.now(UTC), ZoneInfo("UTC")).earlier(1)),
        "audit_week": audit_week,
        "audited": str(audited),
        "token": "unknown",
    }
    return Content(
        values,
        tuple(f"{viewer}/{index}/lines" for index in range(len(STREAMS))),
        tuple(stream.text.count("\n") + 1 for stream in logs.streams),
    )
