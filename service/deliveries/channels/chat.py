"""Chat and mail, by apprise: a short message for people, combined for one owner and one kind of failure."""

import logging
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import quote, urlsplit

from classifiers.redaction import redact
from service.deliveries.channels.address_check import Refused, Resolve, permitted, resolve
from service.deliveries.channels.channel import OWNER, PLAIN_USER, SENT, Outcome, summary, verdict_of
from service.deliveries.channels.pagerduty import failure_link
from service.deliveries.records import REPORT_SUBSCRIPTION, DueDelivery
from service.errors import ConfigurationError
from service.formatting import escape_invisible
from service.internet_addresses import Network

# Receivers turn `@here`, `<!channel>`, `[text](address)` and addresses into mentions and links. Texts of jobs are
# written so that people can still read them and receivers cannot: `(at)here`, `‹!channel›`, `https[:]//example[.]com`.
_ONE_LINE = str.maketrans({"<": "‹", ">": "›", "\n": " ", "\t": " "})
_MENTION = re.compile(r"[@\uff20\ufe6b](?=\S)")
_MARKDOWN_LINK = re.compile(r"\](?=[(:])")
_SCHEME = re.compile(r"(?i)\b(mailto|tel|sms|callto|javascript|data|vbscript|file|slack|msteams|discord):(?=\S)")
# Receivers link names without a scheme too, if they end like a domain or an address follows.
_DOMAINS = "com|net|org|info|biz|io|ai|dev|app|co|me|xyz|top|site|online|link|click|shop|ru|cn|de|uk|eu|us|example"
_BARE = re.compile(rf"(?i)(?<=[a-z0-9-])\.(?=(?:{_DOMAINS})\b(?!\.[a-z0-9])|[a-z]{{2,24}}[/:?#]\S)")
_WWW = re.compile(r"(?i)\bwww\.")


def plain_text(text: str) -> str:
    """The text on one line, without anything that a receiver may turn into a mention, a link or markup."""
    one_line = str(escape_invisible(text.translate(_ONE_LINE)))
    unmentioned = _MARKDOWN_LINK.sub("] ", _MENTION.sub("(at)", one_line))
    unlinked = _SCHEME.sub(r"\1[:]", unmentioned.replace("://", "[:]//"))
    return _BARE.sub("[.]", _WWW.sub("www[.]", unlinked))


SHOWN = 10  # messages listed in a digest
MAIL = frozenset({"mailto", "mailtos"})
# These refuse a text of more characters than they take (Discord: 2,000), so a longer one is sent in parts.
IN_PARTS = frozenset({"discord", "tgram", "gchat", "mmost", "mmosts", "zulip"})
REPORTS = frozenset({"report.published", REPORT_SUBSCRIPTION})
AGAIN = {
    "resubmit_now": "will retry: it is resubmitted at once where resubmission is automatic",
    "resubmit_after": "will retry: it is resubmitted after a pause where resubmission is automatic",
    "hold": "held: it is tried again when what is broken is repaired",
    "ask": "terminal unless somebody decides otherwise: nothing is tried again by itself",
    "stop": "terminal: nothing is tried again by itself",
}


class ChatChannel:
    """Sends to one apprise address. `{user}` in it is replaced by the job's owner.

    Args:
        url: the address.
        schemas: the permitted schemes of addresses.
        allow: permitted networks besides public ones.
        timeout_s: time limit of a message in seconds.
        public_url: the public address of this service, for links.
        lookup: resolves names.
        recipients: what replaces `{user}`, by user; others get no message. None: the user's name.
    """

    bulk = False  # without a digest, messages that have nothing in common would be one

    def __init__(
        self,
        url: str,
        schemas: Sequence[str],
        allow: Sequence[Network],
        *,
        timeout_s: float,
        public_url: str | None = None,
        lookup: Resolve = resolve,
        recipients: Mapping[str, str] | None = None,
    ) -> None:
        schema = urlsplit(url).scheme.lower()
        if schema not in schemas:
            raise ConfigurationError(f"{schema or 'an address without a scheme'}: expected one of {', '.join(schemas)}")
        try:
            import apprise  # noqa: PLC0415 -- an extra
        except ImportError:
            raise ConfigurationError("chats and mail need the extra: pip install 'faultline[chat]'") from None
        logging.getLogger("apprise").setLevel(logging.CRITICAL)  # it logs addresses, which contain tokens
        self._apprise = apprise
        self._asset = apprise.AppriseAsset(app_id="Faultline", app_desc="Faultline", async_mode=False, plugin_paths=[])
        self._url = url
        self._mail = schema in MAIL
        self._in_parts = schema in IN_PARTS
        self._allow = tuple(allow)
        self._timeout_s = timeout_s
        self._public_url = public_url
        self._lookup = lookup
        self._recipients = recipients
        if self._service("somebody") is None:
            raise ConfigurationError(f"not an address that apprise takes ({schema}://...)")

    def send(self, messages: Sequence[DueDelivery]) -> Outcome:
        """Send all messages as one."""
        recipient = ""
        if OWNER in self._url:
            user = messages[0].payload.get("user")
            if not user:
                return Outcome("refused", "the job names no owner")
            found = self._recipient(str(user))
            if found is None:
                return Outcome("refused", "the owner is not a plain user name, or is not in `recipients`")
            recipient = found
        html_mail = self._mail and bool(messages[0].payload.get("html"))
        service = self._service(recipient, "html" if html_mail else "text")
        if service is None:
            return Outcome("refused", "no address for this owner")
        try:
            self._check(service)
            body, body_format = text(messages, self._public_url), self._apprise.NotifyFormat.TEXT
            if html_mail:
                body, body_format = report_html(messages[0], self._public_url), self._apprise.NotifyFormat.HTML
            sent = service.notify(
                title=title(messages),
                body=body,
                notify_type=self._apprise.NotifyType.INFO,
                body_format=body_format,
            )
        except (Refused, OSError) as error:
            return Outcome("retry", redact(str(error))[:300])
        return SENT if sent else Outcome("retry", "the receiver did not take it")

    def close(self) -> None:
        """Nothing to close."""

    def _recipient(self, user: str) -> str | None:
        if PLAIN_USER.fullmatch(user) is None:
            return None
        return user if self._recipients is None else self._recipients.get(user)

    def _service(self, recipient: str, body_format: str = "text") -> Any:
        url = self._url.replace(OWNER, quote(recipient, safe=""))
        joint = "&" if "?" in url else "?"
        given = "" if "format=" in url else f"format={body_format}&"
        if "overflow=" not in url and self._in_parts:
            given += "overflow=split&"
        limits = f"{given}redirect=no&cto={self._timeout_s / 2:g}&rto={self._timeout_s / 2:g}"
        return self._apprise.Apprise.instantiate(f"{url}{joint}{limits}", asset=self._asset, suppress_exceptions=True)

    def _check(self, service: Any) -> None:
        """Check that an address in the administrator's own network is permitted."""
        host = getattr(service, "smtp_host", None) or getattr(service, "host", None)
        if isinstance(host, str) and host:
            port = getattr(service, "port", None)
            permitted(host, port if isinstance(port, int) else 443, self._allow, lookup=self._lookup)


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
    if first.type.startswith("failure.") and verdict.get("decision") in AGAIN:
        lines.append(f"Next: {AGAIN[str(verdict['decision'])]}.")
    lines += [f"- {one.key} ({one.type})" for one in others[:SHOWN]]
    if len(others) > SHOWN:
        lines.append(f"and {len(others) - SHOWN} more")
    link = failure_link(public_url, first)
    if link is None:
        return "\n".join(map(plain_text, lines))
    if first.type.startswith("failure."):
        return "\n".join([*map(plain_text, lines), f"Is this right? {link}#feedback"])
    return "\n".join([*map(plain_text, lines), link])


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
