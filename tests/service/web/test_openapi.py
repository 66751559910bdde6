"""The API does what its own description says: schemathesis over every route, as an administrator."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.service.web.test_app import WANTED
from tests.service.web.world import World, event, lines, make_world

EXAMPLES = 13  # of each kind: those that fit the description and those that do not
DESCRIBED = [
    (method, path.replace(":path}", "}"))
    for method, path in WANTED
    if path.startswith("/api/") and path != "/api/v1/openapi.json"
]


@dataclass
class Described:
    world: World
    headers: dict[str, str]
    api: schemathesis.BaseSchema


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Described]:
    world = make_world(tmp_path_factory.mktemp("openapi"), host="0.0.0.0")
    token = world.token("admin")
    with world.client(token) as client:
        assert client.post("/api/v1/events", content=lines(event(), b"{broken")).status_code == 200
    api = schemathesis.openapi.from_asgi("/api/v1/openapi.json", world.app)
    api.config.generation.update(with_security_parameters=False)  # the token is handed over: it is never what is wrong
    yield Described(world, {"Authorization": f"Bearer {token}"}, api)
    world.store.close()


def test_every_route_of_the_api_is_described(described: Described) -> None:
    found = {
        (method.upper(), path) for path, methods in described.api.raw_schema["paths"].items() for method in methods
    }
    assert found == set(DESCRIBED)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize(("method", "path"), DESCRIBED)
def test_every_answer_is_as_described(described: Described, method: str, path: str, mode: GenerationMode) -> None:
    operation = described.api[path][method]

    # Left out: whether all that fits the description is accepted. To it a cursor is any text; only cursors that this
    # service made are taken, and a dead letter that still can't be read is a conflict.
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def asked(case: "schemathesis.Case[Any]") -> None:
        case.call_and_validate(headers=described.headers, excluded_checks=[positive_data_acceptance])

    with suppress(Unsatisfiable):  # a route without parameters can't be asked wrongly
        asked()
