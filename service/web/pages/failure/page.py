"""GET /failures/{id}: verdict, advice, evidence, logs and related failures."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import HTMLResponse, PlainTextResponse

from classifiers import owner_summary
from classifiers.suspected_place import suspected_node, suspects_nodes
from service.contracts.verdict import ChainPart
from service.errors import DamagedData, NotFound, Unavailable
from service.failures.records import FailureDetail, FailureRow
from service.formatting import escape_invisible
from service.headlines.chain import ChainSentence, sentences_beyond_ends
from service.headlines.headline import OwnTitles, headline
from service.jobs.records import Attempt
from service.recommend.advise import OBJECTION_RULES
from service.recommend.rule_chain import RESUBMITTING
from service.second_reader.repository import SecondReading
from service.signatures.operator_catalogue import OperatorEntry, actions_of
from service.web import automation_views, node_views, views
from service.web.api.parameters import Id
from service.web.auth import OWN, Principal
from service.web.pages import display_names
from service.web.pages.failure import feature_words, owner_message, related_failures
from service.web.pages.failure.log_excerpt import code_of_frame, excerpts, places_of
from service.web.pages.failure.log_viewer import attempt_logs
from service.web.pages.failure.questions import began_with_event, questions
from service.web.pages.failure.rank_strip import RankStrip, rank_strip
from service.web.pages.failure.short_advice import short_advice
from service.web.pages.failure.timeline import timeline
from service.web.pages.forms import (
    Text,
    categories,
    causes_by_side,
    failure_query,
    in_url,
    mitigations,
    symptoms,
    wrong_times,
)
from service.web.pages.navigation import message
from service.web.pages.templating import compared_node, render
from service.web.services import InjectedServices, Services
from service.web.views import FailureQuery

router = APIRouter(dependencies=[OWN])
CLOSE = 0.8  # below this confidence alternative causes are shown
RANKS_NAMED = 12
NOT_APPLICABLE = ": does not apply"
FIRST_OBJECTION = f"{OBJECTION_RULES[0].name}:"  # the rules before it are those of the policy's file


@router.get("/failures/{failure_id}")
def failure(
    request: Request,
    services: InjectedServices,
    reader: Annotated[Principal, OWN],
    failure_id: Id,
    filters: Annotated[FailureQuery, Depends(failure_query)],
    notice: Text = None,
    listed: Annotated[Literal["", "all"], Query(alias="list")] = "",
) -> HTMLResponse:
    """One failure. `filters` are those of the list from which the reader came; `listed`: it came from all failures."""
    kept = {} if wrong_times(services, filters) else in_url(filters)
    came_from_list = bool(kept or listed)
    with services.snapshot() as snapshot:
        detail = views.failure(snapshot, failure_id)
        verdict = detail.verdict or {}
        shown, left_out = excerpts(
            [(logs.attempt_id, logs.streams) for logs in detail.logs], verdict.get("evidence") or ()
        )
        reasons = verdict.get("reasons") or ()
        strip = rank_strip(detail)
        context = {
            "automation": automation_views.failure_automation(
                snapshot, failure_id, detail.row.cluster, detail.row.job_id
            ),
            "automation_message": message(request.query_params.get("done")),
            "detail": detail,
            "row": detail.row,
            "verdict": detail.verdict,
            "answer": answer(detail),
            "title_line": title_line(detail, services.own_titles()),
            "by_hand": by_hand(detail, verdict),
            "suspects_nodes": suspects_nodes(detail.row.side, abstained=detail.row.abstained),
            "suspect": suspect(verdict.get("suspect"), detail.row),
            "reasons_of_advice": reasons_of_advice(verdict),
            "advice": short_advice(snapshot, detail.row, detail.verdict),
            "succeeded_since": (succeeded_since := success_after(detail)),
            "failed_since": None if succeeded_since else failure_after(detail),
            "place_of": places_of(detail.row.id, shown),
            "reasons": reasons,
            "because": feature_words.reasons(verdict.get("weighed") or ()),
            "excerpts": shown,
            "left_out": left_out,
            "events": [
                (logs.attempt_id, orjson.dumps(logs.event, option=orjson.OPT_INDENT_2, default=str).decode())
                for logs in detail.logs
            ],
            "problems": [what for logs in detail.logs for what in logs.event.get("intake_problems") or ()],
            "similar_failures": similar_failures(detail.row),
            "ran": (detail.row.ended_at - detail.row.started_at).total_seconds() if detail.row.started_at else None,
            "own_code": code_of_frame(verdict.get("own_frame"), shown),
            "first_in_log": any(one.begins for one in shown),
            "alternative_causes": alternative_causes(verdict),
            "spread": spread(verdict, detail.row, strip.affected if strip is not None else 0),
            "began_with_event": began_with_event(verdict),
            "site_actions": site_actions(snapshot, verdict),
            "timeline": timeline(detail),
            "strip": strip,
            "questions": questions(detail.verdict),
            "chain": sequence(verdict, strip, services.own_titles()),
            "changes": node_views.changes_of_failure(snapshot, detail.row),
            "related": related_failures.find(snapshot, detail, all_failures=reader.may("read")),
            "neighbours": related_failures.neighbours_of(snapshot, detail.row, filters if came_from_list else None),
            "kept": kept,
            "came_from_list": came_from_list,
            "feedback": related_failures.feedback_of(snapshot, failure_id),
            "second_reading": second_reading(snapshot, detail.row, all_failures=reader.may("read")),
            "owner": owner_message.compose(detail),
            "causes": causes_by_side(),
            "categories": categories(),
            "symptoms": symptoms(),
            "mitigations": mitigations(),
            "notice": notice,
            "own": next((attempt for attempt in detail.attempts if attempt.failure_id == failure_id), None),
        }
        return render(request, "failure/page.html", context, services=snapshot)


@router.get("/failures/{failure_id}/logs/{attempt_id}/{index}")
def log(
    services: InjectedServices,
    failure_id: Id,
    attempt_id: Id,
    index: Annotated[int, Path(ge=0, le=100_000)],
) -> PlainTextResponse:
    """A complete log stream as plain text; if the logs cannot be read, the reason with its status.

    Raises:
        NotFound: no such stream.
    """
    logs = attempt_logs(views.failure(services, failure_id), attempt_id, index)
    try:
        stream = logs.readable_streams()[index]
    except (DamagedData, NotFound, Unavailable) as error:
        return PlainTextResponse(error.detail, status_code=error.status)
    # Commands for a terminal and characters that reorder text are shown, as on pages: it may be printed to a terminal.
    return PlainTextResponse(escape_invisible(stream.text).encode("utf-8", "replace"))


def success_after(detail: FailureDetail) -> Attempt | None:
    """The first attempt of the job that succeeded after this failure; None if none did."""
    after = (one for one in detail.attempts if one.status == "succeeded" and one.ended_at > detail.row.ended_at)
    return min(after, key=lambda one: one.ended_at, default=None)


def failure_after(detail: FailureDetail) -> Attempt | None:
    """The last attempt of the job that is a later failure than this one; None if there is none."""
    after = (
        one
        for one in detail.attempts
        if one.failure_id not in {None, detail.row.id} and one.ended_at > detail.row.ended_at
    )
    return max(after, key=lambda one: one.ended_at, default=None)


def by_hand(detail: FailureDetail, verdict: Mapping[str, Any]) -> str | None:
    """The command by which the owner submits a job of Slurm again without the suspected nodes.

    None if the advice is not to resubmit, excludes no node, or the job has succeeded or run again since.
    """
    nodes = verdict.get("exclude_nodes") or ()
    slurm = any(logs.event.get("scheduler") == "slurm" for logs in detail.logs)
    if not nodes or not slurm or detail.row.decision not in RESUBMITTING:
        return None
    if success_after(detail) is not None or failure_after(detail) is not None:
        return None
    return f"sbatch --exclude={shlex.quote(','.join(nodes))} your-script.sh"


def answer(detail: FailureDetail) -> str:
    """What happened, as a guess where the evidence does not decide. The evidence below shows the first error line."""
    text = _explanation(detail)
    return owner_summary.best_guess(text) if detail.row.abstained else text


def _explanation(detail: FailureDetail) -> str:
    explanation = (detail.verdict or {}).get("explanation") or detail.row.headline
    first = next((e["text"] for e in (detail.verdict or {}).get("evidence") or () if e["role"] == "initiating"), None)
    if first:
        # The explanation ends with "It began with: <line>"; the page shows this line below.
        head, found, _ = str(explanation).rpartition(str(first)[:40])
        before, colon, _ = head.rstrip().rpartition(". ")
        if found and head.rstrip().endswith(":") and colon:
            return f"{before}."
    return str(explanation)


def title_line(detail: FailureDetail, own: OwnTitles | None) -> str:
    """The headline; an exception of the user's code with its place in this code. `own` as for `headline`."""
    row, verdict = detail.row, detail.verdict or {}
    node = row.suspect_node if row.side == "hardware" and not row.abstained else None
    frame = verdict.get("own_frame") if row.side == "user" else None
    return headline(row.headline, node=node, frame=frame, own=own) or display_names.word("status", row.status)


def site_actions(services: Services, verdict: Mapping[str, Any]) -> tuple[OperatorEntry, ...]:
    """The own signatures that lines of the evidence match, with the actions that their operator wrote."""
    if services.signatures is None:
        return ()
    matched = (line.get("signature") for line in verdict.get("evidence") or ())
    return actions_of(services.signatures.current().layered, matched)


def sequence(verdict: Mapping[str, Any], strip: RankStrip | None, own: OwnTitles | None = None) -> list[ChainSentence]:
    """The steps of the failure in words; how much later one came only where the lines of the ranks have times.

    A line without a time has that of a line near it, which can be half an hour older.
    """
    steps = [ChainPart.model_validate(step) for step in verdict.get("chain") or ()]
    if strip is not None and strip.span_s <= 0:
        steps = [step.model_copy(update={"after_s": None}) for step in steps]
    return sentences_beyond_ends(steps, own)


def reasons_of_advice(verdict: Mapping[str, Any]) -> list[str]:
    """The applicable reasons: the deciding rule first, then the cost estimate.

    Without the reason for a resubmit, if a later rule decided that the job is not resubmitted.
    """
    reasons = verdict.get("reasons") or ()
    first = [f"{verdict.get('rule')}:", "cost:"]
    own_rules = next((at for at, reason in enumerate(reasons) if reason.startswith(FIRST_OBJECTION)), 0)
    if verdict.get("decision") == "stop" and not any(reason.startswith(first[0]) for reason in reasons[:own_rules]):
        reasons = reasons[own_rules:]
    found = [reason for reason in reasons if not reason.endswith(NOT_APPLICABLE)]

    def rank(reason: str) -> int:
        return next((place for place, name in enumerate(first) if reason.startswith(name)), len(first))

    return sorted(found, key=rank)


def alternative_causes(verdict: Mapping[str, Any]) -> list[str]:
    """Alternative causes, if the confidence of the verdict is low."""
    if not verdict or (verdict["confidence"] >= CLOSE and not verdict["abstained"]):
        return []
    return [code for code in verdict.get("cause_top") or () if code != verdict["cause"]]


def spread(verdict: Mapping[str, Any], row: FailureRow, affected: int = 0) -> dict[str, Any]:
    """Propagation of the failure: ranks by role, the node of the first one, and ranks without output.

    Where a node event came first (`event`), no rank did, and `node` is that of the event. `affected`: how many ranks
    are known to have failed because of the first, more than the evidence may name.
    """
    ranks: dict[str, list[int]] = {"initiating": [], "cascade": [], "teardown": []}
    for line in verdict.get("evidence") or ():
        if line.get("rank") is not None and line["role"] in ranks and line["rank"] not in ranks[line["role"]]:
            ranks[line["role"]].append(line["rank"])
    first = next((line for line in verdict.get("evidence") or () if line["role"] == "initiating"), None)
    began = [] if began_with_event(verdict) else ranks["initiating"]
    followed = sorted(set(ranks["cascade"] + ranks["teardown"]) - set(began))
    return {
        "event": began_with_event(verdict),
        "first": sorted(began)[:RANKS_NAMED],
        "node": suspected_node(first.get("node"), row.side, abstained=row.abstained) if first is not None else None,
        "followed": followed[:RANKS_NAMED],
        "more": max(affected, len(followed)) - len(followed[:RANKS_NAMED]),
        "silent": [what for what in verdict.get("missing") or () if "rank" in what],
    }


def suspect(found: Mapping[str, Any] | None, row: FailureRow) -> str:
    """Where the failure most likely began; without the node and GPU where pages suspect none."""
    parts = dict(found or {})
    if not suspects_nodes(row.side, abstained=row.abstained):
        parts = {name: parts[name] for name in parts if name == "rank"}
    named = (("node", "node"), ("gpu", "GPU"), ("rank", "rank"))
    return ", ".join(f"{word} {parts[name]}" for name, word in named if parts.get(name) is not None)


def similar_failures(row: FailureRow) -> list[tuple[str, dict[str, str]]]:
    """Links to lists of similar failures: label and filters."""
    links = [("of this group", {"group": row.fingerprint})]
    node = compared_node(row)
    if node:
        links.append((f"on node {node}", {"node": node}))
    if row.user:
        links.append((f"of {row.user}", {"user": row.user}))
    links.append(("with this cause", {"cause": row.cause}))
    return links


def second_reading(services: Services, row: FailureRow, *, all_failures: bool) -> SecondReading | None:
    """The answered reading of the failure's kind, None without one or where a person set the verdict.

    `all_failures`: whether the reader may see other people's failures; else the reason, which is in words about one
    failure, is left out where it is another one.
    """
    if row.source == "person":
        return None
    with services.reading() as reading:
        found = reading.second_readings.of(row.fingerprint)
    if found is None or found.status not in {"answered", "undecided"}:
        return None
    return found if all_failures or found.failure_id == row.id else replace(found, reason=None)
