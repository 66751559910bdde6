"""Weekly random samples of failures that people judge without seeing the verdict."""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, case, select, update

from service.failures.tables import failures, verdicts
from service.feedback.records import Audit, AuditResult
from service.feedback.tables import audit_samples, feedback
from service.sql import bulk
from service.sql.bulk import upsert
from service.sql.packing import unpack
from service.sql.reader import TimedReader
from service.sql.types import utc

JUDGED: Final = "judged"  # the stratum of failures that a person judged before the draw
UNDECIDED: Final = "undecided"
# Judgement: failures of each stratum at least, so that a rare side has an interval at all.
LEAST_OF_STRATUM: Final = 4
_UNSURE: Final = "unsure"
_DRAW_LOCK: Final = 0x64726177  # "draw"


class AuditReader(TimedReader):
    """Reads samples."""

    def audit(self, week: str) -> tuple[Audit, ...]:
        """The sample of a week, in the order of the ids, without the machine's answers."""
        return tuple(
            Audit(row.week, row.failure_id, row.feedback_id, _both(_right(row)), row.kind == _UNSURE)
            for row in self._rows([week])
        )

    def audit_results(
        self, weeks: Sequence[str], *, cluster: str | None = None, team: str | None = None
    ) -> tuple[AuditResult, ...]:
        """The samples of weeks with their strata and results, for statistics.

        The strata of a cluster or team have the size that the sample tells: as each failure of a stratum stands for the
        same number of failures, whomever it is of.
        """
        rows = self._rows(weeks, cluster, team)
        part = cluster is not None or team is not None
        own = Counter((row.week, row.stratum) for row in rows)
        drawn = Counter((row.week, row.stratum) for row in self._rows(weeks)) if part else own
        found = []
        for row in rows:
            side, cause = _right(row)
            judged, unsure = row.feedback_id is not None, row.kind == _UNSURE
            place, population = (row.week, row.stratum), row.population
            if part and population is not None:
                population = max(own[place], round(population * own[place] / drawn[place]))
            found.append(AuditResult(row.week, row.stratum or "", population, judged, unsure, side, cause))
        return tuple(found)

    def weights(self) -> dict[int, float]:
        """Of each judged failure of a sample the number of failures of its week and stratum that it stands for."""
        rows = self._connection.execute(
            select(
                audit_samples.c.week, audit_samples.c.stratum, audit_samples.c.population, audit_samples.c.failure_id
            )
            .join(feedback, feedback.c.id == audit_samples.c.feedback_id)
            .where(feedback.c.kind != _UNSURE, audit_samples.c.population.is_not(None))
        ).all()
        answers = Counter((row.week, row.stratum) for row in rows)
        return {row.failure_id: row.population / answers[row.week, row.stratum] for row in rows}

    def audit_weeks(self, *, limit: int = 12) -> tuple[str, ...]:
        """The weeks with a sample, latest first."""
        found = self._connection.execute(
            select(audit_samples.c.week).distinct().order_by(audit_samples.c.week.desc()).limit(limit)
        )
        return tuple(found.scalars())

    def _rows(self, weeks: Sequence[str], cluster: str | None = None, team: str | None = None) -> Sequence[Row[Any]]:
        wanted = {"cluster": cluster, "team": team}
        own = [failures.c[name] == value for name, value in wanted.items() if value is not None]
        source = audit_samples.join(feedback, feedback.c.id == audit_samples.c.feedback_id, isouter=True)
        if own:
            source = source.join(failures, failures.c.id == audit_samples.c.failure_id)
        found = (
            select(
                audit_samples,
                feedback.c.kind,
                feedback.c.side,
                feedback.c.cause,
                feedback.c.said_side,
                feedback.c.said_cause,
            )
            .select_from(source)
            .where(audit_samples.c.week.in_(weeks), *own)
            .order_by(audit_samples.c.week, audit_samples.c.failure_id)
        )
        return self._connection.execute(found).all()


class AuditRepository(AuditReader):
    """Reads and draws samples."""

    def draw(self, week: str, since: datetime, until: datetime, size: int) -> int:
        """Draw the sample of a week, once, from the failures that ended in [since, until).

        Within a stratum all failures have the same probability; strata are drawn in proportion to their size, but at
        least a few of each.

        Returns:
            The size of the sample, 0 if it was drawn before or nothing failed.
        """
        bulk.lock(self._connection, [_DRAW_LOCK])  # processes that draw at the same time would draw two samples
        if self._connection.execute(select(audit_samples.c.week).where(audit_samples.c.week == week).limit(1)).first():
            return 0
        ended = failures.c.ended_at
        by_stratum: defaultdict[str, list[Row[Any]]] = defaultdict(list)
        for row in self._connection.execute(
            select(failures.c.id, failures.c.side, failures.c.cause, _stratum().label("stratum"))
            .where(ended >= utc(since), ended < utc(until))
            .order_by(ended, failures.c.id)
        ):
            by_stratum[row.stratum].append(row)
        sizes = allocated({name: len(rows) for name, rows in by_stratum.items()}, size)
        choice = random.SystemRandom()
        drawn = [row for name, count in sizes.items() for row in choice.sample(by_stratum[name], count)]
        before = self._machine_answers([row.id for row in drawn if row.stratum == JUDGED])
        if drawn:
            self._connection.execute(
                upsert(self._connection, audit_samples).on_conflict_do_nothing(),
                [self._drawn(week, row, len(by_stratum[row.stratum]), before) for row in drawn],
            )
        return len(drawn)

    def audited(self, week: str, failure_id: int, feedback_id: int) -> bool:
        """Record that a failure of the sample was judged; whether it was in the sample and open."""
        changed = self._connection.execute(
            update(audit_samples)
            .where(
                audit_samples.c.week == week,
                audit_samples.c.failure_id == failure_id,
                audit_samples.c.feedback_id.is_(None),
            )
            .values(feedback_id=feedback_id)
        )
        return changed.rowcount == 1

    def _machine_answers(self, failure_ids: Sequence[int]) -> dict[int, tuple[str | None, str | None]]:
        """Side and cause of the newest version by the machine."""
        found: dict[int, tuple[str | None, str | None]] = {}
        if not failure_ids:
            return found
        versions = self._connection.execute(
            select(verdicts.c.failure_id, verdicts.c.body)
            .where(verdicts.c.failure_id.in_(failure_ids), verdicts.c.source == "machine")
            .order_by(verdicts.c.version)
        )
        for row in versions:
            if row.body is not None:
                body = unpack(row.body)
                found[row.failure_id] = (body.get("side"), body.get("cause"))
        return found

    @staticmethod
    def _drawn(
        week: str, row: Row[Any], population: int, before: Mapping[int, tuple[str | None, str | None]]
    ) -> dict[str, Any]:
        side, cause = before.get(row.id, (None, None)) if row.stratum == JUDGED else (row.side, row.cause)
        return {
            "week": week,
            "failure_id": row.id,
            "stratum": row.stratum,
            "population": population,
            "machine_side": side,
            "machine_cause": cause,
        }


def allocated(populations: Mapping[str, int], size: int) -> dict[str, int]:
    """The number of failures to draw from each stratum: in proportion, but at least a few of each.

    Args:
        populations: failures by stratum.
        size: of the whole sample.
    """
    total = sum(populations.values())
    left = min(size, total)
    sizes = dict.fromkeys(sorted(populations), 0)
    for name in sizes:
        sizes[name] = min(LEAST_OF_STRATUM, populations[name], left)
        left -= sizes[name]
    while left:
        # The stratum that is furthest below its share comes next.
        open_strata = [name for name in sizes if sizes[name] < populations[name]]
        chosen = max(open_strata, key=lambda name: size * populations[name] / total - sizes[name])
        sizes[chosen] += 1
        left -= 1
    return sizes


def _stratum() -> ColumnElement[str]:
    return case(
        (failures.c.source == "person", JUDGED), (failures.c.abstained.is_(True), UNDECIDED), else_=failures.c.side
    )


def _right(row: Row[Any]) -> tuple[bool | None, bool | None]:
    """Whether the machine's side and cause are those of the judgement; None where there is none."""
    if row.feedback_id is None or row.kind == _UNSURE:
        return None, None
    side, cause = row.side or row.said_side, row.cause or row.said_cause
    if row.stratum is None:  # drawn before strata were: the verdict that was current counts
        return side == row.said_side, cause == row.said_cause
    if row.machine_side is None:
        return None, None
    return side == row.machine_side, (side, cause) == (row.machine_side, row.machine_cause)


def _both(right: tuple[bool | None, bool | None]) -> bool | None:
    return None if right[0] is None else bool(right[0] and right[1])
