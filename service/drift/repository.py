"""Measures of the input of failures, the counts of a period, and reports on drift."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    Column,
    ColumnElement,
    Float,
    Integer,
    LargeBinary,
    Row,
    String,
    Table,
    and_,
    case,
    delete,
    func,
    insert,
    or_,
    select,
)

from classifiers.contracts import InputMeasures
from service.drift.records import AuditedAnswer, ClusterDrift, DriftReport, Example, GroupCounts, VersionCount
from service.errors import damage_translated
from service.failures.tables import failures, verdicts
from service.feedback.tables import audit_samples, feedback
from service.sql import bulk
from service.sql.bulk import chunks, upsert
from service.sql.packing import pack, unpack
from service.sql.reader import TimedReader
from service.sql.types import BigId, UtcDateTime, clean, metadata, utc

# What was measured when a failure was classified; written with the failure, without a foreign key as `logs`.
input_measures = Table(
    "input_measures",
    metadata,
    Column("failure_id", BigId, primary_key=True, autoincrement=False),
    Column("unknown_share", Float, nullable=False),
    Column("lines", Integer, nullable=False),
    Column("unmatched", Integer, nullable=False),
    Column("versions", String(400)),  # software with its version, separated by semicolons
)

# Comparisons of a recent period with one before.
drift_reports = Table(
    "drift_reports",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("at", UtcDateTime, nullable=False),
    Column("body", LargeBinary, nullable=False),
)


KEPT_REPORTS: Final = 100
_COLUMNS: Final = ("failure_id", "unknown_share", "lines", "unmatched", "versions")
_VERSIONS: Final = 400  # characters
_SEPARATOR: Final = ";"
_CORRECTING: Final = ("correct", "audit", "import")


class DriftReader(TimedReader):
    """Reads counts and reports."""

    def latest(self) -> DriftReport | None:
        """The newest report."""
        row = self._connection.execute(select(drift_reports).order_by(drift_reports.c.id.desc()).limit(1)).first()
        with damage_translated():
            return None if row is None else DriftReport.model_validate(unpack(row.body))

    def latest_id(self) -> int:
        """The number of the newest report, 0 if there is none."""
        return int(self._connection.execute(select(func.coalesce(func.max(drift_reports.c.id), 0))).scalar_one())

    def groups(self, since: datetime, until: datetime) -> list[GroupCounts]:
        """The counts of each group of failures that ended in [since, until)."""
        contested = self._judged(since, until, feedback.c.kind == "contest")
        names_another_label = or_(
            func.coalesce(feedback.c.side, feedback.c.said_side) != feedback.c.said_side,
            func.coalesce(feedback.c.cause, feedback.c.said_cause) != feedback.c.said_cause,
        )
        corrected = self._judged(since, until, and_(feedback.c.kind.in_(_CORRECTING), names_another_label))
        found = self._connection.execute(
            select(
                failures.c.cluster,
                failures.c.fingerprint,
                func.min(failures.c.id).label("first"),
                func.count().label("failures"),
                func.sum(case((failures.c.abstained, 1), else_=0)).label("abstained"),
                func.count(input_measures.c.failure_id).label("measured"),
                func.coalesce(func.sum(input_measures.c.unknown_share), 0.0).label("unknown"),
                func.coalesce(func.sum(input_measures.c.lines), 0).label("lines"),
                func.coalesce(func.sum(input_measures.c.unmatched), 0).label("unmatched"),
            )
            .select_from(failures.join(input_measures, input_measures.c.failure_id == failures.c.id, isouter=True))
            .where(failures.c.ended_at >= utc(since), failures.c.ended_at < utc(until))
            .group_by(failures.c.cluster, failures.c.fingerprint)
        )
        return [
            GroupCounts(
                row.cluster,
                row.fingerprint,
                row.first,
                row.failures,
                int(row.abstained),
                row.measured,
                float(row.unknown),
                int(row.lines),
                int(row.unmatched),
                contested.get((row.cluster, row.fingerprint), 0),
                corrected.get((row.cluster, row.fingerprint), 0),
            )
            for row in found
        ]

    def versions(self, since: datetime, until: datetime) -> list[VersionCount]:
        """The versions of software that the logs of failures name which ended in [since, until)."""
        found = self._connection.execute(
            select(
                failures.c.cluster,
                input_measures.c.versions,
                func.count().label("failures"),
                func.min(failures.c.id).label("first"),
            )
            .select_from(failures.join(input_measures, input_measures.c.failure_id == failures.c.id))
            .where(
                failures.c.ended_at >= utc(since),
                failures.c.ended_at < utc(until),
                input_measures.c.versions.is_not(None),
            )
            .group_by(failures.c.cluster, input_measures.c.versions)
        )
        counts: dict[tuple[str, str], tuple[int, int]] = {}
        for row in found:
            for version in row.versions.split(_SEPARATOR):
                count, first = counts.get((row.cluster, version), (0, row.first))
                counts[row.cluster, version] = (count + row.failures, min(first, row.first))
        return [VersionCount(cluster, name, count, first) for (cluster, name), (count, first) in counts.items()]

    def audited(self, since: datetime, until: datetime) -> list[AuditedAnswer]:
        """The judged failures of weekly samples that ended in [since, until), with the machine's confidence then."""
        rows = self._connection.execute(
            select(
                *(
                    audit_samples.c.week,
                    audit_samples.c.stratum,
                    audit_samples.c.population,
                    audit_samples.c.failure_id,
                    audit_samples.c.machine_side,
                ),
                *(failures.c.cluster, feedback.c.side, feedback.c.said_side),
            )
            .join(feedback, feedback.c.id == audit_samples.c.feedback_id)
            .join(failures, failures.c.id == audit_samples.c.failure_id)
            .where(
                failures.c.ended_at >= utc(since),
                failures.c.ended_at < utc(until),
                feedback.c.kind != "unsure",
                audit_samples.c.machine_side.is_not(None),
            )
        ).all()
        confidences = self._confidences([row.failure_id for row in rows])
        answered = self._answered({row.week for row in rows})
        return [
            AuditedAnswer(
                row.cluster,
                row.failure_id,
                confidences[row.failure_id],
                (row.side or row.said_side) == row.machine_side,
                (row.population or 1) / answered[row.week, row.stratum],
            )
            for row in rows
            if row.failure_id in confidences
        ]

    def _answered(self, weeks: Collection[str]) -> dict[tuple[str, str], int]:
        """Answers of each stratum in whole weeks, of which a period may hold a part."""
        found = self._connection.execute(
            select(audit_samples.c.week, audit_samples.c.stratum, func.count().label("many"))
            .join(feedback, feedback.c.id == audit_samples.c.feedback_id)
            .where(
                audit_samples.c.week.in_(weeks), feedback.c.kind != "unsure", audit_samples.c.machine_side.is_not(None)
            )
            .group_by(audit_samples.c.week, audit_samples.c.stratum)
        )
        return {(row.week, row.stratum): row.many for row in found}

    def with_headlines(self, clusters: Sequence[ClusterDrift]) -> tuple[ClusterDrift, ...]:
        """The same comparisons with the headlines of their examples; an example that was removed keeps none."""
        ids = {one.failure for cluster in clusters for figure in cluster.figures for one in figure.examples}
        ids |= {one.first.failure for cluster in clusters for one in cluster.versions}
        lines: dict[int, str] = {}
        for part in chunks(sorted(ids)):
            found = select(failures.c.id, failures.c.headline).where(failures.c.id.in_(part))
            lines |= {row.id: row.headline for row in self._connection.execute(found)}
        return tuple(_with_headlines(cluster, lines) for cluster in clusters)

    def _judged(self, since: datetime, until: datetime, what: ColumnElement[bool]) -> dict[tuple[str, str], int]:
        """The number of failures of each group with a feedback of some kind."""
        found = self._connection.execute(
            select(
                failures.c.cluster, failures.c.fingerprint, func.count(feedback.c.failure_id.distinct()).label("many")
            )
            .select_from(feedback.join(failures, failures.c.id == feedback.c.failure_id))
            .where(
                # No judgement is older than the end of its failure, give or take a clock.
                feedback.c.at >= utc(since),
                feedback.c.withdrawn_by.is_(None),
                failures.c.ended_at >= utc(since),
                failures.c.ended_at < utc(until),
                what,
            )
            .group_by(failures.c.cluster, failures.c.fingerprint)
        )
        return {(row.cluster, row.fingerprint): row.many for row in found}

    def _confidences(self, ids: Sequence[int]) -> dict[int, float]:
        """The confidence of the newest version by the machine."""
        found: dict[int, float] = {}
        for part in chunks(list(ids)):
            versions = self._connection.execute(
                select(verdicts.c.failure_id, verdicts.c.body)
                .where(verdicts.c.failure_id.in_(part), verdicts.c.source == "machine", verdicts.c.body.is_not(None))
                .order_by(verdicts.c.version)
            )
            found |= {row.failure_id: float(unpack(row.body)["confidence"]) for row in versions}
        return found


class DriftRepository(DriftReader):
    """Reads and writes measures and reports."""

    def add(self, measures: Mapping[int, InputMeasures | None]) -> None:
        """Store the measures of new failures by id; None: not measured."""
        rows = [(number, *_values(one)) for number, one in measures.items() if one is not None]
        bulk.append(self._connection, input_measures, _COLUMNS, rows)

    def replace(self, failure_id: int, measures: InputMeasures | None) -> None:
        """Store the measures of a failure that was classified again with more of its logs."""
        if measures is None:
            return
        values = dict(zip(_COLUMNS[1:], _values(measures), strict=True))
        writing = upsert(self._connection, input_measures).values(failure_id=failure_id, **values)
        self._connection.execute(writing.on_conflict_do_update(index_elements=["failure_id"], set_=values))

    def store(self, report: DriftReport) -> None:
        """Store a report; the oldest ones beyond a hundred are removed."""
        self._connection.execute(
            insert(drift_reports).values(at=utc(report.at), body=pack(report.model_dump(mode="json")))
        )
        kept = select(drift_reports.c.id).order_by(drift_reports.c.id.desc()).limit(KEPT_REPORTS)
        self._connection.execute(delete(drift_reports).where(drift_reports.c.id.not_in(kept)))


def _values(measures: InputMeasures) -> Row[Any] | tuple[Any, ...]:
    return (measures.unknown, measures.lines, measures.unmatched, _joined(measures.versions))


def _joined(versions: Iterable[str]) -> str | None:
    """As many versions as the column holds."""
    text = ""
    for one in versions:
        longer = f"{text}{_SEPARATOR}{one}" if text else one
        if len(longer) > _VERSIONS:
            break
        text = longer
    return clean(text) or None


def _with_headlines(cluster: ClusterDrift, lines: Mapping[int, str]) -> ClusterDrift:
    def shown(one: Example) -> Example:
        return Example(failure=one.failure, headline=lines.get(one.failure, ""))

    figures = (one.model_copy(update={"examples": tuple(map(shown, one.examples))}) for one in cluster.figures)
    versions = (one.model_copy(update={"first": shown(one.first)}) for one in cluster.versions)
    return cluster.model_copy(update={"figures": tuple(figures), "versions": tuple(versions)})
