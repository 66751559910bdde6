"""Each role against each route. A route that is not in the table fails here, so that none is forgotten."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from service.people import passwords
from tests.service.web.test_auth import form_token
from tests.service.web.world import World, event, lines, make_world

PASSWORD = "correct horse battery"
# What a route needs; "open": nothing. The API's routes stand with their prefix.
API = """
open    GET /health/live, GET /health/ready, GET /openapi.json
ingest  POST /events, POST /node-events
own     GET /failures, GET /failures/export.csv, GET /failures/export.json, GET /facets, GET /failures/{failure_id}
own     GET /jobs/{cluster}/{job_id:path}, GET /failures/{failure_id}/feedback, POST /failures/{failure_id}/feedback
own     GET /views, PUT /views, DELETE /views/{name:path}
read    GET /stats, GET /resubmissions, GET /resubmissions/{request_id}, GET /automation, GET /incidents
read    GET /incidents/{incident_id}, GET /groups, GET /groups/{group_id}, GET /feedback, GET /audits/{week}
read    GET /labels, GET /nodes, GET /nodes/{cluster}/{node:path}, GET /dead-letters, GET /deliveries, GET /reports
read    GET /reports/{week}, GET /schemas, GET /schemas/{name:path}, GET /metrics
act     POST /resubmissions:lease, POST /resubmissions/{request_id}:ack, POST /resubmissions/{request_id}:fail
act     POST /failures/{failure_id}:resubmit, POST /failures/{failure_id}:hold, POST /failures/{failure_id}:never
act     POST /automation:stop, POST /automation:start, POST /incidents, POST /incidents/{incident_id}:close
act     POST /incidents/{incident_id}:hold, POST /incidents/{incident_id}:release, POST /groups/{group_id}/actions
act     POST /groups/{group_id}/feedback, POST /feedback, POST /audits/{week}/{failure_id}, POST /labels
act     POST /nodes/{cluster}/{node:path}:repaired, POST /dead-letters/{letter_id}:resend
act     POST /deliveries/{message_id}/{endpoint}:resend, POST /reports/{week}:publish
admin   PUT /failures/{failure_id}/golden
"""
PAGES = """
open    GET /login, POST /login, POST /logout, GET /login/oidc, GET /login/oidc/callback, GET /favicon.ico
open    GET /health/live, GET /health/ready
own     GET /, GET /failures, GET /failures/{failure_id}, GET /failures/{failure_id}/logs/{attempt_id}/{index}
own     POST /failures/{failure_id}/feedback, POST /views, POST /views/drop
read    GET /groups, GET /groups/{group_id}, GET /feedback, GET /live, GET /incidents, GET /incidents/{incident_id}
read    GET /nodes, GET /nodes/{cluster}/{node:path}, GET /automation, GET /dead-letters, GET /deliveries, GET /reports
read    GET /reports/{week}, GET /reports/{week}.pdf, GET /reports/{week}.md, GET /model, GET /metrics
act     POST /groups/act, POST /groups/{group_id}/act, POST /groups/{group_id}/feedback, POST /feedback
act     GET /feedback/audit/{week}/{failure_id}, POST /feedback/audit/{week}/{failure_id}
act     POST /incidents/open, POST /incidents/{incident_id}/close, POST /incidents/{incident_id}/hold
act     POST /incidents/{incident_id}/release, POST /nodes/{cluster}/{node:path}/repaired, POST /automation/stop
act     POST /automation/start, POST /failures/{failure_id}/resubmit, POST /failures/{failure_id}/hold
act     POST /failures/{failure_id}/never, POST /dead-letters/{letter_id}/resend, POST /reports/{week}/publish
act     POST /deliveries/{message_id}/{endpoint}/resend
admin   GET /settings
"""
ROLES = {
    "nobody": set[str](),
    "owner": {"own"},
    "viewer": {"own", "read"},
    "operator": {"own", "read", "act"},
    "admin": {"own", "read", "act", "ingest", "admin"},
}
NOT_SAFE = {"POST", "PUT", "DELETE"}


def table() -> dict[tuple[str, str], str]:
    found = {}
    for prefix, text in (("/api/v1", API), ("", PAGES)):
        for line in text.strip().splitlines():
            scope, _, routes = line.partition(" ")
            for route in routes.split(","):
                method, path = route.split()
                found[method, prefix + path] = scope
    return found


def declared(world: World) -> Iterator[tuple[str, str, str]]:
    """Every route of the application: method, path, and the scope that its code asks for."""

    def walk(routes: object, prefix: str) -> Iterator[tuple[str, str, str]]:
        for route in routes:  # type: ignore[attr-defined]  # Starlette's routes have no common type
            if isinstance(route, APIRoute):
                scopes = asked(route.dependant)
                assert len(scopes) <= 1, route.path
                for method in route.methods - {"HEAD"}:
                    yield method, prefix + route.path, next(iter(scopes), "open")
            elif hasattr(route, "original_router"):
                yield from walk(route.original_router.routes, prefix + (route.include_context.prefix or ""))

    yield from walk(world.app.routes, "")


def asked(dependant: Dependant) -> set[str]:
    found = set(dependant.own_oauth_scopes or [])
    for one in dependant.dependencies:
        found |= asked(one)
    return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = make_world(Path(tmp_path_factory.mktemp("roles")), host="0.0.0.0")
    with made.store.unit_of_work() as work:
        hashed = passwords.hashed(PASSWORD)
        for role in ("owner", "viewer", "operator", "admin"):
            work.accounts.create(role, role, password=hashed, users=("nobody",) if role == "owner" else ())
        _, sender = work.tokens.create("sender", ["ingest"])
    with made.client(sender) as client:
        assert client.post("/api/v1/events", content=lines(event("1"))).json()["accepted"] == 1
    yield made
    made.store.close()


def test_the_table_holds_every_route_and_says_what_it_needs(world: World) -> None:
    assert {(method, path): scope for method, path, scope in declared(world)} == table()


@pytest.mark.parametrize("role", ROLES)
def test_each_role_gets_what_it_may_and_nothing_else(world: World, role: str) -> None:
    with world.client() as client:
        token = form_token(client)
        if role != "nobody":
            login = {"name": role, "password": PASSWORD, "form_token": token}
            assert client.post("/login", data=login).status_code == 303
        for (method, path), scope in table().items():
            if path in {"/logout", "/live"} or (method, path) == ("POST", "/login"):
                continue  # the first ends the session, the second never ends, the third is tried elsewhere
            address = re.sub(r"\{[^}]+\}", "1", path.replace("{week}", "2026-W46"))
            sent = {"data": {"form_token": token}} if method in NOT_SAFE and not path.startswith("/api") else {}
            status = client.request(method, address, headers={"Origin": "http://127.0.0.1:8080"}, **sent).status_code
            where = f"{role}: {method} {address} → {status}"
            if scope == "open":
                assert status != 401, where
            elif role == "nobody":
                assert status == 401 or (status == 303 and not path.startswith("/api")), where
            elif scope in ROLES[role]:
                assert status not in {401, 403, 500}, where
            else:
                assert status == 403, where


def test_who_sees_one_team_acts_on_its_failures_only(world: World) -> None:
    with world.store.unit_of_work() as work:
        for team in ("vision", "speech"):
            work.accounts.create(f"of {team}", "operator", password=passwords.hashed(PASSWORD), teams=(team,))
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
