"""Checks of feedback as a person gives it."""

from classifiers import taxonomy
from classifiers.data.labelled_cases import AXES, codes_of
from service.errors import invalid
from service.feedback import fix_service
from service.feedback.records import FeedbackInput, Labels

LONGEST_NOTE = 4_000


def check(feedback: FeedbackInput) -> None:
    """Check that the feedback is valid.

    Raises:
        InvalidInput: names the field.
    """
    labels = feedback.labels
    for axis in AXES:
        value, codes = getattr(labels, axis), codes_of(axis)
        if value is not None and value not in codes:
            raise invalid(axis, "one of " + ", ".join(codes), str(value))
    if labels.cause is not None and labels.side is not None and taxonomy.load().side_of(labels.cause) != labels.side:
        raise invalid("cause", f"a cause of side {labels.side}", labels.cause)
    if feedback.kind in {"unsure", "agree"} and labels != Labels():
        raise invalid("labels", f"none: the kind {feedback.kind} names no label", "some")
    if feedback.kind == "correct" and labels == Labels():
        raise invalid("labels", "at least one of side, cause, category, symptom, retry", "none")
    if feedback.fixed_by is not None:
        if feedback.kind not in {"confirm", "correct"}:
            raise invalid("fixed_by", "only with confirm or correct", feedback.fixed_by)
        fix_service.check(feedback.fixed_by)
    if feedback.note is not None and len(feedback.note) > LONGEST_NOTE:
        raise invalid("note", f"at most {LONGEST_NOTE:,} characters", f"{len(feedback.note)} characters")
