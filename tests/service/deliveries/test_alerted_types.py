"""Which messages reach endpoints that page people: none that only reports, or says that all is well."""

from typing import Any, get_args

import pytest

from service.automation.notifications import MessageKind
from service.deliveries.build import targets
from service.deliveries.channels.pagerduty import PagerDutyChannel
from service.deliveries.config import parse
from tests.service.deliveries.sample_messages import due, payload, poster
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import NOON

EVERY = {*get_args(MessageKind), "failure.diagnosed", "failure.revised", "report.published"}
ALERTS = {
    *("failure.diagnosed", "failure.revised", "incident.opened", "incident.closed"),
    *("resubmission.failed", "resubmission.demoted"),
}
KINDS = {
    "pagerduty": 'routing_key = "env:KEY"',
    "alertmanager": 'url = "https://alerts.example"',
    "webhook": 'url = "https://hook.example"\nsecrets = ["env:SECRET"]',
}


@pytest.mark.parametrize("route", ["", "route = [{}]", 'route = [{ type = ["resubmission.*", "report.*"] }]'])
@pytest.mark.parametrize("kind", KINDS)
def test_only_alerts_reach_those_who_are_paged(monkeypatch: pytest.MonkeyPatch, kind: str, route: str) -> None:
    monkeypatch.setenv("KEY", "R0UT1NGKEY")
    monkeypatch.setenv("SECRET", "whsec_" + "A" * 43 + "=")
    config = parse(f'[[endpoint]]\nname = "e"\nkind = "{kind}"\n{KINDS[kind]}\n{route}')
    [target] = targets(config, FrozenClock(NOON), lambda _: pytest.fail("topic"))
    got = {one for one in EVERY if target.wants(one, payload(1), None)}
    permitted = {
        "pagerduty": ALERTS | {"resubmission.succeeded"},  # resolves the incident of its failure
        "alertmanager": ALERTS,
        "webhook": EVERY,
    }[kind]
    routed = {one for one in EVERY if one.startswith(("resubmission.", "report."))} if "type" in route else EVERY
    assert got == permitted & routed


def test_a_job_that_succeeded_again_resolves_the_incident_of_its_failure(clock: FrozenClock) -> None:
    severity: Any = {}
    channel = PagerDutyChannel("http://pager", "K", poster(), clock, severity=severity)
    failed, again = (
        channel.event(due(7)),
        channel.event(due(8, type="resubmission.succeeded", key="orion/7", payload=payload(7))),
    )
    assert (failed["event_action"], again["event_action"]) == ("trigger", "resolve")
    assert failed["dedup_key"] == again["dedup_key"]
