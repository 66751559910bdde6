"""Every route × no token and each scope; what browsers are told; a new route can't be forgotten."""

import re
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient
from starlette.routing import Mount

from service.people.repository.tokens import SCOPES
from service.web.limits.caller_limits import ActionLimits, RateLimit
from service.web.security_middleware import HEADERS
from service.web.sessions import FORM_COOKIE
from tests.service.web.world import World, event, lines, make_world

PUBLIC = "public"
# Who may use each route. A route that is not listed here fails the first test.
WANTED = {
    ("POST", "/api/v1/events"): "ingest",
    ("GET", "/api/v1/failures"): "own",
    ("GET", "/api/v1/failures/export.csv"): "own",
    ("GET", "/api/v1/failures/export.json"): "own",
    ("GET", "/api/v1/failures/{failure_id}"): "own",
    ("GET", "/api/v1/failures/{failure_id}/feedback"): "own",
    ("POST", "/api/v1/failures/{failure_id}/feedback"): "own",
    ("PUT", "/api/v1/failures/{failure_id}/fixed-by"): "act",
    ("PUT", "/api/v1/failures/{failure_id}/golden"): "admin",
    ("GET", "/api/v1/facets"): "own",
    ("POST", "/api/v1/failures/{failure_id}:resubmit"): "act",
    ("POST", "/api/v1/failures/{failure_id}:hold"): "act",
    ("POST", "/api/v1/failures/{failure_id}:never"): "own",  # see OWNERS_ONLY
    ("POST", "/api/v1/failures/{failure_id}:lift"): "own",  # see OWNERS_ONLY
    ("GET", "/api/v1/resubmissions"): "read",
    ("GET", "/api/v1/resubmissions/{request_id}"): "read",
    ("POST", "/api/v1/resubmissions:lease"): "hook",
    ("POST", "/api/v1/resubmissions/{request_id}:ack"): "hook",
    ("POST", "/api/v1/resubmissions/{request_id}:fail"): "hook",
    ("GET", "/api/v1/automation"): "read",
    ("POST", "/api/v1/automation:stop"): "act",
    ("POST", "/api/v1/automation:start"): "act",
    ("POST", "/api/v1/policy:replay"): "act",
    ("GET", "/api/v1/incidents"): "read",
    ("POST", "/api/v1/incidents"): "act",
    ("GET", "/api/v1/incidents/{incident_id}"): "read",
    ("POST", "/api/v1/incidents/{incident_id}:close"): "act",
    ("POST", "/api/v1/incidents/{incident_id}:hold"): "act",
    ("POST", "/api/v1/incidents/{incident_id}:release"): "act",
    ("GET", "/api/v1/groups"): "read",
    ("GET", "/api/v1/groups/{group_id}"): "read",
    ("POST", "/api/v1/groups/{group_id}/actions"): "act",
    ("POST", "/api/v1/groups/{group_id}/feedback"): "act",
    ("GET", "/api/v1/groups/{group_id}/labels"): "read",
    ("POST", "/api/v1/groups/{group_id}/labels/{number}:withdraw"): "act",
    ("GET", "/api/v1/feedback"): "read",
    ("POST", "/api/v1/feedback"): "act",
    ("GET", "/api/v1/audits/{week}"): "read",
    ("POST", "/api/v1/audits/{week}/{failure_id}"): "act",
    ("GET", "/api/v1/labels"): "read",
    ("GET", "/api/v1/label-queue"): "read",
    ("GET", "/api/v1/models"): "read",
    ("GET", "/api/v1/site-layers"): "read",
    ("GET", "/api/v1/drift"): "read",
    ("GET", "/api/v1/site-layers/{layer_id}"): "read",
    ("POST", "/api/v1/site-layers/{layer_id}:promote"): "admin",
    ("POST", "/api/v1/site-layers/{layer_id}:refuse"): "admin",
    ("POST", "/api/v1/site-layers:rollback"): "act",
    ("POST", "/api/v1/labels"): "labels",
    ("GET", "/api/v1/views"): "own",
    ("PUT", "/api/v1/views"): "own",
    ("DELETE", "/api/v1/views/{name:path}"): "own",
    ("GET", "/api/v1/jobs/{cluster}/{job_id:path}"): "own",
    ("GET", "/api/v1/stats"): "read",
    ("POST", "/api/v1/node-events"): "ingest",
    ("GET", "/api/v1/goodput"): "read",
    ("GET", "/api/v1/nodes"): "read",
    ("GET", "/api/v1/nodes/{cluster}/{node:path}"): "read",
    ("POST", "/api/v1/nodes/{cluster}/{node:path}:repaired"): "act",
    ("GET", "/api/v1/dead-letters"): "read",
    ("POST", "/api/v1/dead-letters/{letter_id}:resend"): "act",
    ("GET", "/api/v1/deliveries"): "read",
    ("POST", "/api/v1/deliveries/{message_id}/{endpoint}:resend"): "act",
    ("GET", "/api/v1/reports"): "read",
    ("GET", "/api/v1/reports/{week}"): "read",
    ("POST", "/api/v1/reports/{week}:publish"): "publish",
    ("GET", "/api/v1/report-subscriptions"): "read",
    ("POST", "/api/v1/report-subscriptions"): "read",
    ("DELETE", "/api/v1/report-subscriptions/{subscription_id}"): "read",
    ("POST", "/api/v1/report-subscriptions/{subscription_id}:send"): "read",
    ("GET", "/api/v1/schemas"): "read",
    ("GET", "/api/v1/schemas/{name:path}"): "read",
    ("GET", "/api/v1/health/live"): PUBLIC,
    ("GET", "/api/v1/health/ready"): PUBLIC,
    ("GET", "/api/v1/metrics"): "read",
    ("GET", "/api/v1/openapi.json"): PUBLIC,
    ("GET", "/health/live"): PUBLIC,
    ("GET", "/health/ready"): PUBLIC,
    ("GET", "/metrics"): "read",
    ("GET", "/"): "own",
    ("GET", "/failures"): "own",
    ("GET", "/search"): "own",
    ("GET", "/mine"): "own",
    ("GET", "/failures/{failure_id}"): "own",
    ("GET", "/failures/{failure_id}/logs/{attempt_id}/{index}"): "own",
    ("GET", "/failures/{failure_id}/logs/{attempt_id}/{index}/lines"): "own",
    ("GET", "/failures/{failure_id}/logs/{attempt_id}/{index}/lines.json"): "own",
    ("POST", "/failures/{failure_id}/feedback"): "own",
    ("POST", "/failures/{failure_id}/fixed"): "act",
    ("POST", "/failures/{failure_id}/resubmit"): "act",
    ("POST", "/failures/{failure_id}/hold"): "act",
    ("POST", "/failures/{failure_id}/never"): "own",  # see OWNERS_ONLY
    ("POST", "/failures/{failure_id}/lift"): "own",
    ("POST", "/failures/{failure_id}/feedback/undo"): "act",
    ("GET", "/automation"): "read",
    ("POST", "/automation/stop"): "act",
    ("POST", "/automation/start"): "act",
    ("GET", "/incidents"): "read",
    ("POST", "/incidents/open"): "act",
    ("GET", "/incidents/{incident_id}"): "read",
    ("POST", "/incidents/{incident_id}/close"): "act",
    ("POST", "/incidents/{incident_id}/hold"): "act",
    ("POST", "/incidents/{incident_id}/release"): "act",
    ("GET", "/groups"): "read",
    ("POST", "/groups/act"): "act",
    ("GET", "/groups/{group_id}"): "read",
    ("POST", "/groups/{group_id}/act"): "act",
    ("POST", "/groups/{group_id}/feedback"): "act",
    ("POST", "/groups/{group_id}/feedback/undo"): "act",
    ("POST", "/groups/{group_id}/labels/{number}/undo"): "act",
    ("GET", "/feedback"): "read",
    ("POST", "/feedback"): "act",
    ("POST", "/feedback/undo"): "act",
    ("GET", "/feedback/next"): "read",
    ("POST", "/feedback/next"): "act",
    ("GET", "/feedback/audit/{week}/{failure_id}"): "act",
    ("POST", "/feedback/audit/{week}/{failure_id}"): "act",
    ("POST", "/views"): "own",
    ("POST", "/views/drop"): "own",
    ("GET", "/live"): "read",
    ("GET", "/failures/{failure_id}/live"): "own",
    ("GET", "/nodes"): "read",
    ("GET", "/nodes/{cluster}/{node:path}"): "read",
    ("POST", "/nodes/{cluster}/{node:path}/repaired"): "act",
    ("GET", "/dead-letters"): "read",
    ("POST", "/dead-letters/{letter_id}/resend"): "act",
    ("GET", "/deliveries"): "read",
    ("POST", "/deliveries/{message_id}/{endpoint}/resend"): "act",
    ("GET", "/goodput"): "read",
    ("GET", "/reports"): "read",
    ("GET", "/reports/{week}"): "read",
    ("GET", "/reports/{week}.md"): "read",
    ("GET", "/reports/{week}.pdf"): "read",
    ("POST", "/reports/{week}/publish"): "act",
    ("POST", "/reports/subscriptions"): "read",
    ("POST", "/reports/subscriptions/{subscription_id}/end"): "read",
    ("POST", "/reports/subscriptions/{subscription_id}/send"): "read",
    ("GET", "/unsubscribe/{token}"): PUBLIC,
    ("POST", "/unsubscribe/{token}"): PUBLIC,
    ("GET", "/model"): "read",
    ("GET", "/model/layers"): "read",
    ("GET", "/model/drift"): "read",
    ("GET", "/model/layers/{layer_id}"): "read",
    ("POST", "/model/layers/{layer_id}/promote"): "admin",
    ("POST", "/model/layers/{layer_id}/refuse"): "admin",
    ("POST", "/model/rollback"): "act",
    ("GET", "/signatures"): "read",
    ("GET", "/settings"): "admin",
    ("GET", "/audit-log"): "admin",
    ("GET", "/api/v1/audit-log"): "admin",
    ("POST", "/settings/accounts/end-sessions"): "admin",
    ("GET", "/settings/tokens"): "admin",
    ("POST", "/settings/tokens"): "admin",
    ("POST", "/settings/tokens/revoke"): "admin",
    ("GET", "/account"): "own",
    ("POST", "/account/password"): "own",
    ("POST", "/account/sessions/end"): "own",
    ("GET", "/api/v1/account/sessions"): "own",
    ("DELETE", "/api/v1/account/sessions/{session_id}"): "own",
    ("POST", "/api/v1/account/sessions:end-others"): "own",
    ("POST", "/api/v1/account:change-password"): "own",
    ("GET", "/api/v1/accounts/{name:path}/sessions"): "admin",
    ("POST", "/api/v1/accounts/{name:path}/sessions:end"): "admin",
    ("GET", "/login"): PUBLIC,
    ("POST", "/login"): PUBLIC,
    ("POST", "/logout"): PUBLIC,
    ("GET", "/login/oidc"): PUBLIC,
    ("GET", "/login/oidc/callback"): PUBLIC,
    ("GET", "/favicon.ico"): PUBLIC,
}
# Operators and the owner of the job may do these; who only reads the failures of others may not.
OWNERS_ONLY = {
    ("POST", "/failures/{failure_id}/never"),
    ("POST", "/failures/{failure_id}/lift"),
    ("POST", "/api/v1/failures/{failure_id}:never"),
    ("POST", "/api/v1/failures/{failure_id}:lift"),
}
INCLUDED = {"read": {"own"}, "act": {"hook", "labels", "publish"}}
VALUES = {
    "cluster": "orion",
    "job_id": "7",
    "name": "verdict/1",
    "index": "0",
    "week": "2026-W46",
    "layer_id": "site-000000000000",
}


_SCRIPTS = ("vendor/htmx.min.js", "faultline.js", "vendor/uplot.min.js", "charts.js")


def script(name: str) -> str:
    """The element that loads a script, with the digest of its content in the address."""
    content = files("service.web").joinpath(f"static/{name}").read_bytes()
    return f'<script src="/static/{name}?v={sha256(content).hexdigest()[:12]}" defer></script>'


EVERYWHERE = [script(name) for name in _SCRIPTS[:2]]
WITH_CHARTS = [script(name) for name in _SCRIPTS]


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes on for ever otherwise ends at once."""
    monkeypatch.setattr("service.web.pages.live.MAX_DURATION_S", 0.0)


def routes(app: FastAPI) -> Iterator[tuple[str, str]]:
    for route in iter_route_contexts(app.routes):
        if isinstance(route.route, Mount):
            assert route.path == "/static"
            continue
        assert route.path is not None
        for method in route.methods or ():
            if method != "HEAD":
                yield method, route.path


def filled(path: str) -> str:
    return re.sub(r"{(\w+)(:path)?}", lambda found: VALUES.get(found[1], "1"), path)


def test_every_route_is_listed_with_who_may_use_it(world: World) -> None:
    assert set(routes(world.app)) == set(WANTED), "WANTED, above, says which scope each route needs"


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, dict[str, str]]]:
    """A client of a service beyond loopback with a failure and a dead letter, and a token for each scope."""
    unlimited = ActionLimits(changes=RateLimit())
    world = make_world(tmp_path_factory.mktemp("stocked"), host="0.0.0.0", action_limits=unlimited)
    tokens = {scope: world.token(scope, clusters=["orion"] if scope == "hook" else []) for scope in SCOPES}
    with world.client(tokens["ingest"]) as client:
        assert client.post("/api/v1/events", content=lines(event(), b"{broken")).status_code == 200
    with world.client() as client:
        yield client, tokens
    world.store.close()


def ask(client: TestClient, method: str, path: str, token: str | None = None) -> int:
    client.cookies.clear()
    client.cookies.set(FORM_COOKIE, "form")
    form = {"form_token": "form"} if method == "POST" and not path.startswith("/api/") else None
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return client.request(method, filled(path), data=form, headers=headers).status_code


@pytest.mark.parametrize(("method", "path"), list(WANTED))
def test_each_route_wants_its_scope_and_no_other_opens_it(
    stocked: tuple[TestClient, dict[str, str]], method: str, path: str
) -> None:
    wanted = WANTED[method, path]
    client, tokens = stocked
    status = ask(client, method, path)
    if wanted == PUBLIC:
        assert status != 403
    elif path.startswith(("/api/", "/metrics")) or method == "POST":
        assert status == 401
    else:
        assert status == 303  # to the login
    status = ask(client, method, path, "flt_wrong")
    assert status in ({200, 303, 401, 404, 422} if wanted == PUBLIC else {401, 303})
    for scope in SCOPES:
        status = ask(client, method, path, tokens[scope])
        if (method, path) in OWNERS_ONLY and scope != "admin":
            assert status == 403, scope
        elif wanted in {PUBLIC, scope} or scope == "admin" or wanted in INCLUDED.get(scope, ()):
            assert status not in {403, 500}, scope
        else:
            assert status == 403, scope


@pytest.mark.parametrize(
    "path",
    ["/", "/failures", "/nothing", "/login", "/static/faultline.css", "/api/v1/stats", "/api/v1/nothing", "/metrics"],
)
def test_every_answer_tells_browsers_what_never_to_do(client: TestClient, path: str) -> None:
    answer = client.get(path)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["Referrer-Policy"] == "no-referrer"


def test_answers_with_data_are_not_kept_by_caches(client: TestClient) -> None:
    assert client.get("/api/v1/failures").headers["Cache-Control"] == "no-store"
    assert client.get("/").headers["Cache-Control"] == "no-store"


def test_pages_hold_no_script_no_inline_style_and_no_foreign_address(client: TestClient) -> None:
    client.post("/api/v1/events", content=lines(event()))
    for path in ("/", "/failures", "/failures/1", "/dead-letters", "/model", "/settings", "/login", "/nothing"):
        text = client.get(path).text
        assert re.findall(r"<script[^>]*>.*?</script>", text) == (
            WITH_CHARTS if path in {"/", "/model"} else EVERYWHERE
        )
        assert "style=" not in text
        assert not re.search(r'(?:src|href|action)="(?:https?:)?//', text), path


@pytest.mark.parametrize(
    "path",
    [
        "/health/live",
        "/api/v1/health/ready",
        "/metrics",
        "/api/v1/failures",
        "/api/v1/jobs/orion/7",
        "/api/v1/failures/export.csv",
        "/api/v1/failures/999",
        "/",
        "/failures/1",
        "/nothing",
    ],
)
def test_head_has_the_status_and_headers_of_get_and_no_body(client: TestClient, path: str) -> None:
    client.post("/api/v1/events", content=lines(event()))
    got, head = client.get(path), client.head(path)
    assert head.status_code == got.status_code
    assert head.headers["content-type"] == got.headers["content-type"]
    assert head.headers["content-security-policy"] == got.headers["content-security-policy"]
    assert not head.content
    assert (head.headers.get("content-length") is None) == (got.headers.get("content-length") is None)


def test_head_of_live_updates_ends_at_once(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.web.pages.live.MAX_DURATION_S", 900.0)
    answer = client.head("/live")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"].startswith("text/event-stream")


def test_head_is_refused_where_get_is(client: TestClient) -> None:
    answer = client.head("/api/v1/events")
    assert (answer.status_code, answer.headers["Allow"], answer.content) == (405, "POST", b"")
