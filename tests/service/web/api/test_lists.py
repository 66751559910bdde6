"""Every list of the API has one shape."""

from typing import Any

from fastapi.testclient import TestClient

from tests.service.web.world import event, lines

EXPORTS = ("/api/v1/failures/export.json",)  # files, as they are imported elsewhere


def test_every_list_has_items_and_a_cursor(client: TestClient) -> None:
    api = client.get("/api/v1/openapi.json").json()
    wrong = []
    for path, methods in api["paths"].items():
        answer = _answer(api, methods.get("get"))
        fields = answer.get("properties", {})
        listed = answer.get("type") == "array" or "items" in fields
        if listed and "next_cursor" not in fields and path not in EXPORTS:
            wrong.append(path)
    assert wrong == []
    assert client.get("/api/v1/report-subscriptions").json() == {"items": [], "next_cursor": None}


def test_a_parameter_without_a_value_is_not_set(client: TestClient) -> None:
    assert client.post("/api/v1/events?wait=&cluster=", content=lines(event("1"), event("2"))).json()["accepted"] == 2
    api = client.get("/api/v1/openapi.json").json()
    lists = [
        (path, [one["name"] for one in methods["get"]["parameters"]])
        for path, methods in api["paths"].items()
        if "{" not in path and any(one["name"] == "cursor" for one in methods.get("get", {}).get("parameters", ()))
    ]
    assert len(lists) > 8
    for path, names in lists:
        blank = client.get(f"{path}?{'&'.join(f'{name}=' for name in names)}")
        assert (blank.status_code, blank.json()) == (200, client.get(path).json()), path
    first = client.get("/api/v1/failures?limit=1&cursor=&since=&sort=&cluster").json()
    assert len(client.get(f"/api/v1/failures?limit=1&cursor={first['next_cursor']}&until=").json()["items"]) == 1


def _answer(api: dict[str, Any], get: dict[str, Any] | None) -> dict[str, Any]:
    """The schema of what a GET returns; empty if it is not JSON."""
    if get is None:
        return {}
    schema: dict[str, Any] = get["responses"]["200"].get("content", {}).get("application/json", {}).get("schema", {})
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = api["components"]["schemas"].get(name, schema)
    return found
