"""Mails as files: what a person reads, who gets one, and what happens if the folder cannot be written."""

import email
import stat
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

import pytest

from service.deliveries.build import targets
from service.deliveries.channels.mail_folder import MailFolderChannel
from service.deliveries.config import parse, report_receivers
from service.deliveries.records import REPORT_SUBSCRIPTION
from tests.service.deliveries.sample_messages import due, payload
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import NOON

REPORT = {
    "title": "Quality report, week 2026-W47",
    "summary": ["Quality report, week 2026-W47", "1 of 2 jobs failed: Größe"],
    "page": "/reports/2026-W47",
    "unsubscribe": "/unsubscribe/abc",
    "html": f'<html><body><a href="/failures">{"long line " * 200}</a></body></html>',
    "user": "ana",
}


def mails(folder: Path) -> list[EmailMessage]:
    files = sorted(folder.glob("*.eml"))
    return [email.message_from_bytes(one.read_bytes(), policy=default) for one in files]


def test_a_report_is_a_mail_that_mail_programs_and_editors_show(tmp_path: Path) -> None:
    folder = tmp_path / "of" / "mails"
    channel = MailFolderChannel(folder, public_url="https://faultline.example")
    report = due(1, type=REPORT_SUBSCRIPTION, payload=REPORT)
    for _ in range(2):  # sent again after a lost answer, it is the same file
        assert channel.send([report]).kind == "sent"
    [mail] = mails(folder)
    assert (mail["To"], mail["Subject"]) == ("ana@localhost", "Quality report, week 2026-W47")
    text, html = (mail.get_body((kind,)) for kind in ("plain", "html"))
    assert text is not None
    assert html is not None
    assert "Unsubscribe: https://faultline.example/unsubscribe/abc" in text.get_content()
    assert 'href="https://faultline.example/failures"' in html.get_content()
    [file] = folder.iterdir()
    assert "1 of 2 jobs failed: Größe" in file.read_text(encoding="utf-8"), "an editor shows the text as it is"
    assert max(map(len, file.read_bytes().splitlines())) < 998, "RFC 5322 allows no longer line"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600, "the link to unsubscribe is for its receiver alone"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("user", [None, "", "../ana", "a b", "ana\nBcc: all@org.example", "." * 3])
def test_without_a_plain_user_name_nothing_is_written(tmp_path: Path, user: str | None) -> None:
    outcome = MailFolderChannel(tmp_path / "mails").send([due(7, payload=payload(7) | {"user": user})])
    assert outcome.kind == "refused"
    assert list(tmp_path.rglob("*.eml")) == []


def test_failures_of_an_owner_are_one_mail(tmp_path: Path) -> None:
    two = [due(number, payload=payload(number) | {"user": "ana"}) for number in (7, 8)]
    assert MailFolderChannel(tmp_path).send(two).kind == "sent"
    [mail] = mails(tmp_path)
    assert "2 failures of one kind" in mail["Subject"]


def test_a_folder_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    outcome = MailFolderChannel(tmp_path / "file").send([due(7, payload=payload(7) | {"user": "ana"})])
    assert outcome.kind == "retry"
    assert "cannot be written" in outcome.detail


def test_people_subscribe_to_an_endpoint_that_writes_files(tmp_path: Path) -> None:
    config = parse(f'[[endpoint]]\nname = "files"\nkind = "folder"\npath = "{tmp_path}"\nroute = [{{ type = [] }}]')
    [receiver] = report_receivers(config)
    assert (receiver.personal, receiver.mail, receiver.folder) == (True, True, tmp_path)
    [target] = targets(config, FrozenClock(NOON), lambda _: pytest.fail("topic"))
    assert not target.wants("failure.diagnosed", payload(1), None)
    assert target.wants(REPORT_SUBSCRIPTION, {"endpoint": "files"}, None)
