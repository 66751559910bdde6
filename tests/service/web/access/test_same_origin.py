"""Only this machine's names, and only pages of this server."""

from contextlib import suppress

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from service.errors import Forbidden
from service.web.same_origin import check_host, check_origin
from tests.service.web.world import World, event, lines


@pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1:8080", "[::1]:8080", "localhost", "LOCALHOST:1"])
def test_names_of_this_machine_are_answered(host: str, client: TestClient) -> None:
    check_host(host)
    assert client.get("/health/live", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8080",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8080",
        "",
        None,
        "0.0.0.0:8080",
        "localhost:x",
        "me@localhost",
        "[::1",
        "localhost/x",
        "127.0.0.2:8080",
    ],
)
def test_a_rebound_name_is_refused(host: str | None) -> None:
    with pytest.raises(Forbidden):
        check_host(host)


@given(st.text(max_size=60))
def test_any_text_as_a_host_is_judged_without_a_crash(host: str) -> None:
    with suppress(Forbidden):
        check_host(host)


@given(st.text(max_size=60))
def test_any_text_as_an_origin_is_judged_without_a_crash(origin: str) -> None:
    try:
        check_origin({"host": "127.0.0.1:8080", "origin": origin})
    except Forbidden:
        return
    assert "//127.0.0.1:8080" in origin


def test_a_rebound_name_gets_nothing_not_even_a_page(world: World) -> None:
    with world.client(base_url="http://evil.example:8080") as client:
        for path in ("/", "/api/v1/failures", "/metrics", "/static/faultline.css"):
            assert client.get(path).status_code == 403
        answer = client.get("/api/v1/failures").json()
        assert answer["errors"][0]["field"] == "Host"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://localhost:8080"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_sites_page_can_post_nothing(world: World, headers: dict[str, str]) -> None:
    with world.client() as client:
        assert client.post("/api/v1/events", content=lines(event()), headers=headers).status_code == 403
        assert client.get("/api/v1/failures").json()["items"] == []


@pytest.mark.parametrize(
    "headers",
    [{}, {"Origin": "http://127.0.0.1:8080"}, {"Origin": "http://127.0.0.1:8080", "Sec-Fetch-Site": "same-origin"}],
)
def test_programs_and_our_own_pages_can(world: World, headers: dict[str, str]) -> None:
    with world.client() as client:
        assert client.post("/api/v1/events", content=lines(event()), headers=headers).status_code == 200


def test_beyond_loopback_any_host_name_is_fine_because_a_token_is_needed(guarded: World) -> None:
    with guarded.client(guarded.token("read"), base_url="https://faultline.example") as client:
        assert client.get("/api/v1/failures").status_code == 200
