"""The texts of messages for people: title, text, and a report as HTML."""

import re
from collections.abc import Sequence
from html import escape

from service.deliveries.channels.channel import failure_link, summary, verdict_of
from service.deliveries.records import REPORT_SUBSCRIPTION, DueDelivery
from service.formatting import MENTION, WWW, escape_invisible

SHOWN = 10  # messages listed in a digest
REPORTS = frozenset({"report.published", REPORT_SUBSCRIPTION})
AGAIN = {
    "resubmit_now": "will retry: it is resubmitted at once where resubmission is automatic",
    "resubmit_after": "will retry: it is resubmitted after a pause where resubmission is automatic",
    "hold": "held: it is tried again when what is broken is repaired",
    "ask": "terminal unless somebody decides otherwise: nothing is tried again automatically",
    "stop": "terminal: nothing is tried again automatically",
}
HELD_BY = {  # what a hold waits for, if not for a repair
    "incident": "held: it is tried again when the incident is closed",
    "storm": "held: too many jobs were resubmitted or failed again; it is tried again when this has passed",
    "rate": "held: it is tried again when the limit on resubmits allows it",
    "window": "held: it is tried again when the limit for this job allows it",
}
# Receivers turn `@here`, `<!channel>`, `[text](address)` and addresses into mentions and links. Texts of jobs are
# written so that people can still read them and receivers cannot: `(at)here`, `‹!channel›`, `https[:]//example[.]com`.
_ONE_LINE = str.maketrans({"<": "‹", ">": "›", "\n": " ", "\t": " "})
_MARKDOWN_LINK = re.compile(r"\](?=[(:])")
_SCHEME = re.compile(r"(?i)\b(mailto|tel|sms|callto|javascript|data|vbscript|file|slack|msteams|discord):(?=\S)")
# Receivers link names without a scheme too, if they end like a domain or an address follows.
_DOMAINS = "com|net|org|info|biz|io|ai|dev|app|co|me|xyz|top|site|online|link|click|shop|ru|cn|de|uk|eu|us|example"
_DOMAINS += "|au|br|ca|cf|ch|edu|es|fr|ga|gov|gq|jp|kr|mil|nl|pro|pw|se|tk|tv|work|ws"
_BARE = re.compile(
    rf"(?i)(?<=[a-z0-9-])\.(?=(?:{_DOMAINS})\b(?!\.[a-z0-9])|(?:com?|ac|edu|gov|net|org)\.[a-z]{{2}}\b"
    r"|[a-z]{2,24}[/:?#]\S)"
)


def plain_text(text: str) -> str:
    """The text on one line, without anything that a receiver may turn into a mention, a link or markup."""
    one_line = str(escape_invisible(text.translate(_ONE_LINE)))
    unmentioned = _MARKDOWN_LINK.sub("] ", MENTION.sub("(at)", one_line))
    unlinked = _SCHEME.sub(r"\1[:]", unmentioned.replace("://", "[:]//"))
    return _BARE.sub("[.]", WWW.sub("www[.]", unlinked))


def title(messages: Sequence[DueDelivery]) -> str:
    """The title line."""
    first, *others = _latest(messages)
    if first.type in REPORTS:
        return plain_text(str(first.payload.get("title", first.type)))[:200]
    if not others:
        return plain_text(f"{first.key}: {verdict_of(first).get('side', first.type)}")[:200]
    failed = all(one.type.startswith("failure.") for one in (first, *others))
    where = f"{first.key} and others" if any(one.key != first.key for one in others) else first.key
    return plain_text(f"{len(others) + 1} {'failures of one kind' if failed else 'messages'}: {where}")[:200]


def text(messages: Sequence[DueDelivery], public_url: str | None) -> str:
    """What happened, whether it is retried, and a link."""
    first, *others = _latest(messages)
    if first.type in REPORTS:
        report_lines = [str(one) for one in first.payload.get("summary", ())][1:]  # the title is the message's own
        if not report_lines:  # published by an earlier release
            report_lines = [str(one) for one in first.payload.get("sentences", ())]
            report_lines += [f"- {one.get('title')}: {one.get('gain')}" for one in first.payload.get("todo", ())]
        return "\n".join([*map(plain_text, report_lines), *_report_links(first, public_url)])
    verdict = verdict_of(first)
    lines = [summary(first)]
    if verdict.get("explanation"):
        lines.append(str(verdict["explanation"]))
    again = next_step(first)
    if again is not None:
        lines.append(f"Next: {again}.")
    lines += [f"- {one.key} ({one.type})" for one in others[:SHOWN]]
    if len(others) > SHOWN:
        lines.append(f"and {len(others) - SHOWN} more")
    link = failure_link(public_url, first)
    if link is None:
        return "\n".join(map(plain_text, lines))
    if first.type.startswith("failure."):
        return "\n".join([*map(plain_text, lines), f"Is this right? {link}#feedback"])
    return "\n".join([*map(plain_text, lines), link])


def next_step(message: DueDelivery) -> str | None:
    """Whether the job of a failure is tried again; None if the message is about something else or does not say it."""
    verdict = verdict_of(message)
    decision = verdict.get("decision")
    if not message.type.startswith("failure.") or decision not in AGAIN:
        return None
    held_by = verdict.get("held_by") if decision == "hold" else None
    return HELD_BY.get(str(held_by)) or AGAIN[str(decision)]


def _latest(messages: Sequence[DueDelivery]) -> list[DueDelivery]:
    """Of each failure the latest message, whose verdict counts, and all messages about anything else."""
    found: dict[tuple[str, object], DueDelivery] = {}
    for one in sorted(messages, key=lambda message: message.message_id):
        failure = one.payload.get("failure_id") if one.type.startswith("failure.") else None
        found[("message", one.message_id) if failure is None else ("failure", failure)] = one
    return list(found.values())


def report_html(message: DueDelivery, public_url: str | None) -> str:
    """The report as HTML for a mail. Its links are paths of the pages, which need the public address."""
    page = str(message.payload["html"])
    if public_url:  # the texts of the report are escaped, so that this is found in links only
        page = page.replace('href="/', f'href="{public_url.rstrip("/")}/')
    links = "".join(f"<p>{escape(one)}</p>" for one in _report_links(message, public_url))
    return page.replace("</body>", f"{links}</body>")


def _report_links(message: DueDelivery, public_url: str | None) -> list[str]:
    """The address of the report, and how to end a subscription."""
    base = public_url.rstrip("/") if public_url else ""
    found = [f"{base}{message.payload.get('page', '')}"] if base else []
    end = message.payload.get("unsubscribe")
    if end:
        found.append(f"Unsubscribe: {base}{end}" if base else "Unsubscribe on the page Reports.")
    return found
