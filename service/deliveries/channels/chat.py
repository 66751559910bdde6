"""Chat and mail, by apprise: a short message for people, combined for one owner and one kind of failure."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from classifiers.redaction import redact
from service.deliveries.channels.channel import OWNER, PLAIN_USER, SENT, Outcome
from service.deliveries.channels.chat_process import ChatProcess, instantiate
from service.deliveries.channels.http import Refused, permitted
from service.deliveries.channels.message_text import report_html, text, title
from service.deliveries.records import DueDelivery
from service.errors import ConfigurationError
from service.internet_addresses import Network

MAIL = frozenset({"mailto", "mailtos"})
# These refuse a text of more characters than they take (Discord: 2,000), so a longer one is sent in parts.
IN_PARTS = frozenset({"discord", "tgram", "gchat", "mmost", "mmosts", "zulip"})
# A message may take several requests: its parts, or the commands of a mail. Less than the lease of a delivery.
EXCHANGES = 3


class ChatChannel:
    """Sends to one apprise address. `{user}` in it is replaced by the job's owner.

    Args:
        url: the address.
        schemas: the permitted schemes of addresses.
        allow: permitted networks besides public ones.
        timeout_s: time limit of one request in seconds; a message has three times as long.
        public_url: the public address of this service, for links.
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
        self._process = ChatProcess(allow)
        self._url = url
        self._mail = schema in MAIL
        self._in_parts = schema in IN_PARTS
        self._allow = tuple(allow)
        self._timeout_s = timeout_s
        self._public_url = public_url
        self._recipients = recipients
        if instantiate(apprise, self._address("somebody")) is None:
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
        body_format = "html" if html_mail else "text"
        url = self._address(recipient, body_format)
        service = instantiate(self._apprise, url)
        if service is None:
            return Outcome("refused", "no address for this owner")
        public = self._public_url
        body = report_html(messages[0], public) if html_mail else text(messages, public)
        message = {"url": url, "title": title(messages), "body": body, "body_format": body_format}
        try:
            self._check(service)
            sent = self._process.notify(message, EXCHANGES * self._timeout_s)
        except (Refused, OSError) as error:
            return Outcome("retry", redact(str(error))[:300])
        return SENT if sent else Outcome("retry", "the receiver did not take it")

    def close(self) -> None:
        """End the process that sends the messages."""
        self._process.close()

    def _recipient(self, user: str) -> str | None:
        if PLAIN_USER.fullmatch(user) is None:
            return None
        return user if self._recipients is None else self._recipients.get(user)

    def _address(self, recipient: str, body_format: str = "text") -> str:
        url = self._url.replace(OWNER, quote(recipient, safe=""))
        joint = "&" if "?" in url else "?"
        given = "" if "format=" in url else f"format={body_format}&"
        if "overflow=" not in url and self._in_parts:
            given += "overflow=split&"
        limits = f"{given}redirect=no&cto={self._timeout_s / 2:g}&rto={self._timeout_s / 2:g}"
        return f"{url}{joint}{limits}"

    def _check(self, service: Any) -> None:
        """Check that an address in the administrator's own network is permitted."""
        host = getattr(service, "smtp_host", None) or getattr(service, "host", None)
        if isinstance(host, str) and host:
            port = getattr(service, "port", None)
            permitted(host, port if isinstance(port, int) else 443, self._allow)
