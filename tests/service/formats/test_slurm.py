from datetime import UTC, datetime
from typing import Any

import pytest

from tests.service.formats.examples import event, load, skipped, wrong_field


def test_an_end_record_becomes_an_event() -> None:
    found = event(load("slurm"))
    assert (found.cluster, found.job_id, found.user, found.team, found.queue) == (
        "aurora", "31877", "mira", "nlp", "a100",
    )  # fmt: skip
    assert (found.status, found.exit_code, found.signal, found.reason) == ("failed", 139, None, "FAILED")
    assert found.started_at == datetime(2026, 11, 18, 9, 5, tzinfo=UTC)
    assert found.nodes == ("a07", "a08")
    assert (found.gpus, found.gpu_type, found.time_limit_s) == (16, "a100", 86400)
    assert found.requested is not None
    assert (found.requested.cpus, found.requested.memory_bytes) == (128, 1000 * 2**30)
    assert found.command == "srun python train.py --lr 1e-4"
    assert found.message == "JobState=FAILED ExitCode=139:0 DerivedExitCode=0:11 Elapsed=8712s"
    assert [ref.uri for ref in found.logs] == [
        "file:///scratch/mira/bert%20run/logs/bert-ft-31877.out",
        "file:///scratch/mira/err/00031877.a07.err",
    ]


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("COMPLETED", "succeeded"),
        ("FAILED", "failed"),
        ("BOOT_FAIL", "failed"),
        ("TIMEOUT", "timeout"),
        ("DEADLINE", "timeout"),
        ("OUT_OF_MEMORY", "out_of_memory"),
        ("NODE_FAIL", "node_fail"),
        ("PREEMPTED", "preempted"),
        ("CANCELLED", "cancelled"),
        ("CANCELLED by 4107", "cancelled"),
        ("CANCELLED+", "cancelled"),
    ],
)
def test_states(state: str, status: str) -> None:
    assert event({**load("slurm"), "state": state}).status == status


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "REQUEUED", "RESIZING", "SPECIAL_EXIT"])
def test_states_that_are_no_end_are_skipped(state: str) -> None:
    assert state in skipped({**load("slurm"), "state": state})


def test_a_start_record_is_skipped() -> None:
    assert "start record" in skipped(load("slurm_start"))


@pytest.mark.parametrize(
    ("codes", "state", "exit_code", "signal"),
    [
        ("1:0", "FAILED", 1, None),
        ("0:0", "COMPLETED", 0, None),
        ("0:0", "FAILED", 0, None),
        ("143:0", "FAILED", 143, None),
        ("137:0", "FAILED", 137, None),
        ("0:9", "FAILED", None, 9),
        ("0:15", "CANCELLED", None, 15),
        ("0:0", "TIMEOUT", None, None),
        ("0:0", "PREEMPTED", None, None),
        ("0:1", "NODE_FAIL", None, None),
        ("0:125", "OUT_OF_MEMORY", None, None),
        ("0:53", "FAILED", None, None),
    ],
)
def test_exit_codes_are_the_processs_own(codes: str, state: str, exit_code: int | None, signal: int | None) -> None:
    found = event({**load("slurm"), "exit_code": codes, "state": state})
    assert (found.exit_code, found.signal) == (exit_code, signal)
    assert f"ExitCode={codes}" in (found.message or "")


@pytest.mark.parametrize("codes", ["1", "-1:0", "a:b", "256:0", "0:999", "1:0:0", "", 1])
def test_a_broken_exit_code_is_left_out_and_named(codes: Any) -> None:
    if codes == "":
        assert event({**load("slurm"), "exit_code": codes}).exit_code is None
        return
    found = event({**load("slurm"), "exit_code": codes})
    assert (found.exit_code, found.signal) == (None, None)
    assert found.intake_problems[0].startswith("exit_code: dropped, ")


def test_array_tasks_and_parts_of_heterogeneous_jobs_have_their_own_ids() -> None:
    assert event(load("slurm_array")).job_id == "31900_4"
    assert event(load("slurm_het")).job_id == "32000+1"
    old = {**load("slurm"), "pack_job_id": 5, "pack_job_offset": 0}
    assert event(old).job_id == "5+0"


def test_a_lost_node_is_named() -> None:
    found = event(load("slurm_het"))
    assert [(line.node, line.source) for line in found.node_events] == [("a08", "slurmctld")]
    assert "FailedNode=a08" in (found.message or "")


def test_a_job_cancelled_while_it_waited_has_no_start_and_no_log() -> None:
    found = event(load("slurm_waiting"))
    assert (found.started_at, found.nodes, found.logs) == (None, (), ())
    assert "Elapsed" not in (found.message or "")


def test_a_job_that_ends_twice_under_one_id_is_two_attempts() -> None:
    first, second = load("slurm"), {**load("slurm"), "@start": "2026-11-18T12:00:00", "@end": "2026-11-18T13:00:00"}
    assert event(first).key() == event(dict(first)).key()
    assert event(first).key() != event(second).key()


@pytest.mark.parametrize("limit", [None, 31_536_000])
def test_no_time_limit(limit: int | None) -> None:
    assert event({**load("slurm"), "time_limit": limit}).time_limit_s is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"jobid": None}, "jobid"),
        ({"jobid": "31877"}, "jobid"),
        ({"jobid": -1}, "jobid"),
        ({"state": "EXPLODED"}, "state"),
        ({"state": 7}, "state"),
        ({"@end": "Unknown"}, "@end"),
        ({"@end": "yesterday"}, "@end"),
        ({"@start": "2026-13-01T00:00:00"}, "@start"),
        ({"nodes": "a[1-"}, "nodes"),
        ({"time_limit": -5}, "time_limit"),
        ({"username": 12}, "username"),
        ({"std_out": []}, "std_out"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], field: str) -> None:
    assert wrong_field({**load("slurm"), **change}) == field


@pytest.mark.parametrize(("number", "uid"), [(4107, 4107), (0, 0), (2**32 - 2, None), (None, None)])
def test_the_number_of_the_user_is_kept(number: int | None, uid: int | None) -> None:
    assert event({**load("slurm"), "user_id": number}).uid == uid
