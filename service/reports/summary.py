"""The report in ten lines, for chats, and as a mail."""

from email.message import EmailMessage
from typing import Any
from urllib.parse import urlencode

from service.reports import html, markdown
from service.reports.document import Report

LINES = 10
_ACCURACY = "audited accuracy"


def summary(report: Report) -> tuple[str, ...]:
    """At most ten lines: what happened, what to do, the outcome of earlier actions, the accuracy of the verdicts."""
    actions = [f"{number}. {todo.title}: {todo.gain}" for number, todo in enumerate(report.todo, 1)]
    accuracy = [f"{label}: {text}" for label, text in report.trust if label == _ACCURACY]
    earlier = [f"Earlier: {one.title}: {one.outcome}" for one in report.previous]
    # The sentences share the lines that the others leave; what does not fit is on the first page of the report.
    room = LINES - 1 - len(actions) - len(accuracy)
    sentences = list(report.sentences[: max(room - min(len(earlier), 2), 2)])
    lines = [report.title, *sentences, *actions]
    return (*lines, *earlier[: LINES - len(lines) - len(accuracy)], *accuracy)[:LINES]


def message_facts(report: Report) -> dict[str, Any]:
    """What a message about the report carries."""
    query = f"?{urlencode(report.scope)}" if report.scope else ""
    return {
        "week": report.week,
        "version": report.version,
        "scope": dict(report.scope),
        "title": report.title,
        "sentences": list(report.sentences),
        "summary": list(summary(report)),
        "todo": [{"title": one.title, "gain": one.gain} for one in report.todo],
        "page": f"/reports/{report.week}{query}",
    }


def mail(report: Report) -> bytes:
    """The report as a mail (RFC 5322): text and HTML; without sender and receivers."""
    message = EmailMessage()
    message["Subject"] = " ".join(report.title.split())  # reports of earlier releases may have a name with a line end
    message.set_content(markdown.render(report))
    message.add_alternative(html.render(report), subtype="html")
    return message.as_bytes()
