"""Chat and mail, by apprise: a short message for people, combined for one owner and one kind of failure."""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from classifiers.redaction import redact
from service.deliveries.channels.address_check import Network, Refused, Resolve, permitted, resolve
from service.deliveries.channels.channel import SENT, Outcome, summary, verdict_of
from service.deliveries.channels.pagerduty import failure_link
from service.deliveries.channels.plain_text import plain_text
from service.deliveries.records import DueDelivery
from service.errors import ConfigurationError

OWNER = "{user}"
# The name of a user comes from an event. Anything else could address another mailbox or channel.
PLAIN_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}", re.ASCII)
SHOWN = 10  # messages listed in a digest
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

    bulk = True

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
        service = self._service(recipient)
        if service is None:
            return Outcome("refused", "no address for this owner")
        try:
            self._check(service)
            sent = service.notify(
                title=title(messages),
                body=text(messages, self._public_url),
                notify_type=self._apprise.NotifyType.INFO,
                body_format=self._apprise.NotifyFormat.TEXT,
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

    def _service(self, recipient: str) -> Any:
        url = self._url.replace(OWNER, quote(recipient, safe=""))
        joint = "&" if "?" in url else "?"
        text_only = "" if "format=" in url else "format=text&"
        limits = f"{text_only}redirect=no&cto={self._timeout_s / 2:g}&rto={self._timeout_s / 2:g}"
        return self._apprise.Apprise.instantiate(f"{url}{joint}{limits}", asset=self._asset, suppress_exceptions=True)

    def _check(self, service: Any) -> None:
        """Check that an address in the administrator's own network is permitted."""
        host = getattr(service, "smtp_host", None) or getattr(service, "host", None)
        if isinstance(host, str) and host:
            port = getattr(service, "port", None)
            permitted(host, port if isinstance(port, int) else 443, self._allow, lookup=self._lookup)


def title(messages: Sequence[DueDelivery]) -> str:
    """The title line."""
    first = messages[0]
    if first.type == "report.published":
        return plain_text(str(first.payload.get("title", first.type)))[:200]
    if len(messages) == 1:
        return plain_text(f"{first.key}: {verdict_of(first).get('side', first.type)}")[:200]
    return plain_text(f"{len(messages)} failures of one kind: {first.key} and others")[:200]


def text(messages: Sequence[DueDelivery], public_url: str | None) -> str:
    """What happened, whether it is retried, and a link."""
    first = messages[0]
    if first.type == "report.published":
        report_lines = [str(one) for one in first.payload.get("summary", ())][1:]  # the title is the message's own
        if not report_lines:  # published by an earlier release
            report_lines = [str(one) for one in first.payload.get("sentences", ())]
            report_lines += [f"- {one.get('title')}: {one.get('gain')}" for one in first.payload.get("todo", ())]
        link = f"{public_url.rstrip('/')}{first.payload.get('page', '')}" if public_url else None
        return "\n".join([*map(plain_text, report_lines), *([link] if link else [])])
    verdict = verdict_of(first)
    lines = [summary(first)]
    if verdict.get("explanation"):
        lines.append(str(verdict["explanation"]))
    if first.type.startswith("failure.") and verdict.get("decision") in AGAIN:
        lines.append(f"Next: {AGAIN[str(verdict['decision'])]}.")
    lines += [f"- {one.key} ({one.type})" for one in messages[1 : SHOWN + 1]]
    if len(messages) > SHOWN + 1:
        lines.append(f"and {len(messages) - SHOWN - 1} more")
    link = failure_link(public_url, first)
    if link is None:
        return "\n".join(map(plain_text, lines))
    if first.type.startswith("failure."):
        return "\n".join([*map(plain_text, lines), f"Is this right? {link}#feedback"])
    return "\n".join([*map(plain_text, lines), link])
