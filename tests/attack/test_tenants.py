"""No page, list, count, search or export shows a caller of one team anything of another one."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from service.people import passwords
from tests.service.web.access.test_auth import form_token
from tests.service.web.test_app import WANTED
from tests.service.web.world import World, event, lines, log, make_world

MARK = "zqother"
PASSWORD = "correct horse battery"
OWN, OTHER = 3, 4  # failures
SEARCHES = (
    *(f"/search?q={q}" for q in ("10", f"{MARK}user", f"{MARK}node", f"{MARK}line", "1:xid", "ana Xid")),
    *("/api/v1/facets", "/api/v1/facets?node=gpu018", "/api/v1/facets?group=1:xid"),
    *("/failures?node=gpu018&limit=500", "/failures?group=1:xid", "/failures?sort=-gpu_hours_lost", "/failures?job=1"),
    *("/api/v1/failures/export.csv?node=gpu018", "/api/v1/failures/export.json?q=Xid"),
    *("/api/v1/jobs/orion/1", "/api/v1/jobs/orion/10"),
)
CALLERS: dict[str, dict[str, Any]] = {
    "viewer of a team": {"role": "viewer", "teams": ("vision",)},
    "operator of a team": {"role": "operator", "teams": ("vision",)},
    "owner": {"role": "owner", "users": ("ana",)},
    "owner on one cluster": {"role": "owner", "users": ("orion/ana",)},
}


def other(job: str, **changes: Any) -> dict[str, Any]:
    """A failure of another team with the same nodes and the same cause, marked in every text."""
    texts = ("team", "user", "name", "queue", "message", "image", "command")
    marked = {name: f"{MARK}{name}" for name in texts}
    logs = [log(f"start\nNVRM: Xid 79 {MARK}line\n")]
    return event(job, **{**marked, "logs": logs, "labels": {MARK: "x"}, **changes})


@pytest.fixture(scope="module")
def world(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = make_world(Path(tmp_path_factory.mktemp("tenants")), new_database(), host="0.0.0.0")
    own = [event("1"), event("2", logs=[log("NVRM: Xid 79\n")]), event("3", logs=[log("Stale file handle\n")])]
    others = [other("10"), other("11", cluster=f"{MARK}cluster"), other("12"), other("1", attempt=5)]
    with made.client(made.token("admin")) as client:
        answer = client.post("/api/v1/events", content=lines(*own, *others)).json()
        assert answer["accepted"] == OWN + OTHER
        client.post(f"/api/v1/failures/{OWN + 1}/feedback", json={"kind": "confirm", "note": f"{MARK}note"})
    with made.store.unit_of_work() as work:
        for name, given in CALLERS.items():
            work.accounts.create(name, password=passwords.hash_password(PASSWORD), **given)
    yield made
    made.store.close()


def addresses() -> Iterator[str]:
    for method, path in WANTED:
        if method != "GET" or path.endswith("/live") or path == "/logout":
            continue
        there = path.replace("{week}", "2026-W46").replace("{cluster}", "orion").replace("{node:path}", "gpu018")
        for number in range(1, OWN + OTHER + 1) if "failure_id" in path else (1,):
            yield re.sub(r"\{[^}]+\}", str(number), there.replace("{index}", "0"))
    yield from SEARCHES


@pytest.mark.parametrize("name", [*CALLERS, "token of a team"])
def test_nothing_of_another_team_is_shown(world: World, name: str) -> None:
    secret = world.token("read", "act", teams=["vision"]) if name not in CALLERS else None
    seen = 0
    with world.client(secret) as client:
        if secret is None:
            login = {"name": name, "password": PASSWORD, "form_token": form_token(client)}
            assert client.post("/login", data=login).status_code == 303
        for address in addresses():
            answer = client.get(address)
            assert answer.status_code < 500, address
            shown = answer.text + answer.headers.get("location", "")
            for asked in re.findall(rf"{MARK}\w+", address):  # a page may repeat what was asked for
                shown = shown.replace(asked, "")
            assert MARK not in shown, f"{address}: {shown[max(0, shown.find(MARK) - 80) :][:160]}"
            seen += "flash_attn" in answer.text
    assert seen >= 3, "the caller's own failures are shown"
