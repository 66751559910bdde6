"""The published shapes hold for what the service really takes and says."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from jsonschema_rs import Draft202012Validator, ValidationError, meta

from classifiers.data.labelled_cases import DatasetError, parse
from tests.service.web.api import wire_names
from tests.service.web.world import event, lines

LABELS: dict[str, object] = {
    "side": "user",
    "cause": "USER.1",
    "category": "EE.2",
    "symptom": "none",
    "retry": "futile",
}
CASE: dict[str, object] = {
    "id": "a",
    "group": "g",
    "kind": "k",
    "event": event(),
    "labels": LABELS,
    "provenance": {"origin": "operator", "who": "ana"},
}


def published(client: TestClient, name: str) -> dict[str, Any]:
    answer = client.get(f"/api/v1/schemas/{name}")
    assert answer.status_code == 200
    shape: dict[str, Any] = answer.json()
    return shape


def schema(client: TestClient, name: str) -> Draft202012Validator:
    shape = published(client, name)
    meta.validate(shape)
    return Draft202012Validator(shape)


def test_each_listed_schema_is_one_under_either_name(client: TestClient) -> None:
    names = client.get("/api/v1/schemas").json()["items"]
    assert {"job-completion/1", "verdict/1", "labelled-case/1"} <= set(names)
    for name in names:
        assert published(client, name) == published(client, name.replace("/", "-"))


def test_events_that_are_taken_whole_fit_and_others_do_not(client: TestClient) -> None:
    shape = schema(client, "job-completion/1")
    shape.validate(event())
    shape.validate({key: event()[key] for key in ("cluster", "job_id", "status", "ended_at")})
    changes: tuple[dict[str, Any], ...] = (
        {"schema": "job-completion/2"},
        {"exit_code": -1},
        {"status": "sad"},
        {"job_id": ""},
        {"gpus": "8"},
    )
    for number, change in enumerate(changes):
        with pytest.raises(ValidationError):
            shape.validate(event(**change))
        answer = client.post("/api/v1/events", content=lines(event(**{"job_id": f"wrong-{number}", **change}))).json()
        optional = set(change) <= {"exit_code", "gpus"}
        assert (answer["accepted"], len(answer["rejected"])) == ((1, 0) if optional else (0, 1))


def test_a_verdict_fits(client: TestClient) -> None:
    client.post("/api/v1/events", content=lines(event()))
    verdict = client.get("/api/v1/failures/1").json()["verdict"]
    schema(client, "verdict/1").validate(verdict)
    with pytest.raises(ValidationError):
        schema(client, "verdict/1").validate(verdict | {"cause": "NONE.1"})


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"labels": LABELS | {"side": "nobody"}},
        {"id": ""},
        {"provenance": {"origin": "dream"}},
        {"weight": 0},
        {"labels": {"side": "user"}},
        {"event": {}},
        {"schema": "labelled-case/2"},
        {"labels": LABELS | {"cause": None}},
    ],
)
def test_a_labelled_case_fits_where_the_reader_takes_it(client: TestClient, change: dict[str, object]) -> None:
    case = CASE | change
    fits = schema(client, "labelled-case/1").is_valid(case)
    try:
        parse(case, "test")
    except DatasetError:
        assert not fits
    else:
        assert fits


@pytest.mark.slow
def test_no_name_that_clients_of_the_api_rely_on_is_lost() -> None:
    recorded, current = wire_names.recorded(), wire_names.names()
    assert not sorted(recorded - current), "names that were published stay"
    assert not sorted(current - recorded), "add them to the list: python -m tests.service.web.api.wire_names"
