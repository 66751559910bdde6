"""`faultline policy check|show|explain|replay`."""

import json
from pathlib import Path

import pytest

from service.__main__ import main
from service.db.session import Store
from tests.service.automation.world import AUTO, job, world
from tests.service.databases import copy_migrated
from tests.service.frozen_clock import FrozenClock
from tests.service.web.world import NOW

OVERLAY = """version = "night-1"
[limits]
infra_per_lineage = 0
[[override]]
queue = "prod"
limits.infra_per_lineage = 5
"""


@pytest.fixture
def failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """A stored failure of a lost GPU that was decided on under an opted-in policy, which is in force."""
    url = copy_migrated(tmp_path / "store.sqlite3")
    (tmp_path / "auto.toml").write_text(AUTO)
    monkeypatch.setenv("FAULTLINE_DATABASE_URL", url)
    monkeypatch.setenv("FAULTLINE_POLICY_FILE", str(tmp_path / "auto.toml"))
    store = Store(url, clock=FrozenClock(NOW))
    [result] = world(store, FrozenClock(NOW)).tell(job("1", "NVRM: Xid (PCI:0000:4b:00): 79, GPU lost")).events
    store.close()
    assert result.failure_id is not None
    return result.failure_id


def test_the_rules_in_force_are_shown_in_their_order_then_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "show"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "policy builtin-2"
    assert lines[1].startswith("1. cancelled: ")
    assert any(line.startswith("backoff.factor") and line.endswith("# built in") for line in lines)


def test_what_is_in_force_for_a_queue_tells_where_it_comes_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "night.toml"
    file.write_text(OVERLAY)
    assert main(["policy", "show", "--policy", str(file)]) == 0
    shown = capsys.readouterr().out
    assert f"= 0         # {file}:3" in shown
    assert "overrides: queue prod" in shown
    assert main(["policy", "show", "--policy", str(file), "--queue", "prod"]) == 0
    assert f"= 5         # {file}:4 (queue prod)" in capsys.readouterr().out


def test_a_valid_file_is_reported_as_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "policy.toml"
    rule = '[[rule]]\nname = "a"\ndecision = "ask"\nsays = "b"\nsource = "c"\n'
    file.write_text(f'version = "1"\nprior_weight = 1\n{rule}')
    assert main(["policy", "check", str(file)]) == 0
    assert "valid" in capsys.readouterr().out


def test_a_wrong_file_is_refused_with_place_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('version = "1"\nprior_weight = "much"\n[[rule]]\nname = "a"\n')
    assert main(["policy", "check", str(file)]) == 2
    output = capsys.readouterr().err
    assert "prior_weight (line 2)" in output
    assert "rule.0.decision (line 3)" in output


def test_a_decision_is_explained_rule_by_rule(failure: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "explain", str(failure)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"failure {failure}: decided resubmit_now (act), ")
    assert lines[1] == "policy auto-1/builtin-2: resubmit_now (act), decided by: one bad node"
    assert [line for line in lines if line.startswith("→")] == [
        line for line in lines if line.startswith("→ one bad node")
    ]
    assert lines[-1].split() == ["kill", "switch", "automation", "is", "on"]
    assert main(["policy", "explain", "999"]) != 0


def test_another_policy_is_asked_about_stored_decisions(
    failure: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "night.toml"
    file.write_text(OVERLAY)
    assert main(["policy", "explain", str(failure), "--policy", str(file)]) == 0
    assert "decided by: resubmits of this job" in capsys.readouterr().out
    ask = ["policy", "replay", "--policy", str(file), "--since", "9000d", "--workers", "1"]
    assert main(ask) == 0
    assert "resubmit_now (act) → stop" in capsys.readouterr().out
    assert main([*ask, "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["asked"], result["resubmits"]) == (1, {"more": 0, "fewer": 1})
    assert main([*ask, "--format", "html", "--output", str(tmp_path / "out.html")]) == 0
    assert "<h1>Policy replay</h1>" in (tmp_path / "out.html").read_text()
