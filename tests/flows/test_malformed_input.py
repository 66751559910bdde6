"""Bad input through all stages: read, diagnosed, stored, shown. Nothing crashes, is lost, or leaks a secret.

The classifier is a hand-written stand-in; all other parts are real. The handling of bad input by a single part is
tested with that part.
"""

import gzip
import json
import os
import pwd
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from fastapi.testclient import TestClient

from classifiers.extraction import training_progress
from classifiers.redaction import redact
from service.contracts.event import JobCompletion
from service.formats import recognise
from service.logs.fetch import LogFetcher
from service.messaging.batch_result import BatchOutcome
from service.messaging.file_replay import FileReplay
from service.pipeline.diagnosis_tools import DiagnosisTools
from service.recommend import policy
from service.web.services import Services
from tests.service.pipeline.diagnosis import diagnose_with
from tests.service.web.world import NOW, ByWord, World, event, lines, log, make_world

SECRETS = {
    "github": "ghp_" + "a1B2c3D4e5" * 4,
    "face": "hf_" + "Zy9Xw8Vu7T" * 4,
    "aws": "AKIA" + "Q3ZT7YV5KLM2NOPR",
    "url": "postgresql://ana:s3cretPassw0rd@db.example/app",
    "flag": "--api-key 8f14e45fceea167a5a36dedd4bea2543",
}
# Must appear nowhere: the secret part of each text.
PLANTED = ("a1B2c3D4e5a1", "Zy9Xw8Vu7TZy", "Q3ZT7YV5KLM2NOPR", "s3cretPassw0rd", "8f14e45fceea167a5a36")
HOSTILE = "<img src=x onerror=alert(1)>{{7*7}}{% raw %}\x1b]0;owned\x07\x1b[31m\u202egnp.exe\u2066"
FOUND = "ModuleNotFoundError: No module named 'flash_attn'"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "logs"
    made.mkdir()
    return made


@pytest.fixture
def world(tmp_path: Path, root: Path) -> Iterator[World]:
    made = make_world(tmp_path)
    services: Services = made.services
    fetcher = LogFetcher([str(root)])
    diagnose = diagnose_with(
        DiagnosisTools(made.store, fetcher, ByWord(), policy.built_in(), made.clock, services.telemetry)
    )
    object.__setattr__(services, "ingest", diagnose)
    yield made
    fetcher.close()
    made.store.close()


@pytest.fixture
def client(world: World) -> Iterator[TestClient]:
    with world.client() as made:
        yield made


def post(client: TestClient, *records: dict[str, Any] | bytes, query: str = "") -> dict[str, Any]:
    answer = client.post(f"/api/v1/events{query}", content=lines(*records))
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def nested(levels: int) -> Any:
    value: Any = "\x00"
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"note": nested(400)}, "(whole object)"),
        ({"topology": {"n1": nested(300)}}, "(whole object)"),
        ({"job_id": 9}, "job_id"),
        ({"schema": "job-completion/2"}, "schema"),
        ({"ended_at": 1795000000}, "ended_at"),
    ],
)
def test_a_bad_record_is_rejected_by_its_field_kept_as_a_letter_and_hurts_no_neighbour(
    client: TestClient, changes: dict[str, Any], field: str
) -> None:
    bad = json.dumps(event("2") | changes).encode()  # orjson can't serialize such deep nesting
    result = post(client, event("1"), bad, event("3"))
    assert result["accepted"] == 2
    assert [(one["line"], one["field"]) for one in result["rejected"]] == [(2, field)]
    [letter] = client.get("/api/v1/dead-letters").json()["items"]
    assert letter["place"] == "POST /api/v1/events line 2"
    assert letter["reason"].startswith(field)


def test_a_hundred_levels_are_kept(client: TestClient) -> None:
    assert post(client, event(note=nested(99)))["accepted"] == 1
    assert client.get("/failures/1").status_code == 200
    assert client.get("/api/v1/failures/1?logs=true").status_code == 200


def test_millions_of_wrong_entries_cost_neither_time_nor_memory() -> None:
    """Each entry used to create its own error: 16 MiB took minutes and 11 GB."""
    body = b'{"cluster":"c","job_id":"1","status":"failed","ended_at":"2026-11-20T03:41:57Z","logs":['
    body += b",".join([b"1"] * 2_000_000) + b"]}"
    began = time.process_time()
    found = recognise.parse(body)
    assert isinstance(found, JobCompletion)
    assert "at most 20000 entries" in found.intake_problems[0]
    assert time.process_time() - began < 5


def test_an_event_that_nothing_can_handle_becomes_a_letter_and_its_neighbours_are_stored(
    world: World, client: TestClient
) -> None:
    handle = world.services.ingest

    def stumbling(events: Any, dead: Any = ()) -> BatchOutcome:
        if any(one.job_id == "odd" for one in events):
            raise ZeroDivisionError
        return handle(events, dead)

    object.__setattr__(world.services, "ingest", stumbling)
    result = post(client, b"{", *(event(str(n)) for n in range(5)), event("odd"), event("6"))
    assert result["accepted"] == 6
    assert [one["line"] for one in result["rejected"]] == [1, 7]
    reasons = [one["reason"] for one in client.get("/api/v1/dead-letters").json()["items"]]
    assert len(reasons) == 2
    assert "could not be handled: ZeroDivisionError" in reasons


def test_more_lines_than_are_taken_at_once_are_refused_and_one_long_object_is_not(client: TestClient) -> None:
    refused = client.post("/api/v1/events", content=lines(event()) + b"\n1" * 100_001)
    assert refused.status_code == 413
    assert client.get("/api/v1/dead-letters").json()["items"] == []
    spread = orjson.dumps(event()).replace(b",", b"," + b"\n" * 10_000)
    assert client.post("/api/v1/events", content=spread).json()["accepted"] == 1


def test_a_body_of_countless_gzip_members_is_refused_at_once(client: TestClient) -> None:
    body = gzip.compress(b"") * 100_000
    began = time.process_time()
    answer = client.post("/api/v1/events", content=body, headers={"Content-Encoding": "gzip"})
    assert answer.status_code == 422
    assert "members" in answer.json()["detail"]
    assert time.process_time() - began < 5


def test_null_bytes_invalid_utf8_and_truncated_json_each_have_an_answer(client: TestClient) -> None:
    whole = orjson.dumps(event("whole"))
    result = post(
        client,
        event("null", message="a\x00b", logs=[log("x\x00y\n" + FOUND)], labels={"k\x00": "v\x00"}),
        whole[: len(whole) // 2],
        whole.replace(b"vit-g", b"vit-\xff\xfe"),
        whole.replace(b'"failed"', b"NaN"),
        event("last"),
    )
    assert result["accepted"] == 2
    assert [one["line"] for one in result["rejected"]] == [2, 3, 4]
    assert client.get("/api/v1/jobs/orion/null").json()["attempts"][0]["side"] == "user"
    assert len(client.get("/api/v1/dead-letters").json()["items"]) == 3


def test_a_clock_ahead_or_backwards_is_stored_and_flagged_and_shown(client: TestClient) -> None:
    later = (NOW + timedelta(days=2)).isoformat()
    post(
        client,
        event("ahead", ended_at=later, started_at=None),
        event("reversed", started_at=NOW.isoformat(), ended_at=(NOW - timedelta(hours=1)).isoformat()),
        event("first", started_at="0001-01-01T00:00:00Z", ended_at="9999-12-31T23:59:59Z", gpus=2**53),
        event("fine"),
    )
    flags = {
        job: client.get(f"/api/v1/jobs/orion/{job}").json()["attempts"][0]["clock_suspect"]
        for job in ("ahead", "reversed", "first", "fine")
    }
    assert flags == {"ahead": True, "reversed": True, "first": True, "fine": False}
    for path in ("/", "/failures", "/failures/1", "/failures/3", "/api/v1/stats?since=9999w"):
        assert client.get(path).status_code == 200


def test_attempts_out_of_order_and_twice_are_listed_in_order_once(client: TestClient) -> None:
    def attempt(number: int) -> dict[str, Any]:
        start = NOW - timedelta(hours=9 - number)
        return event(
            "9", attempt=number, started_at=start.isoformat(), ended_at=(start + timedelta(minutes=30)).isoformat()
        )

    first = post(client, attempt(2), attempt(0), attempt(2), attempt(1))
    assert (first["accepted"], first["duplicates"]) == (3, 1)
    assert post(client, attempt(1), attempt(0))["duplicates"] == 2
    attempts = client.get("/api/v1/jobs/orion/9").json()["attempts"]
    assert [one["attempt"] for one in attempts] == [0, 1, 2]


@pytest.mark.parametrize("job", ["ns/Job/train-7", "a//b", "../../etc/passwd", "ü/😀", "a?b#c", "123+1", ";|$"])
def test_any_job_id_has_its_own_address_and_its_page_links_to_it(client: TestClient, job: str) -> None:
    post(client, event(job))
    page = client.get("/failures/1")
    assert page.status_code == 200
    href = next(part for part in page.text.split('"') if part.startswith("/api/v1/jobs/orion/"))
    answer = client.get(href)
    assert answer.status_code == 200, href
    assert answer.json()["job_id"] == job


def test_a_log_that_may_not_be_read_is_reported_and_never_read(client: TestClient, world: World, root: Path) -> None:
    outside = root.parent / "outside.err"
    outside.write_text("the neighbour's words\n")
    (root / "link.err").symlink_to(outside)
    os.mkfifo(root / "fifo.err")
    (root / "roots.err").write_text("root's own words\n")
    uris = {
        "outside": f"file://{outside}",
        "steps": f"file://{root}/../outside.err",
        "coded": f"file://{root}/%2e%2e/outside.err",
        "link": f"file://{root}/link.err",
        "fifo": f"file://{root}/fifo.err",
        "theirs": f"file://{root}/roots.err",
        "web": "http://169.254.169.254/latest/meta-data/",
        "chained": f"simplecache::file://{outside}",
        "local": f"local://{outside}",
        "gone": f"file://{root}/gone.err",
    }
    result = post(
        client,
        *(event(job, user="nobody", logs=[{"rank": 0, "stream": "stderr", "uri": uri}]) for job, uri in uris.items()),
        query="?wait=verdict",
    )
    assert result["accepted"] == len(uris)
    items = client.get("/api/v1/failures").json()["items"]
    assert len(items) == len(uris)
    for item in items:
        kept = client.get(f"/api/v1/failures/{item['id']}?logs=true").json()
        [stream] = kept["logs"][0]["streams"]
        assert stream["missing"], item["job_id"]
        assert stream["text"] == ""
    everything = b"".join(path.read_bytes() for path in root.parent.glob("store.sqlite3*"))
    assert b"neighbour" not in everything
    with world.store.unit_of_work() as work:  # only the missing parts are tried again
        world.clock.sleep(60)
        assert [entry.refs[0]["uri"] for entry in work.pending_logs.due(limit=50)] == [uris["gone"]]


def test_a_planted_secret_is_nowhere(client: TestClient, world: World, root: Path, tmp_path: Path) -> None:
    result = " ".join(SECRETS.values())
    (root / "job.err").write_text(f"export TOKEN={SECRETS['face']}\n{FOUND}\n{result}\n")
    bad = event("bad", status="over", message=result, command=result)
    texts = dict.fromkeys(
        ("name", "user", "team", "queue", "image", "command", "reason", "message", "gpu_type"), result
    )
    event_ = event(
        "1",
        **texts,
        nodes=["n1", SECRETS["github"]],
        labels={"note": result, SECRETS["github"]: "x"},
        node_events=[{"at": NOW.isoformat(), "node": SECRETS["github"], "source": result, "text": result}],
        logs=[
            log(f"{FOUND}\n{result}", stream=SECRETS["github"], node=SECRETS["face"]),
            {"rank": 1, "uri": f"file://{root}/job.err"},
            {"rank": 2, "uri": f"https://logs.example/x?token={SECRETS['github']}"},
            {"rank": 3, "uri": f"https://ana:s3cretPassw0rd@logs.example/{SECRETS['face']}"},
        ],
        checkpoint={"uri": SECRETS["url"]},
        topology={"n1": {"note": result}},
        other={"deep": [result], "password": "s3cretPassw0rd"},
    )
    slurm = {
        "jobid": 12, "cluster": "orion", "state": "FAILED", "exit_code": "1:0", "@end": "2026-11-20T03:41:57",
        "script": f"#!/bin/sh\npython train.py {result}\n", "username": "ana", "job_name": result, "nodes": "n1",
    }  # fmt: skip
    answers = [orjson.dumps(post(client, event_, bad, slurm, query="?wait=verdict"))]
    (tmp_path / "events.jsonl").write_bytes(lines(bad, b'{"x": "' + result.encode() + b'"', event_ | {"job_id": "2"}))
    FileReplay(recognise.parse, world.services.ingest, clock=world.clock).run([str(tmp_path / "events.jsonl")])
    (tmp_path / "events.jsonl").unlink()
    letters = client.get("/api/v1/dead-letters").json()["items"]
    answers += [client.post(f"/api/v1/dead-letters/{letter['id']}:resend").content for letter in letters]
    paths = ["/", "/failures", "/dead-letters", "/model", "/settings", "/metrics", "/api/v1/dead-letters"]
    paths += ["/api/v1/failures", "/api/v1/stats"]
    for item in client.get("/api/v1/failures").json()["items"]:
        paths += [f"/failures/{item['id']}", f"/api/v1/failures/{item['id']}?logs=true"]
    for path in paths:
        answer = client.get(path)
        assert answer.status_code == 200, path
        answers.append(answer.content)
    with world.store.unit_of_work() as work:
        told_others = work.outbox.lease("test", limit=100, seconds=1)
        assert told_others
        answers += [orjson.dumps(one.payload) for one in told_others]
        world.clock.sleep(60)
        answers += [orjson.dumps(entry.refs) for entry in work.pending_logs.due(limit=50)]
    world.store.close()
    answers += [path.read_bytes() for path in tmp_path.glob("store.sqlite3*")]
    for secret in PLANTED:
        assert not any(secret.encode() in answer for answer in answers), secret
    assert any(b"[redacted]" in answer for answer in answers)


def test_hostile_text_in_every_field_is_only_text_on_every_page(client: TestClient) -> None:
    texts = dict.fromkeys(
        ("name", "user", "team", "queue", "image", "command", "reason", "message", "gpu_type"), HOSTILE
    )
    long = FOUND + " " + "<b>" * 350_000
    post(
        client,
        event(
            "<script>alert(1)</script>", cluster="<svg onload=alert(1)>", **texts, nodes=[HOSTILE],
            labels={HOSTILE: HOSTILE}, x={HOSTILE: HOSTILE},
            logs=[log(f"{long}\n{HOSTILE}", stream=HOSTILE, node=HOSTILE)],
        ),
        b"<img src=x onerror=alert(1)>{{7*7}}",
    )  # fmt: skip
    output = {"kind": "correct", "cause": "USER.4", "failures": [1], "note": HOSTILE}
    assert client.post("/api/v1/feedback", json=output).status_code == 200
    assert client.post("/api/v1/failures/1:hold", json={"comment": HOSTILE}).status_code == 200
    lists = ("/", "/failures", "/failures?ticked=all", "/dead-letters", "/automation", "/groups")
    for path in (*lists, "/failures/1", "/model", "/failures?q=%3Cimg&user=%3Csvg%20onload%3D1%3E"):
        page = client.get(path)
        assert page.status_code == 200
        assert len(page.content) < 400_000
        for live in ("<img", "<script>alert", "<svg onload", "<b><b>", "\x1b", "\u202e", "\u2066", "\x07"):
            assert live not in page.text, (path, live)
    assert "{{7*7}}" in client.get("/failures/1").text
    assert client.get("/failures/1").headers["Content-Security-Policy"].startswith("default-src 'none'")


@pytest.mark.parametrize("q", ["100%_", "'; DROP TABLE jobs;--", "C:\\Temp", '"alpha" OR beta*', "near(alpha)"])
def test_words_are_searched_as_they_are(client: TestClient, q: str) -> None:
    post(client, event("1", logs=[log("KeyError")]), event("2", logs=[log(f"KeyError {q}")]))
    found = client.get("/api/v1/failures", params={"q": q}).json()["items"]
    assert [one["job_id"] for one in found] == ["2"]


@pytest.mark.parametrize("q", ["%", "_", "\\", "/", "'", '"', "*", "(", "\u202e"])
def test_what_holds_no_word_finds_nothing_and_breaks_nothing(client: TestClient, q: str) -> None:
    post(client, event("1", logs=[log(f"KeyError {q}")]))
    answer = client.get("/api/v1/failures", params={"q": q})
    assert (answer.status_code, answer.json()["items"]) == (200, [])
    assert client.get("/failures", params={"q": q}).status_code == 200


def test_a_name_in_a_header_or_path_can_not_write_a_header_or_a_log_line(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    for path in ("/api/v1/jobs/x/%0d%0aSet-Cookie:%20a=b", "/nowhere/%0d%0aX-Evil:%201", "/login?next=//evil.example/"):
        answer = client.get(path)
        assert "x-evil" not in answer.headers
        assert "a=b" not in answer.headers.get("set-cookie", "")
        assert "//evil.example" not in answer.text
    assert not [record for record in caplog.records if "\n" in record.getMessage()]


def test_ranks_by_the_hundred_with_a_mebibyte_each_are_kept_within_bounds(world: World, root: Path) -> None:
    text = b"step loss 0.1 of all that was well\n" * 30_000
    refs = []
    for rank in range(100):
        (root / f"{rank}.err").write_bytes(text + (FOUND.encode() if rank == 40 else b"bye"))
        refs.append({"rank": rank, "stream": "stderr", "uri": f"file://{root}/{rank}.err"})
    made = recognise.parse(orjson.dumps(event("many", user=pwd.getpwuid(os.getuid()).pw_name, logs=refs)))
    assert isinstance(made, JobCompletion)
    [outcome] = world.services.ingest([made]).events
    assert outcome.verdict is not None
    assert outcome.verdict["evidence"][0]["rank"] == 40
    assert outcome.failure_id is not None
    with world.store.reading() as reading:
        [kept] = reading.failures.get(outcome.failure_id).logs
    assert sum(len(stream.text) for stream in kept.streams) <= 17 * 1024 * 1024
    assert kept.streams[40].text.endswith(FOUND)


@pytest.mark.parametrize(
    "hostile", [" ", "\n", "\t", "it/s ", "step ", "saved checkpoint to . ", ".", "eyJ", "-eyJ", "eyJaaaaaaaa."]
)
def test_no_text_costs_much_more_than_its_length(hostile: str) -> None:
    text = "checkpoint step" + hostile * (262_144 // len(hostile))
    began = time.process_time()
    redact(text)
    training_progress.find_progress([text])
    training_progress.find_progress([text[:60_000]])
    assert time.process_time() - began < 1
