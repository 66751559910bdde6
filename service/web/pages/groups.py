"""GET /groups and /groups/{id}: groups of failures, and actions on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, cast, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import ValidationError

from service import validation_words
from service.contracts.page import Page
from service.errors import FieldError, InvalidInput
from service.feedback.records import WithdrawnGroupLabel
from service.groups.records import FACETS, GroupDetail, GroupFilter, GroupHour, GroupRow, GroupSort, GroupState
from service.sql.types import HIGHEST_ID
from service.times import bounded
from service.web import group_views, views
from service.web.api.parameters import GroupTexts, Id, group_filter
from service.web.auth import READ, Principal
from service.web.group_requests import FeedbackGiven, GroupAction, act, feedback_input, label_waits
from service.web.pages.charts import figures, sparklines
from service.web.pages.failure.page import success_after
from service.web.pages.failure.short_advice import short_advice
from service.web.pages.forms import (
    DEFAULT_ROWS,
    ActForm,
    PeriodOfUrl,
    RowLimit,
    Text,
    cause_choice,
    causes_by_side,
    mitigations,
    redirect,
    redirect_to_list,
)
from service.web.pages.templating import query, render
from service.web.services import InjectedServices, Services
from service.web.views import FailureQuery

router = APIRouter()
SORTS: dict[GroupSort, str] = {"-last_at": "last failure first", "-gpu_hours_lost": "most GPU-hours lost first"}
FILTERS = ("side", "cause", "cluster", "queue", "team", "user", "node", "assignee")
SPANS = {"1d": timedelta(days=1), "1w": timedelta(weeks=1), "4w": timedelta(weeks=4)}
# The columns of the board: what needs a person first, what is settled last.
BOARD: tuple[GroupState, ...] = ("escalating", "regressed", "new", "ongoing", "resolved", "muted")
PER_COLUMN = 12  # groups
LATEST = 12
CHART = (600, 56)  # width and height of the chart in chart units
DAYS = 28


def shown_filters(
    texts: GroupTexts, state: Text = None, novel: Text = None, muted_by_me: Text = None
) -> dict[str, str]:
    """The filters that are set, as the form and the links of the page show them."""
    return {**texts, **views.given_texts({"state": state, "novel": novel, "muted_by_me": muted_by_me})}


def filter_of(filters: dict[str, str], actor: str) -> GroupFilter:
    """The filters for the store. Groups that the user muted are excluded unless requested."""
    texts = {name: text for name, text in filters.items() if name in FILTERS}
    hidden_from = None if filters.get("muted_by_me") else actor
    state: Any = filters.get("state")  # no group is in an unknown state
    return group_filter(texts, state, hidden_from, novel=bool(filters.get("novel")))


@router.get("/groups")
def groups(
    request: Request,
    services: InjectedServices,
    reader: Annotated[Principal, READ],
    filters: Annotated[dict[str, str], Depends(shown_filters)],
    period: PeriodOfUrl,
    cursor: Text = None,
    sort: GroupSort = "-last_at",
    limit: RowLimit = DEFAULT_ROWS,
    view: Annotated[Literal["list", "board"], Query()] = "list",
    notice: Text = None,
) -> HTMLResponse:
    """One page of the list, or the first groups of each state side by side."""
    with services.snapshot() as snapshot:
        wanted = replace(filter_of(filters, reader.name), since=period.since, until=period.until)
        filters = filters | period.texts
        with snapshot.reading() as reading:
            counts = reading.groups.counts()
        shown = (("view", view, "list"), ("sort", sort, "-last_at"), ("limit", limit, DEFAULT_ROWS))
        extra = {name: value for name, value, usual in shown if value != usual}
        context: dict[str, Any] = {
            "filters": filters,
            "extra": extra,
            "view": view,
            "sort": sort,
            "sorts": SORTS,
            "sort_link": lambda order: f"/groups{query(filters, extra, sort=None if order == '-last_at' else order)}",
            "states": {state: counts.get(state, 0) for state in get_args(GroupState)},
            "cursor": cursor,
            "causes": causes_by_side(),
            "more": FILTERS[2:],
            "spans": SPANS,
            "notice": notice,
            "problems": period.problems,
        }
        if view == "board":
            context["columns"] = columns = board(snapshot, wanted, sort)
            rows = [row for column in columns.values() for row in column.items]
        else:
            context["page"] = page = group_views.groups(snapshot, wanted, limit=limit, cursor=cursor or None, sort=sort)
            rows = list(page.items)
        context["sparklines"] = sparklines.of_groups(snapshot, rows)
        status = 422 if period.problems else 200
        return render(request, f"groups/{view}.html", context, services=snapshot, status=status)


def board(services: Services, wanted: GroupFilter, sort: GroupSort) -> dict[GroupState, Page[GroupRow]]:
    """The first groups of each state, or of the one that is wanted, in the order of the list."""
    states = [state for state in BOARD if wanted.state in (None, state)]
    return {
        state: group_views.groups(services, replace(wanted, state=state), limit=PER_COLUMN, sort=sort)
        for state in states
    }


@router.get("/groups/{group_id}")
def group(
    request: Request,
    services: InjectedServices,
    reader: Annotated[Principal, READ],
    group_id: Id,
    notice: Text = None,
    undone: Annotated[str, Query(max_length=40)] = "",
    taken: Annotated[int, Query(ge=0, le=10_000)] = 0,
    left: Annotated[int, Query(ge=0, le=10_000)] = 0,
) -> HTMLResponse:
    """One group; `undone`, `taken` and `left` are the result of a withdrawn label."""
    with services.snapshot() as snapshot:
        detail = group_views.group(snapshot, group_id, reader.name)
        latest = views.failures(snapshot, FailureQuery({"group": str(group_id)}), limit=LATEST)
        counted = views.facets(snapshot, FailureQuery({"group": str(group_id)}))
        last = succeeded_since = None
        if latest.items:
            newest = views.failure(snapshot, latest.items[0].id)
            last, succeeded_since = newest.verdict, success_after(newest)
        signatures = [line["signature"] for line in (last or {}).get("evidence") or () if line.get("signature")]
        context = {
            "detail": detail,
            "row": detail.row,
            "why_together": group_views.why_together(detail, list(dict.fromkeys(signatures)), counted.counts["cause"]),
            "counted": counted,
            "why_state": group_views.why_state(detail.row),
            "bars": (drawn := bars(detail, services.clock.now())),
            "ended_before": _ended_before(detail, services.clock.now()),
            "data": per_day(drawn),
            "chart": CHART,
            "facets": (places := group_views.places(snapshot, detail)),
            "unusual": group_views.unusual(places),
            "lift_days": group_views.DAYS,
            "most_facets": FACETS,
            "labels": group_views.labels(snapshot, group_id),
            "latest": latest.items,
            "last": last,
            "succeeded_since": succeeded_since,
            "advice": short_advice(snapshot, latest.items[0], last) if last else None,
            "causes": causes_by_side(),
            "mitigations": mitigations(),
            "spans": SPANS,
            "notice": notice,
            "undone": (undone, taken, left) if undone else None,
        }
        return render(request, "groups/page.html", context, services=snapshot)


@router.post("/groups/act")
def act_on_many(
    form: ActForm,
    action: Annotated[Literal["resolve", "reopen", "mute", "assign", "merge"], Form()],
    group: Annotated[list[int] | None, Form()] = None,
    span: Annotated[str, Form(max_length=10)] = "1w",
    to: Annotated[str, Form(max_length=200)] = "",
    back: Annotated[str, Form(max_length=2_000)] = "",
) -> RedirectResponse:
    """Apply one action to all selected groups."""
    chosen = [number for number in dict.fromkeys(group or ()) if 1 <= number <= HIGHEST_ID]
    if not chosen:
        raise InvalidInput("no group is selected", (FieldError("group", "one or more groups"),))
    given = _action(form.services, action, span=span, to=to)
    act(form.services, chosen, form.actor, given)
    return redirect_to_list("/groups", back, f"notice={_notice(given)}")


@dataclass(frozen=True, slots=True)
class ActionFields:
    """The fields of the form of an action on one group; `value` of a split is "field: value"."""

    action: Annotated[str, Form(max_length=20)]
    span: Annotated[str, Form(max_length=10)] = ""
    failures: Annotated[str, Form(max_length=12)] = ""
    users: Annotated[str, Form(max_length=12)] = ""
    for_me: Annotated[str, Form(max_length=5)] = ""
    to: Annotated[str, Form(max_length=200)] = ""
    ticket: Annotated[str, Form(max_length=600)] = ""
    text: Annotated[str, Form(max_length=8_000)] = ""
    groups: Annotated[str, Form(max_length=400)] = ""
    fingerprint: Annotated[str, Form(max_length=200)] = ""
    value: Annotated[str, Form(max_length=300)] = ""
    fixed_by: Annotated[str, Form(max_length=10)] = ""

    def given(self, services: Services) -> GroupAction:
        """The action.

        Raises:
            InvalidInput: names each field with a wrong value.
        """
        field, _, named = self.value.partition(":")
        return _action(
            services,
            self.action,
            span=self.span,
            failures=self.failures.strip() or None,
            users=self.users.strip() or None,
            for_me=bool(self.for_me),
            to=self.to,
            ticket=self.ticket.strip() or None,
            text=self.text,
            groups=[part for part in self.groups.replace(",", " ").split() if part],
            fingerprint=self.fingerprint,
            field=field.strip(),
            value=named.strip(),
            fixed_by=self.fixed_by or None,
        )


@router.post("/groups/{group_id}/act")
def act_on_one(form: ActForm, group_id: Id, fields: Annotated[ActionFields, Depends()]) -> RedirectResponse:
    """Apply one action to one group."""
    given = fields.given(form.services)
    act(form.services, [group_id], form.actor, given)
    return redirect(f"/groups/{group_id}?notice={_notice(given)}")


def _notice(given: GroupAction) -> str:
    """The message about an action; an empty field of an assignee or a ticket removes it."""
    if given.action == "assign" and not (given.to or "").strip():
        return "unassign"
    if given.action == "link" and not (given.ticket or "").strip():
        return "unlink"
    return given.action


@router.post("/groups/{group_id}/feedback")
def give_feedback(
    form: ActForm,
    group_id: Id,
    kind: Annotated[Literal["confirm", "correct", "unsure"], Form()],
    cause: Annotated[str, Form(max_length=40)] = "",
    note: Annotated[str, Form(max_length=4_000)] = "",
    back: Annotated[Literal["", "/model"], Form()] = "",
) -> RedirectResponse:
    """Label the whole group, or record that the cause of its newest failures cannot be determined."""
    chosen = {} if kind == "unsure" else cause_choice(cause)  # the form sends its choice with each button
    feedback = feedback_input(FeedbackGiven(kind=kind, **chosen, note=note or None))
    taken = form.services.feedback.add_to_group(group_id, form.actor, feedback)
    waits = kind == "correct" and label_waits(taken)
    return redirect(f"{back or f'/groups/{group_id}'}?notice={'label_waits' if waits else kind}")


@router.post("/groups/{group_id}/feedback/undo")
def undo_label(form: ActForm, group_id: Id) -> RedirectResponse:
    """Withdraw the caller's label of the group; the verdicts before it are current again."""
    return _undone(group_id, form.services.feedback.undo_of_group(group_id, form.actor))


@router.post("/groups/{group_id}/labels/{number}/undo")
def undo_any_label(form: ActForm, group_id: Id, number: Id) -> RedirectResponse:
    """Withdraw a label of the group, the latest or an earlier one; later labels stay."""
    return _undone(group_id, form.services.feedback.withdraw_group_label(group_id, number, form.actor))


def _undone(group_id: int, undone: WithdrawnGroupLabel) -> RedirectResponse:
    counts = {"undone": undone.cause, "taken": undone.failures, "left": undone.unchanged}
    return redirect(f"/groups/{group_id}?{urlencode(counts)}")


def _action(services: Services, action: str, *, span: str = "", **given: Any) -> GroupAction:
    if action == "mute" and span:
        if span not in SPANS:
            raise InvalidInput("span: expected 1d, 1w or 4w", (FieldError("span", "1d, 1w or 4w", span),))
        given["until"] = services.clock.now() + SPANS[span]
    try:
        return GroupAction.model_validate({"action": action, **given})
    except ValidationError as error:
        places = tuple(
            FieldError(str(one["loc"][0]), validation_words.expected(one), str(one.get("input"))[:80])
            for one in cast("Sequence[Any]", error.errors())[:5]
        )
        raise InvalidInput("; ".join(f"{one.field}: expected {one.expected}" for one in places), places) from None


def _ended_before(detail: GroupDetail, now: datetime) -> bool:
    """Whether the group has had no failure in the last four weeks."""
    return bounded(detail.row.last_at) <= now - timedelta(days=DAYS)


def bars(detail: GroupDetail, now: datetime) -> list[dict[str, object]]:
    """Failures per day in the last four weeks, of an older group in its own last four, as bars in chart units."""
    days: dict[str, int] = {}
    last = bounded(detail.row.last_at)
    end = last if _ended_before(detail, now) else max(last, now)
    for number in range(DAYS - 1, -1, -1):
        days[f"{end - timedelta(days=number):%Y-%m-%d}"] = 0
    for hour in detail.hours:
        days[_day(hour)] = days.get(_day(hour), 0) + hour.failures
    shown = sorted(days.items())[-DAYS:]
    most = max((count for _, count in shown), default=0) or 1
    width, height = CHART
    step = width / len(shown)
    return [
        {
            "x": round(number * step + 1, 2),
            "y": round(height - height * count / most, 2),
            "width": round(step - 2, 2),
            "height": round(height * count / most, 2),
            "day": day,
            "failures": count,
        }
        for number, (day, count) in enumerate(shown)
    ]


def per_day(drawn: Sequence[Mapping[str, object]]) -> str:
    """The chart of failures per day as JSON."""
    days = [datetime.fromisoformat(str(bar["day"])).replace(tzinfo=UTC) for bar in drawn]
    values = [float(str(bar["failures"])) for bar in drawn]
    limits = [*days, days[-1] + timedelta(days=1)]
    return figures.stacked("failures", limits, {"failures": values}, colours={"failures": "--bs-link-color"})


def _day(hour: GroupHour) -> str:
    return f"{bounded(hour.hour):%Y-%m-%d}"
