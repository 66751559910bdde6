"""Who may see one team of one cluster learns nothing of the others: with or without them, each answer is the same."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from service.people import passwords
from service.web.limits.caller_limits import ActionLimits, RateLimit
from tests.service.web.access.test_auth import form_token
from tests.service.web.test_app import WANTED
from tests.service.web.world import NOW, World, event, lines, log, make_world

PASSWORD = "correct horse battery"
XID = "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus."
OWN = [event("1"), event("2", logs=[log(XID, 1)]), event("3", status="succeeded", logs=[])]
# Of another team, another cluster, and of a person of the same name; the first shares group and node with an own one.
OTHERS = [
    event("hidden-1", team="speech", user="hidden-user", name="hidden-name"),
    event("hidden-2", team="vision", cluster="hidden-cluster", queue="hidden-queue"),
    event(
        "hidden-3", cluster="hidden-cluster", team="speech", user="ana", logs=[log("hidden words: Stale file handle")]
    ),
    event("hidden-4", team="hidden-team", user="hidden-user", nodes=["hidden-node"], status="succeeded", logs=[]),
    event("1", cluster="hidden-cluster", team="hidden-team", user="hidden-user"),
    event("1", attempt=1, team="speech", user="hidden-user", submitted_at=(NOW - timedelta(days=2)).isoformat()),
]
FILTERS = ("", "?cluster=hidden-cluster", "?team=speech", "?user=ana", "?group=1", "?q=hidden", "?node=gpu018")
SEARCHED = ("hidden-1", "hidden-user", "hidden-node", "hidden-cluster+/+1", "1", "group+1", "I-1")
QUERIES = {
    "/failures": FILTERS,
    "/api/v1/failures": (*FILTERS, "?limit=500"),
    "/api/v1/facets": FILTERS,
    "/search": tuple(f"?q={words}" for words in SEARCHED),
}
# What differs in every answer: the secrets of forms and scripts.
VARIES = re.compile(r'name="form_token" value="[^"]*"|content="[0-9a-zA-Z_-]{40,}"|nonce="[^"]*"')


@dataclass
class Worlds:
    """Two services: one has the jobs of `OWN` only, the other one also those of `OTHERS`, sent after them."""

    alone: World
    shared: World

    def clients(self, viewer: str) -> tuple[TestClient, TestClient]:
        return VIEWERS[viewer](self.alone, viewer), VIEWERS[viewer](self.shared, viewer)


def _token(world: World, viewer: str) -> TestClient:
    _, clusters, teams, scopes = viewer.split(":")
    return world.client(world.token(*scopes.split("+"), name=viewer, clusters=clusters.split(), teams=teams.split()))


def _account(world: World, viewer: str) -> TestClient:
    client = world.client()
    login = {"name": viewer, "password": PASSWORD, "form_token": form_token(client)}
    assert client.post("/login", data=login).status_code == 303
    return client


VIEWERS = {
    "token:orion:vision:read": _token,
    "token:orion:vision:act": _token,
    "token:orion:vision:labels": _token,
    "token:orion:vision:ingest": _token,
    "token:orion:nobodys:read": _token,
    "token:empty:vision:read": _token,
    "owner": _account,
    "viewer": _account,
    "operator": _account,
}
ACCOUNTS = {
    "owner": {"users": ("orion/ana",)},
    "viewer": {"teams": ("nobodys",)},
    "operator": {"teams": ("nobodys",)},
}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    def made(name: str, *jobs: dict[str, object]) -> World:
        unlimited = ActionLimits(changes=RateLimit())
        world = make_world(Path(tmp_path_factory.mktemp(name)), host="0.0.0.0", action_limits=unlimited)
        with world.store.unit_of_work() as work:
            hashed = passwords.hash_password(PASSWORD)
            for role, limits in ACCOUNTS.items():
                work.accounts.create(role, role, password=hashed, **{"users": (), "teams": ()} | limits)  # type: ignore[arg-type]
        with world.client(world.token("ingest")) as client:
            for one in jobs:
                assert client.post("/api/v1/events", content=lines(one)).json()["accepted"] == 1
        return world

    found = Worlds(made("alone", *OWN), made("shared", *OWN, *OTHERS))
    yield found
    found.alone.store.close()
    found.shared.store.close()


def addresses() -> Iterator[str]:
    """Every address that is read, with the ids of own and of hidden failures."""
    for method, path in WANTED:
        if method != "GET" or path.endswith(("/live", "/account/sessions")):
            continue  # a stream never ends; ids of sessions are random
        filled = path.replace("{week}", "2026-W46").replace("{cluster}", "orion").replace("{index}", "0")
        for number in ("1", "4") if "{" in filled else ("1",):
            for query in QUERIES.get(path, ("",)):
                yield re.sub(r"\{[^}]+\}", number, filled) + query


@pytest.mark.parametrize("viewer", VIEWERS)
@pytest.mark.slow
def test_an_answer_does_not_depend_on_what_its_reader_may_not_see(worlds: Worlds, viewer: str) -> None:
    alone, shared = worlds.clients(viewer)
    differ, named = [], []
    with alone, shared:
        for address in addresses():
            answers = [client.get(address) for client in (alone, shared)]
            bodies = [VARIES.sub("", one.text) for one in answers]
            if answers[0].status_code != answers[1].status_code or bodies[0] != bodies[1]:
                differ.append((address, [one.status_code for one in answers]))
            asked = set(re.findall(r"hidden[-a-z0-9]*", address))
            named += [(address, word) for word in re.findall(r"hidden-[-a-z0-9]*", bodies[1]) if word not in asked]
    assert not differ, differ
    assert not named, named


def test_an_unlimited_reader_sees_the_difference(worlds: Worlds) -> None:
    """Otherwise the test above would compare nothing."""
    with (
        worlds.alone.client(worlds.alone.token("read")) as alone,
        worlds.shared.client(worlds.shared.token("read")) as shared,
    ):
        paths = (
            "/",
            "/signatures",
            "/failures",
            "/groups",
            "/groups/1",
            "/nodes",
            "/goodput",
            "/api/v1/stats",
            "/api/v1/facets",
            "/failures/1",
        )
        same = [path for path in paths if alone.get(path).text == shared.get(path).text]
    assert not same
