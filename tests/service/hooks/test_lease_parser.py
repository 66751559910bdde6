from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.hooks.lease_parser import InvalidRequest, expiry_of, read_request, request_to_json
from tests.service.hooks.sample_requests import NOW, request

ITEM: dict[str, Any] = {
    "request_id": "r1",
    "lease_token": "t",
    "expires_at": "2026-11-20T12:01:00Z",
    "cluster": "orion",
    "job_id": "12_3",
    "attempt": 0,
    "action": "requeue",
    "exclude_nodes": ["gpu018"],
    "resume_from": None,
    "changes": {},
    "not_before": None,
    "reasons": ["because"],
    "lease_count": 2,
}


def test_what_the_contract_says_is_read_and_what_it_does_not_is_kept() -> None:
    read = read_request(ITEM, NOW)
    assert (read.job_id, read.exclude_nodes, read.extra["lease_count"]) == ("12_3", ("gpu018",), 2)
    assert "'t'" not in repr(read)  # the lease's token is in no log


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("request_id", "../../etc/passwd"),
        ("request_id", "-r1"),
        ("request_id", "r" * 65),
        ("request_id", None),
        ("lease_token", 5),
        ("action", "cancel"),
        ("attempt", -1),
        ("attempt", True),
        ("exclude_nodes", ["--uid=root"]),
        ("exclude_nodes", ["gpu1,gpu2"]),
        ("exclude_nodes", ["gpu[1-4]"]),
        ("exclude_nodes", "gpu1"),
        ("job_id", "7\n8"),
        ("job_id", ""),
        ("cluster", None),
        ("resume_from", "a\0b"),
        ("changes", [1]),
        ("reasons", "because"),
        ("not_before", "2026-11-20T12:00:00"),
        ("not_before", 5),
        ("not_before", "0001-01-01T00:00:00+23:59"),
    ],
)
def test_what_could_do_harm_in_a_command_is_refused_by_its_field(field: str, value: object) -> None:
    with pytest.raises(InvalidRequest, match=field):
        read_request({**ITEM, field: value}, NOW)


NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True)


@given(NAMES, st.lists(NAMES, max_size=4, unique=True), st.one_of(st.none(), st.datetimes(timezones=st.just(UTC))))
def test_a_request_survives_its_way_to_disk(name: str, nodes: list[str], at: datetime | None) -> None:
    made = request(name, exclude_nodes=tuple(nodes), not_before=at, extra={"lease_count": 1})
    assert read_request({**request_to_json(made), "lease_token": made.lease_token}, made.good_until) == made
    assert "lease_token" not in request_to_json(made)


def test_an_unreadable_end_of_a_lease_counts_as_none() -> None:
    assert expiry_of({"expires_at": "soon"}, "expires_at") is None
    assert expiry_of([], "expires_at") is None
    assert expiry_of({"expires_at": "9999-12-31T23:59:59-23:59"}, "expires_at") is None
    assert expiry_of(ITEM, "expires_at") == datetime(2026, 11, 20, 12, 1, tzinfo=UTC)
