"""Every list of the API has one shape."""

from typing import Any

from fastapi.testclient import TestClient

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


def _answer(api: dict[str, Any], get: dict[str, Any] | None) -> dict[str, Any]:
    """The schema of what a GET returns; empty if it is not JSON."""
    if get is None:
        return {}
    schema: dict[str, Any] = get["responses"]["200"].get("content", {}).get("application/json", {}).get("schema", {})
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = api["components"]["schemas"].get(name, schema)
    return found
