import copy
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard

from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import DatasetError

CASE: dict[str, Any] = {
    "id": "one",
    "group": "g",
    "kind": "k",
    "event": {
        "status": "failed",
        "exit_code": 1,
        "nodes": ["n1"],
        "started_at": "2026-11-20T08:00:00Z",
        "logs": [{"rank": 2, "node": "n1", "tail": "KeyError: 'x'"}, {"rank": 3, "uri": "s3://b/x"}],
        "node_events": [{"at": "2026-11-20T08:10:00Z", "node": "n1", "text": "NVRM: Xid 79"}],
    },
    "labels": {
        "side": "user",
        "cause": "USER.1",
        "category": "GC.3",
        "symptom": "none",
        "symptom_ok": ["none", "D.1.11"],
        "retry": None,
        "root_rank": 2,
        "root_line": "KeyError: 'x'",
    },
    "provenance": {"origin": "captured"},
}


def changed(path: str, value: Any) -> dict[str, Any]:
    case = copy.deepcopy(CASE)
    *way, last = path.split(".")
    inside = case
    for step in way:
        inside = inside[step]
    inside[last] = value
    return case


def test_a_case_becomes_what_classification_reads() -> None:
    case = labelled_cases.parse(CASE, "here")
    assert [(one.rank, one.text, one.missing is None) for one in case.raw.streams] == [
        (2, "KeyError: 'x'", True),
        (3, "", False),
    ]
    assert case.raw.job.exit_code == 1
    assert case.raw.node_events[0].at is not None
    assert case.labels.best["retry"] is None
    assert case.labels.allowed["side"] == ("user",)
    assert case.labels.allowed["symptom"] == ("none", "D.1.11")


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("id", "", "id"),
        ("event", None, "event"),
        ("event.status", None, "event.status"),
        ("event.status", "pending", "event.status"),
        ("event.logs", ["x"], "event.logs"),
        ("labels", None, "labels"),
        ("labels.side", "hardwear", "labels.side"),
        ("labels.cause", "HW.GPU.1", "labels.cause"),
        ("labels.symptom_ok", ["D.1.11"], "labels.symptom_ok"),
        ("labels.category_ok", "GC.3", "labels.category_ok"),
        ("labels.root_rank", -1, "labels.root_rank"),
        ("provenance", {}, "provenance.origin"),
        ("weight", 0, "weight"),
        ("weight", True, "weight"),
        ("schema", "labelled-case/2", "schema"),
    ],
)
def test_a_wrong_case_is_refused_by_place_and_field(path: str, value: Any, field: str) -> None:
    with pytest.raises(DatasetError) as refused:
        labelled_cases.parse(changed(path, value), "labels.jsonl:7")
    assert refused.value.field == field
    assert str(refused.value).startswith(f"labels.jsonl:7: {field}: expected ")


def test_a_missing_axis_is_not_an_unknown_one() -> None:
    case = copy.deepcopy(CASE)
    del case["labels"]["retry"]
    with pytest.raises(DatasetError, match="null where it is not known"):
        labelled_cases.parse(case, "here")


def test_plain_and_compressed_files_are_read_in_the_same_way(tmp_path: Path) -> None:
    line = orjson.dumps(CASE)
    (tmp_path / "a.jsonl").write_bytes(line + b"\n\n")
    (tmp_path / "b.jsonl.zst").write_bytes(zstandard.compress(BOM_UTF8 + line))  # as editors on Windows save it
    plain, packed = labelled_cases.read_file(tmp_path / "a.jsonl"), labelled_cases.read_file(tmp_path / "b.jsonl.zst")
    assert labelled_cases.digest(plain) == labelled_cases.digest(packed)
    assert [one.name for one in labelled_cases.case_files(tmp_path)] == ["a.jsonl", "b.jsonl.zst"]


def test_a_line_that_is_not_json_is_reported_with_its_number(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(orjson.dumps(CASE) + b"\n{oops\n")
    with pytest.raises(DatasetError, match=r"a\.jsonl:2: line: expected JSON"):
        labelled_cases.read_file(file)


def test_the_digest_follows_content_not_order() -> None:
    one, other = labelled_cases.parse(CASE, "x"), labelled_cases.parse(changed("id", "two"), "x")
    assert labelled_cases.digest([one, other]) == labelled_cases.digest([other, one])
    assert labelled_cases.digest([one]) != labelled_cases.digest(
        [labelled_cases.parse(changed("labels.category", "GC.4"), "x")]
    )


def test_an_id_stands_once() -> None:
    case = labelled_cases.parse(CASE, "x")
    with pytest.raises(DatasetError, match="occurs once"):
        labelled_cases.check_ids([case, case])
