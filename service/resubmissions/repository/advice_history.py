"""Advice on each version of a verdict, with the policy's version and the facts known at that time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select

from service.resubmissions.records import NewAdvice
from service.resubmissions.tables import advice_history
from service.sql import bulk
from service.sql.packing import pack, unpack
from service.sql.reader import TimedReader
from service.sql.types import short, utc

_COLUMNS = ("failure_id", "version", "at", "policy", "decision", "mode", "step", "facts")


class AdviceReader(TimedReader):
    """Reads advice."""

    def of(self, failure_id: int) -> list[tuple[int, datetime, str, str, str, Any]]:
        """Version, time, policy, decision, mode and facts of each advice on a failure, newest first."""
        wanted = (
            select(advice_history)
            .where(advice_history.c.failure_id == failure_id)
            .order_by(advice_history.c.version.desc())
        )
        return [
            (row.version, row.at, row.policy, row.decision, row.mode, unpack(row.facts))
            for row in self._connection.execute(wanted)
        ]


class AdviceRepository(AdviceReader):
    """Reads and writes advice."""

    def add(self, new: Sequence[NewAdvice]) -> None:
        """Store new advice."""
        now = utc(self._clock.now())
        bulk.append(
            self._connection,
            advice_history,
            _COLUMNS,
            (
                (
                    one.failure_id,
                    one.version,
                    now,
                    short(one.policy, 100),
                    one.decision,
                    one.mode,
                    one.step,
                    pack(one.facts),
                )
                for one in new
            ),
        )
