"""What a case shows as its beginning where node events explain lines of its logs."""

from datetime import UTC, datetime, timedelta

import pytest

from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from classifiers.extraction.extractor import Extractor

BEGAN = datetime(2026, 11, 20, 9, tzinfo=UTC)
ENDED = BEGAN + timedelta(minutes=40)
STEPS = "".join(
    f"{BEGAN + timedelta(minutes=number):%Y-%m-%d %H:%M:%S} step {number} loss 2.0\n" for number in range(30)
)
NVML = "Failed to initialize NVML: Driver/library version mismatch\n"
ILLEGAL = "RuntimeError: CUDA error: an illegal memory access was encountered\n"
XID_31 = "NVRM: Xid (PCI:0000:65:00): 31, pid=61077, name=python, MMU Fault: ENGINE GRAPHICS"


def evidence(
    extractor: Extractor, text: str, *events: tuple[int, str, str], status: str = "failed"
) -> list[tuple[str, str]]:
    """Role and text of what is found in a log and events, given as minutes after the start, source and text."""
    facts = JobFacts(status, nodes=("gpu1",), gpus=8, scheduler="slurm", started_at=BEGAN, ended_at=ENDED)
    seen = tuple(NodeEvent(words, BEGAN + timedelta(minutes=at), "gpu1", source) for at, source, words in events)
    items = extractor.extract(RawCase(facts, (LogStream(text),), node_events=seen)).items
    return [(item.role, item.text) for item in items]


def role_of(found: list[tuple[str, str]], words: str) -> list[str]:
    return [role for role, text in found if words in text]


def test_a_change_makes_consequences_of_what_it_explains_and_of_what_follows(extractor: Extractor) -> None:
    upgrade = (25, "change", "apt: libnvidia-cfg1-570 570.1 -> 570.2 upgraded")
    log = STEPS + NVML + "RuntimeError: the monitor did not start\n"
    found = evidence(extractor, log, upgrade)
    assert found[0] == ("initiating", upgrade[2])
    assert role_of(found, "Driver/library") == ["cascade"]
    assert "initiating" not in role_of(found, "monitor did not start")
    assert "initiating" in role_of(evidence(extractor, log), "Driver/library")


def test_a_reload_that_a_report_of_changes_names_counts_like_that_of_a_daemon(extractor: Extractor) -> None:
    reload = (29, "change", "puppet run: unit files replaced, systemctl daemon-reload")
    found = evidence(extractor, STEPS + "Failed to initialize NVML: Unknown Error\n", reload)
    assert found[0] == ("initiating", reload[2])


def test_words_of_a_change_count_only_in_reports_of_changes(extractor: Extractor) -> None:
    down = (29, "slurmd", "error: health check failed: check_psu_count: 1 unit")
    for source, leads in (("change", True), ("kernel", False)):
        update = (20, source, "check_psu_count updated: 2 units expected")
        found = evidence(extractor, STEPS, update, down, status="node_fail")
        assert (found[0] == ("initiating", update[2])) is leads


def test_the_trace_of_an_error_that_the_program_reports_is_no_beginning_of_its_own(extractor: Extractor) -> None:
    found = evidence(extractor, STEPS + ILLEGAL, (29, "kernel", XID_31))
    assert found[0] == ("initiating", ILLEGAL.strip())
    assert role_of(found, "Xid") == ["cascade"]


def test_an_event_leads_a_line_that_has_only_the_time_of_a_line_before(extractor: Extractor) -> None:
    warning = f"{BEGAN:%Y-%m-%d %H:%M:%S} WARNING driver is newer than tested\n"
    heartbeat = (35, "kernel", "habanalabs 0000:33:00.0: accel2: device heartbeat failed")
    found = evidence(extractor, warning + "RuntimeError: synStatus 26 [Generic failure]\n", heartbeat)
    assert found[0] == ("initiating", heartbeat[2])


def test_events_keep_their_order_before_the_line_that_they_explain(extractor: Extractor) -> None:
    first = (34, "kernel", "habanalabs 0000:33:00.0: accel2: device heartbeat failed")
    second = (35, "kernel", "habanalabs 0000:33:00.0: accel2: hard reset, device heartbeat failed")
    log = f"{BEGAN:%Y-%m-%d %H:%M:%S} start\nRuntimeError: synStatus 26 [Generic failure]\n"
    assert evidence(extractor, log, second, first)[0] == ("initiating", first[2])


def test_attempts_that_are_over_are_no_attempts(extractor: Extractor) -> None:
    link = "amdgpu 0000:46:00.0: XGMI link 2 down, retry limit exceeded"
    log = STEPS + f"{ENDED:%Y-%m-%d %H:%M:%S} Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)\n"
    assert evidence(extractor, log, (30, "kernel", link))[0] == ("initiating", link)


def test_a_clock_that_is_said_to_be_ahead_is_set_right(extractor: Extractor) -> None:
    off = (90, "ipmi", "SEL: Power Unit PWR_STAT | Power off/down | Asserted")
    note = (95, "ipmi", "SEL clock is 1 h ahead of the host")
    assert evidence(extractor, STEPS, off, note, status="node_fail")[0] == ("initiating", off[2])
    assert evidence(extractor, STEPS, off, status="node_fail")[0] != ("initiating", off[2])


@pytest.mark.parametrize(("ranks", "suspect"), [((9, 13), 14), ((0, 1), None)])
def test_the_suspect_rank_is_that_of_the_device_that_an_event_names(
    extractor: Extractor, ranks: tuple[int, int], suspect: int | None
) -> None:
    lost = "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n"
    logs = tuple(LogStream(STEPS + lost, rank=rank, node="gpu2") for rank in ranks)
    facts = JobFacts("failed", nodes=("gpu1", "gpu2"), gpus=16, started_at=BEGAN, ended_at=ENDED)
    words = "NVRM: Xid (PCI:0000:9d:00): 119, pid=70, name=python, Timeout after 6s of waiting for RPC from GPU6 GSP!"
    event = NodeEvent(words, BEGAN + timedelta(minutes=30), "gpu2", "kernel")
    found = extractor.extract(RawCase(facts, logs, node_events=(event,))).case.suspect
    assert found is not None
    assert found.rank == suspect or (suspect is None and found.rank in ranks)
