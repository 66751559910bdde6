"""GET /failures, /failures/{id}, /jobs, /stats, /metrics."""

from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.web.world import NOW, World, event, lines, log

XID = [log("fine\nNVRM: Xid 79, GPU has fallen off the bus", 1)]


@pytest.fixture
def stocked(client: TestClient) -> TestClient:
    events = [
        event("1", ended_at=(NOW - timedelta(hours=1)).isoformat()),
        event("2", ended_at=(NOW - timedelta(hours=2)).isoformat(), logs=XID, nodes=["gpu018", "gpu019"], user="bo"),
        event(
            "3",
            ended_at=(NOW - timedelta(hours=2, minutes=30)).isoformat(),
            logs=[],
            team=None,
            status="timeout",
            nodes=["gpu7"],
        ),
        event("a/b/c", status="succeeded", logs=[]),
        event("2", attempt=1, status="succeeded", user="bo", logs=[]),
        event("4", status="cancelled", logs=[]),
    ]
    assert client.post("/api/v1/events", content=lines(*events)).json()["accepted"] == len(events)
    return client


def ids(client: TestClient, query: str = "") -> list[str]:
    answer = client.get(f"/api/v1/failures{query}")
    assert answer.status_code == 200, answer.text
    return [item["job_id"] for item in answer.json()["items"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["1", "2", "3"]),
        ("?side=hardware", ["2"]),
        ("?cause=USER.1&abstained=false", ["1"]),
        ("?abstained=true", ["3"]),
        ("?node=gpu019", ["2"]),
        ("?user=bo", ["2"]),
        ("?status=timeout", ["3"]),
        ("?group=1:xid", ["2"]),
        ("?q=fallen%20BUS", ["2"]),
        ("?cluster=lyra", []),
        ("?team=vision&queue=gpu", ["1", "2"]),
        ("?since=90h&until=2026-11-20T10:15:00Z", ["2", "3"]),
        ("?since=2026-11-20", ["1", "2", "3"]),
        ("?sort=ended_at", ["3", "2", "1"]),
        ("?sort=-gpu_hours_lost", ["1", "2", "3"]),
        ("?side=&user=", ["1", "2", "3"]),
    ],
)
def test_the_list_is_narrowed_and_ordered(stocked: TestClient, query: str, found: list[str]) -> None:
    assert ids(stocked, query) == found


def test_pages_follow_each_other_by_cursor(stocked: TestClient) -> None:
    seen: list[str] = []
    query = "?limit=1"
    while True:
        page = stocked.get(f"/api/v1/failures{query}").json()
        seen += [item["job_id"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        query = f"?limit=1&cursor={page['next_cursor']}"
    assert seen == ["1", "2", "3"]


def failure(client: TestClient, query: str) -> dict[str, Any]:
    first: dict[str, Any] = client.get(f"/api/v1/failures{query}").json()["items"][0]
    return first


def test_one_failure_has_its_verdict_event_logs_and_attempts(stocked: TestClient) -> None:
    found = failure(stocked, "?side=hardware")
    result = stocked.get(f"/api/v1/failures/{found['id']}").json()
    assert result["failure"] == found
    assert result["verdict"]["suspect"] == {"rank": 1, "node": "gpu018", "gpu": 3}
    assert [version["version"] for version in result["versions"]] == [1]
    assert [attempt["status"] for attempt in result["attempts"]] == ["succeeded", "failed"] or [
        attempt["status"] for attempt in result["attempts"]
    ] == ["failed", "succeeded"]
    [stream] = result["logs"][0]["streams"]
    assert (stream["text"], stream["characters"]) == (None, len(XID[0]["tail"]))
    assert "logs" not in result["logs"][0]["event"] or "tail" not in result["logs"][0]["event"]["logs"][0]
    with_logs = stocked.get(f"/api/v1/failures/{found['id']}?logs=true").json()
    assert with_logs["logs"][0]["streams"][0]["text"] == XID[0]["tail"]


def test_a_job_with_slashes_in_its_id_is_found(stocked: TestClient) -> None:
    for path in ("orion/a/b/c", "orion/a%2Fb%2Fc"):
        job = stocked.get(f"/api/v1/jobs/{path}").json()
        assert (job["job_id"], [attempt["failure_id"] for attempt in job["attempts"]]) == ("a/b/c", [None])


def test_attempts_of_a_job_show_the_result_of_each(stocked: TestClient) -> None:
    attempts = stocked.get("/api/v1/jobs/orion/2").json()["attempts"]
    assert {(attempt["attempt"], attempt["status"], attempt["side"]) for attempt in attempts} == {
        (0, "failed", "hardware"),
        (1, "succeeded", None),
    }


def test_rates_have_their_denominator(stocked: TestClient) -> None:
    result = stocked.get("/api/v1/stats").json()
    stats = result["stats"]
    assert (stats["failed"], stats["succeeded"], stats["finished"], stats["cancelled"]) == (3, 2, 5, 1)
    assert stats["rate"] == pytest.approx(0.6)
    assert {share["key"]: share["failures"] for share in stats["by_side"]} == {"hardware": 1, "user": 1, "unknown": 1}
    assert result["pipeline"]["lag"] is None
    assert result["pipeline"]["health"]["abstained"] == 1
    assert stocked.get("/api/v1/stats?cluster=lyra").json()["stats"]["rate"] is None


def test_lag_is_shown_where_this_process_consumes(world: World, client: TestClient) -> None:
    world.services.telemetry.lag.labels("jobs").set(7)
    assert client.get("/api/v1/stats").json()["pipeline"]["lag"] == {"jobs": 7}
    assert "7 on jobs" in client.get("/").text


@pytest.mark.parametrize("path", ["/metrics", "/api/v1/metrics"])
def test_metrics_are_prometheus_text(stocked: TestClient, path: str) -> None:
    answer = stocked.get(path)
    assert answer.headers["content-type"].startswith("text/plain; version=1.0.0")
    assert 'faultline_events_total{outcome="accepted"} 6.0' in answer.text
