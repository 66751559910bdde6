"""People and channels subscribe to the report of their jobs, get it once a week from one process, and end it."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from fastapi.testclient import TestClient

from service.__main__ import main
from service.clock import Clock
from service.deliveries.build import targets
from service.deliveries.config import DeliveryConfig, parse, report_receivers
from service.people.login_limits import SharedLimit
from service.reports import subscriptions
from service.reports.publish import ReportService
from service.web.app import create_app
from service.web.limits.caller_limits import ActionLimits
from service.web.sessions import COOKIE, FORM_COOKIE, LIFETIME
from tests.service.databases import connection_of
from tests.service.deliveries.receivers import Inbox, Receiver, mail_server, receiver
from tests.service.deliveries.sample_messages import SECRET, drain
from tests.service.web.world import HERE, World, event, lines, make_world

pytest.importorskip("apprise")
pytest.importorskip("aiosmtpd.controller")
MONDAY = datetime(2026, 11, 23, 7, tzinfo=UTC)
API = "/api/v1/report-subscriptions"
SUBSCRIPTIONS = "/reports/subscriptions"


@dataclass
class Site:
    world: World
    config: DeliveryConfig
    file: Path
    inbox: Inbox
    hook: Receiver

    def on_monday(self, at: datetime = MONDAY) -> None:
        """Six processes publish and send; then everything due is delivered."""
        self.world.clock.at = at
        reports = [ReportService(self.world.store, ZoneInfo("UTC"), self.world.clock) for _ in range(6)]
        threads = [threading.Thread(target=one.run_if_due) for one in reports]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        clock: Clock = self.world.clock
        sending = drain(self.world.store, self.world.clock, targets(self.config, clock, lambda _: pytest.fail("topic")))
        while sending.route():
            pass
        for name in sending.targets:
            while sending.deliver(name):
                pass

    def as_(self, name: str, role: str) -> TestClient:
        """The browser of a person with an account."""
        client = self.world.client()
        with self.world.store.unit_of_work() as work:
            account = work.accounts.create(name, role, password=None, users=())
            client.cookies.set(COOKIE, work.sessions.log_in(account_id=account.id, lasts=LIFETIME))
        client.cookies.set(FORM_COOKIE, "form")
        return client


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A service with a mail server for people and a webhook for a channel, and failures of two teams."""
    with ExitStack() as stack:
        inbox, url = stack.enter_context(mail_server())
        hook = stack.enter_context(receiver())
        monkeypatch.setenv("MAIL_URL", url)
        monkeypatch.setenv("HOOK_SECRET", SECRET)
        file = tmp_path / "delivery.toml"
        file.write_text(
            'public_url = "https://faultline.example"\n[network]\nallow = ["127.0.0.0/8"]\n'
            '[[endpoint]]\nname = "people"\nkind = "chat"\nurl = "env:MAIL_URL"\ndigest_s = 3600\n'
            'recipients = { ana = "ana.berg", bo = "bo" }\n'
            'route = [{ type = ["failure.diagnosed"], side = ["system"] }]\n'
            f'[[endpoint]]\nname = "bot"\nkind = "webhook"\nurl = "{hook.url}"\nsecrets = ["env:HOOK_SECRET"]\n'
            'route = [{ type = ["failure.diagnosed"], side = ["system"] }]\n'
        )
        config = parse(file.read_text())
        world = make_world(tmp_path)
        services = replace(world.services, report_receivers=report_receivers(config))
        world = replace(world, services=services, app=create_app(services))
        jobs = (event("1"), event("2", team="speech"), event("3", team="speech", status="succeeded", logs=[]))
        assert world.client().post("/api/v1/events", content=lines(*jobs)).json()["accepted"] == 3
        yield Site(world, config, file, inbox, hook)
        world.store.close()


def submit(client: TestClient, path: str, **fields: str) -> Any:
    return client.post(path, data={"form_token": client.cookies[FORM_COOKIE], **fields})


@pytest.mark.slow
def test_a_person_subscribes_with_one_form_and_gets_one_mail_a_week_with_the_whole_report(site: Site) -> None:
    ana = site.as_("ana", "viewer")
    page = ana.get("/reports/2026-W47?team=speech").text
    assert 'action="/reports/subscriptions"' in page
    assert '<input type="hidden" name="team" value="speech">' in page
    assert '<option value="bot">' not in page, "channels are for operators"
    offered = re.findall(r'<option value="(\w+)">', site.as_("ola", "operator").get("/reports").text)
    assert offered == ["people", "bot"], "a person's own mail comes first"
    answer = submit(ana, SUBSCRIPTIONS, endpoint="people", team="speech")
    assert answer.status_code == 303
    after = ana.get(answer.headers["location"]).text
    assert "Subscribed: ana by people: team speech. The first report is that of week 2026-W47" in after
    assert (
        submit(ana, SUBSCRIPTIONS, endpoint="people", team="speech")
        .headers["location"]
        .startswith("/reports?subscribed=before")
    )
    site.on_monday(MONDAY - timedelta(hours=3))
    assert site.inbox.mails == [], "the week is not closed yet"
    site.on_monday()
    site.on_monday(MONDAY + timedelta(hours=5))
    [mail] = site.inbox.mails
    assert site.inbox.to == [["ana.berg@org.example"]]
    assert "Quality report of team speech, week 2026-W47" in mail["subject"]
    text, html = (mail.get_body((kind,)).get_content() for kind in ("plain", "html"))
    for body in (text, html):
        assert "1 of 2 jobs failed" in body.replace("\n", " ")
    assert 'href="https://faultline.example/failures?group=' in html
    assert "https://faultline.example/reports/2026-W47?team=speech" in html
    stored = site.as_("cy", "viewer").get("/api/v1/reports?team=speech").json()["items"]
    assert [(one["week"], one["version"], one["by"]) for one in stored] == [("2026-W47", 1, "the service")]
    site.on_monday(MONDAY + timedelta(weeks=1))
    assert len(site.inbox.mails) == 2, "every week"


def test_the_link_in_the_mail_ends_it_without_a_login_but_not_when_it_is_only_opened(site: Site) -> None:
    submit(site.as_("ana", "viewer"), SUBSCRIPTIONS, endpoint="people")
    site.on_monday()
    html = site.inbox.mails[0].get_body(("html",)).get_content()
    found = re.search(r"https://faultline\.example(/unsubscribe/[\w-]+)", html.replace("=\n", ""))
    assert found is not None
    nobody = site.world.client()
    assert nobody.get("/reports").status_code == 303, "the service needs a login"
    for _ in range(2):
        assert "sent every Monday to ana by people: all jobs" in nobody.get(found[1]).text
    assert nobody.post(found[1]).status_code == 403, "a form of another page"
    assert "no longer sent to ana by people" in submit(nobody, found[1]).text
    assert nobody.get(found[1]).status_code == 404
    site.on_monday(MONDAY + timedelta(weeks=1))
    assert len(site.inbox.mails) == 1


def test_a_channel_gets_the_report_with_its_scope_and_routes_do_not_matter(site: Site) -> None:
    ola = site.as_("ola", "operator")
    answer = ola.post(API, json={"endpoint": "bot", "cluster": "orion"}, headers={"Origin": HERE})
    assert answer.status_code == 201, answer.text
    assert answer.json()["user"] is None
    site.on_monday()
    [got] = site.hook.got
    message = json.loads(got.body)
    assert message["type"] == "report.subscription"
    assert message["data"]["scope"] == {"cluster": "orion"}
    assert message["data"]["page"] == "/reports/2026-W47?cluster=orion"
    assert message["data"]["summary"][0] == "Quality report of cluster orion, week 2026-W47"
    assert site.inbox.mails == []


@pytest.mark.slow
def test_the_last_report_is_sent_at_once_when_a_subscriber_wants_it_and_mondays_stay_the_same(site: Site) -> None:
    ana, bo = site.as_("ana", "viewer"), site.as_("bo", "viewer")
    submit(ana, SUBSCRIPTIONS, endpoint="people")
    page = ana.get("/reports").text
    found = re.search(r'formaction="(/reports/subscriptions/(\d+)/send)"', page)
    assert found is not None
    assert submit(bo, found[1]).status_code == 404, "it is not theirs"
    answer = submit(ana, found[1])
    assert answer.status_code == 303
    told = ana.get(answer.headers["location"]).text
    assert "The report of week 2026-W46 is being sent to ana by people: all jobs." in told
    site.on_monday(site.world.clock.at)
    [mail] = site.inbox.mails
    assert "Quality report, week 2026-W46" in mail["subject"]
    assert "/unsubscribe/" in mail.get_body(("html",)).get_content()
    again = ana.post(f"{API}/{found[2]}:send", headers={"Origin": HERE})
    assert (again.status_code, again.json()) == (200, {"week": "2026-W46"})
    assert bo.post(f"{API}/{found[2]}:send", headers={"Origin": HERE}).status_code == 404
    site.on_monday()
    assert [one["subject"].split(" ")[-1] for one in site.inbox.mails] == ["2026-W46", "2026-W46", "2026-W47"]
    with site.world.store.reading() as reading:
        assert [one.who for one in reading.audit_log.page(limit=50).items if one.what == "report.sent"] == ["ana"] * 2


def test_a_caller_gets_few_reports_at_once_and_has_few_subscriptions(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One account could have mails sent without end."""
    limits = ActionLimits(reports=SharedLimit("reports", 2, timedelta(hours=1)))
    services = replace(site.world.services, action_limits=limits)
    world = replace(site.world, services=services, app=create_app(services))
    ana, ola = (replace(site, world=world).as_(name, role) for name, role in (("ana", "viewer"), ("ola", "operator")))
    submit(ana, SUBSCRIPTIONS, endpoint="people")
    [own] = [one["id"] for one in ana.get(API).json()["items"]]
    sends = [submit(ana, f"{SUBSCRIPTIONS}/{own}/send"), ana.post(f"{API}/{own}:send", headers={"Origin": HERE})]
    assert [one.status_code for one in sends] == [303, 200]
    for refused in (
        submit(ana, f"{SUBSCRIPTIONS}/{own}/send"),
        ana.post(f"{API}/{own}:send", headers={"Origin": HERE}),
    ):
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["Retry-After"]) <= 3600
    assert ola.post(f"{API}/{own}:send", headers={"Origin": HERE}).status_code == 200, "others are not held up"
    monkeypatch.setattr(subscriptions, "MOST", 2)
    assert submit(ana, SUBSCRIPTIONS, endpoint="people", team="speech").status_code == 303
    assert submit(ana, SUBSCRIPTIONS, endpoint="people", team="vision").status_code == 422
    assert "subscribed=before" in submit(ana, SUBSCRIPTIONS, endpoint="people").headers["location"]


def test_no_report_is_sent_to_a_person_whose_account_is_disabled(site: Site) -> None:
    ana, ola = site.as_("ana", "viewer"), site.as_("ola", "operator")
    submit(ana, SUBSCRIPTIONS, endpoint="people")
    [own] = [one["id"] for one in ana.get(API).json()["items"]]
    with site.world.store.unit_of_work() as work:
        work.accounts.disable("ana")
    answer = ola.post(f"{API}/{own}:send", headers={"Origin": HERE})
    assert answer.status_code == 409
    assert "may not receive reports any more" in answer.text


def test_a_report_is_not_sent_by_an_endpoint_that_is_gone(site: Site) -> None:
    ana = site.as_("ana", "viewer")
    submit(ana, SUBSCRIPTIONS, endpoint="people")
    gone = replace(site.world.services, report_receivers=())
    left = replace(site, world=replace(site.world, services=gone, app=create_app(gone))).world.client()
    left.cookies = ana.cookies
    [own] = [one["id"] for one in ana.get(API).json()["items"]]
    answer = left.post(f"{API}/{own}:send", headers={"Origin": HERE})
    assert answer.status_code == 409
    assert "endpoint people is not configured" in answer.text


def test_people_subscribe_themselves_operators_channels_and_administrators_everybody(site: Site) -> None:
    ana, ola, root = site.as_("ana", "viewer"), site.as_("ola", "operator"), site.as_("root", "admin")
    headers = {"Origin": HERE}

    def add(client: TestClient, **body: str) -> int:
        return client.post(API, json=body, headers=headers).status_code

    assert add(ana, endpoint="bot") == 403
    assert add(ana, endpoint="people", user="bo") == 403
    assert add(ola, endpoint="people") == 422, "the endpoint has no recipient for ola"
    assert add(root, endpoint="people", user="bo") == 201
    assert add(root, endpoint="people", user="bo") == 409
    assert add(root, endpoint="people", user="b o") == 422
    assert add(root, endpoint="nowhere") == 422
    assert add(ana, endpoint="people", team="nobody") == 422
    assert add(ana, endpoint="people", team="vision") == 201
    assert [one["user"] for one in ana.get(API).json()["items"]] == ["ana"]
    assert [one["user"] for one in ola.get(API).json()["items"]] == ["ana", "bo"]
    [of_bo] = [one["id"] for one in ola.get(API).json()["items"] if one["user"] == "bo"]
    assert ana.delete(f"{API}/{of_bo}", headers=headers).status_code == 404
    shown = f"/reports?subscribed={of_bo}"
    assert ("Subscribed: " in ola.get(shown).text, "Subscribed: " in ana.get(shown).text) == (True, False)
    [own] = [one["id"] for one in ana.get(API).json()["items"]]
    assert submit(ana, f"{SUBSCRIPTIONS}/{own}/end").headers["location"].startswith("/reports?subscribed=ended")
    assert ola.delete(f"{API}/{of_bo}", headers=headers).status_code == 204
    assert ola.get(API).json()["items"] == []
    with site.world.store.reading() as reading:
        actions = [one.what for one in reading.audit_log.page(limit=50).items]
    assert actions.count("report.subscribed") == actions.count("report.unsubscribed") == 2


@pytest.mark.slow
def test_who_may_no_longer_read_reports_gets_none_by_an_own_subscription(site: Site) -> None:
    submit(site.as_("ana", "viewer"), SUBSCRIPTIONS, endpoint="people")
    with site.world.store.unit_of_work() as work:
        work.accounts.change("ana", teams=["vision"])
    site.on_monday()
    assert site.inbox.mails == [], "the report has jobs of other teams"
    of_team = {"endpoint": "people", "user": "ana", "team": "vision"}
    assert site.as_("root", "admin").post(API, json=of_team, headers={"Origin": HERE}).is_success
    site.on_monday(MONDAY + timedelta(weeks=1))
    assert len(site.inbox.mails) == 1, "an administrator wants her to have this one"
    with site.world.store.unit_of_work() as work:
        work.accounts.disable("ana")
    site.on_monday(MONDAY + timedelta(weeks=2))
    assert len(site.inbox.mails) == 1, "she has left"
    with site.world.store.unit_of_work() as work:
        work.accounts.change("ana", teams=[], disabled_at=None)
    site.on_monday(MONDAY + timedelta(weeks=3))
    assert len(site.inbox.mails) == 3, "the newest report of both subscriptions"


def test_a_scope_whose_jobs_are_gone_does_not_stop_the_others(site: Site) -> None:
    root = site.as_("root", "admin")
    for team in ("speech", "vision"):
        assert root.post(
            API, json={"endpoint": "people", "user": "bo", "team": team}, headers={"Origin": HERE}
        ).is_success
    with site.world.store.unit_of_work() as work:
        connection_of(work.report_subscriptions).exec_driver_sql(
            "UPDATE report_subscriptions SET team='old' WHERE id=1"
        )
    site.on_monday()
    [mail] = site.inbox.mails
    assert "team vision" in mail["subject"]


def test_the_command_lists_adds_and_ends(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAULTLINE_DATABASE_URL", f"sqlite:///{site.file.parent}/store.sqlite3")
    monkeypatch.setenv("FAULTLINE_DELIVERY_FILE", str(site.file))
    assert main(["subscription", "add", "people", "--user", "ana", "--team", "speech"]) == 0
    assert "1: the weekly report is sent to ana by people: team speech" in capsys.readouterr().out
    assert main(["subscription", "add", "people"]) == 2
    assert "user: expected a user name that endpoint people can reach" in capsys.readouterr().err
    assert main(["subscription", "list", "--json"]) == 0
    [listed] = json.loads(capsys.readouterr().out)
    assert (listed["user"], listed["team"], listed["by"]) == ("ana", "speech", "the command line")
    assert main(["subscription", "end", "1"]) == 0
    assert main(["subscription", "list"]) == 0
    assert capsys.readouterr().out.strip().endswith("no longer sent to ana by people: team speech")


def test_a_token_with_the_name_of_a_person_is_not_that_person(site: Site) -> None:
    """It could subscribe the person, have mails sent at once, and end the person's own subscriptions."""
    ana = site.as_("ana", "viewer")
    assert submit(ana, SUBSCRIPTIONS, endpoint="people").status_code == 303
    with site.world.client(site.world.token("read", name="ana")) as program:
        assert program.get(API).json()["items"] == []
        assert program.post(API, json={"endpoint": "people", "team": "speech"}).status_code == 403
        assert program.post(API, json={"endpoint": "people", "user": "ana", "team": "speech"}).status_code == 403
        assert program.delete(f"{API}/1").status_code == 404
    assert len(ana.get(API).json()["items"]) == 1
