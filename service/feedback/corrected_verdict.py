"""A person's judgement as a new version of a verdict: the evidence stays, the conclusions are replaced. Pure."""

import tomllib
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from classifiers import owner_summary, taxonomy
from classifiers.contracts import Case, JobFacts, Verdict
from classifiers.data.labelled_cases import NONE
from service.feedback.records import Labels

PERSON = "a person"


@cache
def data() -> dict[str, Any]:
    """The contents of feedback.toml."""
    return tomllib.loads(files("service.feedback").joinpath("feedback.toml").read_text(encoding="utf-8"))


def completed(labels: Labels, verdict: Verdict) -> Labels:
    """A person's labels for every axis: missing ones follow from the cause, or stay unchanged."""
    axes = taxonomy.load()
    cause = labels.cause or (verdict.cause if labels.side in (None, verdict.side) else None)
    side = labels.side or (axes.side_of(labels.cause) if labels.cause is not None else verdict.side)
    moved = cause != verdict.cause or side != verdict.side
    retry = labels.retry or (data()["retry"].get(cause) if moved and cause is not None else verdict.retry_outlook)
    return Labels(side, cause, labels.category, labels.symptom, retry)


def corrected(verdict: Verdict, given: Labels, job: JobFacts) -> Verdict:
    """The verdict after a person's judgement; `given` is complete.

    Without a cause the first cause of the side is used.
    """
    axes = taxonomy.load()
    side = given.side or verdict.side
    cause = given.cause or next(code for code in verdict.cause_top + tuple(axes.causes) if axes.side_of(code) == side)
    category = verdict.category if given.category is None else _code(given.category)
    symptom = verdict.symptom if given.symptom is None else _code(given.symptom)
    same = (side, cause) == (verdict.side, verdict.cause)
    # The place belongs to the side that the classifier saw, its strongest features to the cause.
    suspect = verdict.suspect if side == verdict.side else None
    case = Case(job, verdict.evidence, suspect, verdict.progress, verdict.missing)
    return replace(
        verdict,
        disputed=False,
        log_verdict=None,
        side=side,  # type: ignore[arg-type]  # checked against the taxonomy where it came in
        cause=cause,
        cause_top=(cause, *(code for code in verdict.cause_top if code != cause))[:3],
        category=category,
        symptom=symptom,
        symptom_top=verdict.symptom_top
        if symptom is None
        else (symptom, *(s for s in verdict.symptom_top if s != symptom))[:3],
        platform_symptom=verdict.platform_symptom if same else owner_summary.platform_symptom(case, cause, symptom),
        confidence=1.0,
        abstained=False,
        retry_outlook=given.retry or verdict.retry_outlook,  # type: ignore[arg-type]  # as above
        suspect=suspect,
        weighed=verdict.weighed if same else (),
        explanation=verdict.explanation
        if same and not verdict.abstained
        else owner_summary.explanation(case, cause, category, abstained=False),
        model=PERSON,
    )


def _code(label: str) -> str | None:
    return None if label == NONE else label
