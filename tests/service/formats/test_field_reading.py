import json
from pathlib import Path
from typing import Any

import pytest

from service.contracts.event import JobCompletion
from service.errors import UnreadableRecord
from service.formats.recognise import parse

RECORDS = Path(__file__).parents[2] / "data" / "formats"


def record(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def with_value(data: Any, path: str, value: Any) -> Any:
    key, _, rest = path.partition(".")
    return {**data, key: with_value(data.get(key, {}), rest, value) if rest else value}


def read(data: Any) -> JobCompletion:
    event = parse(json.dumps(data).encode(), cluster="orion")
    assert isinstance(event, JobCompletion)
    return event


@pytest.mark.parametrize(
    ("name", "field", "wrong"),
    [
        ("slurm", "user_id", "ana"),
        ("slurm", "nodes", "gpu[1-"),
        ("slurm", "exit_code", "one"),
        ("slurm", "time_limit", -5),
        ("slurm", "@submit", "yesterday"),
        ("slurm_epilog", "SLURM_JOB_UID", "ana"),
        ("slurm_epilog", "SLURM_JOB_NODELIST", "gpu["),
        ("pod", "metadata.labels", 7),
        ("pod", "spec.nodeName", []),
        ("job", "spec.activeDeadlineSeconds", "long"),
        ("ray", "metadata", [1]),
        ("ray", "driver_exit_code", "x"),
    ],
)
def test_a_wrong_optional_field_loses_no_event(name: str, field: str, wrong: Any) -> None:
    right = read(record(name))
    event = read(with_value(record(name), field, wrong))
    assert event.intake_problems[0].startswith(f"{field}: dropped, expected ")
    assert (event.cluster, event.job_id, event.status, event.ended_at) == (
        *(right.cluster, right.job_id, right.status, right.ended_at),
    )


@pytest.mark.parametrize(
    ("name", "field", "wrong"),
    [
        ("slurm", "jobid", "x"),
        ("slurm", "state", 7),
        ("slurm", "@end", "yesterday"),
        ("slurm", "cluster", 7),
        ("slurm_array", "array_task_id", "x"),
        ("slurm_epilog", "SLURM_JOB_END_TIME", "x"),
        ("pod", "metadata.name", 7),
        ("ray", "status", "DONE?"),
    ],
)
def test_a_wrong_field_that_identifies_the_job_or_its_end_refuses_the_record(name: str, field: str, wrong: Any) -> None:
    with pytest.raises(UnreadableRecord) as caught:
        parse(json.dumps(with_value(record(name), field, wrong)).encode(), cluster="orion")
    assert caught.value.errors[0].field == field


def test_several_wrong_fields_are_all_listed() -> None:
    data = record("slurm")
    for field in ("user_id", "time_limit", "account"):
        data = with_value(data, field, [])
    assert {one.partition(":")[0] for one in read(data).intake_problems} == {"user_id", "time_limit", "account"}


def test_without_a_required_field_the_first_error_stands() -> None:
    data = with_value(with_value(record("slurm"), "user_id", "x"), "@end", "x")
    with pytest.raises(UnreadableRecord, match="@end"):
        parse(json.dumps(data).encode(), cluster="orion")
