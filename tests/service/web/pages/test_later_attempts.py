"""The page of a failure whose job ran again."""

import re
from datetime import timedelta

from fastapi.testclient import TestClient

from tests.service.web.pages.test_failure_page import page_of, words
from tests.service.web.world import NOW, event, log

XID = "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus."


def test_a_job_that_has_succeeded_since_needs_no_action(client: TestClient) -> None:
    began = (NOW - timedelta(minutes=20)).isoformat()
    again = {"attempt": 1, "status": "succeeded", "logs": [], "started_at": began, "ended_at": NOW.isoformat()}
    before = page_of(client, event("1", logs=[log(XID, 1)]))
    assert "No action needed" not in before
    assert "Resubmit anyway" not in before
    after = page_of(client, event("1", **again))
    advice = words(after.partition('<div class="do">')[2].partition("</section>")[0])
    assert "No action needed for this job. Its attempt 1 succeeded just now" in advice
    assert advice.index("Advice at the time of the failure") < advice.index("Resubmit now")
    assert "The job has succeeded since; it would run once more." in words(after)
    assert "btn-primary" not in after.partition('id="automation"')[2].partition("</section>")[0]


def test_a_job_that_has_failed_again_since_is_decided_about_at_its_last_attempt(client: TestClient) -> None:
    began = (NOW - timedelta(minutes=20)).isoformat()
    again = {"attempt": 2, "started_at": began, "ended_at": NOW.isoformat()}
    more = {"started_at": (NOW - timedelta(minutes=9)).isoformat(), "ended_at": NOW.isoformat()}
    before = page_of(client, event("1", attempt=1, logs=[log(XID, 1)]))
    assert "ran again" not in before
    number = client.get("/api/v1/failures").json()["items"][0]["id"]
    latest = page_of(client, event("1", logs=[log(XID, 1)], **again))
    assert "ran again" not in latest, "the last attempt has its own advice"
    after = client.get(f"/failures/{number}").text
    link = re.search(r'Its <a href="(/failures/\d+)">attempt 2</a>', after)
    assert link is not None
    assert client.get(link[1]).text.count("Advice at the time of the failure") == 0
    advice = words(after.partition('<div class="do">')[2].partition("</section>")[0])
    assert "This job ran again. Its attempt 2 failed just now" in advice
    assert advice.index("Advice at the time of the failure") < advice.index("Resubmit now")
    assert "The job ran again since; it would start once more." in words(after)
    assert re.search(r">hardware: [\w ]+</a>", after.partition("<h2>This job")[2])
    undecided = event("1", attempt=3, logs=[log("SomethingError: nobody has seen this", 1)], **more)
    page_of(client, undecided)
    assert ">undecided, possibly " in client.get(f"/failures/{number}").text.partition("<h2>This job")[2]
    assert "btn-primary" not in after.partition('id="automation"')[2].partition("</section>")[0]
