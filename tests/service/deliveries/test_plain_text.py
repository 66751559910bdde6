"""Nothing in a text of a job becomes a mention, a link or markup at the receiver."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from service.deliveries.channels.alertmanager import AlertmanagerChannel
from service.deliveries.channels.message_text import plain_text, text, title
from service.deliveries.channels.pagerduty import PagerDutyChannel
from tests.service.deliveries.receivers import Inbox
from tests.service.deliveries.sample_messages import due, payload, poster
from tests.service.deliveries.test_chat import channel, inbox, text_of
from tests.service.frozen_clock import FrozenClock

__all__ = ["inbox"]
HOSTILE = (
    "@here",
    "＠everyone",
    "<!channel>",
    "<@U0123>",
    "<https://evil.example|click>",
    "[verify](https://evil.example)",
    "[a]: https://evil.example",
    "![x](//evil.example/p.png)",
    "https://evil.example/x",
    "HTTPS://EVIL.EXAMPLE",
    "ftp://evil.example",
    "mailto:me@evil.example",
    "www.evil.example",
    "evil.com",
    "evil.zip/x",
    "evil.co.jp",
    "evil.tk",
    "evil.gov",
    "<b onload=x>",
    "a\r\nSubject: b",
    "\x1b]8;;https://evil.example\x07click",
    "\u202ereversed\u200b",
    "\x9b31m",
)
ACTIVE = re.compile(r"[@＠<>\r\n\x00-\x1f\x7f-\x9f\u202e\u200b]|\]\(|\]:(?!\])|\w://|(?i:www\.\w|evil\.|mailto:)")


@pytest.mark.parametrize("given", HOSTILE)
def test_a_hostile_text_is_inert(given: str) -> None:
    assert ACTIVE.search(given)
    assert not ACTIVE.search(plain_text(f"loss {given} end"))


@pytest.mark.parametrize(
    "given",
    [
        "RuntimeError: CUDA error: out of memory",
        "File /scratch/a.py, line 3: torch.nn.Linear [rank0] 1.5e-3",
        "x.to(y) in run.sh",
    ],
)
def test_a_text_without_markup_is_unchanged(given: str) -> None:
    assert plain_text(given) == given


@pytest.mark.parametrize("given", HOSTILE)
def test_a_message_has_no_link_but_its_own(given: str) -> None:
    verdict = {"side": "user", "cause": "USER.1", "explanation": f"x {given}", "decision": "ask"}
    hostile = payload(7) | {"headline": given, "title": given, "verdict": verdict}
    hostile["unsubscribe"] = "/unsubscribe/abc"
    for kind in ("failure.diagnosed", "report.published", "report.subscription"):
        messages = [
            due(7, payload=hostile | {"sentences": [given], "todo": [{"title": given, "gain": given}]}, type=kind)
        ]
        own = re.compile(r"(Is this right\? |Unsubscribe: )?https://faultline\.example[\w/#]*")
        lines = text(messages, "https://faultline.example").split("\n")
        assert own.fullmatch(lines[-1])
        others = [line for line in lines if not own.fullmatch(line)]
        assert not ACTIVE.search("".join([*others, title(messages)])), lines


@pytest.mark.parametrize("given", HOSTILE)
def test_an_alert_that_is_sent_on_to_a_chat_has_no_mention_and_no_link_of_a_job(given: str) -> None:
    """Alertmanager and PagerDuty send on what they get, and chats turn `<!channel>` into a mention there too."""
    verdict = {"side": "user", "cause": "USER.1", "explanation": f"x {given}", "decision": "ask"}
    clock = FrozenClock(datetime(2026, 11, 20, tzinfo=UTC))
    message = due(7, payload=payload(7) | {"headline": given, "verdict": verdict})
    alert = AlertmanagerChannel("https://am.example", poster(), clock, severity={}, lasts_s=60).alert(message)
    event = PagerDutyChannel("https://pd.example", "key", poster(), clock, severity={}).event(message)
    details: Any = event["payload"]
    annotations: Any = alert["annotations"]
    shown = [*annotations.values(), details["summary"], details["custom_details"]["explanation"]]
    assert not [one for one in shown if ACTIVE.search(one)]


@pytest.mark.parametrize("user", ["ana,boss@org.example", "a b", "../x", "ana%2Cb", "ana\nx", "@ana", "", "x" * 65])
def test_only_plain_user_names_are_recipients(inbox: tuple[Inbox, str], user: str) -> None:
    box, url = inbox
    assert channel(url).send([due(7, payload=payload(7) | {"user": user})]).kind == "refused"
    assert box.to == []


def test_recipients_are_mapped_by_the_setting(inbox: tuple[Inbox, str]) -> None:
    box, url = inbox
    mapped = channel(url, recipients={"ana": "ana.berg"})
    assert mapped.send([due(7, payload=payload(7) | {"user": "ana"})]).kind == "sent"
    assert mapped.send([due(8, payload=payload(8) | {"user": "bob"})]).kind == "refused"
    assert box.to == [["ana.berg@org.example"]]
    assert box.mails[0].get_body(("html",)) is None
    assert "FileNotFoundError" in text_of(box.mails[0])
