"""POST /policy:replay: another policy is asked about what was decided."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.automation.service import Automation
from service.db.session import Store
from service.logs.fetch import LogFetcher
from service.pipeline.diagnosis_tools import DiagnosisTools
from service.recommend import policy as policy_files
from service.telemetry import Telemetry
from service.web.app import create_app
from service.web.limits.caller_limits import RETRY_AFTER_S
from tests.service.automation.world import ByWord, job, rules
from tests.service.databases import copy_migrated
from tests.service.frozen_clock import FrozenClock
from tests.service.pipeline.diagnosis import diagnose_with
from tests.service.web.world import HERE, NOW, World, lines, web_services

REPLAY = "/api/v1/policy:replay"
SHY = 'version = "shy"\n[limits]\ninfra_per_lineage = 0\n'
XID = "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[TestClient]:
    url = copy_migrated(tmp_path / "store.sqlite3")
    store, clock, policy = Store(url, clock=FrozenClock(NOW)), FrozenClock(NOW), rules()
    automation = Automation(store, policy, clock, Telemetry())
    handle = diagnose_with(
        DiagnosisTools(store, LogFetcher(()), ByWord(), policy, clock, Telemetry(), automation=automation)
    )
    services = web_services(store, handle, clock, Telemetry(), automation=automation)
    with World(store, clock, services, create_app(services)).client(base_url=HERE) as client:
        yield client
    store.close()


def asked(api: TestClient, **body: Any) -> dict[str, Any]:
    answer = api.post(REPLAY, json=body)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def test_changes_are_listed_with_their_reasons(api: TestClient) -> None:
    result = lines(job("1", XID), job("2", "ModuleNotFoundError: No module named 'x'"))
    assert api.post("/api/v1/events", content=result).status_code == 200
    found = asked(api, policy=SHY)
    assert (found["asked"], found["changed"], found["resubmits"]) == (2, 1, {"more": 0, "fewer": 1})
    assert found["kinds"] == [{"before": "resubmit_now (act)", "after": "stop", "count": 1}]
    assert found["items"][0]["reasons"][-1].startswith("resubmits of this job: ")
    assert asked(api, policy=SHY, failures=1)["asked"] == 1
    assert asked(api, policy=SHY, since="2031-01-01T00:00:00Z")["asked"] == 0


def test_a_caller_has_one_replay_at_a_time_and_a_policy_few_rows(api: TestClient) -> None:
    """Each takes a processor for seconds: an operator's script could hold the server up."""
    limit = api.app.state.services.replays  # type: ignore[attr-defined]
    with limit.one_of("this machine"):
        refused = api.post(REPLAY, json={"policy": SHY})
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, str(RETRY_AFTER_S))
    assert api.post(REPLAY, json={"policy": SHY}).status_code == 200
    many = SHY + "".join(f'[[override]]\ncluster = "c{number}"\n' for number in range(policy_files.MOST_ROWS + 1))
    refused = api.post(REPLAY, json={"policy": many})
    assert refused.status_code == 422
    assert f"override: at most {policy_files.MOST_ROWS} of them" in refused.text


def test_a_policy_with_thousands_of_errors_is_refused_with_a_short_answer(api: TestClient) -> None:
    """Each error names all settings that exist: a megabyte of wrong ones made an answer of sixty."""
    wrong = "".join(
        f'[[override]]\ncluster = "c{row}"\n' + "".join(f"k{one} = 1\n" for one in range(50)) for row in range(99)
    )
    answer = api.post(REPLAY, json={"policy": SHY + wrong})
    assert answer.status_code == 422
    assert "and 4,930 more" in answer.text
    assert len(answer.content) < 20_000
    assert len(answer.json()["errors"]) == policy_files.MOST_ERRORS


def test_a_wrong_policy_is_refused_with_its_place(api: TestClient) -> None:
    answer = api.post(REPLAY, json={"policy": 'version = "x"\n[limits]\ninfra_per_lineage = -1\n'})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "limits.infra_per_lineage (line 3)"
    assert api.post(REPLAY, json={"policy": "", "limit": 3}).status_code == 422
    for text in ("a = [[{]", f"{'x.' * 200}y = 1"):
        answer = api.post(REPLAY, json={"policy": text})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"] == "policy"
