"""Verdicts reach a receiver even if the sending process is killed; nothing is lost."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from standardwebhooks.webhooks import Webhook

from service import compose, settings
from service.db.session import Store
from tests.flows.test_api import EVENT, Place, ask, place
from tests.labs.postgres import Postgres
from tests.service.deliveries.receivers import receiver
from tests.service.deliveries.sample_messages import SECRET, put

__all__ = ["place"]  # the fixture

MESSAGES = 80
# Delivers until it is killed.
TELL = """
import threading
from service import compose, settings
with compose.build(settings.read()).delivering():
    threading.Event().wait(60)
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/store.sqlite3"
        return
    server: Postgres = request.getfixturevalue("postgres_server")
    yield server.create("deliver")
    server.drop("deliver")


@pytest.mark.lab
def test_a_killed_process_loses_nothing(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(url)
    store.upgrade()
    put(store, *range(MESSAGES))
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    arrived = threading.Semaphore(0)
    with receiver() as here:
        here.before_answer = arrived.release
        file = tmp_path / "delivery.toml"
        file.write_text(
            '[network]\nallow = ["127.0.0.0/8"]\n[sending]\nlease_s = 1\ntimeout_s = 5\n'
            f'[[endpoint]]\nname = "hook"\nkind = "webhook"\nurl = "{here.url}"\nsecrets = ["env:HOOK_SECRET"]\n'
        )
        given = {"FAULTLINE_DATABASE_URL": url, "FAULTLINE_DELIVERY_FILE": str(file)}
        with subprocess.Popen([sys.executable, "-c", TELL], env={**os.environ, **given}) as process:
            try:
                assert all(arrived.acquire(timeout=120) for _ in range(30))
            finally:
                process.kill()
        before = len(set(here.ids))
        assert 30 <= before < MESSAGES
        with compose.build(settings.read(given)).delivering():
            while len(set(here.ids)) < MESSAGES:
                assert arrived.acquire(timeout=120), f"only {len(set(here.ids))} of {MESSAGES} arrived"
        for got in here.got:
            Webhook(SECRET).verify(got.body, dict(got.headers))
    with store.reading() as reading:
        assert reading.deliveries.page(state="given_up").items == ()
        assert len(reading.deliveries.page(state="sent", limit=500).items) >= MESSAGES - 1
    assert len(here.ids) - MESSAGES <= 1  # a message in transit at the kill arrives twice, with the same id
    store.close()


def test_a_posted_event_is_sent(place: Place) -> None:
    arrived = threading.Event()
    file = place.folder / "delivery.toml"
    with receiver() as here:
        here.before_answer = arrived.set
        file.write_text(
            '[network]\nallow = ["127.0.0.0/8"]\n[[endpoint]]\nname = "hook"\nkind = "webhook"\n'
            f'url = "{here.url}"\nsecrets = ["env:HOOK_SECRET"]\nroute = [{{ side = ["user"] }}]\n'
        )
        environ = {**place.environ, "FAULTLINE_DELIVERY_FILE": str(file)}
        wrong = Place(environ, place.folder).run("serve", "--port", "0")
        assert wrong.returncode == 2
        assert "the environment has no HOOK_SECRET" in wrong.stderr
        with Place(environ | {"HOOK_SECRET": SECRET}, place.folder).serving() as (address, _):
            assert ask(address, "/api/v1/events?wait=verdict", body=EVENT)[1]["accepted"] == 1
            assert arrived.wait(120)
        [got] = here.got
        assert Webhook(SECRET).verify(got.body, dict(got.headers))["type"] == "failure.diagnosed"
        assert json.loads(got.body)["data"]["verdict"]["side"] == "user"
