"""Subscriptions of the weekly report."""

import secrets
from typing import Any

from sqlalchemy import ColumnElement, Row, delete, select, update

from service.reports.records import NewSubscription, Subscription
from service.reports.tables import report_subscriptions as subscriptions
from service.sql import bulk
from service.sql.reader import TimedReader, record_of
from service.sql.types import clean, short, utc
from service.statistics.records import Scope


class SubscriptionReader(TimedReader):
    """Reads subscriptions."""

    def all(self) -> tuple[Subscription, ...]:
        """All subscriptions, in the order of endpoint, recipient and scope."""
        order = ("endpoint", "recipient", "cluster", "team")
        rows = self._connection.execute(select(subscriptions).order_by(*(subscriptions.c[name] for name in order)))
        return tuple(_subscription(row) for row in rows)

    def get(self, subscription_id: int) -> Subscription | None:
        """One subscription."""
        return self._one(subscriptions.c.id == subscription_id) if 0 < subscription_id < 2**63 else None

    def with_token(self, token: str) -> Subscription | None:
        """The subscription that a link ends."""
        return self._one(subscriptions.c.token == clean(token))

    def due(self, week: str) -> tuple[Subscription, ...]:
        """Those that have not received the report of a week."""
        rows = self._connection.execute(
            select(subscriptions).where(subscriptions.c.last_week < week).order_by(subscriptions.c.id)
        )
        return tuple(_subscription(row) for row in rows)

    def _one(self, which: ColumnElement[bool]) -> Subscription | None:
        row = self._connection.execute(select(subscriptions).where(which)).one_or_none()
        return None if row is None else _subscription(row)


class SubscriptionRepository(SubscriptionReader):
    """Reads and writes subscriptions."""

    def add(self, new: NewSubscription, *, actor: str, last_week: str) -> Subscription | None:
        """Store a subscription; None if there is one of the same receiver and scope."""
        token = secrets.token_urlsafe(24)
        added = bulk.insert_new(
            self._connection,
            subscriptions,
            {
                "token": token,
                "endpoint": new.endpoint,
                "recipient": new.recipient or "",
                "mail": new.mail,
                "cluster": new.scope.cluster or "",
                "team": new.scope.team or "",
                "created_at": utc(self._clock.now()),
                "created_by": short(actor) or "",
                "last_week": last_week,
            },
        )
        return self.with_token(token) if added else None

    def remove(self, subscription_id: int) -> bool:
        """Remove a subscription; False if there is none."""
        removed = self._connection.execute(delete(subscriptions).where(subscriptions.c.id == subscription_id))
        return removed.rowcount == 1

    def mark_sent(self, subscription_id: int, week: str) -> bool:
        """Record that a week is sent; False if it was sent before, or the subscription has ended."""
        marked = self._connection.execute(
            update(subscriptions)
            .where(subscriptions.c.id == subscription_id, subscriptions.c.last_week < week)
            .values(last_week=week)
        )
        return marked.rowcount == 1


def _subscription(row: Row[Any]) -> Subscription:
    return record_of(
        Subscription, row, recipient=row.recipient or None, scope=Scope(row.cluster or None, row.team or None)
    )
