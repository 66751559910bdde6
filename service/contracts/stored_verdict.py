"""verdict/1 as stored → the verdict it was made from, so that it can be updated with what came later."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from classifiers.contracts import ContextLine, Evidence, LogVerdict, Progress, Suspect, Verdict


def verdict_of(body: Mapping[str, Any]) -> Verdict:
    """The verdict of a stored body.

    Raises:
        KeyError: the body was written by a version that did not know a field that is needed.
    """
    progress = body.get("progress")
    said = body.get("log_said")
    return Verdict(
        side=body["side"],
        cause=body["cause"],
        cause_top=tuple(body["cause_top"]),
        category=body["category"],
        symptom=body["symptom"],
        symptom_top=tuple(body["symptom_top"]),
        platform_symptom=body["platform_symptom"],
        confidence=body["confidence"],
        abstained=body["abstained"],
        retry_outlook=body["retry_outlook"],
        fingerprint=body["fingerprint"],
        explanation=body["explanation"],
        model=body["model"],
        rules=body["rules"],
        evidence=tuple(
            Evidence(
                text=line["text"],
                role=line["role"],
                rank=line["rank"],
                node=line["node"],
                stream=line["stream"],
                line=line["line"],
                signature=line.get("signature"),
            )
            for line in body["evidence"]
        ),
        suspect=_suspect(body["suspect"]),
        missing=tuple(body.get("missing") or ()),
        progress=None
        if progress is None
        else Progress(progress["step"], progress["checkpoint"], _instant(progress["at"])),
        weighed=tuple((name, weight) for name, weight in body.get("weighed") or ()),
        disputed=bool(body.get("disputed")),
        context=tuple(
            ContextLine(
                kind=line["kind"],
                text=line["text"],
                side=line["side"],
                weight=line["weight"],
                cause=line["cause"],
                node=line["node"],
                at=_instant(line["at"]),
                gpu=line["gpu"],
            )
            for line in body.get("context") or ()
        ),
        log_verdict=None
        if said is None
        else LogVerdict(
            side=said["side"],
            cause=said["cause"],
            cause_top=tuple(said["cause_top"]),
            confidence=said["confidence"],
            abstained=said["abstained"],
            retry_outlook=said["retry_outlook"],
            explanation=said["explanation"],
            suspect=_suspect(said["suspect"]),
        ),
    )


def _suspect(found: Mapping[str, Any] | None) -> Suspect | None:
    return None if found is None else Suspect(found["rank"], found["node"], found["gpu"])


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
