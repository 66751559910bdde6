"""Each role against each route of the table in test_app, which a new route fails until it stands there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.people import passwords
from service.web.limits.caller_limits import ActionLimits, RateLimit
from tests.service.web.access.test_auth import form_token
from tests.service.web.test_app import OWNERS_ONLY, PUBLIC, WANTED
from tests.service.web.world import World, event, lines, make_world

PASSWORD = "correct horse battery"
ROLES = {
    "nobody": set[str](),
    "owner": {"own"},
    "viewer": {"own", "read"},
    "operator": {"own", "read", "act", "labels", "publish", "hook"},
    "admin": {"own", "read", "act", "labels", "publish", "hook", "ingest", "admin"},
}
NOT_SAFE = {"POST", "PUT", "DELETE"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    unlimited = ActionLimits(changes=RateLimit())
    made = make_world(Path(tmp_path_factory.mktemp("roles")), host="0.0.0.0", action_limits=unlimited)
    with made.store.unit_of_work() as work:
        hashed = passwords.hash_password(PASSWORD)
        for role in ("owner", "viewer", "operator", "admin"):
            work.accounts.create(role, role, password=hashed, users=("nobody",) if role == "owner" else ())
        _, sender = work.tokens.create("sender", ["ingest"])
    with made.client(sender) as client:
        assert client.post("/api/v1/events", content=lines(event("1"))).json()["accepted"] == 1
    yield made
    made.store.close()


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_each_role_gets_what_it_may_and_nothing_else(world: World, role: str) -> None:
    with world.client() as client:
        token = form_token(client)
        if role != "nobody":
            login = {"name": role, "password": PASSWORD, "form_token": token}
            assert client.post("/login", data=login).status_code == 303
        for (method, path), scope in WANTED.items():
            if path == "/logout" or path.endswith("/live") or (method, path) == ("POST", "/login"):
                continue  # the first ends the session, the second never ends, the third is tried elsewhere
            address = re.sub(r"\{[^}]+\}", "1", path.replace("{week}", "2026-W46"))
            form = {"form_token": token} if method in NOT_SAFE and not path.startswith("/api") else None
            status = client.request(method, address, headers={"Origin": "http://127.0.0.1:8080"}, data=form).status_code
            where = f"{role}: {method} {address} → {status}"
            if scope == PUBLIC:
                assert status != 401, where
            elif role == "nobody":
                assert status == 401 or (status == 303 and not path.startswith("/api")), where
            elif (method, path) in OWNERS_ONLY and role == "viewer":
                assert status == 403, where
            elif scope in ROLES[role]:
                assert status not in {401, 403, 500}, where
            else:
                assert status == 403, where


def test_who_sees_one_team_acts_on_its_failures_only(world: World) -> None:
    with world.store.unit_of_work() as work:
        for team in ("vision", "speech"):
            work.accounts.create(f"of {team}", "operator", password=passwords.hash_password(PASSWORD), teams=(team,))
    for team, seen in (("vision", True), ("speech", False)):
        with world.client() as client:
            login = {"name": f"of {team}", "password": PASSWORD, "form_token": form_token(client)}
            assert client.post("/login", data=login).status_code == 303
            here = {"Origin": "http://127.0.0.1:8080"}
            assert client.post("/api/v1/automation:stop", headers=here).status_code == 403
            status = client.post("/api/v1/failures/1:hold", headers=here).status_code
            assert (status not in {403, 404}) is seen, status
            contested = client.post(
                "/api/v1/failures/1/feedback", headers=here, json={"kind": "contest", "note": "no"}
            ).status_code
            assert (contested not in {403, 404}) is seen, contested
