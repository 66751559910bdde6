"""Events of batch clusters: what they cause, which nodes they name, and what excludes a change."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from classifiers.extraction.evidence_items import EvidenceItem
from classifiers.extraction.extractor import Extractor

ENDED = datetime(2026, 11, 20, 10, tzinfo=UTC)
STEPS = "".join(f"2026-11-20 09:{n:02}:00 step {n} loss 1.5\n" for n in range(10, 56))
LOST = "2026-11-20 09:56:00 NCCL WARN Connection closed by remote peer ai32\n"


def items(extractor: Extractor, log: str, *events: NodeEvent, **facts: Any) -> list[EvidenceItem]:
    values: dict[str, Any] = {"status": "failed", "nodes": ("ai31", "ai32"), "gpus": 16, "scheduler": "slurm"}
    seen = JobFacts(**(values | facts), started_at=ENDED - timedelta(hours=1), ended_at=ENDED)
    return extractor.extract(RawCase(seen, (LogStream(log, rank=0, node="ai31"),), node_events=events)).items


def happened(text: str, before_end_s: int, node: str | None = "ai32", source: str = "kernel") -> NodeEvent:
    return NodeEvent(text, ENDED - timedelta(seconds=before_end_s), node, source)


def begins(found: list[EvidenceItem]) -> list[str]:
    return [item.text for item in found if item.role == "initiating"]


@pytest.mark.parametrize(("nodes", "is_of_job"), [("ai[30-36]", True), ("ai[40-46]", False)])
def test_a_window_leads_the_loss_of_a_node_that_its_list_holds(
    extractor: Extractor, nodes: str, *, is_of_job: bool
) -> None:
    window = happened(f"window 71 open: new microcode on hosts {nodes}, one restart each", 400, "*", "change")
    lost = happened("error: Nodes ai32 not responding, setting DOWN", 200, None, "slurmctld")
    found = items(extractor, STEPS + LOST, window, lost, status="node_fail")
    assert (begins(found) == [window.text]) is is_of_job


def test_a_restart_that_an_operator_asked_for_leads_what_log_and_scheduler_say_of_the_node(
    extractor: Extractor,
) -> None:
    asked = happened("night shift: scontrol reboot ASAP ai[32-33]", 300, None, "change")
    lost = happened("error: Nodes ai32 not responding, setting DOWN", 200, None, "slurmctld")
    log = STEPS + LOST + "srun: error: Node failure on ai32\n"
    assert begins(items(extractor, log, asked, lost, status="node_fail")) == [asked.text]
    assert "srun: error: Node failure on ai32" in begins(items(extractor, log, lost, status="node_fail"))


def test_a_disk_of_the_node_leads_a_launch_that_fails_and_the_change_of_a_script_does_not(extractor: Extractor) -> None:
    log = "srun: error: Task launch for StepId=77.0 failed on node ai32: Job prolog failed\n"
    disk = happened("blk_update_request: I/O error, dev nvme0n1, sector 512 op 0x0:(READ)", 900)
    prolog = happened("error: prolog failed: rc:1 output: mount: /scratch", 28, source="slurmd")
    change = happened("prolog.d/mounts.sh updated by configuration management", 3_000, "*", "change")
    found = begins(items(extractor, log, disk, prolog, change))
    assert found[0] == disk.text
    assert change.text not in found
    assert begins(items(extractor, log, prolog, change))[0] == change.text


def test_a_port_that_went_down_leads_the_eviction_by_a_file_server(extractor: Extractor) -> None:
    log = STEPS + "OSError: [Errno 108] Cannot send after transport endpoint shutdown\n"
    down = happened("mlx5_core 0000:1a:00.0 ib0: Port: 1 Link DOWN", 400, "ai31")
    evicted = happened("LustreError: work-OST0001: This client was evicted by work-OST0001", 200, "ai31")
    assert begins(items(extractor, log, down, evicted))[0] == down.text
    other = happened(down.text, 400)  # of the other node
    assert begins(items(extractor, log, other, evicted))[0] == evicted.text


def test_a_port_that_came_back_after_the_ranks_began_to_wait_was_down_when_it_mattered(extractor: Extractor) -> None:
    waited = (
        "[rank0]:[E1120 09:58:00.000000000 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=700, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600010 "
        "milliseconds before timing out.\n"
    )
    log = "".join(line + "\n" for line in STEPS.split("\n")[:38]) + waited  # the last step at 09:47
    down = happened("mlx5_core 0000:1a:00.0 ib0: Port: 1 Link DOWN", 725)
    during = happened("mlx5_core 0000:1a:00.0 ib0: Port: 1 Link ACTIVE", 600)
    before = happened(during.text, 724)
    assert begins(items(extractor, log, down, during)) == [down.text]
    assert begins(items(extractor, log, down, before)) != [down.text]


def test_a_link_that_came_up_slow_explains_that_the_job_met_its_limit(extractor: Extractor) -> None:
    slow = [f"2026-11-20 {9 + n // 60:02}:{n % 60:02}:00 step {16 + n // 4} loss 1.5\n" for n in range(30, 60, 4)]
    log = "".join(f"2026-11-20 09:{10 + n:02}:00 step {n} loss 1.5\n" for n in range(18)) + "".join(slow)
    log += "slurmstepd: error: *** JOB 7 ON ai31 CANCELLED AT 2026-11-20T10:00:00 DUE TO TIME LIMIT ***\n"
    text = "ixgbe 0000:3b:00.0 eno3: NIC Link is Up {}, Flow Control: RX/TX"
    came_up = happened(text.format("1 Gbps"), 1_900, "ai31")
    assert begins(items(extractor, log, came_up, status="timeout"))[0] == came_up.text
    fast = happened(text.format("10 Gbps"), 1_900, "ai31")
    assert fast.text not in begins(items(extractor, log, fast, status="timeout"))


@pytest.mark.parametrize(("path", "leads"), [("/proj/tts/clips_v2", True), ("/proj/asr/notes", False)])
def test_files_that_somebody_removed_lead_the_failure_that_names_them(
    extractor: Extractor, path: str, *, leads: bool
) -> None:
    log = STEPS + "OSError: [Errno 116] Stale file handle: '/proj/tts/clips_v2/0001.flac'\n"
    removed = happened(f"kay : TTY=pts/4 ; COMMAND=/usr/bin/rm -r {path}", 300, "login1", "audit")
    assert (begins(items(extractor, log, removed))[0] == removed.text) is leads


def test_a_directory_that_was_not_mounted_explains_at_once_that_software_is_missing(extractor: Extractor) -> None:
    log = "2026-11-20 09:58:00 start\n2026-11-20 09:59:30 ImportError: libcudnn.so.9: cannot open shared object file\n"
    failed = happened("automount[91]: lookup of sw failed", 40, "ai31", "automount")
    long_before = happened(failed.text, 900, "ai31", "automount")
    assert begins(items(extractor, log, failed))[0] == failed.text
    assert failed.text not in begins(items(extractor, log, long_before))


def test_the_limit_of_an_account_leads_the_time_limit_by_which_it_shows(extractor: Extractor) -> None:
    log = STEPS + "slurmstepd: error: *** JOB 7 ON ai31 CANCELLED AT 2026-11-20T10:00:00 DUE TO TIME LIMIT ***\n"
    text = "JobId=7 timed out, the job is at or exceeds assoc 3(ml/kay/(null)) max cpu minutes of 90 with 91"
    used = happened(text, 1, None, "slurmctld")
    assert begins(items(extractor, log, used, status="timeout"))[0] == text


def test_users_that_a_node_does_not_know_are_of_its_directory_service(extractor: Extractor) -> None:
    log = "KeyError: 'getpwuid(): uid not found: 611'\n"
    offline = happened("sssd: Backend is offline", 3_700, "ai31", "sssd")  # before the job began
    assert begins(items(extractor, log, offline))[0] == offline.text
