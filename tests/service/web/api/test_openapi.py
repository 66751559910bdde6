"""The API does what its own description says: schemathesis over every route, as every role and by an API token."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.python import asgi
from schemathesis.specs.openapi.checks import ignored_auth, negative_data_rejection, positive_data_acceptance

from service.web.sessions import COOKIE, LIFETIME
from tests.service.web.test_app import PUBLIC, WANTED
from tests.service.web.world import World, event, lines, make_world

pytestmark = pytest.mark.slow

EXAMPLES = 4  # of each kind: those that fit the description and those that do not
DESCRIBED = [
    (method, path.replace(":path}", "}"))
    for method, path in WANTED
    if path.startswith("/api/") and path != "/api/v1/openapi.json"
]
# Their bodies are lines of any text, each of which is answered for itself.
LINES = {"/api/v1/events", "/api/v1/node-events", "/api/v1/labels"}
# What each may do; an owner sees the failures of one user only, and there are some.
ROLES = {
    "viewer": {"own", "read"},
    "owner": {"own"},
    "operator": {"own", "read", "act", "hook", "labels", "publish"},
    "admin": {"own", "read", "act", "hook", "labels", "publish", "ingest", "admin"},
}


@dataclass
class Described:
    """The API's own description, and who asks: a header each."""

    world: World
    who: dict[str, dict[str, str]]
    api: schemathesis.BaseSchema
    client: asgi.ASGIClient


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Described]:
    world = make_world(tmp_path_factory.mktemp("openapi"), host="0.0.0.0")
    token = world.token("admin")
    with world.client(token) as client:
        assert client.post("/api/v1/events", content=lines(event(), b"{broken")).status_code == 200
    who = {"token": {"Authorization": f"Bearer {token}"}}
    with world.store.unit_of_work() as work:
        for role in ROLES:
            made = work.accounts.create(role, role, password=None, users=("orion/ana",) if role == "owner" else ())
            who[role] = {"Cookie": f"{COOKIE}={work.sessions.log_in(account_id=made.id, lasts=LIFETIME)}"}
    api = schemathesis.openapi.from_asgi("/api/v1/openapi.json", world.app)
    api.config.generation.update(with_security_parameters=False)  # who asks is handed over: it is never what is wrong
    rejected = api.config.checks.negative_data_rejection
    rejected.expected_statuses = [*rejected.expected_statuses, "413"]  # too large
    with asgi.get_client(world.app) as asking:  # type: ignore[arg-type]  # Starlette's own type says the same in other words
        yield Described(world, who, api, asking)
    world.store.close()


def test_every_route_of_the_api_is_described(described: Described) -> None:
    found = {
        (method.upper(), path) for path, methods in described.api.raw_schema["paths"].items() for method in methods
    }
    assert found == set(DESCRIBED)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize(("method", "path"), DESCRIBED)
def test_every_answer_is_as_described_to_every_role(
    described: Described, method: str, path: str, mode: GenerationMode
) -> None:
    wanted = next(
        scope for (verb, route), scope in WANTED.items() if (verb, route.replace(":path}", "}")) == (method, path)
    )

    # Left out: whether all that fits the description is accepted. To it a cursor is any text; only cursors that this
    # service made are taken, and a dead letter that still can't be read is a conflict.
    left_out: list[Any] = [positive_data_acceptance]
    if path in LINES:
        left_out.append(negative_data_rejection)

    made = cases(described.api[path][method], mode)
    # The token sends every request, and the roles take turns: each sends one or two of them.
    for case, role in islice(zip(cycle(made), cycle(ROLES), strict=False), max(len(made), len(ROLES))):
        # A parameter without a value counts as one that is not set, whatever its type.
        is_unset = "" in (case.query or {}).values()
        for who in ("token", role):
            # A session's cookie gives access too, but the description names tokens only.
            without = left_out if who == "token" else [*left_out, ignored_auth]
            without = [*without, negative_data_rejection] if is_unset else without
            answer = case.call_and_validate(
                headers=described.who[who], session=described.client, excluded_checks=without
            )
            if who == "token" or wanted == PUBLIC or wanted in ROLES[who]:
                assert answer.status_code != 401, who
                assert answer.status_code != 403 or (who in {"viewer", "owner"} and path.endswith("/feedback")), who
            else:
                assert answer.status_code >= 400, who


def cases(operation: Any, mode: GenerationMode) -> "list[schemathesis.Case[Any]]":
    """Requests to an operation; none if it has no parameters that could be invalid."""
    made: list[schemathesis.Case[Any]] = []

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def collect(case: "schemathesis.Case[Any]") -> None:
        made.append(case)

    with suppress(Unsatisfiable):
        collect()
    return made
