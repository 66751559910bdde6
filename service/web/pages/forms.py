"""Parameters of forms and links: optional texts, whose empty values are ignored, and the choices of forms."""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from fastapi import Depends, Form, Query, Request
from fastapi.responses import RedirectResponse

from classifiers import taxonomy
from service.errors import FieldError, InvalidInput
from service.recommend import ranking
from service.statistics.records import Scope
from service.web.api.parameters import TextFilters
from service.web.auth import ACT, OWN, READ, ActionRequest, Principal, check_form
from service.web.services import InjectedServices, Services
from service.web.url_times import instant
from service.web.views import FailureQuery, failure_filter, given_texts

Text = Annotated[str | None, Query(max_length=1_000)]
# Rows of a list on one page: a list of 500 failures is a page of more than 400 kB. The API gives up to 500.
RowLimit = Annotated[int, Query(ge=1, le=200)]
DEFAULT_ROWS = 50
FormToken = Annotated[str, Form(max_length=200)]
_LOCAL_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}", re.ASCII)
YES_NO = {"true": True, "false": False}


def act_form(
    request: Request, services: InjectedServices, principal: Annotated[Principal, ACT], form_token: FormToken = ""
) -> ActionRequest:
    """A form submitted by a user with scope act."""
    check_form(request, form_token)
    return ActionRequest(services, principal)


def user_form(
    request: Request, services: InjectedServices, principal: Annotated[Principal, OWN], form_token: FormToken = ""
) -> ActionRequest:
    """A form submitted by a user who may see failures."""
    check_form(request, form_token)
    return ActionRequest(services, principal)


def reader_form(
    request: Request, services: InjectedServices, principal: Annotated[Principal, READ], form_token: FormToken = ""
) -> ActionRequest:
    """A form submitted by a user with scope read."""
    check_form(request, form_token)
    return ActionRequest(services, principal)


ActForm = Annotated[ActionRequest, Depends(act_form)]
UserForm = Annotated[ActionRequest, Depends(user_form)]
ReaderForm = Annotated[ActionRequest, Depends(reader_form)]


def comment_form(form: ActForm, comment: Annotated[str, Form(max_length=2_000)] = "") -> ActionRequest:
    """A form of a user with scope act, with an optional comment."""
    return replace(form, comment=comment.strip() or None)


CommentForm = Annotated[ActionRequest, Depends(comment_form)]


def redirect(address: str) -> RedirectResponse:
    """Redirect to a page after a form was handled, so that reloading does not submit it again."""
    return RedirectResponse(address, 303)


def redirect_to_list(page: str, back: str, notice: str) -> RedirectResponse:
    """Redirect to the list on which rows were selected, with its filters.

    Args:
        page: the path of the list.
        back: the query of its address, from a form.
        notice: what the list tells of the action, as a query.
    """
    query = back.lstrip("?") if back.isprintable() else ""
    return redirect(f"{page}?{query}{'&' if query else ''}{notice}")


@dataclass(frozen=True, slots=True)
class OverviewScope:
    """The filters of the overview."""

    since: str | None = None
    until: str | None = None
    cluster: str | None = None
    queue: str | None = None
    team: str | None = None

    def where(self) -> dict[str, str | None]:
        """The names without the times."""
        return {"cluster": self.cluster, "queue": self.queue, "team": self.team}

    def jobs(self) -> Scope:
        """The jobs that count."""
        return Scope(self.cluster, self.team, self.queue)


def overview_scope(
    services: InjectedServices,
    since: Text = None,
    until: Text = None,
    cluster: Text = None,
    queue: Text = None,
    team: Text = None,
) -> OverviewScope:
    """The filters of the overview, from the URL; blanks around names do not count, as in the list of failures."""
    zone = services.zone
    names = given_texts({"cluster": cluster, "queue": queue, "team": team})
    return OverviewScope(with_zone(since, zone), with_zone(until, zone), **names)


def with_zone(text: str | None, zone: ZoneInfo) -> str | None:
    """A time of the time picker: a day and an hour in the time zone of the pages; other texts unchanged."""
    if not text or not _LOCAL_TIME.fullmatch(text.strip()):
        return text or None
    try:
        return datetime.fromisoformat(text.strip()).replace(tzinfo=zone).isoformat()
    except ValueError:
        return text


def wrong_times(services: Services, filters: FailureQuery) -> tuple[FieldError, ...]:
    """The times of a filter form that are not times; the page shows the form again with them."""
    found: list[FieldError] = []
    times: dict[str, datetime] = {}
    for name, text in (("since", filters.since), ("until", filters.until)):
        try:
            if text:
                times[name] = instant(text, name, services.clock.now(), services.zone)
        except InvalidInput as error:
            found.extend(error.errors)
    since, until = times.get("since"), times.get("until")
    if since is not None and until is not None and since >= until:
        found.append(FieldError("until", "a time after since", filters.until))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class GivenPeriod:
    """The time range of a page's URL; with `problems`, times that are none, it has no limits.

    Attributes:
        since: its begin, None without one.
        until: its end, which is not in it; None without one.
        query: the same as the texts of a query, with a zone.
        texts: as given in the URL.
        problems: what is wrong with them.
    """

    since: datetime | None
    until: datetime | None
    query: FailureQuery
    texts: dict[str, str]
    problems: tuple[FieldError, ...]


def given_period(services: InjectedServices, since: Text = None, until: Text = None) -> GivenPeriod:
    """The time range of the URL; times without a zone are in the zone of the pages."""
    given = FailureQuery(since=with_zone(since, services.zone), until=with_zone(until, services.zone))
    problems = wrong_times(services, given)
    if problems:
        given = FailureQuery()
    found = failure_filter(services, given)
    return GivenPeriod(found.since, found.until, given, given_texts({"since": since, "until": until}), problems)


PeriodOfUrl = Annotated[GivenPeriod, Depends(given_period)]


def failure_query(
    services: InjectedServices,
    texts: TextFilters,
    abstained: Text = None,
    since: Text = None,
    until: Text = None,
) -> FailureQuery:
    """The filters of the failures list, from the URL; the page shows wrong times again in its form.

    Raises:
        InvalidInput: `abstained` is neither true nor false.
    """
    zone = services.zone
    if abstained and abstained not in YES_NO:
        expected = "true or false"
        raise InvalidInput(f"abstained: expected {expected}", (FieldError("abstained", expected, abstained[:40]),))
    return FailureQuery.of(
        texts, abstained=YES_NO.get(abstained or ""), since=with_zone(since, zone), until=with_zone(until, zone)
    )


def in_url(filters: FailureQuery) -> dict[str, str]:
    """The filters of a list of failures that are set, as parameters of a URL."""
    found = dict(filters.values)
    if filters.abstained is not None:
        found["abstained"] = str(filters.abstained).lower()
    times = {"since": filters.since, "until": filters.until}
    return found | {name: value for name, value in times.items() if value is not None}


def causes_by_side() -> dict[str, list[taxonomy.Entry]]:
    """The causes for a select, grouped by side."""
    axes = taxonomy.load()
    return {side: [entry for entry in axes.causes.values() if entry.extra["side"] == side] for side in axes.sides}


def cause_choice(code: str) -> dict[str, str | None]:
    """Side and cause of a form choice: a cause, or a side with unknown cause; neither if empty."""
    if code in taxonomy.load().sides:
        return {"side": code, "cause": None}
    return {"side": None, "cause": code or None}


def categories() -> list[taxonomy.Entry]:
    """The failure categories."""
    return list(taxonomy.load().categories.values())


def mitigations() -> list[taxonomy.Entry]:
    """The ten mitigations that a person can select."""
    return [taxonomy.load().mitigations[code] for code in ranking.codes()]


def symptoms() -> list[taxonomy.Entry]:
    """The distributed symptoms."""
    return list(taxonomy.load().symptoms.values())
