from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import UnreadableRecord
from service.formats.slurm.job import TrackableResources, read_tres
from service.formats.slurm.nodes import NODES_MOST, expand_nodes
from service.formats.slurm.paths import expand
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
def test_the_state_tells_how_a_job_ended(state: str, status: str) -> None:
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


@pytest.mark.parametrize("node", [None, "", "(null)"])
def test_no_node_is_named_where_none_was_lost(node: str | None) -> None:
    found = event({**load("slurm"), "failed_node": node})
    assert found.node_events == ()
    assert "FailedNode" not in (found.message or "")


def test_a_job_cancelled_while_it_waited_has_no_start_and_no_log() -> None:
    found = event(load("slurm_waiting"))
    assert (found.started_at, found.nodes, found.logs) == (None, (), ())
    assert "Elapsed" not in (found.message or "")
    assert event({**load("slurm_waiting"), "@start": load("slurm_waiting")["@end"], "elapsed": 0}).logs == ()


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


@pytest.mark.parametrize(
    ("text", "tres"),
    [
        (None, TrackableResources()),
        ("cpu=4,mem=500M,node=1", TrackableResources(4, 500 * 2**20)),
        ("mem=1.5G", TrackableResources(memory_bytes=3 * 2**29)),
        ("mem=512", TrackableResources(memory_bytes=2**29)),
        ("gres/gpu=8,gres/gpu:h100=8", TrackableResources(gpus=8, gpu_type="h100")),
        ("gres/gpu:a100=2,gres/gpu:v100=1", TrackableResources(gpus=3)),
        ("cpu=many,mem=NaN,gres/gpu=", TrackableResources()),
        ("mem=1e999999999", TrackableResources()),
    ],
)
def test_resources_are_numbers_or_unknown(text: str | None, tres: TrackableResources) -> None:
    assert read_tres(text) == tres


@given(st.text(alphabet="cpumegrs/:=,0123456789.KMGTPe-", max_size=80))
def test_any_text_is_read_without_complaint(text: str) -> None:
    found = read_tres(text)
    assert all(number is None or 0 <= number <= 2**53 for number in (found.cpus, found.memory_bytes, found.gpus))


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        (None, ()),
        ("", ()),
        ("(null)", ()),
        ("None assigned", ()),
        ("gpu7", ("gpu7",)),
        ("gpu[001-003,007]", ("gpu001", "gpu002", "gpu003", "gpu007")),
        ("a[1-2],b3,a[2-3]", ("a1", "a2", "b3", "a3")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("gpu-1.cluster.example", ("gpu-1.cluster.example",)),
    ],
)
def test_a_host_list_is_expanded_to_its_nodes(expression: str | None, names: tuple[str, ...]) -> None:
    assert expand_nodes(expression, "nodes") == names


@pytest.mark.parametrize(
    "expression",
    [
        "a[1-", "a]", "a[[1]]", "a[1\n]", "a[5-1]", "a[x-y]", "a[1-999999999]", "a" + "[1-9]" * 9, "x" * 300 + "[1-2]",
        "a[" + ",".join(["1-99999"] * 50) + "]", "a[1-60000],b[1-60000]", "a[" + "9" * 5000 + "-" + "9" * 5001 + "]",
    ],
)  # fmt: skip
def test_what_is_none_or_too_much_is_refused(expression: str) -> None:
    with pytest.raises(UnreadableRecord, match="nodes"):
        expand_nodes(expression, "nodes")


@given(st.text(alphabet="ab[]-,019 \n", max_size=60))
def test_any_text_is_names_or_refused(expression: str) -> None:
    try:
        names = expand_nodes(expression, "nodes")
    except UnreadableRecord:
        return
    assert len(names) <= NODES_MOST
    assert len(set(names)) == len(names)


KNOWN = {"j": "123", "A": "120", "a": "4", "x": "my job", "u": "ana", "N": "gpu1", "t": "0", "n": "0", "s": "batch"}


@pytest.mark.parametrize(
    ("template", "path"),
    [
        ("/l/%j.out", "/l/123.out"),
        ("/l/%x_%u@%N", "/l/my job_ana@gpu1"),
        ("/l/%A_%a", "/l/120_4"),
        ("/l/%6j", "/l/000123"),
        ("/l/%99j", "/l/0000000123"),
        ("/l/%5x", "/l/my job"),
        ("/l/100%%", "/l/100%"),
        ("/l/%%j", "/l/%j"),
        ("/l/%", "/l/%"),
        ("/l/\\%j", "/l/%j"),
        ("/l/%z%4q", "/l/%z%4q"),
    ],
)
def test_patterns_in_the_path_of_a_log_are_filled_in(template: str, path: str) -> None:
    assert expand(template, KNOWN) == (path, None)


@pytest.mark.parametrize(("template", "unknown"), [("/l/%r", "%r"), ("/l/%j-%S", "%S")])
def test_facts_missing_in_the_record_are_reported(template: str, unknown: str) -> None:
    assert expand(template, KNOWN)[1] == unknown


def refs(**change: Any) -> list[tuple[str | None, str | None, str | None]]:
    return [(ref.stream, ref.uri, ref.missing) for ref in event({**load("slurm"), **change}).logs]


def test_stderr_not_set_is_in_the_same_file() -> None:
    for err in (None, "", "/l/%j"):
        assert refs(std_out="/l/%j", std_err=err) == [("stdout", "file:///l/31877", None)]


def test_no_output_no_log() -> None:
    assert refs(std_out="/dev/null", std_err=None) == []
    assert refs(std_out=None, std_err=None) == []


def test_a_path_that_cant_be_known_is_missing_with_the_reason() -> None:
    [(_, uri, missing)] = refs(std_out="/l/%r", std_err=None)
    assert uri is None
    assert missing is not None
    assert "%r" in missing
    [(_, uri, missing)] = refs(std_out="out", std_err=None, work_dir=None)
    assert uri is None
    assert missing is not None
    assert "relative" in missing


def test_what_a_batch_scripts_file_is_called() -> None:
    template = "/l/%j-%J-%s-%t-%n-%u-%x-%A-%a-%b-%5j"
    assert refs(std_out=template, std_err=None)[0][1] == (
        "file:///l/31877-31877-batch-0-0-mira-bert-ft-31877-4294967294-4-31877"
    )


def test_odd_characters_survive_in_the_uri() -> None:
    assert refs(std_out="/l/%x #?%%.log", std_err=None, job_name="é")[0][1] == "file:///l/%C3%A9%20%23%3F%25.log"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"std_out": "/" + "%x" * 300_000, "job_name": "j" * 20_000}, "more than 4,096 characters"),
        ({"std_out": "/" + "%x" * 2_000, "job_name": "j" * 1_000}, "more than 4,096 characters"),
        ({"std_out": "o", "work_dir": "/" + "w" * 5_000}, "more than 4,096 characters"),
        ({"std_out": "/l/%x", "job_name": "j" * 20_000}, "depends on %x"),
    ],
    ids=["both", "pattern", "folder", "name"],
)
def test_a_path_that_no_system_has_is_not_built(changes: dict[str, Any], reason: str) -> None:
    [(_, uri, missing)] = refs(**{"std_err": None, **changes})
    assert uri is None
    assert reason in (missing or "")
    assert len(missing or "") < 200
