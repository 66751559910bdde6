"""The page of the signatures in use, their state, and the failures that each one matched lately."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from classifiers.signatures import Signature, packaged
from service.failures.records import FailureRow
from service.failures.repository.signature_hits import HitCounts, SignatureHits
from service.signatures.operator_catalogue import OperatorEntry
from service.signatures.signature_folder import SignaturesInUse
from service.web.auth import READ
from service.web.pages.forms import Text
from service.web.pages.templating import render
from service.web.services import InjectedServices, Services

router = APIRouter(dependencies=[READ])
PERIOD: Final = timedelta(days=28)
MANY: Final = 200  # failures above which a count is cached: below, it is quick


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One signature of the page: the entry, its own part if it is an operator's, and its hits."""

    entry: Signature
    own: OperatorEntry | None
    hits: SignatureHits | None

    @property
    def causes(self) -> tuple[str, ...]:
        """The codes of its causes, most likely first."""
        return tuple(code for code, _ in sorted(self.entry.causes.items(), key=lambda one: -one[1]))


@dataclass(frozen=True, slots=True)
class SignatureOverview:
    """The rows of the page.

    `own`: all own entries; `packaged`: those with hits. `gone`: ids with hits that are in no catalogue now.
    """

    in_use: SignaturesInUse | None
    own: tuple[EntryRow, ...]
    packaged: tuple[EntryRow, ...]
    gone: tuple[SignatureHits, ...]
    packaged_entries: int
    counts: HitCounts
    counted_at: datetime


def _overview(services: Services) -> SignatureOverview:
    """Return all own entries, and the packaged ones that matched in the last four weeks, most frequent first."""
    in_use = None if services.signatures is None else services.signatures.current()
    own = {} if in_use is None else in_use.layered.own
    by_id = packaged().by_id if in_use is None else in_use.layered.catalogue.by_id
    counted_at, counts = _counts(services)
    rows = [EntryRow(entry, own.get(name), counts.hits.get(name)) for name, entry in by_id.items()]
    rows.sort(key=lambda row: (-(row.hits.failures if row.hits is not None else 0), row.entry.id))
    gone = sorted(
        (hits for name, hits in counts.hits.items() if name not in by_id),
        key=lambda one: (-one.failures, one.signature),
    )
    return SignatureOverview(
        in_use=in_use,
        own=tuple(row for row in rows if row.own is not None),
        packaged=tuple(row for row in rows if row.own is None and row.hits is not None),
        gone=tuple(gone),
        packaged_entries=sum(row.own is None for row in rows),
        counts=counts,
        counted_at=counted_at,
    )


def _counts(services: Services) -> tuple[datetime, HitCounts]:
    def count() -> tuple[datetime, HitCounts]:
        now = services.clock.now()
        with services.store.reading() as reading:
            return now, reading.signature_hits.count(now - PERIOD)

    return services.signature_hits.get(
        "hits", count, services.clock.monotonic(), cacheable=lambda found: found[1].failures >= MANY
    )


def _failures(services: Services, hits: SignatureHits) -> list[FailureRow]:
    """The newest failures of a signature that are still stored, newest first."""
    with services.reading() as reading:
        rows = reading.failures.rows(hits.newest)
    return [rows[number] for number in hits.newest if number in rows]


@router.get("/signatures")
def signatures(request: Request, services: InjectedServices, signature: Text = None) -> HTMLResponse:
    """The signatures in use, operators' own first; above them the newest failures of `signature`, if it is given."""
    found = _overview(services)
    folder = None if services.signatures is None else services.signatures.folder
    chosen = found.counts.hits.get(signature) if signature else None
    context = {
        "found": found,
        "folder": None if folder is None else str(folder),
        "signature": signature,
        "chosen": chosen,
        "failures": [] if chosen is None else _failures(services, chosen),
    }
    return render(request, "signatures/page.html", context)
