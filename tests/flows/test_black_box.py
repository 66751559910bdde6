"""Tests the public interfaces from outside only: commands with exit codes, the API's answers, the schemas."""

import base64
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from jsonschema_rs import Draft202012Validator, meta

from service.contracts.event import JobCompletion
from service.formats.recognise import parse
from service.settings import default_model_dir
from tests.labs.need import missing
from tests.service.databases import copy_migrated
from tests.service.run_command import run_command
from tests.service.web.world import event, log, make_world

FAULTLINE = (sys.executable, "-m", "service")
EVENT_FIELDS = [
    "schema",
    "event_id",
    "cluster",
    "job_id",
    "attempt",
    "name",
    "user",
    "team",
    "queue",
    "framework",
    "image",
    "command",
    "gpu_type",
    "status",
    "exit_code",
    "signal",
    "scheduler",
    "reason",
    "message",
    "submitted_at",
    "started_at",
    "ended_at",
    "time_limit_s",
    "gpus",
    "restart_count",
    "requested",
    "checkpoint",
    "nodes",
    "topology",
    "logs",
    "node_events",
    "resubmit_of",
    "labels",
]
VERDICT_FIELDS = [
    "event_id",
    "cluster",
    "job_id",
    "attempt",
    "side",
    "cause",
    "cause_top",
    "category",
    "symptom",
    "symptom_top",
    "platform_symptom",
    "confidence",
    "abstained",
    "evidence",
    "suspect",
    "missing",
    "progress",
    "fingerprint",
    "mitigations",
    "decision",
    "resubmit",
    "retry_outlook",
    "explanation",
    "model",
    "rules",
]
FILTERS = [
    "side",
    "cause",
    "symptom",
    "cluster",
    "queue",
    "team",
    "user",
    "node",
    "group",
    "status",
    "q",
    "since",
    "until",
]
FULL: dict[str, Any] = event(
    "ns/Job/train",
    framework="pytorch",
    image="repo/train:1",
    command="python train.py",
    gpu_type="H100",
    signal=None,
    scheduler="slurm",
    reason="NonZeroExitCode",
    message="exit 1",
    time_limit_s=3600,
    restart_count=0,
    requested={"cpus": 8, "memory_bytes": 2**33},
    checkpoint={"uri": "/ckpt/7", "step": 7, "at": "2026-11-20T10:00:00Z"},
    topology={"gpu018": {"rack": "r1", "switch": "s1", "zone": "z"}},
    node_events=[{"at": "2026-11-20T11:00:00Z", "node": "gpu018", "source": "kernel", "text": "NVRM: Xid 79"}],
    resubmit_of="6",
    labels={"faultline/resubmit": "advise"},
    logs=[log("ModuleNotFoundError: No module named 'x'"), {"rank": None, "node": "n", "stream": "out", "uri": "/no"}],
)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    world = make_world(tmp_path)
    with world.client() as made:
        yield made
    world.store.close()


def post(client: TestClient, *records: Any, **headers: str) -> dict[str, Any]:
    answer = client.post("/api/v1/events", content="\n".join(map(json.dumps, records)), headers=headers)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def validator(client: TestClient, name: str) -> Draft202012Validator:
    schema = client.get(f"/api/v1/schemas/{name}").json()
    meta.validate(schema)
    return Draft202012Validator(schema)


# The event and the verdict


def test_every_field_of_the_event_is_known_by_its_name_and_kept(client: TestClient) -> None:
    assert not set(EVENT_FIELDS) - set(JobCompletion.model_json_schema(by_alias=True)["properties"])
    validator(client, "job-completion/1").validate(FULL)
    post(client, FULL | {"unheard_of": {"a": [1]}})
    [kept] = client.get("/api/v1/failures/1").json()["logs"]
    result = kept["event"]
    assert result["unheard_of"] == {"a": [1]}
    empty = {name for name, value in FULL.items() if value is None}
    assert not set(FULL) - empty - set(result)


@pytest.mark.parametrize("field", ["cluster", "job_id", "status", "ended_at"])
def test_required_fields_are_asked_for_by_name(client: TestClient, field: str) -> None:
    result = post(client, {name: value for name, value in FULL.items() if name != field})
    assert [one["field"] for one in result["rejected"]] == [field]


@pytest.mark.parametrize(
    ("status", "has_verdict", "counts"),
    [
        ("succeeded", False, (1, 0)),
        ("failed", True, (1, 1)),
        ("timeout", True, (1, 1)),
        ("out_of_memory", True, (1, 1)),
        ("node_fail", True, (1, 1)),
        ("preempted", True, (0, 0)),
        ("evicted", True, (1, 1)),
        ("hung", True, (1, 1)),
        ("cancelled", False, (0, 0)),
    ],
)
def test_each_status_counts_and_is_classified_as_agreed(
    client: TestClient, status: str, counts: tuple[int, int], *, has_verdict: bool
) -> None:
    post(client, event("1", status=status, exit_code=None, logs=[log("all was well")]))
    assert len(client.get("/api/v1/failures").json()["items"]) == has_verdict
    [attempt] = client.get("/api/v1/jobs/orion/1").json()["attempts"]
    assert (attempt["failure_id"] is not None) == has_verdict
    stats = client.get("/api/v1/stats").json()["stats"]
    finished = stats["succeeded"] + stats["failed"]
    assert (finished, stats["failed"]) == counts


def test_one_job_seen_by_every_way_is_one_row(client: TestClient) -> None:
    slurm = {
        "jobid": 42, "cluster": "orion", "state": "FAILED", "exit_code": "1:0", "username": "ana", "nodes": "gpu018",
        "@start": "2026-11-20T09:00:00", "@end": "2026-11-20T11:30:00",
    }  # fmt: skip
    read = parse(json.dumps(slurm).encode())
    assert isinstance(read, JobCompletion)
    native = read.model_dump(mode="json", by_alias=True, exclude_none=True)
    envelope = {"specversion": "1.0", "type": "job", "source": "/s", "id": "a"}
    assert post(client, slurm)["accepted"] == 1
    result = post(
        client,
        slurm,
        native,
        envelope | {"data": slurm},
        envelope | {"id": "b", "data_base64": base64.b64encode(json.dumps(slurm).encode()).decode()},
    )
    assert (result["accepted"], result["duplicates"], result["conflicts"]) == (0, 4, 0)
    binary = {"ce-specversion": "1.0", "ce-type": "job", "ce-source": "/s", "ce-id": "c"}
    assert post(client, slurm, **binary)["duplicates"] == 1
    assert len(set(result["ids"])) == 1
    assert len(client.get("/api/v1/jobs/orion/42").json()["attempts"]) == 1
    assert client.get("/api/v1/stats").json()["stats"]["failed"] == 1


def test_the_same_id_with_other_content_is_a_counted_conflict(client: TestClient) -> None:
    post(client, event("1", event_id="e"))
    result = post(client, event("2", event_id="e"))
    assert (result["duplicates"], result["conflicts"]) == (1, 1)
    assert client.get("/api/v1/jobs/orion/2").status_code == 404
    assert client.get("/api/v1/jobs/orion/1").json()["attempts"][0]["conflicts"] == 1


# The API


@pytest.mark.parametrize("name", ["job-completion/1", "verdict/1", "labelled-case/1"])
def test_schemas_are_published_and_sound(client: TestClient, name: str) -> None:
    assert not validator(client, name).is_valid([])


def test_lists_have_one_shape_and_every_filter(client: TestClient) -> None:
    post(client, *(event(str(number)) for number in range(3)))
    row = client.get("/api/v1/failures").json()["items"][0]
    assert {"id", "cluster", "job_id", "attempt", "status", "side", "cause"} <= set(row)
    asked = {
        "side": row["side"], "cause": row["cause"], "symptom": "A.1", "cluster": "orion", "queue": "gpu",
        "team": "vision", "user": "ana", "node": "gpu018", "group": row["fingerprint"], "status": "failed",
        "q": "flash_attn", "since": "2026-11-20T00:00:00Z", "until": "2026-11-21",
    }  # fmt: skip
    assert set(asked) == set(FILTERS)
    for name, value in asked.items():
        page = client.get("/api/v1/failures", params={name: value, "limit": 2}).json()
        assert set(page) == {"items", "next_cursor"}
        assert len(page["items"]) == (0 if name == "symptom" else 2), name
    first = client.get("/api/v1/failures?limit=2").json()
    rest = client.get("/api/v1/failures", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert rest["next_cursor"] is None
    assert len({one["id"] for one in first["items"] + rest["items"]}) == 3
    assert client.get("/api/v1/failures?limit=500&sort=ended_at").status_code == 200
    assert set(client.get("/api/v1/dead-letters").json()) == {"items", "next_cursor"}


@pytest.mark.parametrize(
    ("path", "status", "field"),
    [
        ("/api/v1/failures?limit=501", 422, "limit"),
        ("/api/v1/failures?limit=0", 422, "limit"),
        ("/api/v1/failures?cursor=AAAA", 422, "cursor"),
        ("/api/v1/failures?sort=side", 422, "sort"),
        ("/api/v1/failures?colour=red", 422, "colour"),
        ("/api/v1/failures?since=soon", 422, "since"),
        ("/api/v1/failures/x", 422, "failure_id"),
        ("/api/v1/failures/99", 404, None),
        ("/api/v1/jobs/orion/none/such", 404, "job_id"),
        ("/api/v1/schemas/nothing", 404, "name"),
        ("/api/v1/nothing", 404, None),
    ],
)
def test_every_error_has_one_shape(client: TestClient, path: str, status: int, field: str | None) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    result = answer.json()
    assert {"type", "title", "status", "detail", "errors"} <= set(result)
    assert all(set(one) == {"field", "expected", "got"} for one in result["errors"])
    if field is not None:
        assert result["errors"][0]["field"] == field


def test_a_job_is_found_by_an_id_with_slashes(client: TestClient) -> None:
    post(client, FULL)
    result = client.get("/api/v1/jobs/orion/ns/Job/train").json()
    assert (result["cluster"], result["job_id"]) == ("orion", "ns/Job/train")
    assert {"attempt", "status", "started_at", "ended_at", "failure_id", "side", "cause"} <= set(result["attempts"][0])


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/metrics"])
def test_probes_find_what_they_expect_at_both_places(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 200
    assert client.get(f"/api/v1{path}").status_code == 200


def test_who_waits_gets_verdicts_as_published(client: TestClient) -> None:
    answer = client.post("/api/v1/events?wait=verdict", json=FULL).json()
    assert set(answer) >= {"accepted", "duplicates", "rejected", "ids"}
    [verdict] = answer["verdicts"]
    validator(client, "verdict/1").validate(verdict)
    assert not set(VERDICT_FIELDS) - set(verdict)


# Commands


@pytest.fixture(scope="module")
def environ() -> Mapping[str, str]:
    model = Path(os.environ.get("FAULTLINE_MODEL_DIR", default_model_dir()))
    if not (model / "manifest.json").exists():
        missing("no model is trained (make install)")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE_")},
        "FAULTLINE_MODEL_DIR": str(model),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }


def run(environ: Mapping[str, str], *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*FAULTLINE, *arguments], env=environ, input=stdin, capture_output=True, timeout=120, check=False
    )


def test_classify_answers_each_line_in_order_as_published(
    client: TestClient, environ: Mapping[str, str], tmp_path: Path
) -> None:
    deep = '{"cluster":"c","x":' + "[" * 900 + "]" * 900 + "}"
    given = [
        json.dumps(FULL), json.dumps(event("good", status="succeeded")), json.dumps(event("neg", status="over")),
        '{"cut":', "", json.dumps(event("8", status="timeout", logs=[])), deep, "x" * (16 * 1024 * 1024 + 10),
        json.dumps(event("9")),
    ]  # fmt: skip
    done = run(environ, "classify", "-", "--output", str(tmp_path / "out.jsonl"), stdin="\n".join(given).encode())
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr == b"faultline: 4 of 8 lines could not be read; see the errors in the output\n"
    result = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert [one.get("job_id") or one["line"] for one in result] == ["ns/Job/train", "good", 3, 4, "8", 7, 8, "9"]
    assert result[1] == {"job_id": "good", "skipped": "succeeded"}
    for bad in (result[2], result[3], result[5], result[6]):
        assert set(bad) == {"line", "error"}
        assert set(bad["error"]) == {"field", "expected", "got"}
    assert result[2]["error"]["field"] == "status"
    check = validator(client, "verdict/1")
    for verdict in (result[0], result[4], result[7]):
        check.validate(verdict)
        assert not set(VERDICT_FIELDS) - set(verdict)
    assert any("no log" in what or "not" in what for what in result[4]["missing"])


def test_classify_says_by_its_exit_code_how_it_went(environ: Mapping[str, str], tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_text(json.dumps(event()))
    good = str(tmp_path / "good.jsonl")
    assert run_command(environ, "classify", good).returncode == 0
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "manifest.json").write_text("{}")
    for arguments, code in (
        (("classify", str(tmp_path / "none.jsonl")), 2),
        (("classify",), 2),
        (("classify", good, "--model", str(tmp_path / "empty")), 4),
        (("classify", good, "--model", str(tmp_path / "nowhere")), 4),
        (("classify", good, "--model", str(tmp_path / "foreign")), 4),
    ):
        done = run_command(environ, *arguments)
        assert done.returncode == code, (arguments, done.stderr)
        assert done.stdout == ""
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [["classify", "-"], ["serve"], ["worker"], ["replay", "-"], ["config", "show"]])
def test_an_unknown_setting_stops_every_start(command: list[str]) -> None:
    done = run_command({**os.environ, "FAULTLINE_COLOUR": "red"}, *command)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "FAULTLINE_COLOUR" in line


def test_replay_survives_a_bomb_and_keeps_what_is_good(environ: Mapping[str, str], tmp_path: Path) -> None:
    database = {"FAULTLINE_DATABASE_URL": copy_migrated(tmp_path / "f.sqlite3")}
    good = json.dumps(event("1")).encode()
    bomb = gzip.compress(b"\n".join([good, b" " * 10 + b"x" * 200_000_000, json.dumps(event("2")).encode()]))
    assert len(bomb) < 300_000
    (tmp_path / "bomb.jsonl.gz").write_bytes(bomb)
    done = run({**environ, **database}, "replay", "--quiet", str(tmp_path / "bomb.jsonl.gz"))
    assert (done.returncode, done.stdout) == (3, b"2 accepted, 0 duplicate, 0 conflict, 0 skipped, 1 bad\n")
