"""Mails as files in a folder, for a trial without a mail server or for a mail system that picks files up."""

import os
from collections.abc import Sequence
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

from service.deliveries.channels.channel import PLAIN_USER, SENT, Outcome, message_id
from service.deliveries.channels.message_text import report_html, text, title
from service.deliveries.records import DueDelivery

HOST = "localhost"  # of the addresses: no mail server is asked to send these mails


class MailFolderChannel:
    """Writes each mail to a file of its own, NAME.eml (RFC 5322).

    Args:
        folder: where the files go; it is created if it does not exist. Only the user of this process may read them.
        public_url: the public address of this service, for links.
    """

    bulk = True

    def __init__(self, folder: Path, *, public_url: str | None = None) -> None:
        self._folder = folder
        self._public_url = public_url

    def send(self, messages: Sequence[DueDelivery]) -> Outcome:
        """Write all messages as one mail; one that is sent again replaces its file."""
        user = str(messages[0].payload.get("user") or "")
        if PLAIN_USER.fullmatch(user) is None:
            return Outcome("refused", "the message names nobody, or its owner is not a plain user name")
        first = messages[0]
        name = f"{first.created_at:%Y-%m-%dT%H%M%S}-{user}-{message_id(first)[-8:]}.eml"
        try:
            self._write(name, self._mail(messages, user).as_bytes())
        except OSError as error:
            return Outcome("retry", f"{name} cannot be written: {error.strerror}")
        return SENT

    def close(self) -> None:
        """Nothing to close."""

    def _mail(self, messages: Sequence[DueDelivery], user: str) -> EmailMessage:
        mail = EmailMessage(policy=default.clone(cte_type="8bit"))
        mail["From"], mail["To"] = f"Faultline <faultline@{HOST}>", f"{user}@{HOST}"
        mail["Subject"], mail["Date"] = title(messages), messages[0].created_at
        mail["Message-ID"] = f"<{message_id(messages[0])}@{HOST}>"
        mail.set_content(text(messages, self._public_url), cte="8bit")  # to be read in any editor
        if messages[0].payload.get("html"):
            mail.add_alternative(report_html(messages[0], self._public_url), subtype="html", cte="quoted-printable")
        return mail

    def _write(self, name: str, content: bytes) -> None:
        """Write a file that appears when it is complete."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = self._folder / f".{name}.part"
        part.unlink(missing_ok=True)  # of a process that was interrupted
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(content)
        part.replace(self._folder / name)
