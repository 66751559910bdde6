"""Subscriptions of people and channels to the weekly report."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from service import weeks
from service.clock import Clock
from service.db.session import ReadSession, Store
from service.deliveries.config import ReportReceiver
from service.deliveries.records import REPORT_SUBSCRIPTION, OutboxMessage
from service.errors import Conflict, InvalidInput, NotFound, invalid
from service.people.roles import scopes_of
from service.reports import gather, html, scope
from service.reports.document import Report
from service.reports.records import NewSubscription, Subscription
from service.reports.summary import message_facts
from service.statistics.records import Scope
from service.weeks import Week

log = logging.getLogger(__name__)

MOST = 50  # of one person or channel: each is a report to build and to send (judgement)


class Subscriptions:
    """Adds and ends subscriptions.

    Args:
        store: the database.
        zone: the time zone of weeks.
        clock: the current time.
        receivers: the endpoints that can send the report.
    """

    def __init__(self, store: Store, zone: ZoneInfo, clock: Clock, receivers: Sequence[ReportReceiver]) -> None:
        self._store = store
        self._zone = zone
        self._clock = clock
        self.receivers = {one.name: one for one in receivers}

    def add(self, endpoint: str, user: str | None, limited_to: Scope, actor: str) -> Subscription:
        """Subscribe a person or a channel, from the next report on.

        Args:
            endpoint: the endpoint that sends the report.
            user: the person, for an endpoint whose address contains the user's name; otherwise ignored.
            limited_to: the scope.
            actor: who subscribes.

        Raises:
            InvalidInput: no such endpoint, no user that it can reach, no job of the scope is known, or the receiver has
                50 subscriptions already.
            Conflict: this receiver has the same subscription already.
        """
        receiver = self.receivers.get(endpoint)
        if receiver is None:
            known = f"one of {', '.join(self.receivers)}" if self.receivers else "an endpoint, and none is configured"
            raise invalid("endpoint", known, endpoint)
        if receiver.personal and not receiver.reaches(user or ""):
            raise invalid("user", f"a user name that endpoint {endpoint} can reach", user or "")
        week = weeks.last_complete(self._clock.now(), self._zone)
        with self._store.reading() as reading:
            scope.check(reading, limited_to, gather.chart_span(week.earlier(-1), self._zone))
        new = NewSubscription(endpoint, user if receiver.personal else None, limited_to, receiver.mail)
        with self._store.unit_of_work() as work:
            own = [one.scope for one in work.report_subscriptions.all() if _receiver(one) == _receiver(new)]
            if len(own) >= MOST and new.scope not in own:
                raise invalid("endpoint", f"at most {MOST} subscriptions of a receiver: end some first", endpoint)
            added = work.report_subscriptions.add(new, actor=actor, last_week=str(week))
            if added is None:
                raise Conflict(f"{described(new)} is subscribed already")
            work.audit_log.append(actor, "report.subscribed", f"subscription/{added.id}", after=_facts(added))
        return added

    def remove(self, subscription_id: int, actor: str) -> Subscription:
        """End a subscription.

        Raises:
            NotFound: there is none with this number.
        """
        with self._store.unit_of_work() as work:
            found = work.report_subscriptions.get(subscription_id)
            if found is None or not work.report_subscriptions.remove(found.id):
                raise NotFound(f"no subscription {subscription_id}")
            work.audit_log.append(actor, "report.unsubscribed", f"subscription/{found.id}", before=_facts(found))
        return found

    def send(self, subscription_id: int, actor: str, read: Callable[[Week, Scope], Report]) -> Week:
        """Send the report of the last complete week to one receiver now; what is sent on Mondays stays the same.

        Args:
            subscription_id: the subscription.
            actor: who wants it.
            read: builds or reads the report of a scope.

        Returns:
            The week of the report.

        Raises:
            NotFound: there is no such subscription.
            InvalidInput: no job of the scope is known any more.
            Conflict: its endpoint is not configured any more, or its receiver may not have reports any more.
        """
        with self._store.reading() as reading:
            found = reading.report_subscriptions.get(subscription_id)
            allowed = found is not None and _may_receive(reading, found)
        if found is None:
            raise NotFound(f"no subscription {subscription_id}")
        if not allowed:
            raise Conflict(f"{found.recipient} may not receive reports any more")
        if found.endpoint not in self.receivers:
            raise Conflict(f"endpoint {found.endpoint} is not configured")
        week = weeks.last_complete(self._clock.now(), self._zone)
        report = read(week, found.scope)
        with self._store.unit_of_work() as work:
            work.outbox.add([_message(report, found)])
            facts = {"week": str(week), **_facts(found)}
            work.audit_log.append(actor, "report.sent", f"subscription/{found.id}", after=facts)
        return week

    def with_token(self, token: str) -> Subscription:
        """The subscription of an unsubscribe link.

        Raises:
            NotFound: it has ended, or the link is wrong.
        """
        with self._store.reading() as reading:
            found = reading.report_subscriptions.with_token(token)
        if found is None:
            raise NotFound("this subscription has ended, or the link is not complete")
        return found

    def all(self) -> tuple[Subscription, ...]:
        """All subscriptions."""
        with self._store.reading() as reading:
            return reading.report_subscriptions.all()


def _receiver(one: NewSubscription) -> tuple[str, str | None]:
    return one.endpoint, one.recipient


def described(one: NewSubscription) -> str:
    """A subscription in words, as in "ana by mail-owners: cluster orion"."""
    who = f"{one.recipient} by {one.endpoint}" if one.recipient else one.endpoint
    return f"{who}: {scope.words(one.scope) or 'all jobs'}"


def send_due(store: Store, week: Week, read: Callable[[Week, Scope], Report]) -> int:
    """Put the report of a week in the outbox for everyone who has not received it; returns the number of messages.

    The message and the note that it was sent are one transaction: however often this runs, each receiver gets one.
    Who lost access since the subscription gets nothing, and later reports again after access is restored.

    Args:
        store: the database.
        week: the week of the report.
        read: builds or reads the report of a scope.
    """
    with store.reading() as reading:
        due = [one for one in reading.report_subscriptions.due(str(week)) if _may_receive(reading, one)]
    made: dict[Scope, Report | None] = {}
    sent = 0
    for one in due:
        if one.scope not in made:
            made[one.scope] = _report(week, one.scope, read)
        report = made[one.scope]
        with store.unit_of_work() as work:
            if work.report_subscriptions.mark_sent(one.id, str(week)) and report is not None:
                work.outbox.add([_message(report, one)])
                sent += 1
    return sent


def _may_receive(reading: ReadSession, one: Subscription) -> bool:
    """Whether the receiver may have the report: not if the person's account is disabled.

    Who subscribed without an administrator has to be allowed to read reports, too.
    """
    try:
        account = None if one.recipient is None else reading.accounts.named(one.recipient)
    except NotFound:  # a person without an account here
        account = None
    if account is None:
        return True
    allowed = account.disabled_at is None and (one.created_by != one.recipient or "read" in scopes_of(account))
    if not allowed:
        log.info("the weekly report is not sent to %s, who may not read it any more", described(one))
    return allowed


def _report(week: Week, limited_to: Scope, read: Callable[[Week, Scope], Report]) -> Report | None:
    """The report of a scope; None if no job of it is stored any more, which must not stop the other receivers."""
    try:
        return read(week, limited_to)
    except InvalidInput as error:
        log.warning("the weekly report of %s is not sent: %s", scope.words(limited_to), error.detail)
        return None


def _message(report: Report, one: Subscription) -> OutboxMessage:
    facts: dict[str, Any] = {
        **message_facts(report),
        "endpoint": one.endpoint,
        "user": one.recipient,
        "unsubscribe": f"/unsubscribe/{one.token}",
    }
    if one.mail:
        facts["html"] = html.render(report)
    return OutboxMessage(REPORT_SUBSCRIPTION, f"report/{report.week}", facts)


def _facts(one: Subscription) -> Mapping[str, str]:
    return {"endpoint": one.endpoint, "recipient": one.recipient or "", **scope.values(one.scope)}
